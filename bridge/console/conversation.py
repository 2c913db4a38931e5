"""The interactive test client, put together: a server, an edge, and what goes between them."""

import asyncio
import logging
import os
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from typing import Any

from bridge.console import history
from bridge.console.arguments import SHOWN_CHARACTERS, Parameter, TypedError
from bridge.console.client import Client
from bridge.console.commands import Command, Leave, parse
from bridge.console.completion import Known
from bridge.console.edge import Edge, GivenUpError, LeftError
from bridge.console.errands import Errands
from bridge.console.interrupt import heed, heed_the_end, heeding, shielded
from bridge.console.news import News
from bridge.console.peer import Heard, Peer, PeerError
from bridge.console.pipe import Pipe
from bridge.console.shapes import Answer, own_words
from bridge.escaping import one_line
from bridge.log import complain, open_log
from bridge.mcp.framing import FrameError
from bridge.mcp.jsonrpc import Malformed, Notification, Response
from bridge.mcp.wirelog import shown

VERDICT_SECONDS = 10.0
"""How long the greeting waits for the room, or for a verdict on it."""
VERDICTS = frozenset({"joined", "failed", "waiting", "unconfigured"})
"""Phases that are worth greeting with: nothing will change in the next moment."""
POLL_SECONDS = 0.05
"""Between two looks at the phase while it is undecided."""
SCRIPT_SECONDS = 300.0
"""How long a script waits for one answer, as agents do; a person has Ctrl-C."""
CLOSING_SECONDS = 1.0
"""How long a terminal may take to put itself in order when the server has ended, and the server to
hear that we watch nothing any more."""

EVENT_LINE = re.compile(r"\[Server\] \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z ")
"""How the bridge's log begins what happened in the room, which the news tell too."""

log = logging.getLogger(__name__)


async def run_client(command: Sequence[str], *, waits_for_room: bool, as_json: bool = False) -> int:
    """Talk to the MCP server that `command` starts; return the exit code.

    From a pipe, stdout carries answers only, one a line; the greeting goes to stderr. The exit
    code is 1 if any call failed, or the server did.
    """
    if sys.stdout is None:
        complain("[Client] stdout is closed, so no answer could be read")
        return 1
    interactive = sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
    talking = asyncio.create_task(
        _talk(command, interactive=interactive, waits_for_room=waits_for_room, as_json=as_json)
    )
    ended_by = 0

    def end(number: int) -> None:
        nonlocal ended_by
        ended_by = number
        talking.cancel()

    if interactive:  # a terminal is put back into the state in which it was found
        heed_the_end(end)
    try:
        return await talking
    except asyncio.CancelledError:
        if not ended_by:
            raise
        return 128 + ended_by


async def _talk(
    command: Sequence[str], *, interactive: bool, waits_for_room: bool, as_json: bool
) -> int:
    # Two may not write to one terminal, and what the server writes may be meant to harm it: the
    # lines of its log go through us.
    log_is_shown = sys.stderr is not None and sys.stderr.isatty()
    shares_terminal = interactive and log_is_shown
    out = _Outlet()
    _open_log(out if shares_terminal else None)
    try:
        peer = await Peer.start(command, out.log_line if log_is_shown else None)
    except PeerError as error:
        complain(f"[Client] {error}")
        return 1
    known = Known()
    try:
        edge = _edge(known, interactive=interactive, as_json=as_json)
        if shares_terminal:
            out.tell = edge.tell
        return await _Conversation(peer, edge, known, out).run(waits_for_room=waits_for_room)
    except PeerError as error:
        complain(f"[Client] {error}")
        return 1
    except BrokenPipeError:
        # Python flushes stdout once more at the end, and would complain about that too.
        sys.stdout = None
        complain("[Client] nobody reads the answers any more")
        return 1
    finally:
        out.tell = complain
        await peer.stop()


def _edge(known: Known, *, interactive: bool, as_json: bool) -> Edge:
    if not interactive:
        return Pipe(json=as_json)
    if os.environ.get("TERM", "dumb") in {"", "dumb", "unknown"}:
        from bridge.console.plain import Plain

        return Plain()
    from bridge.console.terminal import Terminal

    return Terminal(known, history.Memory(history.path(os.environ)))


class _Outlet(logging.Handler):
    """Where lines for a person go: to stderr until there is an edge, then there."""

    def __init__(self) -> None:
        super().__init__()
        self.tell: Callable[[str], None] = complain
        self.follows_room: Callable[[], bool] = lambda: False

    def emit(self, record: logging.LogRecord) -> None:
        """Tell a line of our own log."""
        level = f"{record.levelname}: " if record.levelno >= logging.WARNING else ""
        self.tell(f"[Client] {level}{record.getMessage()}")

    def log_line(self, line: str) -> None:
        """Tell a line of the server's."""
        if not (self.follows_room() and EVENT_LINE.match(line)):
            self.tell(one_line(line))


def _open_log(handler: logging.Handler | None) -> None:
    level = os.environ.get("LOG_LEVEL", "").upper()
    open_log("[Client]", level if level in logging.getLevelNamesMapping() else "INFO")
    if handler is not None:
        logging.getLogger("bridge").handlers = [handler]


