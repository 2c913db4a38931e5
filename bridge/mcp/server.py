"""The server's side of one MCP conversation: the actions and the reply for each message. Pure.

`Server.receive` takes a decoded message and returns the actions that it calls for.
`Server.complete` takes a tool's result, `Server.fail` a tool's exception, and both return the
response. The server answers a request by the rules of the revision that the request's `_meta`
names. If `_meta` names none, it uses the revision that `initialize` agreed on, or `UNNEGOTIATED`
before that. A request whose method is the name of a tool is a bare call.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from bridge.mcp import jsonrpc, revisions
from bridge.mcp.asking import NO_ANSWERS, Answers, InputRequired, RequestStates
from bridge.mcp.catalogue import Catalogue
from bridge.mcp.content import bare_result, prompt_messages, text_block, tool_result
from bridge.mcp.errors import ArgumentError, ToolError
from bridge.mcp.framing import Framing
from bridge.mcp.jsonrpc import Id, Json, Message, Notification, Object, Request, Response, RpcError
from bridge.mcp.revisions import CACHE_CONTENTS, CACHE_LISTS, LEVELS, RequestMeta, Revision
from bridge.mcp.schema import MismatchError, Schema, as_meant
from bridge.mcp.subscriptions import Subscriptions
from bridge.mcp.toolset import Prompt, Tool

Answer: TypeAlias = Callable[[Object, Revision], Object]

WITH_ARGUMENTS: Schema = {"properties": {"arguments": {"type": "object"}}}
"""The schema of the params of a method that calls a tool or a prompt."""

APART = frozenset({"tools/call", "prompts/get", "subscriptions/listen"})
"""The methods whose answer depends on more than the params and the revision."""


class Implementation(NamedTuple):
    """The server's name and version (MCP schema, `Implementation`)."""

    name: str
    title: str
    version: str
    instructions: str
    """A text on how the tools work together, which clients show to the model. It may be empty."""

    def wire(self, revision: Revision) -> dict[str, Json]:
        """Return the name and version in the form that `revision` has."""
        info: dict[str, Json] = {"name": self.name, "version": self.version}
        return info | {"title": self.title} if revision >= revisions.V2025_06_18 else info

    def guidance(self) -> dict[str, Json]:
        """Return the member of a result that has the instructions; nothing if these are empty."""
        return {"instructions": self.instructions} if self.instructions else {}


class Send(NamedTuple):
    """Send a message, or the responses to a batch."""

    message: Request | Notification | Response | list[Response]
    framing: Framing
    """The framing of the message that asked for this one."""


@dataclass(eq=False)
class Call:
    """Run this tool or prompt, then call `Server.complete` with its result or `Server.fail`.

    Calls are compared by identity, since a client may use an id twice.
    """

    id: Id | None
    """None for a notification: the tool runs and no response is sent."""
    asked: Request | Notification
    """The message that calls it."""
    of: Tool | Prompt
    arguments: Mapping[str, object]
    meta: RequestMeta | None
    """None for a bare call: a tool's name as the method, its arguments as the params."""
    framing: Framing
    batch: jsonrpc.Batch | None = None
    """The batch that the call came in, if the batch waits for its response."""
    progress: float = float("-inf")
    """The progress that the tool reported last."""
    answers: Answers = NO_ANSWERS
    """The answers to the questions that the call asked when it ran before."""
    bound: Json = None
    """The tool and its arguments. A `requestState` of this call is valid only for these."""


class Cancel(NamedTuple):
    """Stop working on this call; it gets no response."""

    call: Call


Action: TypeAlias = Send | Call | Cancel | Response
"""What to do next. A `Response` is the client's answer to a request that a call may have sent."""


