"""One client's session: bytes in, tool calls run side by side, bytes out.

Tools that are plain functions run at once, before the next input is read; coroutines get a task
each, a deadline, and cancellation. After the end of input, calls in flight may continue
for `DRAIN_SECONDS`. At DEBUG the log has one line for each request, reply and cancellation.
"""

import asyncio
import logging
import time
import traceback
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
from bridge.mcp.messages import MessageReader
from bridge.mcp.server import Action, Call, Cancel, Send, Server
from bridge.mcp.toolset import Tool
from bridge.text import one_line

MAX_CALLS_AT_ONCE = 256
"""The most calls of coroutines that run at once, each in a slot; further calls wait for a slot.

A tool with `own_slots` has the same number of slots for itself.
"""

MAX_PENDING_CALLS = 4096
"""The most calls running or waiting for a slot; further ones are refused until some end.

Even then we read input, since it has the answers for which calls wait, and their cancellations.
"""

MAX_PENDING_BYTES = 64 * 1024 * 1024
"""The most bytes of all pending calls' requests; beyond, calls are refused too."""

DRAIN_SECONDS = 10.0
"""How long calls in flight may continue after the end of input."""

NOISE_REPLIES_PER_SECOND = 50
"""The most error replies a second to input without a usable id, and the most lines a second in the
log about unreadable input.

Without this limit, two programs that answer each other's errors would go on for ever.
"""

TURN_SECONDS = 0.01
"""How long we deal with input at a stretch. Then other tasks have a turn of the loop.
One read may bring a thousand calls, and in a large room each may take ten milliseconds."""

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
"""The reason in the notification by which we cancel a request of ours."""

log = logging.getLogger(__name__)


class Received(NamedTuple):
    """Input that we have to answer."""

    asked: Message | list[Message]
    """A message, or the messages of a batch."""
    size: int
    """The bytes of the message. In a batch: the bytes of the batch, divided by the number of
    messages."""
    at: float
    """When it came, on the session's clock."""