class _Conversation:
    """From the handshake to the goodbye."""

    def __init__(self, peer: Peer, edge: Edge, known: Known, out: _Outlet) -> None:
        self._peer = peer
        self._edge = edge
        self._out = out
        self._client = Client(peer)
        self._errands = Errands(self._client, known, self._ask if edge.asks else None)
        self._news = News(self._client, known, edge.tell)
        self._errand: asyncio.Task[Answer] | None = None
        peer.heard = self._hear
        out.follows_room = lambda: self._news.following

    async def run(self, *, waits_for_room: bool) -> int:
        """Return the exit code; raises `PeerError` when the server ends first."""
        await self._client.open()
        await self._errands.look_around()
        if waits_for_room:
            await self._await_verdict()
        if self._edge.asks:
            # From a pipe nobody watches, and the log on stderr tells the same.
            await self._news.start()
            self._errands.before_switch = self._news.stop
            self._errands.after_switch = self._news.start
        self._edge.greet()
        try:
            with shielded() if self._edge.asks else nullcontext():
                return 1 if await self._converse() else 0
        finally:
            self._edge.close()
            with suppress(TimeoutError):  # its end will end the subscriptions too
                async with asyncio.timeout(CLOSING_SECONDS):
                    await self._news.stop()

    async def _await_verdict(self) -> None:
        deadline = asyncio.get_running_loop().time() + VERDICT_SECONDS
        while True:
            status: dict[str, Any] = await self._client.structured("xmppStatus", {}) or {}
            if str(status.get("phase")) in VERDICTS or asyncio.get_running_loop().time() > deadline:
                break
            await asyncio.sleep(POLL_SECONDS)
        last_error = status.get("lastError")
        if status.get("phase") == "joined":
            room, nickname = (one_line(str(status.get(k))) for k in ("room", "nickname"))
            self._out.tell(f"[Client] in the room {room} as {nickname}")
        elif isinstance(last_error, dict):
            self._out.tell(f"[Client] not in the room: {one_line(str(last_error.get('message')))}")
        elif status.get("phase") == "unconfigured":
            self._out.tell(
                "[Client] not in the room: settings are missing or wrong; status has all"
            )
        else:
            phase = one_line(str(status.get("phase")))
            self._out.tell(f"[Client] not in the room yet, {phase}; status tells how far it is")

    async def _converse(self) -> bool:
        """Return whether any call failed."""
        failed = False
        while True:
            try:
                typed = await self._typed()
            except GivenUpError:
                continue
            except LeftError:
                return failed
            for line in typed.splitlines():
                if not line.strip():
                    continue
                command = parse(line)
                if isinstance(command, Leave):
                    return failed
                answer = await self._carried_out(command)
                if answer is None:
                    break  # what else was pasted is given up with it
                failed = failed or answer.failed
                self._edge.show(answer)

    async def _typed(self) -> str:
        reading = asyncio.create_task(self._edge.line())
        try:
            await asyncio.wait((reading, self._peer.ended), return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                self._edge.close()
                if self._edge.asks:
                    await asyncio.wait((reading,), timeout=CLOSING_SECONDS)
                raise PeerError(await self._peer.fate())
            return reading.result()
        finally:
            if not reading.done():
                reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def _carried_out(self, command: Command) -> Answer | None:
        """Return the answer; None if the person gave it up."""
        self._errand = errand = asyncio.create_task(self._errands.perform(command))
        try:
            # From a pipe, Ctrl-C ends it all; that cancels the call as well.
            with heeding(errand.cancel) if self._edge.asks else nullcontext():
                limit = None if self._edge.asks else SCRIPT_SECONDS
                await asyncio.wait((errand,), timeout=limit)
            if not errand.done():
                told = f"no answer within {SCRIPT_SECONDS:g} s, and given up"
                return own_words(told, failed=True)
            if errand.cancelled():
                self._edge.tell("(cancelled)")
                return None
            return errand.result()
        except (GivenUpError, LeftError):
            self._edge.tell("(not called)")
            return None
        finally:
            errand.cancel()
            await asyncio.gather(errand, return_exceptions=True)

    async def _ask(self, parameter: Parameter) -> str:
        while True:
            text = (await self._edge.ask(parameter)).strip()
            if self._errand is not None:
                heed(self._errand.cancel)  # the question had Ctrl-C for itself
            if not text and parameter.required and "string" not in parameter.types:
                name = one_line(parameter.name, SHOWN_CHARACTERS)
                self._edge.tell(f"  {name} is required; Ctrl-C gives it up")
                continue
            try:
                if text:
                    parameter.read(text)
            except TypedError as error:
                self._edge.tell(f"  {error}")
            else:
                return text

    def _hear(self, heard: Heard) -> None:
        match heard:
            case Notification(method="notifications/resources/updated", params=params):
                self._news.updated(params)
            case Notification(method="notifications/message", params=params):
                said = params if isinstance(params, dict) else {}
                self._out.tell(
                    f"[Client] the server logs ({one_line(str(said.get('level')), 20)}): "
                    f"{shown(said.get('data'))}"
                )
            case Notification(method=method) if method.endswith("/list_changed"):
                self._errands.lists_changed()
            case Response(id=None, error=error):
                self._out.tell(f"[Client] the server found fault: {shown(error)}")
            case Response(id=id_):
                log.debug("<- a response that nobody waits for, id %s", shown(id_))
            case Malformed(error=error):
                self._out.tell(f"[Client] on the server's stdout is no message: {error.data}")
            case FrameError(reason=reason):
                self._out.tell(f"[Client] on the server's stdout is no message: {reason}")
            case _:
                pass
