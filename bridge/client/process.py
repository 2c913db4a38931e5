"""An MCP server as a child process, and JSON-RPC with it over its stdin and stdout."""

import asyncio
import json
import logging
import re
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from itertools import count
from math import isfinite
from time import monotonic
from typing import Any

from bridge.client.errors import RequestError, ServerError
from bridge.mcp import framing, jsonrpc
from bridge.mcp.framing import Frame, Framer, Framing, SkippedInput
from bridge.mcp.jsonrpc import Id, Json, Message, Notification, Request, Response
from bridge.mcp.stdio import MAX_UNSENT_BYTES, READ_BYTES
from bridge.text import one_line

STOP_SECONDS = 12.0
"""How long the server may take to end after its stdin was closed. Our own server goes on for up to
10 s with the calls in flight."""

NOTICE_SECONDS = 2.0
"""How long the server may take to end before the log says that we wait for it."""

TERMINATE_SECONDS = 2.0
"""How long a process has after SIGTERM before it is killed (MCP, "Shutdown", stdio)."""

EXIT_SECONDS = 1.0
"""How long a server may take to exit after its stdout has ended, or after it was killed."""

MAX_DEPTH = 100
"""The most levels of nesting in a message: formatting recurses once for each level."""

MAX_QUESTIONS = 16
"""The most requests of the server that wait for an answer. A person answers one after another."""

MAX_LOG_LINE_BYTES = 16 * 1024
"""The most bytes of a line of the server's stderr; a longer line comes in pieces."""

log = logging.getLogger(__name__)


