"""An MCP server as a child process, and JSON-RPC with it."""

import asyncio
import json
import logging
import os
import re
from asyncio.subprocess import PIPE
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from math import isfinite
from pathlib import Path
from typing import IO, Any, TypeAlias

from bridge.escaping import one_line
from bridge.mcp import framing, jsonrpc
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
from bridge.mcp.stdio import READ_BYTES
from bridge.mcp.wirelog import LOGGED_CHARACTERS, shown

HANDSHAKE_SECONDS = 10.0
"""How long a server may take to its first answer; a program that is none never gives one."""

STOP_SECONDS = 12.0
"""How long the server may take to end after its input did: its drain is at most 10 s."""

TELL_SECONDS = 2.0
"""When a person at a prompt that is gone is told what we still wait for."""

TERMINATE_SECONDS = 2.0
"""How long it has after SIGTERM, as MCP's shutdown over stdio has it, before it is killed."""

FATE_SECONDS = 1.0
"""How long a server whose output has ended may take to end itself before we say so."""

MAX_DEPTH = 100
"""Values inside one another in a message: whoever shows them calls itself for each."""

MAX_LOG_LINE_BYTES = 16 * 1024
"""Of a line on the server's stderr, where we read it; a longer one is told in pieces."""

Heard: TypeAlias = Notification | Response | Malformed | FrameError
"""What came without having been asked for."""

log = logging.getLogger(__name__)


class PeerError(Exception):
    """The server did not start, ended, or does not speak MCP; says which in plain words."""


class RefusedError(Exception):
    """The server answered a request with an error object."""

    def __init__(self, error: Json) -> None:
        self.error: dict[str, Json] = error if isinstance(error, dict) else {"message": error}
        data = self.error.get("data")
        detail = f": {data if isinstance(data, str) else json.dumps(data)}" if data else ""
        super().__init__(f"{self.error.get('message')}{detail}")


@dataclass(frozen=True)
class Reply:
    """A result, and how long it took to come."""

    result: Any
    seconds: float


