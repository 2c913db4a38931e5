"""One client's session: bytes in, tool calls run side by side, bytes out.

Tools that are plain functions are answered in the turn of the loop that read the call; coroutines
get a task each, a deadline, and cancellation. At the end of input, calls in flight are finished,
within a bound. At DEBUG the log has one line for each request, reply and cancellation.
"""

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from itertools import count
from types import MappingProxyType
from typing import Any, NamedTuple

from bridge.mcp import jsonrpc
from bridge.mcp.asking import InputRequired, Question
from bridge.mcp.context import Context
from bridge.mcp.errors import ToolError
from bridge.mcp.framing import Frame, Framer, SkippedInput, encode
from bridge.mcp.jsonrpc import Json, Message, Notification, Object, Request, Response, preview
from bridge.mcp.server import Action, Call, Cancel, Failed, Send, Server
from bridge.mcp.toolset import Tool
from bridge.text import one_line

MAX_CALLS_AT_ONCE = 256
"""The most calls of coroutines that run side by side, each in a slot; further ones wait for one.

A tool with `own_slots` has as many of its own.
"""

MAX_PENDING_CALLS = 4096
"""The most calls running or waiting for a slot; further ones are refused until some end.

All input is read all the same: it has the answers for which calls wait, and their cancellations.
"""

MAX_PENDING_BYTES = 64 * 1024 * 1024
"""The most bytes of their requests; with more, further calls are refused too."""

DRAIN_SECONDS = 10.0
"""How long calls in flight may continue after the end of input."""

NOISE_REPLIES_PER_SECOND = 50
"""The most error replies a second to input without a usable id.

Two programs that answer each other's errors would go on for ever.
"""

CHANGES_SECONDS = 0.25
"""The least time between two notifications of changes, so that busy rooms do not flood clients."""

ENDED = ToolError(
    "The server was told to end before this was done.",
    condition="system-shutdown",
    hint="Whether it took effect is not known; look before calling it again.",
)
"""The failure of calls that are still in flight when the session is closed."""

OVERLOADED = ToolError(
    f"Too many calls are pending: at most {MAX_PENDING_CALLS:,} of them, with requests of at most"
    f" {MAX_PENDING_BYTES // 1024 // 1024} MiB together.",
    condition="resource-constraint",
    hint="It was not begun. Call it again once others have ended, or cancel some.",
)
"""The failure of calls that come while these limits are reached."""

CANCEL_REASON = "The call that asked this has ended."
"""The reason given in the notification that cancels a request of ours."""

log = logging.getLogger(__name__)


class Received(NamedTuple):
    """What the log says of a message that came in, and of the reply to it."""

    size: int
    """In bytes; of a message in a batch, its share of them."""
    started: float
    """On the session's clock."""
    dialect: str = "?"
    """`bare`, or a revision's date."""
    method: str = "?"
    id: object = None
    parts: "Mapping[object, Received]" = MappingProxyType({})
    """Of a batch, by their ids."""

    def __str__(self) -> str:
        return f"{one_line(self.dialect)} {one_line(self.method, 100)} id {preview(self.id)}"


PEOPLE_ANSWERED = frozenset({"inputResponses", "requestState"})
"""Params with what the client's user said, in the revisions without a handshake."""


class SentRequest(NamedTuple):
    """A request of ours that the client has not answered yet."""

    method: str
    answer: asyncio.Future[Response | None]
    """None when the client has closed its side."""


