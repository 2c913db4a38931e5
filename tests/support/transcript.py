"""Golden conversations: what a client sends, and to the byte's meaning what it must hear.

A transcript is a file of JSON lines. These say what happens:

    {"about": "words for the reader"}
    {"send": MESSAGE}                a message, framed as `framing` says (`lines` if absent)
    {"bytes": "\\u00ff{}\\n"}           raw input, each character one byte
    {"finish": ID}                   the waiting call of this id returns
    {"changed": URI}                 this resource has changed
    {"announce": [LEVEL, DATA]}      something is logged that belongs to no call
    {"end": true}                    the input ends
    {"exact": true}                  from here on every byte counts

Each is followed by what comes out because of it, in order:

    {"expect": MESSAGE}              with `framing` where that is not `lines`
    {"hear": "..."}                  instead, once every byte counts; each character one byte

It is replayed through framing, JSON-RPC and server, with no I/O. Every reply and notification
is judged by the official types of the revision that it is in, and every request that was not
cancelled must have had exactly one reply by the end.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mcp_types import methods
from mcp_types.jsonrpc import JSONRPCError

from bridge.mcp import framing, jsonrpc
from bridge.mcp.catalogue import Catalogue
from bridge.mcp.context import Context
from bridge.mcp.errors import ToolError
from bridge.mcp.framing import Frame, Framer, Framing, SkippedInput
from bridge.mcp.jsonrpc import Malformed, Message, Notification, Request, Response
from bridge.mcp.messages import MessageReader
from bridge.mcp.server import Action, Call, Cancel, Send, Server
from bridge.mcp.subscriptions import SUBSCRIPTION_ID
from bridge.mcp.toolset import Toolset
from tests.mcp import sample_tools
from tests.mcp.sample_tools import IMPLEMENTATION, Count, Workbench, states

TOOLSET = Toolset(
    "transcripts",
    (
        sample_tools.say,
        sample_tools.count,
        sample_tools.read_out,
        sample_tools.fail,
        sample_tools.break_down,
        sample_tools.wait,
        sample_tools.climb,
        sample_tools.ask_back,
    ),
    (sample_tools.words, sample_tools.broken),
    (sample_tools.greet,),
)

FRAMINGS = {"lines": Framing.LINES, "headers": Framing.HEADERS}

Line = dict[str, Any]


def read(path: Path) -> list[Line]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def write(path: Path, lines: list[Line]) -> None:
    text = "".join(json.dumps(each) + "\n" for each in lines)
    path.write_text(text, "utf-8")


class Replay:
    """One connection, on which a transcript is said again."""

    def __init__(self, *, byte_by_byte: bool = False) -> None:
        self._byte_by_byte = byte_by_byte
        self._framer = Framer()
        self._reader = MessageReader()
        self._server = Server(IMPLEMENTATION, Catalogue(TOOLSET, [Workbench()]), states())
        self._waiting: dict[object, Call] = {}
        self._asked: dict[tuple[type, object], tuple[str, str]] = {}
        self._heard: list[Line] = []
        self._exact = False

    def lines(self, transcript: list[Line]) -> Iterator[Line]:
        """Yield the transcript with what really comes out in place of what it expects."""
        for line in transcript:
            if "expect" in line or "hear" in line:
                continue
            yield line
            self._happen(line)
            yield from self._heard
            self._heard = []

    def _happen(self, line: Line) -> None:
        match line:
            case {"about": str()}:
                pass
            case {"exact": True}:
                self._exact = True
            case {"send": message, **rest}:
                kind = FRAMINGS[rest.get("framing", "lines")]
                self._feed(framing.encode(Frame(json.dumps(message).encode(), kind)))
            case {"bytes": str(text)}:
                self._feed(text.encode("latin-1"))
            case {"finish": id_}:
                self._send(self._server.complete(self._waiting.pop(id_), Count(1, "word")))
            case {"changed": uri}:
                for update in self._server.subscriptions.updates(uri):
                    self._send(Send(*update))
            case {"announce": [level, data]}:
                if announced := self._server.announce(level, "transcript", data):
                    self._send(announced)
            case {"end": True}:
                self._take(self._framer.end())
                for response in self._server.close():
                    self._send(response)
                assert not self._asked, "some requests have no reply"
            case _:
                raise AssertionError(f"no transcript has such a line: {line}")

    def _feed(self, data: bytes) -> None:
        step = 1 if self._byte_by_byte else len(data)
        for start in range(0, len(data), step):
            self._take(self._framer.feed(data[start : start + step]))

    def _take(self, frames: list[Frame | SkippedInput]) -> None:
        for frame in frames:
            if (message := self._reader.read(frame)) is None:
                continue
            if not isinstance(message, list):
                self._note(message)
            elif self._server.session.revision.batches or _has_bare_call(message):
                for each in message:
                    self._note(each)
            for action in self._server.receive(message, frame.framing):
                self._act(action)

    def _note(self, message: Message) -> None:
        """Remember that `message` is owed one reply, or that another one no longer is."""
        match message:
            case Request(id=id_, method=method):
                assert (type(id_), id_) not in self._asked
                self._asked[type(id_), id_] = self._server.dialect(message), method
            case Malformed(id=id_) if id_ is not None:
                self._asked[type(id_), id_] = "?", "?"
            case Notification(method="notifications/cancelled", params={"requestId": id_}):
                self._asked.pop((type(id_), id_), None)

    def _act(self, action: Action | None) -> None:
        match action:
            case Send():
                self._send(action, sample_tools.STATELESS)
            case Cancel(call=call):
                del self._waiting[call.id]
            case Call() if action.of.waits:
                self._waiting[action.id] = action
            case Call():
                self._send(self._run(action))

    def _run(self, call: Call) -> Send | None:
        revision = None if call.meta is None else call.meta.revision.date

        def send_progress(done: float, total: float | None, message: str | None) -> None:
            if progress := self._server.progress(call, done, total, message):
                self._send(progress, revision)

        def send_log(level: str, data: object) -> None:
            if message := self._server.log(call, level, data):
                self._send(message, revision)

        context = Context(send_progress, send_log, *sample_tools.UNASKED)
        given = (context,) if call.of.signature.wants_context else ()
        try:
            value = call.of.function(*given, **call.arguments)
        except (ToolError, RuntimeError) as error:
            return self._server.fail(call, error)
        return self._server.complete(call, value)

    def _send(self, action: Send | None, revision: str | None = None) -> None:
        if action is None:
            return
        message = action.message
        match message:
            case Notification(method=method, params=params):
                assert isinstance(params, dict)
                tagged = SUBSCRIPTION_ID in params.get("_meta", {})
                date = revision or self._server.session.revision.date
                date = sample_tools.STATELESS if tagged else date
                methods.parse_server_notification(method, date, params)
            case Response():
                self._judge(message)
            case list():
                for each in message:
                    self._judge(each)
        self._hear(jsonrpc.encode(message), action.framing)

    def _hear(self, body: bytes, kind: Framing) -> None:
        """Keep what goes out, as a client reads it back from the wire."""
        data = framing.encode(Frame(body, kind))
        if self._exact:
            self._heard.append({"hear": data.decode("latin-1")})
            return
        (frame,) = Framer().feed(data)
        assert isinstance(frame, Frame)
        named = {} if frame.framing is Framing.LINES else {"framing": "headers"}
        self._heard.append({"expect": json.loads(frame.body), **named})

    def _judge(self, response: Response) -> None:
        owed = None
        if response.id is not None:
            owed = self._asked.pop((type(response.id), response.id))
        if response.error is not None:
            JSONRPCError.model_validate(json.loads(jsonrpc.encode(response)))
            return
        assert owed is not None
        dialect, method = owed
        if dialect == "bare" or _has_parts(response.result):
            return  # in a form of ours, which no official type knows
        assert isinstance(response.result, dict)
        result = response.result
        if self._server.session.revision.typed_parts and "tools" in result:
            result = {"tools": [*map(_of_the_revision, result["tools"])]}
        match result:
            case {"capabilities": {"tools": {"list": True, "call": True}} as capabilities}:
                result = {**result, "capabilities": {**capabilities, "tools": {}}}
        known = methods.serialize_server_result(method, dialect, result)
        assert known == result, "there is more in it than the revision knows"


def _of_the_revision(tool: Any) -> dict[str, Any]:
    """Return a tool without what the older dialect has beside `inputSchema`, which is the same."""
    assert tool["input_schema"] == tool["inputSchema"]
    return {name: each for name, each in tool.items() if name != "input_schema"}


def _has_bare_call(batch: list[Message]) -> bool:
    tools = {tool.name for tool in TOOLSET.tools}
    asked = [each for each in batch if isinstance(each, (Request, Notification))]
    return any(each.method in tools for each in asked)


def _has_parts(result: object) -> bool:
    content = result.get("content") if isinstance(result, dict) else None
    return isinstance(content, list) and content[-1]["type"] == "interpret"
