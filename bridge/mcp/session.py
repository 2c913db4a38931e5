"""One client's session: frames in, calls run side by side, frames out.

Plain tools are answered in the turn that read them; coroutine tools get a task each, a
deadline, and cancellation. At end of input what is in flight is finished, within a bound.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import partial

from bridge.escaping import one_line
from bridge.mcp import framing, jsonrpc
from bridge.mcp.framing import Frame, FrameError, Framer, Framing
from bridge.mcp.jsonrpc import Malformed, Response, RpcError
from bridge.mcp.server import Call, Cancel, Crashed, Failed, Outcome, Reply, Server, Succeeded
from bridge.mcp.toolset import ToolError

MAX_CALLS_AT_ONCE = 256
"""Waiting calls that run side by side; further ones wait their turn."""

DRAIN_SECONDS = 10.0
"""How long calls in flight may go on after the end of input."""

NOISE_REPLIES_PER_SECOND = 50
"""Error replies to input without a usable id: more would feed a storm between two bridges."""

LOGGED_CHARACTERS = 200
"""How much of a request's arguments stands in the log at DEBUG."""

log = logging.getLogger(__name__)


@dataclass
class _NoiseLimit:
    second: int = 0
    spent: int = 0

    def allows(self, now: float) -> bool:
        if int(now) != self.second:
            self.second, self.spent = int(now), 0
        self.spent += 1
        return self.spent <= NOISE_REPLIES_PER_SECOND


