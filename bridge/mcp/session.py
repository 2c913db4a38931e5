"""One client's session: frames in, calls run side by side, frames out.

Plain tools are answered in the turn that read them; coroutine tools get a task each, a
deadline, and cancellation. At end of input what is in flight is finished, within a bound.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial

from bridge.mcp import framing, jsonrpc, wirelog
from bridge.mcp.calls import (
    Action,
    Call,
    Cancel,
    Failed,
    Outcome,
    Reply,
    Tell,
)
from bridge.mcp.context import Context, NotAnsweredError, answer_in
from bridge.mcp.framing import Frame, FrameError, Framer, Framing
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
from bridge.mcp.running import in_words, run_plain, run_waiting
from bridge.mcp.server import Server
from bridge.mcp.toolset import ToolError
from bridge.mcp.wirelog import Asked

MAX_CALLS_AT_ONCE = 256
"""Waiting calls that run side by side; further ones wait their turn."""

MAX_PENDING_CALLS = 4096
"""Calls running or waiting their turn; beyond it nothing more is read until some end."""

MAX_PENDING_BYTES = 64 * 1024 * 1024
"""What their requests may hold of memory; beyond it likewise."""

DRAIN_SECONDS = 10.0
"""How long calls in flight may go on after the end of input."""

NOISE_REPLIES_PER_SECOND = 50
"""Error replies to input without a usable id: more would feed a storm between two bridges."""

CHANGES_SECONDS = 0.25
"""Between two notifications that the same resource has changed: a flood of messages is none."""

ENDED = ToolError(
    "The server was told to end before this was done.",
    condition="system-shutdown",
    hint="Whether it took effect is not known; look before calling it again.",
)
"""For calls that are still in flight when we must go."""

GONE = "the client has closed its side and answers no more"
"""Why a question to it stays open."""

log = logging.getLogger(__name__)


class _NoiseLimit:
    def __init__(self) -> None:
        self.second = self.spent = 0

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
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._asked: dict[int, Asked] = {}
        self._questions: dict[Id, asyncio.Future[Response | None]] = {}
        self._pending_bytes = 0
        self._noise = _NoiseLimit()
        self._outgoing: list[bytes] = []
        self._changed: dict[str, None] = {}
        self._telling: asyncio.Task[None] | None = None
        self._over = False
        self._unheard = False
        self._listing = False
        self.answered = asyncio.Event()
        """Set once the first reply is on its way."""
        self.listed = asyncio.Event()
        """Set once the list of tools is, which clients ask for next."""

    async def run(self, chunks: AsyncIterator[bytes]) -> None:
        """Serve until the end of `chunks`, then finish what is in flight (`DRAIN_SECONDS`)."""
        try:
            async for chunk in chunks:
                self._take(self._framer.feed(chunk))
                while self._is_full():
                    await asyncio.wait(self._tasks.values(), return_when=asyncio.FIRST_COMPLETED)
            self._take(self._framer.end())
            self._leave_unanswered()
            if self._tasks:
                await asyncio.wait(self._tasks.values(), timeout=self._drain_seconds)
        finally:
            await self._abandon()

    def changed(self, uri: str) -> None:
        """Tell whoever watches `uri` of a change: at once, then once a `CHANGES_SECONDS`."""
        if self._over or not self._server.watched(uri):
            return
        self._changed[uri] = None
        if self._telling is None or self._telling.done():
            self._telling = asyncio.create_task(self._tell_changes())

    def announce(self, level: str, logger: str, data: Json) -> None:
        """Write a log message to a client that set a level for the whole session."""
        if self._over:
            return
        if tell := self._server.announce(level, logger, data):
            self._tell(tell.notification, tell.framing)
            self._flush()

    def _take(self, frames: list[Frame | FrameError]) -> None:
        for frame in frames:
            started = self._clock()
            match frame:
                case Frame(body=body):
                    message = jsonrpc.decode(body)
                    asked = self._described(message, frame.framing, len(body), started)
                case FrameError(reason=reason):
                    message = Malformed(RpcError(jsonrpc.PARSE_ERROR, reason))
                    asked = Asked(frame.framing, 0, started)
            if wirelog.log.isEnabledFor(logging.DEBUG):
                wirelog.received(message, asked)
            if isinstance(message, list):
                asked = self._shared_out(message, asked)
            for action in self._server.receive(message, frame.framing):
                self._act(action, asked)
        self._flush()

    def _described(
        self, message: Message | list[Message], spoken: Framing, size: int, started: float
    ) -> Asked:
        match message:
            case Request(id=id_, method=method):
                return Asked(spoken, size, started, self._server.dialect(message), method, id_)
            case Notification(method=method):
                return Asked(spoken, size, started, self._server.dialect(message), method)
            case Response():
                return Asked(spoken, size, started, answers=self._server.asked(message))
            case Malformed(id=id_):
                return Asked(spoken, size, started, id=id_)
            case _:
                return Asked(spoken, size, started)

    def _shared_out(self, batch: list[Message], asked: Asked) -> Asked:
        """Return what each part of `batch` was asked with: of its bytes, its share."""
        share = asked._replace(size=asked.size // max(1, len(batch)))
        if wirelog.log.isEnabledFor(logging.DEBUG):
            for message in batch:
                part = self._described(message, share.framing, share.size, share.started)
                wirelog.received(message, part)
        return share

    def _act(self, action: Action, asked: Asked) -> None:
        match action:
            case Call():
                self._start(action, asked if action.batch is None else _in_batch(action, asked))
            case Reply():
                self._reply(action, asked)
            case Tell(notification=notification):
                self._tell(notification, asked.framing)
            case Response(id=id_):
                if id_ is not None:
                    _settle(self._questions.get(id_), action)
            case Cancel(call=call, reply=reply):
                theirs = self._asked.get(call.serial, asked)
                if task := self._tasks.get(call.serial):
                    wirelog.cancelled(theirs, self._clock())
                    task.cancel()
                if reply:
                    self._reply(reply, theirs)

    def _start(self, call: Call, asked: Asked) -> None:
        if not call.tool.waits:
            outcome = run_plain(call, self._context(call, asked.framing))
            self._complete(call, outcome, asked)
            return
        task = asyncio.create_task(self._wait_for(call, asked))
        self._tasks[call.serial] = task
        self._asked[call.serial] = asked
        self._pending_bytes += asked.size
        task.add_done_callback(partial(self._forget, call))

    def _is_full(self) -> bool:
        return (
            len(self._tasks) >= MAX_PENDING_CALLS or self._pending_bytes > MAX_PENDING_BYTES
        ) and bool(self._tasks)

    async def _wait_for(self, call: Call, asked: Asked) -> None:
        async with self._slots:
            outcome = await run_waiting(call, self._context(call, asked.framing))
        self._complete(call, outcome, asked)
        self._flush()

    def _forget(self, call: Call, task: asyncio.Task[None]) -> None:
        del self._tasks[call.serial]
        asked = self._asked.pop(call.serial)
        self._pending_bytes -= asked.size
        if task.cancelled():
            # Either we must go, or its caller gave it up: to the server that one is known.
            self._complete(call, Failed(ENDED), asked)
        elif error := task.exception():
            log.error("a reply was lost: %s", type(error).__name__, exc_info=error)

    def _context(self, call: Call, framing: Framing) -> Context | None:
        """Return the way back to the caller, for the tools that want it."""
        if not call.tool.wants_context:
            return None

        def report(done: float, total: float | None, message: str | None) -> None:
            if notification := self._server.progress(call, done, total, message):
                self._tell(notification, framing)
                self._flush()

        def write(level: str, data: Json) -> None:
            if notification := self._server.log(call, level, call.tool.name, data):
                self._tell(notification, framing)
                self._flush()

        if call.envelope is None:
            return Context(report, write)
        put = partial(self._ask, call, framing)
        return Context(report, write, call.envelope.capabilities, call.envelope.takes, put)

    async def _ask(
        self,
        call: Call,
        spoken: Framing,
        method: str,
        params: Mapping[str, Json],
        timeout_seconds: float,
    ) -> Mapping[str, Json]:
        """Send the client a request for `call`, and return its result; raises `AskError`."""
        request = self._server.ask(call, method, params)
        if self._unheard:
            self._server.withdraw(request.id)
            raise NotAnsweredError(GONE)
        waiting = self._questions[request.id] = asyncio.get_running_loop().create_future()
        try:
            body = jsonrpc.encode(request)
            if wirelog.log.isEnabledFor(logging.DEBUG):
                wirelog.inquired(request, len(body))
            self._outgoing.append(framing.encode(Frame(body, spoken)))
            self._flush()
            async with asyncio.timeout(timeout_seconds):
                response = await waiting
        except TimeoutError as error:
            raise NotAnsweredError(
                f"the client gave no answer within {timeout_seconds:g} s"
            ) from error
        finally:
            del self._questions[request.id]
            if notification := self._server.withdraw(request.id):
                self._tell(notification, spoken)
                self._flush()
        if response is None:
            raise NotAnsweredError(GONE)
        return answer_in(response)

    def _leave_unanswered(self) -> None:
        """Whoever asked the client need wait no longer: its input has ended."""
        self._unheard = True
        for waiting in self._questions.values():
            _settle(waiting, None)

    def _complete(self, call: Call, outcome: Outcome, asked: Asked) -> None:
        if reply := self._server.complete(call, outcome):
            self._reply(reply, asked)

    def _reply(self, reply: Reply, asked: Asked) -> None:
        if reply.cause is not None:
            log.error("%s: %s", asked, in_words(reply.cause))
        response = reply.response
        if isinstance(response, list):
            response = [one for one in response if self._is_wanted(one)]
            if not response:
                return
        elif not self._is_wanted(response):
            return
        body = jsonrpc.encode(response)
        if wirelog.log.isEnabledFor(logging.DEBUG):
            wirelog.replied(response, asked, len(body), self._clock())
        self._outgoing.append(framing.encode(Frame(body, asked.framing)))
        self._listing = self._listing or asked.method == "tools/list"

    def _is_wanted(self, response: Response) -> bool:
        return response.id is not None or self._noise.allows(self._clock())

    def _tell(self, notification: Notification, spoken: Framing) -> None:
        body = jsonrpc.encode(notification)
        if wirelog.log.isEnabledFor(logging.DEBUG):
            wirelog.told(notification, len(body))
        self._outgoing.append(framing.encode(Frame(body, spoken)))

    async def _tell_changes(self) -> None:
        while self._changed:
            if self._ready is not None:
                await self._ready()  # a client that does not read is told once, when it does
            self._tell_changed()
            self._flush()
            await asyncio.sleep(CHANGES_SECONDS)

    def _tell_changed(self) -> None:
        uris, self._changed = self._changed, {}
        for uri in uris:
            for tell in self._server.changed(uri):
                self._tell(tell.notification, tell.framing)

    def _flush(self) -> None:
        if self._outgoing:
            data = b"".join(self._outgoing)
            self._outgoing.clear()
            self._write(data)
            self.answered.set()
            if self._listing:
                self.listed.set()

    async def _abandon(self) -> None:
        self._over = True
        tasks = [*self._tasks.values(), *([self._telling] if self._telling else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._tell_changed()
        for reply in self._server.close():
            self._reply(
                reply, Asked(reply.framing, 0, self._clock(), method="subscriptions/listen")
            )
        self._flush()


def _settle(waiting: asyncio.Future[Response | None] | None, response: Response | None) -> None:
    # A call that was cancelled in this turn of the loop waits no more.
    if waiting is not None and not waiting.done():
        waiting.set_result(response)


def _in_batch(call: Call, asked: Asked) -> Asked:
    if call.envelope is None:
        return asked._replace(dialect="bare", method=call.tool.name, id=call.id)
    dialect = call.envelope.revision.date
    return asked._replace(dialect=dialect, method="tools/call", id=call.id)
