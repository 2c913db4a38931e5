import json
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.mcp import jsonrpc
from bridge.mcp.framing import Framing
from bridge.mcp.jsonrpc import Notification, Response
from bridge.mcp.server import Call, Cancel, Send
from tests.mcp.conversation import HANDSHAKE, STATELESS_RESULTS, Conversation, listen
from tests.mcp.sample_tools import (
    TOOLS,
    notification,
    request,
    stateless,
    tool_call,
)

ids = st.sampled_from(["1", "2", 1, 2, 0, "", -1])
names = st.sampled_from([*(each.name for each in TOOLS.tools), "nope"])
scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=3), st.just(1.5), ids)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=4,
)
arguments = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys(
        ("text", "message", "name", "atMost", "uri", "ref", "argument", "cursor", "_meta", "_x"),
        values | values.map(json.dumps),
    ),
)
sensible = st.one_of(
    st.builds(
        lambda call, id_, name, given: call(id_, name, **given),
        st.sampled_from([tool_call, request]),
        ids,
        names,
        arguments,
    ),
    st.builds(lambda name, given: notification(name, **given), names, arguments),
    st.builds(lambda id_: notification("notifications/cancelled", requestId=id_), ids),
    st.builds(
        lambda id_, revision: request(id_, "initialize", protocolVersion=revision),
        ids,
        st.sampled_from(HANDSHAKE),
    ),
    st.builds(
        lambda id_, method, make, given: make(id_, method, **given),
        ids,
        st.sampled_from(
            [
                *STATELESS_RESULTS,
                "ping",
                "resources/subscribe",
                "logging/setLevel",
                "resources/unsubscribe",
            ]
        ),
        st.sampled_from([request, stateless]),
        st.one_of(st.sampled_from(list(STATELESS_RESULTS.values())), arguments),
    ),
    st.builds(listen, ids, st.sampled_from(["sample://words", "sample://nope"])),
    st.builds(
        lambda id_, name, given: stateless(id_, "tools/call", name=name, arguments=given),
        ids,
        names,
        arguments,
    ),
)
strange = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.sampled_from(["2.0", 2]),
        "id": scalars,
        "method": st.sampled_from(["tools/call", "tools/list", "initialize"]) | names | scalars,
        "params": values | st.fixed_dictionaries({"name": names, "arguments": arguments}),
        "result": values,
        "error": values,
    },
)
singles = st.one_of(sensible, strange, values)
conversations = st.lists(st.one_of(singles, st.lists(singles, max_size=4)), max_size=8)


def asked(value: object) -> Counter[tuple[type, object]]:
    """Return how often each usable id occurs in `value`, told apart by type."""
    counts: Counter[tuple[type, object]] = Counter()
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, dict) and type(each.get("id")) in (str, int):
            counts[type(each["id"]), each["id"]] += 1
    return counts


def tells_why(error: jsonrpc.Object) -> bool:
    """Whether a person who sees the message of an error alone learns the reason."""
    message, data = str(error["message"]), error["data"]
    has_reason = isinstance(data, dict) or str(data) in message
    return has_reason and message not in jsonrpc.TITLES.values()


class Ledger:
    """How many replies are owed to each id."""

    def __init__(self) -> None:
        self.owed: Counter[tuple[type, object]] = Counter()

    def answered(self, reply: Send | None) -> None:
        if reply is None:
            return
        responses = reply.message if isinstance(reply.message, list) else [reply.message]
        assert responses
        jsonrpc.encode(reply.message)
        for each in responses:
            assert isinstance(each, Response)
            if each.error is not None:
                assert tells_why(each.error), each.error
            if each.id is not None:
                self.owed[type(each.id), each.id] -= 1
                assert self.owed[type(each.id), each.id] >= 0

    def cancelled(self, cancel: Cancel) -> None:
        self.owed[type(cancel.call.id), cancel.call.id] -= 1


@given(st.sampled_from([None, "2025-03-26"]), conversations, st.data())
@settings(max_examples=60)
def test_whatever_comes_in_nothing_raises_and_no_id_gets_more_replies_than_it_asked(
    revision: str | None, conversation: list[object], data: st.DataObject
) -> None:
    server, ledger = Conversation(revision).server, Ledger()
    running: list[Call] = []
    for value in conversation:
        ledger.owed += asked(value)
        framing = data.draw(st.sampled_from(Framing))
        for action in server.receive(jsonrpc.decode(json.dumps(value)), framing):
            match action:
                case Send(message=Notification() as notice):
                    jsonrpc.encode(notice)
                case Send():
                    ledger.answered(action)
                case Call():
                    running.append(action)
                case Cancel(call=call):
                    running.remove(call)
                    ledger.cancelled(action)
        for call in data.draw(st.permutations(running))[:2] if running else ():
            running.remove(call)
            ledger.answered(server.complete(call, "done"))
    for call in running:
        ledger.answered(server.complete(call, "done"))
    for closing in server.close():
        ledger.answered(closing)
    assert server._running == {}  # noqa: SLF001 - a leak shows nowhere else