class Session:
    """Runs the conversation of a `Server` with the client at the other end of a stream of bytes."""

    def __init__(
        self,
        server: Server,
        write: Callable[[bytes], None],
        *,
        ready: Callable[[], Awaitable[None]] | None = None,
        loading: Mapping[type, asyncio.Event] = MappingProxyType({}),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`loading` has the collaborators that are still being loaded, and what is set after it.

        A call that is handed one of them waits; all else is answered meanwhile. `ready` returns
        once the client reads again what `write` was given.
        """
        self._server = server
        self._write = write
        self._ready = ready
        self._loading = loading
        self._clock = clock
        self._framer = Framer()
        self._slots: defaultdict[str, asyncio.Semaphore] = defaultdict(
            lambda: asyncio.Semaphore(MAX_CALLS_AT_ONCE)
        )
        """By the name of the tool with its own; under the empty name those of all others."""
        self._pending: dict[Call, tuple[asyncio.Task[None], Received]] = {}
        self._pending_bytes = 0
        self._serials = count(1)
        self._requests: dict[jsonrpc.Id | None, SentRequest] = {}
        """By their ids, which are ours, apart from those of the client's own requests."""
        self._noise_second = self._noise_replies = 0
        self._outgoing: list[bytes] = []
        self._changed: dict[str, None] = {}
        self._sending_changes: asyncio.Task[None] | None = None
        self._input_ended = False
        self._over = False

    async def run(self, chunks: AsyncIterator[bytes]) -> None:
        """Serve until the end of `chunks`, then finish what is in flight (`DRAIN_SECONDS`)."""
        try:
            async for chunk in chunks:
                self._receive(self._framer.feed(chunk))
            self._receive(self._framer.end())
            self._input_ended = True
            for request in self._requests.values():
                _settle(request, None)
            if tasks := self._tasks():
                await asyncio.wait(tasks, timeout=DRAIN_SECONDS)
        finally:
            await self._close()

    @property
    def has_subscriptions(self) -> bool:
        """Whether the client subscribed to any resource."""
        return bool(self._server.subscriptions)

    def changed(self, uri: str) -> None:
        """Notify the client, if it subscribed to `uri`: at once, then once a `CHANGES_SECONDS`."""
        if self._over or not self._server.subscriptions.has(uri):
            return
        self._changed[uri] = None
        if self._sending_changes is None or self._sending_changes.done():
            self._sending_changes = asyncio.create_task(self._send_changes())

    def announce(self, level: str, logger: str, data: Json) -> None:
        """Send a log message to a client that set a level for the whole session."""
        if not self._over:
            self._send_now(self._server.announce(level, logger, data))

    def _receive(self, frames: list[Frame | SkippedInput]) -> None:
        for frame in frames:
            started = self._clock()
            message: Message | list[Message]
            match frame:
                case Frame(body=body):
                    message, size = jsonrpc.decode(body), len(body)
                case SkippedInput(reason=reason):
                    error = jsonrpc.RpcError(jsonrpc.PARSE_ERROR, reason)
                    message, size = jsonrpc.Malformed(error), 0
            received = self._described(message, size, started)
            for action in self._server.receive(message, frame.framing):
                self._act(action, received)
        self._flush()

    def _described(self, message: Message | list[Message], size: int, started: float) -> Received:
        """Return what the log says of `message`, and log that it came in."""
        match message:
            case list():
                log.debug("<- batch of %d, %d bytes", len(message), size)
                share = size // max(1, len(message))
                parts = [self._described(one, share, started) for one in message]
                received = Received(share, started, parts={one.id: one for one in parts})
            case Request(id=id_, method=method, params=params):
                received = Received(size, started, self._server.dialect(message), method, id_)
                if log.isEnabledFor(logging.DEBUG):
                    log.debug("<- %s, %d bytes: %s", received, size, preview(_logged(params)))
            case Notification(method=method, params=params):
                received = Received(size, started, self._server.dialect(message), method)
                if log.isEnabledFor(logging.DEBUG):
                    shown = preview(params)
                    log.debug("<- %s, notification, %d bytes: %s", received, size, shown)
            case jsonrpc.Malformed(error=error, id=id_):
                received = Received(size, started, id=id_)
                reason = one_line(str(error), jsonrpc.LOGGED_CHARACTERS)
                log.debug("<- no message, %d bytes: %s", size, reason)
            case Response(id=id_):
                received = Received(size, started, id=id_)
                if request := self._requests.get(id_):
                    log.debug("<- the answer to %s, id %s, %d bytes", request.method, id_, size)
                else:
                    shown = preview(id_)
                    log.debug("<- a response to nothing we asked, id %s, %d bytes", shown, size)
        return received

    def _act(self, action: Action, received: Received) -> None:
        match action:
            case Call():
                self._start(action, received)
            case Send():
                self._send(action, received)
            case Failed(cause=cause, id=id_):
                _log_cause(cause, received.parts.get(id_, received))
            case Response(id=id_):
                if request := self._requests.pop(id_, None):
                    _settle(request, action)
            case Cancel(call=call):
                if call in self._pending:
                    task, started = self._pending[call]
                    milliseconds = (self._clock() - started.started) * 1000
                    log.debug("-- %s, cancelled after %.1f ms", started, milliseconds)
                    task.cancel()

    def _start(self, call: Call, received: Received) -> None:
        received = received.parts.get(call.id, received)
        if call.of.waits or self._is_loading(call):
            if len(self._pending) >= MAX_PENDING_CALLS or self._pending_bytes > MAX_PENDING_BYTES:
                self._send(self._fail(call, OVERLOADED), received)
                return
            task = asyncio.create_task(self._wait_for(call, received))
            self._pending[call] = task, received
            self._pending_bytes += received.size
            task.add_done_callback(partial(self._ended, call))
            return
        try:
            value = self._run(call)
        except Exception as error:  # noqa: BLE001 - a broken tool must not take the others along
            self._send(self._fail(call, error), received)
        else:
            self._send(self._server.complete(call, value), received)

    def _is_loading(self, call: Call) -> bool:
        loading = (self._loading.get(one) for one in call.of.signature.collaborators)
        return any(loaded is not None and not loaded.is_set() for loaded in loading)

    def _run(self, call: Call) -> Any:
        context = (self._context(call),) if call.of.signature.wants_context else ()
        return call.of.function(*context, **call.arguments)

    async def _wait_for(self, call: Call, received: Received) -> None:
        apart = isinstance(call.of, Tool) and call.of.own_slots
        slots = self._slots[call.of.name if apart else ""]
        try:
            async with slots, asyncio.timeout(call.of.deadline) as deadline:
                for wanted in call.of.signature.collaborators:
                    if wanted in self._loading:
                        await self._loading[wanted].wait()
                value = self._run(call)
                if call.of.waits:
                    value = await value
        except asyncio.CancelledError as error:
            # Something it waited for was cancelled, and not the call itself: it is owed a reply.
            if (task := asyncio.current_task()) and task.cancelling():
                raise
            response = self._fail(call, error)
        except Exception as error:  # noqa: BLE001 - a broken tool must not take the others along
            late = isinstance(error, TimeoutError) and deadline.expired()
            response = self._fail(call, _too_late(call) if late else error)
        else:
            response = self._server.complete(call, value)
        self._send_now(response, received)

    def _fail(self, call: Call, error: BaseException) -> Send | None:
        if isinstance(error, ToolError):
            _log_failure(call.of.name, error)
        elif not isinstance(error, InputRequired):
            log.error("%s broke: %s", call.of.name, _in_words(error))
            log.debug("where it broke", exc_info=error)
        return self._server.fail(call, error)

    def _ended(self, call: Call, task: asyncio.Task[None]) -> None:
        _, received = self._pending.pop(call)
        self._pending_bytes -= received.size
        if task.cancelled():
            # Either we must go, or its caller gave it up: to the server that one is known.
            self._send(self._server.fail(call, ENDED), received)
        elif error := task.exception():
            log.error("a reply was lost: %s", type(error).__name__, exc_info=error)

    def _tasks(self) -> list[asyncio.Task[None]]:
        return [task for task, _ in self._pending.values()]

    def _context(self, call: Call) -> Context:
        server = self._server
        return Context(
            lambda *given: self._send_now(server.progress(call, *given)),
            lambda *given: self._send_now(server.log(call, *given)),
            partial(server.can_ask, call),
            partial(self._ask, call),
        )

    async def _ask(
        self, call: Call, questions: Mapping[str, Question], timeout_seconds: float
    ) -> Mapping[str, Object]:
        """Return the client's answers to what `call` asks; raises `ToolError`, `InputRequired`."""
        for one in questions.values():
            if self._input_ended or not self._server.can_ask(call, one.method):
                reason = f"The client cannot be asked: it takes no {one.method} now."
                raise _unanswered("feature-not-implemented", reason)
        if call.meta is None or call.meta.revision.server_requests:
            requests = {
                name: asyncio.create_task(self._request(call, one, timeout_seconds))
                for name, one in questions.items()
            }
            try:
                return {name: await request for name, request in requests.items()}
            finally:
                for request in requests.values():
                    request.cancel()
        known = {name: call.answers.to(name, one) for name, one in questions.items()}
        if open_ := {name: questions[name] for name, answer in known.items() if answer is None}:
            raise InputRequired(open_)
        return {name: answer for name, answer in known.items() if answer is not None}

    async def _request(self, call: Call, question: Question, timeout_seconds: float) -> Object:
        """Send the client a request for `call`, and return its result; raises `ToolError`."""
        method = question.method
        request = Request(f"ask-{next(self._serials)}", method, question.params)
        sent = SentRequest(method, asyncio.get_running_loop().create_future())
        self._requests[request.id] = sent
        try:
            self._send_now(Send(request, call.framing))
            async with asyncio.timeout(timeout_seconds):
                response = await sent.answer
        except TimeoutError as error:
            reason = f"The client gave no answer to {method} within {timeout_seconds:g} s."
            raise _unanswered("remote-server-timeout", reason) from error
        finally:
            if self._requests.pop(request.id, None):
                cancelled = {"requestId": request.id, "reason": CANCEL_REASON}
                notification = Notification("notifications/cancelled", cancelled)
                self._send_now(Send(notification, call.framing))
        if response is None:
            reason = f"The client has closed its side and answers no {method}."
            raise _unanswered("remote-server-timeout", reason)
        return _result_of(response, method)

    def _send(self, action: Send | None, received: Received | None = None) -> None:
        """Add a message to what the next flush sends; `received` is what it answers."""
        if action is None:
            return
        if action.cause is not None:
            _log_cause(action.cause, received)
        message = action.message
        if isinstance(message, list):
            message = [one for one in message if one.id is not None or self._may_send_error()]
            if not message:
                return
        elif isinstance(message, Response) and message.id is None and not self._may_send_error():
            return
        body = jsonrpc.encode(message)
        self._outgoing.append(encode(Frame(body, action.framing)))
        if log.isEnabledFor(logging.DEBUG):
            took = f", {(self._clock() - received.started) * 1000:.1f} ms" if received else ""
            sent, shown = _sent(message, received)
            log.debug("-> %s, %d bytes%s%s", sent, len(body), took, shown)

    def _send_now(self, action: Send | None, received: Received | None = None) -> None:
        self._send(action, received)
        self._flush()

    def _may_send_error(self) -> bool:
        """Whether an error reply without an id is within `NOISE_REPLIES_PER_SECOND`."""
        if (second := int(self._clock())) != self._noise_second:
            self._noise_second, self._noise_replies = second, 0
        self._noise_replies += 1
        return self._noise_replies <= NOISE_REPLIES_PER_SECOND

    async def _send_changes(self) -> None:
        while self._changed:
            if self._ready is not None:
                await self._ready()  # a client that does not read is told once, when it does
            self._queue_changes()
            self._flush()
            await asyncio.sleep(CHANGES_SECONDS)

    def _queue_changes(self) -> None:
        uris, self._changed = self._changed, {}
        for uri in uris:
            for update in self._server.subscriptions.updates(uri):
                self._send(Send(*update))

    def _flush(self) -> None:
        if self._outgoing:
            data = b"".join(self._outgoing)
            self._outgoing.clear()
            self._write(data)

    async def _close(self) -> None:
        self._over = True
        tasks = self._tasks() + ([self._sending_changes] if self._sending_changes else [])
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._queue_changes()
        for response in self._server.close():
            self._send(response, Received(0, self._clock(), method="subscriptions/listen"))
        self._flush()


def _sent(
    message: Request | Notification | Response | list[Response], received: Received | None
) -> tuple[str, str]:
    """Return what the log says of a message that is sent, to answer the one `received`.

    The second part is what a reply holds. What we ask the client holds more than calls have: it is
    not shown.
    """
    match message:
        case list():
            held = [one.result if one.error is None else one.error for one in message]
            return f"batch of {len(message)}", f": {preview(held)}"
        case Request(id=id_, method=method):
            return f"{method}, our request, id {id_}", ""
        case Notification(method=method):
            return f"{method}, notification", ""
        case Response(error=None, result={"resultType": "input_required"}):
            return f"{received}, questions", ""
        case Response(error=None, result=result):
            failed = isinstance(result, dict) and result.get("isError") is True
            return f"{received}, {'failed' if failed else 'result'}", f": {preview(result)}"
        case Response(error=error):
            code = None if error is None else error.get("code")
            return f"{received}, error {code}", f": {preview(error)}"


def _logged(params: Json) -> Json:
    """Return what the log has of params: not what people answered, as in the handshake era."""
    if not isinstance(params, dict):
        return params
    return {name: one for name, one in params.items() if name not in PEOPLE_ANSWERED}


def _log_cause(cause: BaseException, received: Received | None) -> None:
    if isinstance(cause, ToolError):
        _log_failure(str(received), cause)
    else:
        log.error("%s: %s", received, _in_words(cause))


def _log_failure(name: str, error: ToolError) -> None:
    level = logging.INFO if error.remote else logging.DEBUG
    said = one_line(error.message, jsonrpc.LOGGED_CHARACTERS)
    log.log(level, "%s failed: %s: %s", name, one_line(error.condition, 100), said)


def _settle(request: SentRequest, response: Response | None) -> None:
    # A call that was cancelled in this turn of the loop waits no more.
    if not request.answer.done():
        request.answer.set_result(response)


def _result_of(response: Response, method: str) -> Object:
    """Return the result in the client's response; raises `ToolError` where there is none."""
    if response.error is not None:
        code, message = response.error.get("code"), response.error.get("message")
        code = code if isinstance(code, int) else None
        said = one_line(message, jsonrpc.LOGGED_CHARACTERS) if isinstance(message, str) else ""
        reason = f"The client refused {method}: {said or 'without a reason'} (code {code})"
        raise _unanswered("not-allowed", reason)
    if not isinstance(response.result, dict):
        reason = f"The client's answer to {method} has no result that is an object."
        raise _unanswered("undefined-condition", reason)
    return response.result


def _unanswered(condition: str, message: str) -> ToolError:
    return ToolError(
        message,
        condition=condition,
        hint="Allow it when the client asks, or see in its log what became of it.",
        remote=True,
    )


def _too_late(call: Call) -> ToolError:
    return ToolError(
        f"{call.of.name} took longer than {call.of.deadline:g} s and was given up",
        condition="remote-server-timeout",
        hint="Call it again; the server's log may say what it waited for.",
    )


def _in_words(error: BaseException) -> str:
    return f"{type(error).__name__}: {one_line(str(error), jsonrpc.LOGGED_CHARACTERS)}"