class _PerSecond:
    """Allows an action at most `NOISE_REPLIES_PER_SECOND` times in each second of `clock`."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._second = self._done = 0

    def once_more(self) -> bool:
        """Whether the action is allowed now. A yes counts as doing the action."""
        if (second := int(self._clock())) != self._second:
            self._second, self._done = second, 0
        self._done += 1
        return self._done <= NOISE_REPLIES_PER_SECOND


class Session:
    """Runs the conversation of a `Server` with the client at the other end of a stream of bytes."""

    def __init__(
        self,
        server: Server,
        write: Callable[[bytes], None],
        *,
        ready: Callable[[], Awaitable[None]],
        loading: Mapping[type, asyncio.Event] = MappingProxyType({}),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`loading` has the types of collaborators that are still being loaded, each with an event.

        The event is set once the collaborator is loaded. A call that needs the collaborator waits.
        All other calls are answered meanwhile. `ready` returns once the client has read enough of
        the output.
        """
        self._server = server
        server.on_failure = lambda asked, why: _log_failure(self._label(asked), why)
        self._write = write
        self._ready = ready
        self._loading = loading
        self._clock = clock
        self._framer = Framer()
        self._reader = MessageReader()
        self._slots: defaultdict[str, asyncio.Semaphore] = defaultdict(
            lambda: asyncio.Semaphore(MAX_CALLS_AT_ONCE)
        )
        """The slots of each tool with `own_slots`, by its name; all others share the empty name."""
        self._pending: dict[Call, tuple[asyncio.Task[None], Received]] = {}
        self._pending_bytes = 0
        self._serials = count(1)
        self._asked: dict[jsonrpc.Id | None, asyncio.Future[Response | None]] = {}
        """The answers to our own requests, by the requests' ids. An answer is None if the client
        closed its side."""
        self._may_send_error = _PerSecond(clock).once_more
        self._may_log_noise = _PerSecond(clock).once_more
        self._outgoing: list[bytes] = []
        self._changed: dict[str, None] = {}
        self._sending_changes: asyncio.Task[None] | None = None
        self._input_ended = False
        self._over = False

    async def run(self, chunks: AsyncIterator[bytes]) -> None:
        """Serve until the end of `chunks`, then finish the calls in flight (`DRAIN_SECONDS`)."""
        try:
            async for chunk in chunks:
                await self._receive(self._framer.feed(chunk))
            await self._receive(self._framer.end())
            self._input_ended = True
            for answer in self._asked.values():
                _settle(answer, None)
            if tasks := self._tasks():
                await asyncio.wait(tasks, timeout=DRAIN_SECONDS)
        finally:
            await self._close()

    @property
    def has_subscriptions(self) -> bool:
        """Whether the client subscribed to any resource."""
        return bool(self._server.subscriptions)

    def changed(self, uri: str) -> None:
        """Notify the client of a change, if it subscribed to `uri`.

        The notification goes out at once, or `CHANGES_SECONDS` after the notification before.
        """
        if self._over or not self._server.subscriptions.has(uri):
            return
        self._changed[uri] = None
        if self._sending_changes is None or self._sending_changes.done():
            self._sending_changes = asyncio.create_task(self._send_changes())

    def announce(self, level: str, logger: str, data: Json) -> None:
        """Send a log message to a client that set a level for the whole session."""
        if not self._over:
            self._send_now(self._server.announce(level, logger, data))

    async def _receive(self, frames: list[Frame | SkippedInput]) -> None:
        turn_ends = self._clock() + TURN_SECONDS
        for frame in frames:
            if (at := self._clock()) >= turn_ends:
                turn_ends = await self._give_turn()
            if (message := self._reader.read(frame)) is None:
                continue
            size = len(frame.body) if isinstance(frame, Frame) else 0
            parts = message if isinstance(message, list) else [message]
            received = Received(message, size // max(1, len(parts)), at)
            self._log_input(parts, received.size)
            for action in self._server.receive(message, frame.framing):
                if action is not None:
                    self._act(action, received)
                elif self._clock() >= turn_ends:
                    turn_ends = await self._give_turn()
        self._flush()

    def _log_input(self, parts: list[Message], size: int) -> None:
        """Log a message, or the messages of a batch; unreadable input is logged at INFO."""
        for part in parts:
            if isinstance(part, jsonrpc.Malformed):
                if self._may_log_noise():
                    log.info("Cannot read the input: %s", one_line(str(part.error)))
            elif log.isEnabledFor(logging.DEBUG):
                meant = self._server.as_meant(part)
                content = "an answer" if isinstance(part, Response) else _content(meant)
                log.debug("<- %s, %d bytes: %s", self._label(part), size, content)

    async def _give_turn(self) -> float:
        """Let other tasks have a turn of the loop; return when their next turn is due."""
        self._flush()
        await asyncio.sleep(0)
        return self._clock() + TURN_SECONDS

    def _label(self, message: Message | list[Message] | list[Response]) -> str:
        """Return what the log calls a message: its dialect, method and id."""
        match message:
            case list():
                return f"batch of {len(message)}"
            case Request(method=method) | Notification(method=method):
                id_ = message.id if isinstance(message, Request) else None
                dialect = one_line(self._server.dialect(message))
                return f"{dialect} {one_line(method, 100)} id {preview(id_)}"
        return f"? ? id {preview(message.id)}"

    def _act(self, action: Action, received: Received) -> None:
        match action:
            case Call():
                self._start(action, received)
            case Send():
                self._send(action, received)
            case Response(id=id_):
                if answer := self._asked.pop(id_, None):
                    _settle(answer, action)
            case Cancel(call=call):
                if call in self._pending:
                    task, begun = self._pending[call]
                    label, took = self._label(call.asked), (self._clock() - begun.at) * 1000
                    log.debug("-- %s, cancelled after %.1f ms", label, took)
                    task.cancel()

    def _start(self, call: Call, received: Received) -> None:
        if call.of.waits or self._loading_for(call):
            if len(self._pending) >= MAX_PENDING_CALLS or self._pending_bytes > MAX_PENDING_BYTES:
                self._send(self._fail(call, OVERLOADED), received)
                return
            task = asyncio.create_task(self._wait_for(call, received))
            self._pending[call] = task, received
            self._pending_bytes += received.size
            task.add_done_callback(partial(self._ended, call))
            return
        try:
            response = self._server.complete(call, self._run(call))
        except Exception as error:  # noqa: BLE001 - a broken tool must not end the session
            response = self._fail(call, error)
        self._send(response, received)

    def _loading_for(self, call: Call) -> list[asyncio.Event]:
        """Return an event for each collaborator of `call` that is not loaded yet."""
        wanted = call.of.signature.collaborators
        return [
            loaded
            for collaborator, loaded in self._loading.items()
            if collaborator in wanted and not loaded.is_set()
        ]

    def _run(self, call: Call) -> Any:
        context = (self._context(call),) if call.of.signature.wants_context else ()
        return call.of.function(*context, **call.arguments)

    async def _wait_for(self, call: Call, received: Received) -> None:
        apart = isinstance(call.of, Tool) and call.of.own_slots
        slots = self._slots[call.of.name if apart else ""]
        try:
            async with slots, asyncio.timeout(call.of.deadline) as deadline:
                for loaded in self._loading_for(call):
                    await loaded.wait()
                value = self._run(call)
                response = self._server.complete(call, await value if call.of.waits else value)
        except asyncio.CancelledError as error:
            # If something that the call waited for was cancelled, and not the call itself, we owe a
            # reply.
            if (task := asyncio.current_task()) and task.cancelling():
                raise
            response = self._fail(call, error)
        except Exception as error:  # noqa: BLE001 - a broken tool must not end the session
            late = isinstance(error, TimeoutError) and deadline.expired()
            response = self._fail(call, _too_late(call) if late else error)
        self._send_now(response, received)

    def _fail(self, call: Call, error: BaseException) -> Send | None:
        if not isinstance(error, InputRequired):
            _log_failure(call.of.name, error)
        return self._server.fail(call, error)

    def _ended(self, call: Call, task: asyncio.Task[None]) -> None:
        _, received = self._pending.pop(call)
        self._pending_bytes -= received.size
        if task.cancelled():
            # Either its caller cancelled it, which the server knows, or the session is being
            # closed.
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
        """Return the client's answers to `questions`; raises `ToolError` and `InputRequired`."""
        for question in questions.values():
            if self._input_ended or not self._server.can_ask(call, question.method):
                reason = f"The client cannot be asked: it takes no {question.method} now."
                raise _unanswered("feature-not-implemented", reason)
        if call.meta is None or call.meta.revision.handshake:
            requests = {
                name: asyncio.create_task(self._request(call, question, timeout_seconds))
                for name, question in questions.items()
            }
            try:
                return {name: await request for name, request in requests.items()}
            finally:
                for request in requests.values():
                    request.cancel()
        answers = {name: call.answers.to(name, question) for name, question in questions.items()}
        if missing := {name: questions[name] for name, answer in answers.items() if answer is None}:
            raise InputRequired(missing)
        return {name: answer for name, answer in answers.items() if answer is not None}

    async def _request(self, call: Call, question: Question, timeout_seconds: float) -> Object:
        """Send the client a request for `call`, and return its result; raises `ToolError`."""
        method = question.method
        request = Request(f"ask-{next(self._serials)}", method, question.params)
        answer = self._asked[request.id] = asyncio.get_running_loop().create_future()
        try:
            self._send_now(Send(request, call.framing))
            async with asyncio.timeout(timeout_seconds):
                response = await answer
        except TimeoutError as error:
            reason = f"The client gave no answer to {method} within {timeout_seconds:g} s."
            raise _unanswered("remote-server-timeout", reason) from error
        finally:
            if self._asked.pop(request.id, None):
                cancelled = {"requestId": request.id, "reason": CANCEL_REASON}
                notification = Notification("notifications/cancelled", cancelled)
                self._send_now(Send(notification, call.framing))
        if response is None:
            reason = f"The client has closed its side and answers no {method}."
            raise _unanswered("remote-server-timeout", reason)
        return _result_of(response, method)

    def _send(self, action: Send | None, received: Received | None = None) -> None:
        """Add a message to the next flush; `received` is the input that the message answers."""
        if action is None:
            return
        message = action.message
        if isinstance(message, list):
            message = [reply for reply in message if reply.id is not None or self._may_send_error()]
            if not message:
                return
        elif isinstance(message, Response) and message.id is None and not self._may_send_error():
            return
        body = jsonrpc.encode(message)
        self._outgoing.append(encode(Frame(body, action.framing)))
        if log.isEnabledFor(logging.DEBUG):
            took = f", {(self._clock() - received.at) * 1000:.1f} ms" if received else ""
            label = self._label(received.asked if received else message)
            log.debug("-> %s, %d bytes%s: %s", label, len(body), took, _content(message))

    def _send_now(self, action: Send | None, received: Received | None = None) -> None:
        self._send(action, received)
        self._flush()

    async def _send_changes(self) -> None:
        while self._changed:
            await self._ready()  # a client that did not read then gets a single notification
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
            self._send(response)
        self._flush()


def _content(message: Message | list[Response]) -> str:
    """Return what the log shows of a message."""
    content: Json = None
    match message:
        case list():
            content = [reply.result if reply.error is None else reply.error for reply in message]
        case Request(params=content) | Notification(params=content):
            pass
        case Response(result=result, error=error):
            content = result if error is None else error
    return preview(content)


def _log_failure(name: str, error: BaseException) -> None:
    """Log why a call failed. If the function's author is to blame, add the traceback at DEBUG."""
    if isinstance(error, ToolError):
        level = logging.INFO if error.remote else logging.DEBUG
        said = one_line(error.message, jsonrpc.LOGGED_CHARACTERS)
        log.log(level, "%s failed: %s: %s", name, one_line(error.condition, 100), said)
    else:
        said = one_line(str(error), jsonrpc.LOGGED_CHARACTERS)
        where = [
            f" ({one_line(frame.filename)}, line {frame.lineno}, in {one_line(frame.name)})"
            for frame in traceback.extract_tb(error.__traceback__)[-1:]
        ]
        log.error("%s broke: %s: %s%s", name, type(error).__name__, said, "".join(where))
        log.debug("where it broke", exc_info=error)


def _settle(answer: asyncio.Future[Response | None], response: Response | None) -> None:
    # The future is done already if the call was cancelled in this turn of the loop.
    if not answer.done():
        answer.set_result(response)


def _result_of(response: Response, method: str) -> Object:
    """Return the result in the client's response; raises `ToolError` if there is none."""
    if response.error is not None:
        said = str(response.error.get("message") or "without a reason")
        reason = f"The client refused {method}: {one_line(said, jsonrpc.LOGGED_CHARACTERS)}"
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
