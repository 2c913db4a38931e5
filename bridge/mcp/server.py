"""What each message asks for, and how each outcome is answered. Pure.

`Server.receive` takes a decoded message and says what to do about it; `Server.complete` takes
what came of a call and words the reply. Each request is judged by what it carries, not by what
came first: an envelope in `_meta` names its revision, an MCP method without one is answered
under the revision that `initialize` agreed on (or the newest, before any), and a tool's own
name as the method is the bare dialect.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import TypeAlias

from bridge.mcp import jsonrpc, revisions
from bridge.mcp.batches import Batches
from bridge.mcp.calls import Action, Call, Cancel, Failed, Outcome, Reply, Tell
from bridge.mcp.catalogue import Catalogue
from bridge.mcp.context import CannotAskError, Questions
from bridge.mcp.framing import Framing
from bridge.mcp.jsonrpc import (
    Id,
    Json,
    Malformed,
    Message,
    Notification,
    Request,
    Response,
    RpcError,
)
from bridge.mcp.replies import CONTENTS, LISTS, Caching, Implementation, reply_to, stamped
from bridge.mcp.revisions import (
    LEVELS,
    MISSING_CLIENT_CAPABILITY,
    PROTOCOL_VERSION,
    SERVER_INFO,
    Envelope,
    Revision,
    open_envelope,
)
from bridge.mcp.subscriptions import MAX_LISTENERS, Subscriptions
from bridge.mcp.toolset import ArgumentError, ArgumentsError, Tool

Params: TypeAlias = Mapping[str, Json]
Answer: TypeAlias = Callable[[Params, Revision], Mapping[str, Json]]


class Server:
    """One client's conversation. Not for two clients: it remembers what was agreed."""

    def __init__(self, implementation: Implementation, catalogue: Catalogue) -> None:
        self._implementation = implementation
        self._catalogue = catalogue
        self._revision = revisions.UNNEGOTIATED
        self._capabilities: Mapping[str, Json] = {}
        self._log_level: str | None = None
        self._log_framing = self._framing = Framing.LINES
        self._serials: Iterator[int] = count(1)
        self._running: dict[int, Call] = {}
        self._progress: dict[int, float] = {}
        self._batches = Batches()
        self._questions = Questions()
        self._subscriptions = Subscriptions(frozenset(catalogue.resources))
        self._methods: dict[str, tuple[Answer, Caching | None]] = {
            "initialize": (self._initialize, None),
            "ping": (lambda params, revision: {}, None),
            "server/discover": (self._discover, LISTS),
            "tools/list": (catalogue.list_tools, LISTS),
            "resources/list": (catalogue.list_resources, LISTS),
            "resources/templates/list": (catalogue.list_resource_templates, LISTS),
            "resources/read": (catalogue.read_resource, CONTENTS),
            "resources/subscribe": (self._subscribe, None),
            "resources/unsubscribe": (self._unsubscribe, None),
            "prompts/list": (catalogue.list_prompts, LISTS),
            "prompts/get": (catalogue.get_prompt, None),
            "completion/complete": (catalogue.complete, None),
            "logging/setLevel": (self._set_level, None),
        }

    def dialect(self, request: Request | Notification) -> str:
        """Return how `request` is spoken, for the log: `bare`, or a revision's date."""
        if request.method in self._catalogue.tools:
            return "bare"
        meta = request.params.get("_meta") if isinstance(request.params, dict) else None
        named = meta.get(PROTOCOL_VERSION) if isinstance(meta, dict) else None
        return named[:10] if isinstance(named, str) else self._revision.date

    @property
    def revision(self) -> Revision:
        """The revision that MCP requests without an envelope are answered under just now."""
        return self._revision

    def receive(
        self, message: Message | list[Message], framing: Framing = Framing.LINES
    ) -> list[Action]:
        """Return what to do about `message`, in order.

        What it asks to be told of later is told in its `framing`.
        """
        self._framing = framing
        if isinstance(message, list):
            return self._receive_batch(message)
        return self._receive(message)

    def complete(self, call: Call, outcome: Outcome) -> Reply | None:
        """Return the reply to `call`; None if nobody waits for one, or not yet (a batch)."""
        self._progress.pop(call.serial, None)
        if self._running.pop(call.serial, None) is None or call.id is None:
            return None
        return self._batches.hand_in(call, reply_to(call, outcome, self._implementation))

    def progress(
        self, call: Call, done: float, total: float | None, message: str | None
    ) -> Notification | None:
        """Return what to send of a call's progress; None if nobody asked or it did not grow."""
        envelope = call.envelope
        if envelope is None or envelope.progress_token is None or call.serial not in self._running:
            return None
        if done <= self._progress.get(call.serial, float("-inf")):
            return None
        self._progress[call.serial] = done
        params: dict[str, Json] = {"progressToken": envelope.progress_token, "progress": done}
        if total is not None:
            params["total"] = total
        if message is not None and envelope.revision.progress_message:
            params["message"] = message
        return Notification("notifications/progress", params)

    def log(self, call: Call, level: str, logger: str, data: Json) -> Notification | None:
        """Return a log message that belongs to `call`; None if it does not want those."""
        wanted = None if call.envelope is None else call.envelope.log_level
        if wanted is None or call.serial not in self._running:
            return None
        if LEVELS.index(level) < LEVELS.index(wanted):
            return None
        return _log_message(level, logger, data)

    def announce(self, level: str, logger: str, data: Json) -> Tell | None:
        """Return a log message that belongs to no call, for a client that set a level for all."""
        if self._log_level is None or LEVELS.index(level) < LEVELS.index(self._log_level):
            return None
        return Tell(_log_message(level, logger, data), self._log_framing)

    def ask(self, call: Call, method: str, params: Params) -> Request:
        """Return the request to send for `call`; raises `CannotAskError`.

        `receive` returns the `Response` to it; without one it has to be withdrawn.
        """
        if call.serial not in self._running:
            raise CannotAskError(f"the call of {call.tool.name} is over")
        return self._questions.ask(call.envelope, method, params)

    def asked(self, response: Response) -> str | None:
        """Return the method that `response` answers; None if nothing was asked under its id."""
        return self._questions.method(response.id)

    def withdraw(self, id_: Id) -> Notification | None:
        """Give up the question `id_`; return what to send, unless it was answered."""
        return self._questions.withdraw(id_)

    def watched(self, uri: str) -> bool:
        """Whether anybody wants to hear of changes at `uri`."""
        return self._subscriptions.watched(uri)

    def changed(self, uri: str) -> list[Tell]:
        """Return what to send now that the resource at `uri` has changed."""
        return self._subscriptions.changed(uri)

    def close(self) -> list[Reply]:
        """Return what is still owed when we end: a good end to each listening request."""
        own = {SERVER_INFO: self._implementation.wire(revisions.V2026_07_28)}
        return self._subscriptions.close(own)

    def _receive_batch(self, batch: list[Message]) -> list[Action]:
        if not self._revision.batches:
            reason = f"batches are not part of MCP {self._revision.date}"
            return [_refusal(None, RpcError(jsonrpc.INVALID_REQUEST, reason))]
        if not batch:
            reason = "a batch holds at least one message"
            return [_refusal(None, RpcError(jsonrpc.INVALID_REQUEST, reason))]
        serial = next(self._serials)
        self._batches.open(serial)
        actions: list[Action] = []
        for message in batch:
            for action in self._receive_in_batch(message):
                match action:
                    case Reply(response=Response() as response):
                        self._batches.add(serial, response)
                    case Call(id=id_) if id_ is not None:
                        call = action._replace(batch=serial)
                        self._running[call.serial] = call
                        self._batches.add(serial, call)
                        actions.append(call)
                    case _:
                        actions.append(action)
        if reply := self._batches.close(serial):
            actions.append(reply)
        return actions

    def _receive_in_batch(self, message: Message) -> list[Action]:
        if isinstance(message, Request) and message.method == "initialize":
            reason = "initialize comes alone, not in a batch"  # 2025-03-26, "Initialization"
            return [_refusal(message.id, RpcError(jsonrpc.INVALID_REQUEST, reason))]
        return self._receive(message)

    def _receive(self, message: Message) -> list[Action]:
        match message:
            case Request(id=id_, method=method, params=params):
                try:
                    return self._requested(id_, method, _by_name(params))
                except RpcError as error:
                    return [_refusal(id_, error)]
            case Malformed(error=error, id=id_):
                return [_refusal(id_, error)]
            case Response():
                # What answers nothing that is open is a late answer, or none of ours.
                return [message] if self._questions.answered(message) else []
            case Notification(method="notifications/cancelled", params=params):
                return self._cancel(params)
            case Notification(method=method, params=params):
                return self._notified(method, params)

    def _notified(self, method: str, params: object) -> list[Action]:
        # A bare call without an id is carried out and not answered (JSON-RPC 2.0, section 4.1).
        if method not in self._catalogue.tools or isinstance(params, list):
            return []
        call = self._call(None, method, _by_name(params), None)
        return [call] if isinstance(call, Call) else []

    def _requested(self, id_: Id, method: str, params: Params) -> list[Action]:
        if method in self._catalogue.tools:
            return [self._call(id_, method, params, None)]
        known = method in self._methods or method in {"tools/call", "subscriptions/listen"}
        envelope = open_envelope(
            params,
            session=self._revision,
            session_capabilities=self._capabilities,
            session_log_level=self._log_level,
            required=method in revisions.STATELESS_METHODS,
        )
        if not known or not envelope.revision.has(method):
            tools = ", ".join(self._catalogue.tools)
            raise RpcError(
                jsonrpc.METHOD_NOT_FOUND,
                f"{method[:100]!r} is neither a method of MCP {envelope.revision.date} that is "
                f"served here nor a tool ({tools}){self._catalogue.why_missing(method)}",
            )
        if method == "tools/call":
            return [self._call_tool(id_, params, envelope)]
        if method == "subscriptions/listen":
            return [self._listen(id_, params)]
        answer, caching = self._methods[method]
        result = answer(params, envelope.revision)
        wire = stamped(result, envelope.revision, self._implementation, caching)
        return [Reply(Response(id_, wire))]

    def _initialize(self, params: Params, revision: Revision) -> Mapping[str, Json]:
        del revision
        requested, capabilities = params.get("protocolVersion"), params.get("capabilities")
        if requested is not None and not isinstance(requested, str):
            raise RpcError(jsonrpc.INVALID_PARAMS, "protocolVersion is not a string")
        self._revision = revisions.negotiate(requested)
        self._capabilities = capabilities if isinstance(capabilities, dict) else {}
        return {
            "protocolVersion": self._revision.date,
            "capabilities": self._offered(self._revision),
            "serverInfo": self._implementation.wire(self._revision),
            "instructions": self._implementation.instructions,
        }

    def _discover(self, params: Params, revision: Revision) -> Mapping[str, Json]:
        del params
        return {
            "supportedVersions": [one.date for one in revisions.ALL],
            "capabilities": self._offered(revision),
            "instructions": self._implementation.instructions,
        }

    def _offered(self, revision: Revision) -> dict[str, Json]:
        offered: dict[str, Json] = {"tools": {}, "logging": {}}
        if self._catalogue.resources:
            offered["resources"] = {"subscribe": True}
        if self._catalogue.prompts:
            offered["prompts"] = {}
            if revision.completions:
                offered["completions"] = {}
        return offered

    def _set_level(self, params: Params, revision: Revision) -> Mapping[str, Json]:
        del revision
        level = params.get("level")
        if level not in LEVELS:
            raise RpcError(jsonrpc.INVALID_PARAMS, f"level: one of {', '.join(LEVELS)} is wanted")
        self._log_level, self._log_framing = str(level), self._framing
        return {}

    def _subscribe(self, params: Params, revision: Revision) -> Mapping[str, Json]:
        uri = self._catalogue.check_resource(params, revision)
        self._subscriptions.session_wide[uri] = self._framing
        return {}

    def _unsubscribe(self, params: Params, revision: Revision) -> Mapping[str, Json]:
        uri = self._catalogue.check_resource(params, revision)
        self._subscriptions.session_wide.pop(uri, None)
        return {}

    def _listen(self, id_: Id, params: Params) -> Action:
        wanted = params.get("notifications")
        if not isinstance(wanted, dict):
            raise RpcError(jsonrpc.INVALID_PARAMS, "notifications: an object is wanted")
        if id_ in self._subscriptions.listeners:
            raise RpcError(jsonrpc.INVALID_REQUEST, "a listening request of this id is open")
        if len(self._subscriptions.listeners) >= MAX_LISTENERS:
            raise RpcError(
                jsonrpc.INVALID_PARAMS, f"{MAX_LISTENERS} listening requests are open; end some"
            )
        return Tell(self._subscriptions.listen(id_, wanted, self._framing))

    def _call_tool(self, id_: Id, params: Params, envelope: Envelope) -> Action:
        name, arguments = params.get("name"), params.get("arguments")
        if not isinstance(name, str):
            raise RpcError(jsonrpc.INVALID_PARAMS, "name: the name of a tool is wanted")
        if name not in self._catalogue.tools:
            known = ", ".join(self._catalogue.tools)
            raise RpcError(
                jsonrpc.INVALID_PARAMS,
                f"Unknown tool: {name[:100]!r}{self._catalogue.why_missing(name)}. "
                f"The tools are {known}",
            )
        if arguments is not None and not isinstance(arguments, dict):
            raise RpcError(jsonrpc.INVALID_PARAMS, "arguments: an object is wanted")
        tool, _ = self._catalogue.tools[name]
        missing = [one for one in tool.requires if one not in envelope.capabilities]
        if missing and not envelope.revision.handshake:
            raise RpcError(
                MISSING_CLIENT_CAPABILITY,
                {"requiredCapabilities": {one: {} for one in missing}},
                "Missing required client capability",
            )
        return self._call(id_, name, arguments or {}, envelope)

    def _call(
        self, id_: Id | None, name: str, arguments: Params, envelope: Envelope | None
    ) -> Action:
        tool, run = self._catalogue.tools[name]
        serial = next(self._serials)
        try:
            bound = tool.signature.bind(arguments)
        except ArgumentsError as error:
            failed = Failed(_argument_error(tool, error))
            call = Call(serial, id_, tool, run, {}, envelope)
            return Reply(reply_to(call, failed, self._implementation))
        call = Call(serial, id_, tool, run, bound, envelope)
        self._running[call.serial] = call
        return call

    def _cancel(self, params: object) -> list[Action]:
        id_ = params.get("requestId") if isinstance(params, dict) else None
        if (
            isinstance(id_, str | int)
            and not isinstance(id_, bool)
            and self._subscriptions.end(id_)
        ):
            return []
        actions: list[Action] = []
        for call in [one for one in self._running.values() if one.id is not None]:
            # 1 and True, or 1 and 1.0, are one key in Python and two ids in JSON.
            if type(call.id) is type(id_) and call.id == id_:
                del self._running[call.serial]
                self._progress.pop(call.serial, None)
                actions.append(Cancel(call, self._batches.hand_in(call, None)))
        return actions


def _by_name(params: object) -> Params:
    if params is None:
        return {}
    if not isinstance(params, dict):
        raise RpcError(jsonrpc.INVALID_PARAMS, "params are given by position; they are named here")
    return params


def _log_message(level: str, logger: str, data: Json) -> Notification:
    return Notification("notifications/message", {"level": level, "logger": logger, "data": data})


def _refusal(id_: Id | None, error: RpcError) -> Reply:
    return Reply(Response(id_, error=error.wire()), error.__cause__ if error.ours else None)


def _argument_error(tool: Tool, error: ArgumentsError) -> ArgumentError:
    expected = ", ".join(
        one.wire if one.required else f"{one.wire} (optional)" for one in tool.signature.parameters
    )
    return ArgumentError(
        f"{tool.name}: {error}",
        condition="bad-request",
        hint=f"Its arguments: {expected}." if expected else "It takes no arguments.",
    )