class Server:
    """The conversation with one client. It remembers the handshake, so no two clients share it."""

    def __init__(
        self, implementation: Implementation, catalogue: Catalogue, states: RequestStates
    ) -> None:
        self.on_failure: Callable[[Request | Notification, BaseException], None] = lambda *_: None
        """Called with a message whose call was refused or whose resource failed, and why."""
        self._states = states
        self._implementation = implementation
        self._catalogue = catalogue
        self.session = RequestMeta(revisions.UNNEGOTIATED, {})
        """How we serve requests that do not name a revision themselves."""
        self._log_framing = self._framing = Framing.LINES
        self._running: dict[Call, None] = {}
        """The calls that have no response yet, in the order in which they came."""
        self.subscriptions = Subscriptions(catalogue.resource_at)
        self._named: dict[str, Mapping[str, Tool | Prompt]] = {
            "tools/call": catalogue.tools,
            "prompts/get": catalogue.prompts,
        }
        """The tools or prompts that each method with `arguments` calls, by the `name` in its
        params."""
        self._methods: dict[str, tuple[Answer, Object]] = {
            "initialize": (self._initialize, {}),
            "ping": (lambda params, revision: {}, {}),
            "server/discover": (self._discover, CACHE_LISTS),
            "tools/list": (catalogue.list_tools, CACHE_LISTS),
            "resources/list": (catalogue.list_resources, CACHE_LISTS),
            "resources/templates/list": (catalogue.list_resource_templates, CACHE_LISTS),
            "resources/read": (catalogue.read_resource, CACHE_CONTENTS),
            "resources/subscribe": (self._subscribe, {}),
            "resources/unsubscribe": (self._unsubscribe, {}),
            "prompts/list": (catalogue.list_prompts, CACHE_LISTS),
            "completion/complete": (catalogue.complete, {}),
            "logging/setLevel": (self._set_level, {}),
        }

    def dialect(self, request: Request | Notification) -> str:
        """Return, for the log, `bare` or the date of the revision of `request`."""
        if request.method in self._catalogue.tools:
            return "bare"
        meta = request.params.get("_meta") if isinstance(request.params, dict) else None
        named = meta.get(revisions.PROTOCOL_VERSION) if isinstance(meta, dict) else None
        return named[:10] if isinstance(named, str) else self.session.revision.date

    def as_meant(self, message: Message) -> Message:
        """Return `message` with the params that its client meant, to serve and log it so."""
        if not isinstance(message, (Request, Notification)):
            return message
        params = jsonrpc.as_object(message.params)
        if not isinstance(params, dict):
            return message
        if tool := self._catalogue.tools.get(message.method):
            return message._replace(params=as_meant(tool.input_schema, params))
        if called := self._named.get(message.method, {}).get(str(params.get("name"))):
            params = as_meant(WITH_ARGUMENTS, params)
            arguments = jsonrpc.as_object(params.get("arguments"))
            if isinstance(arguments, dict):
                params = {**params, "arguments": as_meant(called.input_schema, arguments)}
        return message._replace(params=params)

    def receive(
        self, message: Message | list[Message], framing: Framing = Framing.LINES
    ) -> Iterable[Action | None]:
        """Yield, in order, what to do about `message`, which came in `framing`.

        For a batch, None follows what to do about each of its messages.
        """
        self._framing = framing
        if isinstance(message, list):
            return self._receive_batch(message)
        return self._receive(message)

    def complete(self, call: Call, value: object) -> Send | None:
        """Return the response with the tool's result; raises `SchemaError`, `RecursionError`.

        Return None if we owe no response, or if the call's batch waits for other responses.
        """
        if call.meta is None:
            return self._deliver(call, Response(call.id, bare_result(value, self.session.revision)))
        revision = call.meta.revision
        if isinstance(call.of, Prompt):
            messages = prompt_messages(value, revision)
            result: dict[str, Json] = {"description": call.of.description, "messages": messages}
        else:
            result = tool_result(value, revision)
        return self._deliver(call, Response(call.id, self._result(result, revision)))

    def fail(self, call: Call, error: BaseException) -> Send | None:
        """Return the response to a call whose tool raised `error`; None as in `complete`."""
        if isinstance(error, InputRequired) and call.meta is not None:
            try:
                state = self._states.issue(call.bound, error.questions, call.answers)
            except RpcError as refusal:
                return self._deliver(call, Response(call.id, error=refusal.wire()))
            asked = {name: question.wire() for name, question in error.questions.items()}
            result = {"resultType": "input_required", "inputRequests": asked, "requestState": state}
            return self._deliver(call, Response(call.id, self._result(result, call.meta.revision)))
        if isinstance(error, ToolError):
            return self._deliver(call, self._failure(call.id, call.of, call.meta, error))
        reason = f"{call.of.name} broke ({type(error).__name__}); see the log"
        bare = {"condition": "internal-server-error", "hint": reason}
        message = f"{jsonrpc.TITLES[jsonrpc.INTERNAL_ERROR]}: {reason}"
        data = bare if call.meta is None else reason
        crash = RpcError(jsonrpc.INTERNAL_ERROR, data, message)
        return self._deliver(call, Response(call.id, error=crash.wire()))

    def progress(
        self, call: Call, done: float, total: float | None, message: str | None
    ) -> Send | None:
        """Return a progress notification; None if the caller wants none, or `done` did not grow."""
        meta = call.meta
        if meta is None or meta.progress_token is None or call not in self._running:
            return None
        if done <= call.progress:
            return None
        call.progress = done
        params: dict[str, Json] = {"progressToken": meta.progress_token, "progress": done}
        if total is not None:
            params["total"] = total
        if message is not None and meta.revision >= revisions.V2025_03_26:
            params["message"] = message
        return Send(Notification("notifications/progress", params), call.framing)

    def log(self, call: Call, level: str, data: Json) -> Send | None:
        """Return a log message that belongs to `call`; None if the call wants no such level."""
        if call.meta is None or call not in self._running:
            return None
        return _log_message(call.meta.log_level, level, call.of.name, data, call.framing)

    def announce(self, level: str, logger: str, data: Json) -> Send | None:
        """Return a log message that belongs to no call; None unless the client set its level."""
        return _log_message(self.session.log_level, level, logger, data, self._log_framing)

    def can_ask(self, call: Call, method: str) -> bool:
        """Whether we can ask the client by `method` for `call`, which must be running."""
        return call in self._running and call.meta is not None and call.meta.accepts(method)

    def close(self) -> list[Send]:
        """Return what we still owe at the end: the response to each listening request."""
        own = {revisions.SERVER_INFO: self._implementation.wire(revisions.V2026_07_28)}
        return [Send(*response) for response in self.subscriptions.close(own)]

    def _receive_batch(self, messages: list[Message]) -> Iterator[Action | None]:
        problem = None if messages else "a batch holds at least one message"
        methods = {part.method for part in messages if isinstance(part, (Request, Notification))}
        if not self.session.revision.batches and methods.isdisjoint(self._catalogue.tools):
            problem = f"batches are not part of MCP {self.session.revision.date}"
        if problem is not None:
            yield self._refusal(None, RpcError(jsonrpc.INVALID_REQUEST, problem))
            return
        batch = jsonrpc.Batch()
        for message in messages:
            if isinstance(message, Request) and message.method == "initialize":
                reason = "initialize comes alone, not in a batch"  # 2025-03-26, "Initialization"
                message = jsonrpc.Malformed(RpcError(jsonrpc.INVALID_REQUEST, reason), message.id)
            for action in self._receive(message):
                match action:
                    case Send(message=Response() as response):
                        batch.responses.append(response)
                        continue
                    case Call(id=id_) if id_ is not None:
                        action.batch = batch
                        batch.pending += 1
                yield action
            yield None
        if responses := batch.settle():
            yield Send(responses, self._framing)

    def _receive(self, message: Message) -> list[Action]:
        match message := self.as_meant(message):
            case Request(id=id_, params=params):
                try:
                    return [self._request(message, _by_name(params))]
                except RpcError as error:
                    if error.code == jsonrpc.INTERNAL_ERROR and error.__cause__ is not None:
                        self.on_failure(message, error.__cause__)
                    return [self._refusal(id_, error)]
            case jsonrpc.Malformed(error=error, id=id_):
                return [self._refusal(id_, error)]
            case Response():
                return [message]
            case Notification(method="notifications/cancelled", params=params):
                return self._cancel(params)
            case Notification(method=method, params=params):
                # We carry out a bare call without an id, and do not answer it (JSON-RPC 2.0, 4.1).
                tool = self._catalogue.tools.get(method)
                if tool is not None and not isinstance(params, list):
                    action = self._call(message, tool, _by_name(params), None)
                    return [action] if isinstance(action, Call) else []
                return []

    def _request(self, request: Request, params: Object) -> Action:
        method = request.method
        if method in self._catalogue.tools:
            return self._call(request, self._catalogue.tools[method], params, None)
        required = method in revisions.STATELESS_METHODS
        meta = revisions.read_meta(params, self.session, required=required)
        known = method in self._methods or method in APART
        if jsonrpc.is_notification(method):
            reason = f"{method[:100]!r} is a notification; send it without an id"
            raise RpcError(jsonrpc.METHOD_NOT_FOUND, reason)
        if not known or not meta.revision.has(method):
            tools = ", ".join(self._catalogue.tools)
            raise RpcError(
                jsonrpc.METHOD_NOT_FOUND,
                f"{method[:100]!r} is neither a method of MCP {meta.revision.date} that is "
                f"served here nor a tool ({tools}){self._catalogue.why_missing(method)}",
            )
        if method == "tools/call":
            if not meta.revision.named and self._framing is Framing.HEADERS:
                meta = meta._replace(revision=revisions.UNNAMED)
            tool = self._catalogue.find_tool(params)
            revisions.check_capabilities(meta, tool.requires)
            return self._call(request, tool, _arguments(params), meta)
        if method == "prompts/get":
            prompt = self._catalogue.find_prompt(params)
            return self._call(request, prompt, _arguments(params), meta)
        if method == "subscriptions/listen":
            acknowledgement = self.subscriptions.listen(request.id, params, self._framing)
            return Send(acknowledgement, self._framing)
        answer, caching = self._methods[method]
        result = self._result(answer(params, meta.revision), meta.revision, caching)
        return Send(Response(request.id, result), self._framing)

    def _initialize(self, params: Object, revision: Revision) -> Object:
        requested, capabilities = params.get("protocolVersion"), params.get("capabilities")
        if requested is not None and not isinstance(requested, str):
            raise RpcError(jsonrpc.INVALID_PARAMS, "protocolVersion is not a string")
        revision = revisions.negotiate(requested)
        declared = capabilities if isinstance(capabilities, dict) else {}
        self.session = self.session._replace(revision=revision, capabilities=declared)
        return {
            "protocolVersion": revision.date,
            "capabilities": self._capabilities(revision),
            "serverInfo": self._implementation.wire(revision),
            **self._implementation.guidance(),
        }

    def _discover(self, params: Object, revision: Revision) -> Object:
        return {
            "supportedVersions": [supported.date for supported in revisions.ALL],
            "capabilities": self._capabilities(revision),
            **self._implementation.guidance(),
        }

    def _capabilities(self, revision: Revision) -> dict[str, Json]:
        tools = {"list": True, "call": True} if revision.typed_parts else {}
        capabilities: dict[str, Json] = {"tools": tools, "logging": {}}
        if self._catalogue.resources:
            capabilities["resources"] = {"subscribe": True}
        if self._catalogue.prompts:
            capabilities["prompts"] = {}
            if revision >= revisions.V2025_03_26:
                capabilities["completions"] = {}
        return capabilities

    def _set_level(self, params: Object, revision: Revision) -> Object:
        level = params.get("level")
        if level not in LEVELS:
            raise RpcError(jsonrpc.INVALID_PARAMS, f"level: one of {', '.join(LEVELS)} is wanted")
        self.session = self.session._replace(log_level=str(level))
        self._log_framing = self._framing
        return {}

    def _subscribe(self, params: Object, revision: Revision) -> Object:
        resource = self._catalogue.find_resource(params, revision)
        self.subscriptions.session_wide[resource.uri] = self._framing
        return {}

    def _unsubscribe(self, params: Object, revision: Revision) -> Object:
        resource = self._catalogue.find_resource(params, revision)
        self.subscriptions.session_wide.pop(resource.uri, None)
        return {}

    def _call(
        self,
        asked: Request | Notification,
        of: Tool | Prompt,
        arguments: Object,
        meta: RequestMeta | None,
    ) -> Call | Send:
        """Return the call of a tool or prompt, or a response if the arguments do not fit."""
        id_ = asked.id if isinstance(asked, Request) else None
        try:
            values = of.bound(arguments)
        except MismatchError as error:
            refused = _argument_error(of, error)
            self.on_failure(asked, refused)
            return Send(self._failure(id_, of, meta, refused), self._framing)
        call = Call(id_, asked, of, values, meta, self._framing)
        if meta is not None and not meta.revision.handshake:
            call.bound = [type(of).__name__, of.name, arguments]
            call.answers = self._states.take(call.bound, _by_name(asked.params))
        self._running[call] = None
        return call

    def _cancel(self, params: object) -> list[Action]:
        id_ = jsonrpc.read_id(params.get("requestId")) if isinstance(params, dict) else None
        if id_ is None or self.subscriptions.end(id_):
            return []
        actions: list[Action] = []
        for call in [call for call in self._running if call.id == id_]:
            actions.append(Cancel(call))
            if batch := self._deliver(call, None):
                actions.append(batch)
        return actions

    def _deliver(self, call: Call, response: Response | None) -> Send | None:
        """Return what we can send once `call` is over; `response` is None if it was cancelled."""
        running = call in self._running
        self._running.pop(call, None)
        if not running or call.id is None:
            return None
        if call.batch is None:
            return None if response is None else Send(response, call.framing)
        responses = call.batch.settle(response)
        return Send(responses, call.framing) if responses else None

    def _failure(
        self, id_: Id | None, of: Tool | Prompt, meta: RequestMeta | None, error: ToolError
    ) -> Response:
        if meta is None or isinstance(of, Prompt):
            data = {"condition": error.condition, "hint": error.hint}
            callers = isinstance(error, ArgumentError)
            code = jsonrpc.INVALID_PARAMS if callers else jsonrpc.INTERNAL_ERROR
            return Response(id_, error=RpcError(code, data, error.message).wire())
        text = f"{error.message}\nCondition: {error.condition}\nHint: {error.hint}"
        result = {"content": [text_block(text)], "isError": True}
        return Response(id_, self._result(result, meta.revision))

    def _result(self, result: Object, revision: Revision, caching: Object | None = None) -> Object:
        """Return `result`; without a handshake, with the members that each result then has."""
        if revision.handshake:
            return result
        meta = {revisions.SERVER_INFO: self._implementation.wire(revision)}
        return {"resultType": "complete", **result, "_meta": meta, **(caching or {})}

    def _refusal(self, id_: Id | None, error: RpcError) -> Send:
        return Send(Response(id_, error=error.wire()), self._framing)


def _by_name(params: object) -> Object:
    if params is None:
        return {}
    if not isinstance(params, dict):
        raise RpcError(jsonrpc.INVALID_PARAMS, "params are given by position; they are named here")
    return params


def _arguments(params: Object) -> Object:
    return jsonrpc.param(params, "arguments", dict, "an object", {})


def _log_message(
    wanted: str | None, level: str, logger: str, data: Json, framing: Framing
) -> Send | None:
    if wanted is None or LEVELS.index(level) < LEVELS.index(wanted):
        return None
    params = {"level": level, "logger": logger, "data": data}
    return Send(Notification("notifications/message", params), framing)


def _argument_error(of: Tool | Prompt, error: MismatchError) -> ArgumentError:
    expected = ", ".join(
        member.wire if member.required else f"{member.wire} (optional)"
        for member in of.signature.parameters
    )
    return ArgumentError(
        f"{of.name}: {error}",
        condition="bad-request",
        hint=f"Its arguments: {expected}." if expected else "It takes no arguments.",
    )