class Session:
    """Carries one conversation between a stream of bytes and a `Server`."""

    def __init__(
        self,
        server: Server,
        write: Callable[[bytes], None],
        *,
        clock: Callable[[], float] = time.monotonic,
        drain_seconds: float = DRAIN_SECONDS,
    ) -> None:
        self._server = server
        self._write = write
        self._clock = clock
        self._drain_seconds = drain_seconds
        self._framer = Framer()
        self._slots = asyncio.Semaphore(MAX_CALLS_AT_ONCE)
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._noise = _NoiseLimit()
        self._outgoing: list[bytes] = []
        self.answered = asyncio.Event()
        """Set once the first reply is on its way."""

    @property
    def busy(self) -> bool:
        """Whether any call is in flight."""
        return bool(self._tasks)

    async def run(self, chunks: AsyncIterator[bytes]) -> None:
        """Serve until the end of `chunks`, then finish what is in flight (`DRAIN_SECONDS`)."""
        try:
            async for chunk in chunks:
                self._take(self._framer.feed(chunk))
            self._take(self._framer.end())
            if self._tasks:
                await asyncio.wait(self._tasks.values(), timeout=self._drain_seconds)
        finally:
            await self._abandon()

    def _take(self, frames: list[Frame | FrameError]) -> None:
        for frame in frames:
            match frame:
                case FrameError(reason=reason):
                    message: jsonrpc.Message | jsonrpc.Batch = Malformed(
                        RpcError(jsonrpc.PARSE_ERROR, reason)
                    )
                case Frame(body=body):
                    message = jsonrpc.decode(body)
                    if log.isEnabledFor(logging.DEBUG):
                        _log_received(message, len(body))
            for action in self._server.receive(message):
                self._act(action, frame.framing)
        self._flush()

    def _act(self, action: Reply | Call | Cancel, framing_: Framing) -> None:
        match action:
            case Reply():
                self._reply(action, framing_)
            case Cancel(call=call):
                log.debug("cancelled %s, id %s", call.tool.name, _logged(call.id))
                if task := self._tasks.get(call.serial):
                    task.cancel()
            case Call() if action.tool.waits:
                task = asyncio.create_task(self._wait_for(action, framing_))
                self._tasks[action.serial] = task
                task.add_done_callback(partial(self._forget, action.serial))
            case Call():
                started = self._clock()
                outcome = _run_plain(action)
                self._complete(action, outcome, framing_, started)

    async def _wait_for(self, call: Call, framing_: Framing) -> None:
        started = self._clock()
        async with self._slots:
            outcome = await _run_waiting(call)
        self._complete(call, outcome, framing_, started)
        self._flush()

    def _forget(self, serial: int, task: asyncio.Task[None]) -> None:
        del self._tasks[serial]
        if not task.cancelled() and (error := task.exception()):
            log.error("a reply was lost: %s", type(error).__name__, exc_info=error)

    def _complete(self, call: Call, outcome: Outcome, framing_: Framing, started: float) -> None:
        if reply := self._server.complete(call, outcome):
            self._reply(reply, framing_, f" in {(self._clock() - started) * 1000:.1f} ms")

    def _reply(self, reply: Reply, framing_: Framing, took: str = "") -> None:
        response = reply.response
        if isinstance(response, tuple):
            response = tuple(one for one in response if self._is_wanted(one))
        if response == () or (isinstance(response, Response) and not self._is_wanted(response)):
            return
        body = jsonrpc.encode(response)
        if log.isEnabledFor(logging.DEBUG):
            _log_reply(response, len(body), took)
        self._outgoing.append(framing.encode(Frame(body, framing_)))

    def _is_wanted(self, response: Response) -> bool:
        return response.id is not None or self._noise.allows(self._clock())

    def _flush(self) -> None:
        if self._outgoing:
            data = b"".join(self._outgoing)
            self._outgoing.clear()
            self._write(data)
            self.answered.set()

    async def _abandon(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _run_plain(call: Call) -> Outcome:
    try:
        return Succeeded(call.run(**call.arguments))
    except ToolError as error:
        return Failed(error)
    except Exception as error:  # noqa: BLE001 - a broken tool must not take the others along
        return _crashed(call, error)


async def _run_waiting(call: Call) -> Outcome:
    try:
        async with asyncio.timeout(call.tool.deadline) as deadline:
            return Succeeded(await call.run(**call.arguments))
    except ToolError as error:
        return Failed(error)
    except TimeoutError as error:
        if not deadline.expired():
            return _crashed(call, error)
        return Failed(
            ToolError(
                f"{call.tool.name} took longer than {call.tool.deadline:g} s and was given up",
                condition="remote-server-timeout",
                hint="Ask xmppStatus how the connection stands.",
            )
        )
    except asyncio.CancelledError as error:
        # Something it waited for was cancelled, and not the call itself: it is owed a reply.
        if (task := asyncio.current_task()) and task.cancelling():
            raise
        return _crashed(call, error)
    except Exception as error:  # noqa: BLE001 - a broken tool must not take the others along
        return _crashed(call, error)


def _crashed(call: Call, error: BaseException) -> Crashed:
    log.error(
        "the tool %s broke: %s: %s",
        call.tool.name,
        type(error).__name__,
        one_line(str(error), LOGGED_CHARACTERS),
        exc_info=error if log.isEnabledFor(logging.DEBUG) else None,
    )
    return Crashed(f"the tool {call.tool.name} broke ({type(error).__name__}); see the log")


def _log_received(message: jsonrpc.Message | jsonrpc.Batch, size: int) -> None:
    match message:
        case jsonrpc.Batch(messages=messages):
            log.debug("received a batch of %d, %d bytes", len(messages), size)
        case jsonrpc.Request(id=id_, method=method, params=params):
            log.debug(
                "request %s, id %s, %d bytes: %s",
                one_line(method, 100),
                _logged(id_),
                size,
                _logged(params),
            )
        case jsonrpc.Notification(method=method):
            log.debug("notification %s, %d bytes", one_line(method, 100), size)
        case Malformed(error=error):
            log.debug("not a message, %d bytes: %s", size, one_line(str(error), LOGGED_CHARACTERS))
        case Response(id=id_):
            log.debug("a response to nothing we asked, id %s, %d bytes", _logged(id_), size)


def _log_reply(response: Response | tuple[Response, ...], size: int, took: str) -> None:
    if isinstance(response, tuple):
        log.debug("replied to a batch of %d, %d bytes%s", len(response), size, took)
    else:
        kind = "reply" if response.error is None else f"error {response.error['code']}"
        log.debug("%s, id %s, %d bytes%s", kind, _logged(response.id), size, took)


def _logged(value: object) -> str:
    return one_line(repr(value), LOGGED_CHARACTERS)