class ServerProcess:
    """An MCP server that runs as our child.

    `on_unsolicited` takes each message that answers no request, `on_log_line` each line of the
    server's stderr, if that is a pipe.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.framing = Framing.LINES
        """The framing of our next message. A message of the server may have either framing."""
        self.on_unsolicited: Callable[[Message | SkippedInput], None] = lambda message: None
        self.on_log_line: Callable[[str], None] = lambda line: None
        self.answering: dict[str, Callable[[Mapping[str, Json]], Awaitable[Json]]] = {}
        """The functions that answer requests of the server, by method; `ping` needs none."""
        self._answers: dict[Id | None, asyncio.Task[None]] = {}
        """The tasks that answer requests of the server, by the ids of these requests."""
        self._process = process
        self._stdin = process.stdin
        self._request_numbers = count(1)
        self._waiting: dict[Id | None, asyncio.Future[Response]] = {}
        """The responses that requests wait for, by id."""
        self.ended = asyncio.create_task(self._read(process.stdout))
        """Done once the server's stdout has ended, and no answer can come any more."""
        self._readers = [self.ended]
        if process.stderr is not None:
            self._readers.append(asyncio.create_task(self._read_log(process.stderr)))

    @classmethod
    async def start(
        cls, command: Sequence[str], environment: Mapping[str, str] | None = None, **options: Any
    ) -> "ServerProcess":
        """Start `command`; raises `ServerError` when that fails.

        `environment` is our own unless given. The `options` are those of `subprocess`: `cwd`, and
        `stderr`, which may be a pipe (`PIPE`).
        """
        options |= {"stdin": PIPE, "stdout": PIPE, "env": environment}
        options["start_new_session"] = True  # Ctrl-C must reach only us; we end the server
        try:
            process = await asyncio.create_subprocess_exec(*command, **options)
        except (OSError, ValueError) as error:  # `ValueError`: a NUL, or text that is not UTF-8
            why = error.strerror if isinstance(error, OSError) else error
            raise ServerError(f"{command[0]} does not start: {why}") from error
        return cls(process)

    async def request(self, method: str, params: Mapping[str, Json] | None = None) -> Any:
        """Send a request and return its result.

        Raises `RequestError` for an error object and `ServerError` when the server ends first.
        When the caller is cancelled, the request is cancelled at the server too.
        """
        id_ = f"client-{next(self._request_numbers)}"
        body = jsonrpc.encode(Request(id_, method, params or {}))
        began = monotonic()
        answer = self._waiting[id_] = asyncio.get_running_loop().create_future()
        try:
            await self._send(body, f"{method} id {id_}: {jsonrpc.preview(params or {})}")
            await asyncio.wait((answer, self.ended), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            if method == "initialize":  # which must not be cancelled (MCP, "Cancellation")
                raise
            cancelled = {"requestId": id_, "reason": "given up by the person at the prompt"}
            self._write(jsonrpc.encode(Notification("notifications/cancelled", cancelled)))
            log.debug("-> notifications/cancelled id %s", id_)
            raise
        finally:
            del self._waiting[id_]
        if not answer.done():
            raise ServerError("the server ended without an answer")
        log.debug("<- %s id %s, %.1f ms", one_line(method), id_, (monotonic() - began) * 1000)
        response = answer.result()
        if response.error is not None:
            raise RequestError(response.error)
        return response.result

    async def notify(self, method: str) -> None:
        """Send a notification."""
        await self._send(jsonrpc.encode(Notification(method, {})), method)

    async def exit_description(self) -> str:
        """Return in words how the server ended, after its stdout has ended."""
        if not await exited(self._process, EXIT_SECONDS):
            return "the server closed its output"
        code = self._process.returncode or 0
        how = f"exit code {code}" if code >= 0 else f"killed by signal {-code}"
        return f"the server ended: {how}"

    async def stop(self) -> None:
        """Close the server's stdin and wait for its exit; terminate, then kill it if need be."""
        for answer in self._answers.values():
            answer.cancel()
        self._stdin.close()
        if not await exited(self._process, NOTICE_SECONDS):
            log.info("the server is still at work; waiting %g s at most", STOP_SECONDS)
            if not await exited(self._process, STOP_SECONDS - NOTICE_SECONDS):
                log.info("the server did not end when its input did; it is terminated")
                await terminate(self._process)
        # A child of the server may outlive it, and keep its stdout open for any time.
        await asyncio.wait(self._readers, timeout=EXIT_SECONDS)
        # asyncio has no public way to close the pipes of a process.
        self._process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001 - as said
        await asyncio.gather(*self._readers)

    async def _send(self, body: bytes, what: str) -> None:
        log.debug("-> %s, %d bytes", what, len(body))
        self._write(body)
        with suppress(ConnectionError):  # the task that reads stdout sees the end too
            await self._stdin.drain()

    def _write(self, body: bytes) -> None:
        if not self._stdin.is_closing():
            self._stdin.write(framing.encode(Frame(body, self.framing)))

    async def _read(self, stdout: asyncio.StreamReader) -> None:
        framer = Framer()
        while chunk := await stdout.read(READ_BYTES):
            for frame in framer.feed(chunk):
                self._take(frame)
        for frame in framer.end():
            self._take(frame)

    async def _read_log(self, stderr: asyncio.StreamReader) -> None:
        rest = b""
        while chunk := await stderr.read(READ_BYTES):
            *lines, rest = (rest + chunk).split(b"\n")
            if len(rest) > MAX_LOG_LINE_BYTES:
                lines.append(rest)
                rest = b""
            for line in lines:
                self.on_log_line(line.decode("utf-8", "replace"))
        if rest:
            self.on_log_line(rest.decode("utf-8", "replace"))

    def _take(self, frame: Frame | SkippedInput) -> None:
        if isinstance(frame, SkippedInput):
            self.on_unsolicited(frame)
            return
        decoded = jsonrpc.decode(frame.body)
        if isinstance(decoded, jsonrpc.Malformed) and decoded.id is None:
            text = frame.body[: jsonrpc.LOGGED_CHARACTERS].decode(errors="replace")
            log.debug("<- no message: %s", jsonrpc.preview(text))
            decoded = decoded._replace(id=self._awaited_id_in(frame.body))
        for message in decoded if isinstance(decoded, list) else [decoded]:
            self._receive(message)

    def _awaited_id_in(self, body: bytes) -> Id | None:
        """Return the id in malformed JSON, if a request with this id is waiting.

        The request gets no other answer, and would wait for ever.
        """
        for id_ in self._waiting:
            if re.search(rb'"id"\s*:\s*%b\s*[,}]' % re.escape(json.dumps(id_).encode()), body):
                return id_
        return None

    def _receive(self, message: Message) -> None:
        if why := _flaw(message):
            id_ = None if isinstance(message, Notification) else message.id
            message = jsonrpc.Malformed(jsonrpc.RpcError(jsonrpc.PARSE_ERROR, why), id_)
        if isinstance(message, jsonrpc.Malformed) and message.id in self._waiting:
            why = f"the server's answer cannot be read: {message.error.data}"
            message = Response(message.id, error={"message": why})
        match message:
            case Response(id=id_) if (answer := self._waiting.get(id_)) is not None:
                if not answer.done():
                    answer.set_result(message)
            case Request(id=id_, method="ping"):
                self._reply(Response(id_, {}))
            case Request(id=id_, method=method):
                is_free = id_ not in self._answers and len(self._answers) < MAX_QUESTIONS
                if method in self.answering and is_free:
                    self._answers[id_] = asyncio.create_task(self._answer(message))
                    return
                why = "too often" if method in self.answering else "which this client lacks"
                reason = f"{one_line(method, 100)}, {why}"
                log.info("the server asked for %s", reason)
                refusal = jsonrpc.RpcError(jsonrpc.METHOD_NOT_FOUND, reason)
                self._reply(Response(id_, error=refusal.wire()))
            case Notification("notifications/cancelled", {"requestId": str() | int() as id_}):
                if id_ in self._answers:
                    self._answers[id_].cancel()
            case _:
                self.on_unsolicited(message)

    async def _answer(self, request: Request) -> None:
        params = request.params if isinstance(request.params, dict) else {}
        try:
            result = await self.answering[request.method](params)
            self._reply(Response(request.id, result))
        finally:
            del self._answers[request.id]

    def _reply(self, response: Response) -> None:
        """Answer the server, unless it has left `MAX_UNSENT_BYTES` of our output unread."""
        if self._stdin.transport.get_write_buffer_size() < MAX_UNSENT_BYTES:
            self._write(jsonrpc.encode(response))


def _flaw(value: object, levels: int = MAX_DEPTH) -> str:
    """Return why a message, or a value in one, cannot be shown as JSON; empty if it can."""
    if isinstance(value, float) and not isfinite(value):
        return "it has a number beyond what computers count with"
    if not isinstance(value, (dict, list, tuple)):
        return ""
    if levels < 0:
        return f"it has more than {MAX_DEPTH} values inside one another"
    inner = value.values() if isinstance(value, dict) else value
    return next(filter(None, (_flaw(item, levels - 1) for item in inner)), "")


async def exited(process: Process, seconds: float) -> bool:
    """Wait at most `seconds` for a process to exit; return whether it did."""
    with suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), seconds)
    return process.returncode is not None


async def terminate(process: Process) -> None:
    """Terminate a process unless it has ended, and kill it if it goes on."""
    with suppress(ProcessLookupError):
        process.terminate()
        if not await exited(process, TERMINATE_SECONDS):
            process.kill()
            await exited(process, EXIT_SECONDS)
