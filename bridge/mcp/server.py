"""What each message asks for, and how each outcome is answered. Pure.

`Server.receive` takes a decoded message and says what to do about it; `Server.complete` takes
what came of a call and words the reply. Each request is judged by what it carries, not by what
came first: an MCP method is answered under the revision agreed on (or the newest, before any
handshake), and a tool's own name as the method is the bare dialect.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, TypeAlias

from bridge.mcp import jsonrpc, revisions
from bridge.mcp.jsonrpc import Batch, Id, Malformed, Message, Notification, Request, Response
from bridge.mcp.revisions import Revision
from bridge.mcp.schema import ArgumentsError, SchemaError, render
from bridge.mcp.toolset import ArgumentError, BoundTool, Tool, ToolError

BARE = None
"""The dialect without MCP: a tool's name as the method, its arguments as the params."""


@dataclass(frozen=True)
class Implementation:
    """Who we are, as `initialize` tells it (MCP schema, `Implementation`)."""

    name: str
    title: str
    version: str
    instructions: str
    """How the tools work together; clients show it to the model."""


@dataclass(frozen=True)
class Succeeded:
    """The tool returned `value`."""

    value: object


@dataclass(frozen=True)
class Failed:
    """The tool could not, and said why."""

    error: ToolError


@dataclass(frozen=True)
class Crashed:
    """The tool broke; `reason` is fit for the caller to see."""

    reason: str


Outcome: TypeAlias = Succeeded | Failed | Crashed


@dataclass(frozen=True)
class Reply:
    """Send this."""

    response: Response | tuple[Response, ...]


@dataclass(frozen=True)
class Call:
    """Run this tool, then hand its outcome to `Server.complete`."""

    serial: int
    """Ours, and unique: a client may use one id twice."""
    id: Id | None
    """None for a notification: the tool runs and nobody is told."""
    tool: Tool
    run: Callable[..., Any] = field(repr=False)
    arguments: Mapping[str, object]
    revision: Revision | None
    """None in the bare dialect."""
    batch: int | None = None
    """The serial of the batch it came in, whose replies go out together."""


@dataclass(frozen=True)
class Cancel:
    """Stop working on this call; it gets no reply."""

    call: Call


Action: TypeAlias = Reply | Call | Cancel


