"""A raw relay from HTTP to a server on stdio, for judges that speak HTTP only.

    python tests/interop/relay.py COMMAND [ARGUMENTS...]

It prints its address, listens on 127.0.0.1 alone, and hands bytes on: a body is one line to the
server, a line from the server is one event. Each request outside a session gets a server of its
own, so that nothing can be remembered between two; a handshake that succeeds makes it a session,
and a server that asks the client something is there for the answers.
Of HTTP it knows no more than the judges need to see the server's own answers.
"""

import asyncio
import json
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from uuid import uuid4

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

Message: TypeAlias = dict[str, Any]

LONGEST_LINE = 32 * 1024 * 1024
AHEAD = 4
"""Servers that are started before a request needs them: the suite asks for several at once."""
END_SECONDS = 5.0
"""How long a server may take to end after its input has, before it is killed."""
HOST = "127.0.0.1"
SESSION = "mcp-session-id"
STATUS = {-32700: 400, -32600: 400, -32602: 400, -32021: 400, -32022: 400, -32601: 404}
"""What HTTP says beside an error code since 2026-07-28 ("Streamable HTTP")."""


@dataclass(eq=False)
class Session:
    """One running server and who waits for its lines."""

    process: Process
    streams: dict[object, asyncio.Queue[bytes | None]] = field(default_factory=dict)
    reader: asyncio.Task[None] | None = None

    @classmethod
    async def start(cls, command: Sequence[str]) -> "Session":
        process = await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, limit=LONGEST_LINE
        )
        session = cls(process)
        session.reader = asyncio.create_task(session.read())
        return session

    async def read(self) -> None:
        """Hand each line to the stream of its request; a notification goes to the newest."""
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            id_ = json.loads(line).get("id")
            stream = self.streams.get(id_) or next(reversed(self.streams.values()), None)
            if stream is not None:
                stream.put_nowait(line)
        for stream in self.streams.values():
            stream.put_nowait(None)

    def write(self, body: bytes) -> None:
        """Send a message as one line: in JSON a newline is never more than white space."""
        assert self.process.stdin is not None
        self.process.stdin.write(body.replace(b"\r", b" ").replace(b"\n", b" ") + b"\n")

    async def ask(self, id_: object, body: bytes) -> AsyncGenerator[bytes]:
        """Send a request and yield what comes until its response, which comes last."""
        stream = self.streams[id_] = asyncio.Queue()
        try:
            self.write(body)
            while (line := await stream.get()) is not None:
                yield line
                if is_response(line, id_):
                    return
        finally:
            del self.streams[id_]

    async def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            async with asyncio.timeout(END_SECONDS):
                await self.process.wait()
        except TimeoutError:
            self.process.kill()
        if self.reader is not None:
            await self.reader


def is_response(line: bytes, id_: object) -> bool:
    message = json.loads(line)
    return "method" not in message and message.get("id") == id_


class Relay:
    def __init__(self, command: Sequence[str]) -> None:
        self._command = tuple(command)
        self._sessions: dict[str, Session] = {}
        self._asking: dict[str, Session] = {}
        """By the `requestState` that each of them gave: no other process takes it back."""
        self._ahead = deque[asyncio.Task[Session]]()
        """Started ahead: the suite waits 2 s for some answers, and a start may take as long."""

    async def post(self, request: Request) -> Response:
        body = await request.body()
        message = json.loads(body)
        name = request.headers.get(SESSION)
        if name is not None:
            if name not in self._sessions:
                return Response(status_code=404)
            return await self._within(self._sessions[name], message, body)
        state = message.get("params", {}).get("requestState")
        if state is not None and self._asking:
            # One that was tampered with is for the newest to refuse.
            session = self._asking.get(state) or next(reversed(self._asking.values()))
        else:
            session = await self._started()
        return await self._alone(session, message, body)

    async def delete(self, request: Request) -> Response:
        session = self._sessions.pop(request.headers.get(SESSION, ""), None)
        if session is None:
            return Response(status_code=404)
        await session.end()
        return Response(status_code=200)

    async def end(self) -> None:
        ahead = await asyncio.gather(*self._ahead)
        sessions = {*self._sessions.values(), *self._asking.values(), *ahead}
        await asyncio.gather(*(each.end() for each in sessions))

    async def _started(self) -> Session:
        """Return a server that was not spoken with, and start another."""
        while len(self._ahead) <= AHEAD:
            self._ahead.append(asyncio.create_task(Session.start(self._command)))
        return await self._ahead.popleft()

    async def _within(self, session: Session, message: Message, body: bytes) -> Response:
        if not _wants_answer(message):
            session.write(body)
            return Response(status_code=202)
        return StreamingResponse(
            _events(session.ask(message["id"], body)), media_type="text/event-stream"
        )

    async def _alone(self, session: Session, message: Message, body: bytes) -> Response:
        if not _wants_answer(message):
            session.write(body)
            await session.end()
            return Response(status_code=202)
        lines = session.ask(message["id"], body)
        first = await anext(lines)
        if not is_response(first, message["id"]):
            events = _events(lines, first, session)
            return StreamingResponse(events, media_type="text/event-stream")
        await lines.aclose()
        answer = json.loads(first)
        headers = {}
        if message["method"] == "initialize" and "result" in answer:
            headers[SESSION] = uuid4().hex
            self._sessions[headers[SESSION]] = session
        elif state := answer.get("result", {}).get("requestState"):
            self._asking[state] = session
        elif session not in self._asking.values():
            await session.end()
        status = STATUS.get(answer.get("error", {}).get("code"), 200)
        return Response(first, status, headers, "application/json")


def _wants_answer(message: Message) -> bool:
    return "id" in message and "method" in message


async def _events(
    lines: AsyncIterator[bytes], first: bytes | None = None, alone: Session | None = None
) -> AsyncIterator[bytes]:
    try:
        if first is not None:
            yield b"event: message\ndata: " + first + b"\n"
        async for line in lines:
            yield b"event: message\ndata: " + line + b"\n"
    finally:
        if alone is not None:
            await asyncio.shield(alone.end())


def main(command: Sequence[str]) -> None:
    relay = Relay(command)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        del app
        yield
        await relay.end()

    app = Starlette(
        routes=[
            Route("/mcp", relay.post, methods=["POST"]),
            Route("/mcp", relay.delete, methods=["DELETE"]),
        ],
        # Or any page in a browser on this machine could start servers here (DNS rebinding).
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=[HOST])],
        lifespan=lifespan,
    )
    with socket.create_server((HOST, 0)) as listener:
        sys.stdout.write(f"http://{HOST}:{listener.getsockname()[1]}/mcp\n")
        sys.stdout.flush()
        config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1)
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run([listener])


if __name__ == "__main__":
    main(sys.argv[1:])
