"""One client's session: bytes in, tool calls run side by side, bytes out.

Tools that are plain functions are answered in the turn of the loop that read the call; coroutines
get a task each, a deadline, and cancellation. At the end of input, calls in flight are finished,
within a bound. At DEBUG the log has one line for each request, reply and cancellation.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any, NamedTuple

from bridge.mcp import jsonrpc
from bridge.mcp.context import Context, NotAnsweredError, result_of
from bridge.mcp.framing import Frame, Framer, Framing, SkippedInput, encode
from bridge.mcp.jsonrpc import Json, Message, Notification, Object, Request, Response, preview
from bridge.mcp.server import Action, Call, Cancel, SendNotification, SendResponse, Server
from bridge.mcp.toolset import Tool, ToolError
from bridge.text import one_line

MAX_CALLS_AT_ONCE = 256
"""The most calls of coroutines that run side by side; further ones wait for a slot."""

MAX_PENDING_CALLS = 4096
"""The most calls running or waiting for a slot; beyond it no input is read until some end."""

MAX_PENDING_BYTES = 64 * 1024 * 1024
"""The most bytes of their requests; beyond it no input is read either."""

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

CLIENT_GONE = "the client has closed its side and answers no more"
"""Why a request to the client gets no answer."""

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

    def __str__(self) -> str:
        return f"{one_line(self.dialect)} {one_line(self.method, 100)} id {preview(self.id)}"


class Session:
    """Runs the conversation of a `Server` with the client at the other end of a stream of bytes."""

    def __init__(
        self,
        server: Server,
        write: Callable[[bytes], None],
        *,
        ready: Callable[[], Awaitable[None]] | None = None,
        clock: Callable[[], float] = time.monotonic,
        drain_seconds: float = DRAIN_SECONDS,
    ) -> None:
        self._server = server
        self._write = write
        self._ready = ready
        self._clock = clock
        self._drain_seconds = drain_seconds
        self._framer = Framer()
        self._slots = asyncio.Semaphore(MAX_CALLS_AT_ONCE)
        self._pending: dict[int, tuple[asyncio.Task[None], Received]] = {}
        self._pending_bytes = 0
        self._client_answers: dict[jsonrpc.Id, asyncio.Future[Response | None]] = {}
        self._noise_second = self._noise_replies = 0
        self._outgoing: list[bytes] = []
        self._changed: dict[str, None] = {}
        self._sending_changes: asyncio.Task[None] | None = None
        self._input_ended = False
        self._over = False
        self._listing = False
        self.answered = asyncio.Event()
        """Set once the first reply was written."""
        self.listed = asyncio.Event()
        """Set once the list of tools was written, which clients ask for next."""

    async def run(self, chunks: AsyncIterator[bytes]) -> None:
        """Serve until the end of `chunks`, then finish what is in flight (`DRAIN_SECONDS`)."""
        try:
            async for chunk in chunks:
                self._receive(self._framer.feed(chunk))
                while self._is_full():
                    await asyncio.wait(self._tasks(), return_when=asyncio.FIRST_COMPLETED)
            self._receive(self._framer.end())
            self._input_ended = True
            for answer in self._client_answers.values():
                _settle(answer, None)
            if tasks := self._tasks():
                await asyncio.wait(tasks, timeout=self._drain_seconds)
        finally:
            await self._close()

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
            self._notify(self._server.announce(level, logger, data))

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
                if log.isEnabledFor(logging.DEBUG):
                    log.debug("<- batch of %d, %d bytes", len(message), size)
                received = Received(size // max(1, len(message)), started)
                for one in message:
                    self._described(one, received.size, started)
                return received
            case Request(id=id_, method=method):
                received = Received(size, started, self._server.dialect(message), method, id_)
            case Notification(method=method):
                received = Received(size, started, self._server.dialect(message), method)
            case Response(id=id_) | jsonrpc.Malformed(id=id_):
                received = Received(size, started, id=id_)
        if log.isEnabledFor(logging.DEBUG):
            self._log_received(message, received)
        return received

    def _log_received(self, message: Message, received: Received) -> None:
        match message:
            case Request(params=params):
                log.debug("<- %s, %d bytes: %s", received, received.size, preview(params))
            case Notification(params=params):
                log.debug(
                    "<- %s, notification, %d bytes: %s", received, received.size, preview(params)
                )
            case jsonrpc.Malformed(error=error):
                reason = one_line(str(error), jsonrpc.LOGGED_CHARACTERS)
                log.debug("<- no message, %d bytes: %s", received.size, reason)
            case Response(id=id_):
                method = self._server.client_requests.method(message)
                what = f"the answer to {method}" if method else "a response to nothing we asked"
                shown = id_ if method else preview(id_)
                log.debug("<- %s, id %s, %d bytes", what, shown, received.size)

    def _act(self, action: Action, received: Received) -> None:
        match action:
            case Call():
                self._start(action, received)
            case SendResponse():
                self._respond(action, received)
            case SendNotification(notification=notification):
                self._queue(notification, action.framing)
            case Response(id=id_):
                if id_ in self._client_answers:
                    _settle(self._client_answers[id_], action)
            case Cancel(call=call, response=response):
                task, started = self._pending.get(call.serial, (None, received))
                if task is not None:
                    milliseconds = (self._clock() - started.started) * 1000
                    log.debug("-- %s, cancelled after %.1f ms", started, milliseconds)
                    task.cancel()
                self._respond(response, started)

    def _start(self, call: Call, received: Received) -> None:
        if call.batch is not None:
            dialect, method = "bare", call.tool.name
            if call.meta is not None:
                dialect, method = call.meta.revision.date, "tools/call"
            received = received._replace(dialect=dialect, method=method, id=call.id)
        if call.tool.waits:
            task = asyncio.create_task(self._wait_for(call, received))
            self._pending[call.serial] = task, received
            self._pending_bytes += received.size
            task.add_done_callback(partial(self._ended, call))
            return
        try:
            value = self._run(call)
        except Exception as error:  # noqa: BLE001 - a broken tool must not take the others along
            self._respond(self._fail(call, error), received)
        else:
            self._respond(self._server.complete(call, value), received)

    def _run(self, call: Call) -> Any:
        context = (self._context(call),) if call.tool.wants_context else ()
        return call.tool.function(*context, **call.arguments)

    async def _wait_for(self, call: Call, received: Received) -> None:
        try:
            async with self._slots, asyncio.timeout(call.tool.deadline) as deadline:
                value = await self._run(call)
        except asyncio.CancelledError as error:
            # Something it waited for was cancelled, and not the call itself: it is owed a reply.
            if (task := asyncio.current_task()) and task.cancelling():
                raise
            response = self._fail(call, error)
        except Exception as error:  # noqa: BLE001 - a broken tool must not take the others along
            late = isinstance(error, TimeoutError) and deadline.expired()
            response = self._fail(call, _too_late(call.tool) if late else error)
        else:
            response = self._server.complete(call, value)
        self._respond(response, received)
        self._flush()

    def _fail(self, call: Call, error: BaseException) -> SendResponse | None:
        if not isinstance(error, ToolError):
            log.error(
                "the tool %s broke: %s",
                call.tool.name,
                _in_words(error),
                exc_info=error if log.isEnabledFor(logging.DEBUG) else None,
            )
        return self._server.fail(call, error)

    def _ended(self, call: Call, task: asyncio.Task[None]) -> None:
        _, received = self._pending.pop(call.serial)
        self._pending_bytes -= received.size
        if task.cancelled():
            # Either we must go, or its caller gave it up: to the server that one is known.
            self._respond(self._server.fail(call, ENDED), received)
        elif error := task.exception():
            log.error("a reply was lost: %s", type(error).__name__, exc_info=error)

    def _tasks(self) -> list[asyncio.Task[None]]:
        return [task for task, _ in self._pending.values()]

    def _is_full(self) -> bool:
        return len(self._pending) >= MAX_PENDING_CALLS or self._pending_bytes > MAX_PENDING_BYTES

    def _context(self, call: Call) -> Context:
        def send_progress(done: float, total: float | None, message: str | None) -> None:
            self._notify(self._server.progress(call, done, total, message))

        def send_log(level: str, data: Json) -> None:
            self._notify(self._server.log(call, level, data))

        if call.meta is None:
            return Context(send_progress, send_log)
        meta, ask = call.meta, partial(self._ask, call)
        return Context(send_progress, send_log, meta.capabilities, meta.accepts, ask)

    async def _ask(self, call: Call, method: str, params: Object, timeout_seconds: float) -> Object:
        """Send the client a request for `call`, and return its result; raises `AskError`."""
        request = self._server.ask(call, method, params)
        if self._input_ended:
            self._server.client_requests.close(request.id)
            raise NotAnsweredError(CLIENT_GONE)
        answer = self._client_answers[request.id] = asyncio.get_running_loop().create_future()
        try:
            self._queue(request, call.framing)
            self._flush()
            async with asyncio.timeout(timeout_seconds):
                response = await answer
        except TimeoutError as error:
            raise NotAnsweredError(
                f"the client gave no answer within {timeout_seconds:g} s"
            ) from error
        finally:
            del self._client_answers[request.id]
            if notification := self._server.client_requests.cancel(request.id):
                self._notify(SendNotification(notification, call.framing))
        if response is None:
            raise NotAnsweredError(CLIENT_GONE)
        return result_of(response)

    def _respond(self, action: SendResponse | None, received: Received) -> None:
        if action is None:
            return
        if action.cause is not None:
            log.error("%s: %s", received, _in_words(action.cause))
        response = action.response
        if isinstance(response, list):
            response = [one for one in response if one.id is not None or self._may_send_error()]
            if not response:
                return
        elif response.id is None and not self._may_send_error():
            return
        size = self._queue(response, action.framing)
        if log.isEnabledFor(logging.DEBUG):
            if isinstance(response, list):
                what = f"batch of {len(response)}"
            else:
                error = response.error
                what = f"{received}, " + ("result" if error is None else f"error {error['code']}")
            milliseconds = (self._clock() - received.started) * 1000
            log.debug("-> %s, %d bytes, %.1f ms", what, size, milliseconds)
        self._listing = self._listing or received.method == "tools/list"

    def _may_send_error(self) -> bool:
        """Whether an error reply without an id is within `NOISE_REPLIES_PER_SECOND`."""
        if (second := int(self._clock())) != self._noise_second:
            self._noise_second, self._noise_replies = second, 0
        self._noise_replies += 1
        return self._noise_replies <= NOISE_REPLIES_PER_SECOND

    def _notify(self, action: SendNotification | None) -> None:
        if action is not None:
            self._queue(action.notification, action.framing)
            self._flush()

    def _queue(
        self, message: Request | Notification | Response | list[Response], framing: Framing
    ) -> int:
        """Add `message` to what the next flush sends, and return its size in bytes."""
        body = jsonrpc.encode(message)
        match message:
            case Request(id=id_, method=method):
                log.debug("-> %s, our request, id %s, %d bytes", method, id_, len(body))
            case Notification(method=method):
                log.debug("-> %s, notification, %d bytes", method, len(body))
        self._outgoing.append(encode(Frame(body, framing)))
        return len(body)

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
            for notification, framing in self._server.subscriptions.updates(uri):
                self._queue(notification, framing)

    def _flush(self) -> None:
        if self._outgoing:
            data = b"".join(self._outgoing)
            self._outgoing.clear()
            self._write(data)
            self.answered.set()
            if self._listing:
                self.listed.set()

    async def _close(self) -> None:
        self._over = True
        tasks = self._tasks() + ([self._sending_changes] if self._sending_changes else [])
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._queue_changes()
        for response in self._server.close():
            self._respond(response, Received(0, self._clock(), method="subscriptions/listen"))
        self._flush()


def _settle(answer: asyncio.Future[Response | None], response: Response | None) -> None:
    # A call that was cancelled in this turn of the loop waits no more.
    if not answer.done():
        answer.set_result(response)


def _too_late(tool: Tool) -> ToolError:
    return ToolError(
        f"{tool.name} took longer than {tool.deadline:g} s and was given up",
        condition="remote-server-timeout",
        hint="Call it again; the server's log may say what it waited for.",
    )


def _in_words(error: BaseException) -> str:
    return f"{type(error).__name__}: {one_line(str(error), jsonrpc.LOGGED_CHARACTERS)}"