class Server:
    """One client's conversation. Not for two clients: it remembers what was agreed."""

    def __init__(self, implementation: Implementation, tools: Mapping[str, BoundTool]) -> None:
        self._implementation = implementation
        self._tools = tools
        self._revision = revisions.UNNEGOTIATED
        self._serials: Iterator[int] = count(1)
        self._running: dict[int, Call] = {}
        self._batches: dict[int, _OpenBatch] = {}
        self._methods: dict[str, Callable[[Mapping[str, object]], Mapping[str, object]]] = {
            "initialize": self._initialize,
            "ping": lambda params: {},
            "tools/list": self._list_tools,
        }

    @property
    def revision(self) -> Revision:
        """The revision that MCP requests are answered under just now."""
        return self._revision

    def receive(self, message: Message | Batch) -> list[Action]:
        """Return what to do about `message`, in order."""
        if isinstance(message, Batch):
            return self._receive_batch(message)
        return self._receive(message)

    def complete(self, call: Call, outcome: Outcome) -> Reply | None:
        """Return the reply to `call`; None if nobody waits for one, or not yet (a batch)."""
        if self._running.pop(call.serial, None) is None or call.id is None:
            return None
        return self._hand_in(call, _reply(call, outcome))

    def _receive_batch(self, batch: Batch) -> list[Action]:
        if not self._revision.batches:
            reason = f"batches are not part of MCP {self._revision.date}"
            return [_refusal(None, jsonrpc.RpcError(jsonrpc.INVALID_REQUEST, reason))]
        if not batch.messages:
            reason = "a batch holds at least one message"
            return [_refusal(None, jsonrpc.RpcError(jsonrpc.INVALID_REQUEST, reason))]
        serial = next(self._serials)
        # Until it is read to its end it waits for itself, so that a call cancelled within it, or
        # the last of its calls so far, does not settle it.
        opened = self._batches[serial] = _OpenBatch([], {serial})
        actions: list[Action] = []
        for message in batch.messages:
            for action in self._receive(message):
                match action:
                    case Reply(response=Response() as response):
                        opened.responses.append(response)
                    case Call(id=id_) if id_ is not None:
                        call = replace(action, batch=serial)
                        self._running[call.serial] = call
                        opened.pending.add(call.serial)
                        actions.append(call)
                    case _:
                        actions.append(action)
        if reply := self._settle(serial, serial):
            actions.append(reply)
        return actions

    def _hand_in(self, call: Call, response: Response | None) -> Reply | None:
        """Return the reply that `response` is, or completes; None for a cancelled call alone."""
        if call.batch is None:
            return None if response is None else Reply(response)
        if response is not None:
            self._batches[call.batch].responses.append(response)
        return self._settle(call.batch, call.serial)

    def _settle(self, serial: int, part: int) -> Reply | None:
        """Return the reply to the batch `serial` if `part` was the last it waited for."""
        batch = self._batches[serial]
        batch.pending.discard(part)
        if batch.pending:
            return None
        del self._batches[serial]
        return Reply(tuple(batch.responses)) if batch.responses else None

    def _receive(self, message: Message) -> list[Action]:
        match message:
            case Malformed(error=error, id=id_):
                return [_refusal(id_, error)]
            case Response():
                return []
            case Notification(method="notifications/cancelled", params=params):
                return self._cancel(params)
            case Notification(method=method, params=params):
                return self._notified(method, params)
            case Request(id=id_, method=method, params=params):
                try:
                    return self._requested(id_, method, _by_name(params))
                except jsonrpc.RpcError as error:
                    return [_refusal(id_, error)]

    def _notified(self, method: str, params: object) -> list[Action]:
        # A bare call without an id is carried out and not answered (JSON-RPC 2.0, section 4.1).
        if method not in self._tools or isinstance(params, list):
            return []
        call = self._call(None, method, _by_name(params), BARE)
        return [call] if isinstance(call, Call) else []

    def _requested(self, id_: Id, method: str, params: Mapping[str, object]) -> list[Action]:
        if method == "tools/call":
            return [self._call_tool(id_, params)]
        if answer := self._methods.get(method):
            return [Reply(Response(id_, answer(params)))]
        if method in self._tools:
            return [self._call(id_, method, params, BARE)]
        raise jsonrpc.RpcError(
            jsonrpc.METHOD_NOT_FOUND,
            f"{method[:100]!r} is neither a method of MCP that is served here nor a tool "
            f"({', '.join(self._tools)})",
        )

    def _initialize(self, params: Mapping[str, object]) -> Mapping[str, object]:
        requested = params.get("protocolVersion")
        if requested is not None and not isinstance(requested, str):
            raise jsonrpc.RpcError(jsonrpc.INVALID_PARAMS, "protocolVersion is not a string")
        self._revision = revisions.negotiate(requested)
        info = {"name": self._implementation.name, "version": self._implementation.version}
        if self._revision.titles:
            info["title"] = self._implementation.title
        return {
            "protocolVersion": self._revision.date,
            "capabilities": {"tools": {}},
            "serverInfo": info,
            "instructions": self._implementation.instructions,
        }

    def _list_tools(self, params: Mapping[str, object]) -> Mapping[str, object]:
        if params.get("cursor") is not None:
            raise jsonrpc.RpcError(
                jsonrpc.INVALID_PARAMS, "cursor: the list has one page, so no cursor was given out"
            )
        return {"tools": [_describe(one.tool, self._revision) for one in self._tools.values()]}

    def _call_tool(self, id_: Id, params: Mapping[str, object]) -> Action:
        name, arguments = params.get("name"), params.get("arguments")
        if not isinstance(name, str):
            raise jsonrpc.RpcError(jsonrpc.INVALID_PARAMS, "name: the name of a tool is wanted")
        if name not in self._tools:
            raise jsonrpc.RpcError(
                jsonrpc.INVALID_PARAMS,
                f"Unknown tool: {name[:100]!r}. The tools are {', '.join(self._tools)}",
            )
        if arguments is not None and not isinstance(arguments, dict):
            raise jsonrpc.RpcError(jsonrpc.INVALID_PARAMS, "arguments: an object is wanted")
        return self._call(id_, name, arguments or {}, self._revision)

    def _call(
        self, id_: Id | None, name: str, arguments: Mapping[str, object], revision: Revision | None
    ) -> Action:
        bound = self._tools[name]
        call = Call(next(self._serials), id_, bound.tool, bound.run, {}, revision)
        try:
            call = replace(call, arguments=bound.tool.signature.bind(arguments))
        except ArgumentsError as error:
            return Reply(_reply(call, Failed(_argument_error(bound.tool, error))))
        self._running[call.serial] = call
        return call

    def _cancel(self, params: object) -> list[Action]:
        id_ = params.get("requestId") if isinstance(params, dict) else None
        actions: list[Action] = []
        for call in [one for one in self._running.values() if one.id is not None]:
            # 1 and True, or 1 and 1.0, are one key in Python and two ids in JSON.
            if type(call.id) is type(id_) and call.id == id_:
                del self._running[call.serial]
                actions.append(Cancel(call))
                if reply := self._hand_in(call, None):
                    actions.append(reply)
        return actions


