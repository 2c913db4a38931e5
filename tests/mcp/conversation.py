"""The client's side of a `Server`, in JSON, with calls completed by hand."""

import json
from typing import Any

from bridge.mcp import jsonrpc
from bridge.mcp.jsonrpc import Notification
from bridge.mcp.server import Call, Cancel, Send, Server
from tests.mcp.sample_tools import Count, Workbench, request, serving, stateless

HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""The revisions that `initialize` opens, oldest first."""

STATELESS_RESULTS: dict[str, dict[str, object]] = {
    "server/discover": {},
    "tools/list": {},
    "resources/list": {},
    "resources/templates/list": {},
    "resources/read": {"uri": "sample://words"},
    "prompts/list": {},
    "prompts/get": {"name": "greet", "arguments": {"name": "Anna"}},
    "completion/complete": {
        "ref": {"type": "ref/prompt", "name": "greet"},
        "argument": {"name": "name", "value": "a"},
    },
}
"""Methods of 2026-07-28 that are answered at once, each with params that it takes."""

COUNT = Count(1)


class Conversation:
    """One client's, from its first message on."""

    def __init__(self, revision: str | None = None) -> None:
        self.bench = Workbench()
        self.server: Server = serving(self.bench)
        self.calls: list[Call] = []
        self.cancelled: list[Call] = []
        if revision is not None:
            self.send(request("handshake", "initialize", protocolVersion=revision))

    def send(self, value: object) -> Any:
        """Return the reply, if there is one at once; calls are kept."""
        replies = []
        for action in self.server.receive(jsonrpc.decode(json.dumps(value))):
            match action:
                case Send(message=Notification()):
                    pass
                case Send():
                    replies.append(action)
                case Call():
                    self.calls.append(action)
                case Cancel(call=call):
                    self.cancelled.append(call)
        assert len(replies) <= 1
        return wire(replies[0]) if replies else None

    def result(self, value: object) -> Any:
        """Return what the request `value` results in, at once or when its prompt is written."""
        if (reply := self.send(value)) is None:
            call = self.calls[-1]
            reply = self.finish(call, call.of.function(**call.arguments))
        return reply["result"]

    def finish(self, call: Call, outcome: object = COUNT) -> Any:
        """Return the response to `call`, whose tool returned or raised `outcome`."""
        try:
            if isinstance(outcome, Exception):
                raise outcome
            response = self.server.complete(call, outcome)
        except Exception as error:  # noqa: BLE001 - as a session does
            response = self.server.fail(call, error)
        return wire(response) if response else None


def wire(action: Send) -> Any:
    return json.loads(jsonrpc.encode(action.message))


def error_code(reply: Any) -> int:
    code = reply["error"]["code"]
    assert isinstance(code, int)
    return code


def listen(id_: object, *uris: str) -> dict[str, object]:
    """Return the JSON of `subscriptions/listen` for these resources."""
    return stateless(id_, "subscriptions/listen", notifications={"resourceSubscriptions": uris})