class Peer:
    """One server, started by us and spoken to over its stdin and stdout.

    `heard` is told what comes unasked. With `log_line` we read its stderr and hand it over line by
    line; without, its stderr is ours, unless `start` is given a
    file for it.
    """

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        log_line: Callable[[str], None] | None = None,
    ) -> None:
        self.framing = Framing.LINES
        """How the next message goes out; what comes in may be framed either way."""
        self.heard: Callable[[Heard], None] = lambda heard: None
        self._process = process
        self._ids = count(1)
        self._waiting: dict[tuple[type, object], asyncio.Future[Response]] = {}
        self._lost: asyncio.Future[Response] | None = None
        self.ended = asyncio.create_task(self._read())
        """Done once the server's output has ended, and with it the conversation."""
        self._log_reader = (
            None if log_line is None else asyncio.create_task(self._read_log(log_line))
        )

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        log_line: Callable[[str], None] | None = None,
        *,
        environment: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        stderr: IO[bytes] | None = None,
    ) -> "Peer":
        """Start `command`; raises `PeerError` when it cannot be.

        What is not given, it has from us.
        """
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=PIPE,
                stdout=PIPE,
                stderr=stderr if log_line is None else PIPE,
                cwd=cwd,
                env=os.environ if environment is None else environment,
                start_new_session=True,  # Ctrl-C is for us; the server hears of the end from us
            )
        except OSError as error:
            raise PeerError(f"{command[0]} does not start: {error.strerror}") from error
        return cls(process, log_line)

    async def request(self, method: str, params: Json = None) -> Reply:
        """Return the result of a request.

        Raises `RefusedError` for an error object and `PeerError` when the server ends first. A
        request that is cancelled here is cancelled there too.
        """
        id_ = f"client-{next(self._ids)}"
        clock = asyncio.get_running_loop().time
        began = clock()
        response = await self._exchange(
            id_, jsonrpc.encode(Request(id_, method, _params(params))), f"{method} id {id_}"
        )
        took = clock() - began
        log.debug("<- %s id %s, %.1f ms", one_line(method), id_, took * 1000)
        if response.error is not None:
            raise RefusedError(response.error)
        return Reply(response.result, took)

    async def raw(self, body: bytes, ids: Sequence[Id], *, lost: bool) -> list[Response]:
        """Send these bytes as they are, and return the responses to `ids`.

        A response without an id ends the waiting, as comes to what is no message; with `lost` it
        is waited for. Raises `PeerError`.
        """
        loop = asyncio.get_running_loop()
        self._lost = without_id = loop.create_future()
        waiting: dict[tuple[type, object], asyncio.Future[Response]] = {
            (type(id_), id_): loop.create_future() for id_ in ids
        }
        self._waiting |= waiting
        answers = list(waiting.values())
        try:
            await self._send(body, "raw")
            pending: set[asyncio.Future[Any]] = {*answers, *([without_id] if lost else ())}
            while pending and not without_id.done():
                await asyncio.wait(
                    {*pending, without_id, self.ended}, return_when=asyncio.FIRST_COMPLETED
                )
                pending = {one for one in pending if not one.done()}
                if pending and self.ended.done():
                    raise PeerError("the server ended without an answer")
            came = [one.result() for one in answers if one.done()]
            return [*came, without_id.result()] if without_id.done() else came
        finally:
            for key in waiting:
                del self._waiting[key]
            self._lost = None

    async def notify(self, method: str, params: Json = None) -> None:
        """Send a notification."""
        await self._send(jsonrpc.encode(Notification(method, _params(params))), method)

    async def fate(self) -> str:
        """Return in words how the server ended, once its output has."""
        with suppress(TimeoutError):
            async with asyncio.timeout(FATE_SECONDS):
                code = await self._process.wait()
                how = f"exit code {code}" if code >= 0 else f"killed by signal {-code}"
                return f"the server ended: {how}"
        return "the server closed its output"

    async def stop(self) -> None:
        """End the server's input and see it off, in the end by force."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        if not await self._gone(TELL_SECONDS):
            log.info("the server is still at work; waiting %g s at most", STOP_SECONDS)
            if not await self._gone(STOP_SECONDS - TELL_SECONDS):
                log.info("the server did not end when its input did, so it is told to")
                with suppress(ProcessLookupError):
                    self._process.terminate()
                if not await self._gone(TERMINATE_SECONDS):
                    with suppress(ProcessLookupError):
                        self._process.kill()
                    await self._gone(FATE_SECONDS)
        readers = [one for one in (self.ended, self._log_reader) if one is not None]
        # A child that it left behind holds its output open for as long as it likes.
        await asyncio.wait(readers, timeout=FATE_SECONDS)
        # asyncio has no public way to close the pipes of a process.
        self._process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001 - as said
        await asyncio.gather(*readers)

    async def _gone(self, seconds: float) -> bool:
        """Wait so long for the process to end; return whether it did."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._process.wait()
        return self._process.returncode is not None

    async def _exchange(self, id_: str, body: bytes, what: str) -> Response:
        answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._waiting[type(id_), id_] = answer
        try:
            await self._send(body, what)
            return await self._answered(answer)
        except asyncio.CancelledError:
            cancelled = {"requestId": id_, "reason": "given up by the person at the prompt"}
            self._write(jsonrpc.encode(Notification("notifications/cancelled", cancelled)))
            log.debug("-> notifications/cancelled id %s", id_)
            raise
        finally:
            del self._waiting[type(id_), id_]

    async def _answered(self, answer: "asyncio.Future[Response]") -> Response:
        await asyncio.wait((answer, self.ended), return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            raise PeerError("the server ended without an answer")
        return answer.result()

    async def _send(self, body: bytes, what: str) -> None:
        log.debug("-> %s, %d bytes: %s", what, len(body), shown(body.decode("utf-8", "replace")))
        self._write(body)
        assert self._process.stdin is not None
        with suppress(ConnectionError):  # the reader sees the end too, and says so
            await self._process.stdin.drain()

    def _write(self, body: bytes) -> None:
        assert self._process.stdin is not None
        if not self._process.stdin.is_closing():
            self._process.stdin.write(framing.encode(Frame(body, self.framing)))

    async def _read(self) -> None:
        assert self._process.stdout is not None
        framer = Framer()
        while chunk := await self._process.stdout.read(READ_BYTES):
            for frame in framer.feed(chunk):
                self._take(frame)
        for frame in framer.end():
            self._take(frame)

    def _take(self, frame: Frame | FrameError) -> None:
        if isinstance(frame, FrameError):
            self.heard(frame)
            return
        message = jsonrpc.decode(frame.body)
        if isinstance(message, Malformed):
            log.debug("<- no message: %s", shown(frame.body[:LOGGED_CHARACTERS]))
            if message.id is None:
                message = message._replace(id=self._answered_in(frame.body))
        for one in message if isinstance(message, list) else [message]:
            self._receive(one)

    def _answered_in(self, body: bytes) -> Id | None:
        """Return the id of ours that stands in what is no message: nothing else will answer it."""
        for _, id_ in self._waiting:
            if re.search(rb'"id"\s*:\s*%b\s*[,}]' % re.escape(json.dumps(id_).encode()), body):
                return id_ if isinstance(id_, (str, int)) else None
        return None

    def _receive(self, message: Message) -> None:
        if why := _unfit(message):
            id_ = None if isinstance(message, Notification) else message.id
            message = Malformed(RpcError(jsonrpc.PARSE_ERROR, why), id_)
        match message:
            case Response(id=None) if self._lost is not None and not self._lost.done():
                self._lost.set_result(message)
            case Response(id=id_) if (answer := self._waiting.get((type(id_), id_))) is not None:
                if not answer.done():
                    answer.set_result(message)
            case Malformed(error=wrong, id=id_) if (
                answer := self._waiting.get((type(id_), id_))
            ) is not None:
                if not answer.done():
                    error = {"message": f"the server's answer cannot be read: {wrong.data}"}
                    answer.set_result(Response(id_, error=error))
            case Request(id=id_, method="ping"):
                self._write(jsonrpc.encode(Response(id_, {})))
            case Request(id=id_, method=method):
                log.info("the server asked for %s, which this client lacks", one_line(method, 100))
                lacking = RpcError(jsonrpc.METHOD_NOT_FOUND)
                self._write(jsonrpc.encode(Response(id_, error=lacking.wire())))
            case Notification(method=method):
                log.debug("<- %s", one_line(method, LOGGED_CHARACTERS))
                self.heard(message)
            case _:
                self.heard(message)

    async def _read_log(self, log_line: Callable[[str], None]) -> None:
        assert self._process.stderr is not None
        rest = b""
        while chunk := await self._process.stderr.read(READ_BYTES):
            *lines, rest = (rest + chunk).split(b"\n")
            if len(rest) > MAX_LOG_LINE_BYTES:
                lines.append(rest)
                rest = b""
            for line in lines:
                log_line(line.decode("utf-8", "replace"))
        if rest:
            log_line(rest.decode("utf-8", "replace"))


def _unfit(message: Message) -> str:
    """Return why a message cannot be shown as JSON; empty if it can."""
    match message:
        case Response(result=result, error=error):
            level: list[Json] = [result, error]
        case Request(params=params) | Notification(params=params):
            level = [params]
        case Malformed():
            return ""
    for _ in range(MAX_DEPTH):
        if any(isinstance(one, float) and not isfinite(one) for one in level):
            return "it has a number beyond what computers count with"
        level = [
            inner
            for one in level
            if isinstance(one, (dict, list))
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
    return f"it has more than {MAX_DEPTH} values inside one another" if level else ""


def _params(params: Json) -> dict[str, Json]:
    return params if isinstance(params, dict) else {}