@dataclass
class _OpenBatch:
    responses: list[Response]
    pending: set[int]


def _by_name(params: object) -> Mapping[str, object]:
    if params is None:
        return {}
    if not isinstance(params, Mapping):
        raise jsonrpc.RpcError(
            jsonrpc.INVALID_PARAMS, "params are given by position; they are named here"
        )
    return params


def _refusal(id_: Id | None, error: jsonrpc.RpcError) -> Reply:
    return Reply(Response(id_, error=error.wire()))


def _argument_error(tool: Tool, error: ArgumentsError) -> ArgumentError:
    expected = ", ".join(
        one.wire if one.required else f"{one.wire} (optional)" for one in tool.signature.parameters
    )
    return ArgumentError(
        f"{tool.name}: {error}",
        condition="bad-request",
        hint=f"Its arguments: {expected}." if expected else "It takes no arguments.",
    )


def _reply(call: Call, outcome: Outcome) -> Response:
    word = _bare_reply if call.revision is BARE else _mcp_reply
    try:
        return word(call, outcome)
    except (SchemaError, RecursionError) as error:
        return word(call, Crashed(f"what the tool {call.tool.name} returned is not JSON: {error}"))


def _bare_reply(call: Call, outcome: Outcome) -> Response:
    match outcome:
        case Succeeded(value=str() as text):
            return Response(call.id, {"content": [_text(text)]})
        case Succeeded(value=value):
            return Response(call.id, render(value))
        case Failed(error=error):
            code = (
                jsonrpc.INVALID_PARAMS
                if isinstance(error, ArgumentError)
                else jsonrpc.INTERNAL_ERROR
            )
            data = {"condition": error.condition, "hint": error.hint}
            return Response(call.id, error=jsonrpc.RpcError(code, data, error.message).wire())
        case Crashed(reason=reason):
            data = {"condition": "internal-server-error", "hint": reason}
            return Response(call.id, error=jsonrpc.RpcError(jsonrpc.INTERNAL_ERROR, data).wire())


def _mcp_reply(call: Call, outcome: Outcome) -> Response:
    match outcome:
        case Succeeded(value=str() as text):
            return Response(call.id, {"content": [_text(text)], "isError": False})
        case Succeeded(value=value):
            wire = render(value)
            result: dict[str, object] = {"content": [_text(_compact(wire))], "isError": False}
            if call.revision is not None and call.revision.structured:
                result["structuredContent"] = wire
            return Response(call.id, result)
        case Failed(error=error):
            lines = (error.message, f"Condition: {error.condition}", f"Hint: {error.hint}")
            return Response(call.id, {"content": [_text("\n".join(lines))], "isError": True})
        case Crashed(reason=reason):
            return Response(call.id, error=jsonrpc.RpcError(jsonrpc.INTERNAL_ERROR, reason).wire())


_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def _text(text: str) -> dict[str, object]:
    return {"type": "text", "text": text}


def _describe(tool: Tool, revision: Revision) -> dict[str, object]:
    wire: dict[str, object] = {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": tool.signature.input_schema(),
    }
    if revision.titles:
        wire["title"] = tool.title
    if revision.structured and tool.output_schema is not None:
        wire["outputSchema"] = tool.output_schema
    if revision.annotations:
        wire["annotations"] = {
            "title": tool.title,
            "readOnlyHint": tool.read_only,
            "destructiveHint": tool.destructive,
            "idempotentHint": tool.idempotent,
            "openWorldHint": tool.open_world,
        }
    return wire
