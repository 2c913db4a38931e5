"""An MCP server as a child process, and requests to it."""

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import IO, Any

from bridge.mcp import jsonrpc
from bridge.mcp.framing import Frame, Framer
from bridge.mcp.jsonrpc import Notification, Request, Response
from bridge.mcp.stdio import READ_BYTES

HANDSHAKE_SECONDS = 10.0
"""How long a server may take to its first answer; a program that is none never gives one."""

STOP_SECONDS = 12.0
"""How long the server may take to end after its input did: its drain is at most 10 s."""


class PeerError(Exception):
    """The server did not start, ended, or answered with an error; says which in plain words."""


class Peer:
    """One server, started by us and spoken to over its stdin and stdout.

    Its stderr is ours, so that a person sees its log, unless `start` is given a file for it.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._ids = count(1)
        self._waiting: dict[object, asyncio.Future[Response]] = {}
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
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
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=stderr,
                cwd=cwd,
                env=os.environ if environment is None else environment,
                start_new_session=True,  # Ctrl-C is for us; the server hears of the end from us
            )
        except OSError as error:
            raise PeerError(f"{command[0]} does not start: {error.strerror}") from error
        return cls(process)

    async def request(self, method: str, params: dict[str, object] | None = None) -> Any:
        """Return the result; raises `PeerError` with the server's own words for an error."""
        id_ = next(self._ids)
        answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._waiting[id_] = answer
        try:
            await self._send(Request(id_, method, params or {}))
            await asyncio.wait((answer, self._reader), return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                raise PeerError("the server ended without an answer")
            response = answer.result()
        finally:
            del self._waiting[id_]
        if response.error is not None:
            data = response.error.get("data")
            detail = f": {data if isinstance(data, str) else json.dumps(data)}" if data else ""
            raise PeerError(f"{response.error.get('message')}{detail}")
        return response.result

    async def initialize(
        self, params: dict[str, object], *, seconds: float = HANDSHAKE_SECONDS
    ) -> Any:
        """Shake hands; raises `PeerError` when nothing comes back in time."""
        try:
            async with asyncio.timeout(seconds):
                return await self.request("initialize", params)
        except TimeoutError as error:
            raise PeerError(f"no answer within {seconds:g} s: is it an MCP server?") from error

    async def notify(self, method: str) -> None:
        """Send a notification."""
        await self._send(Notification(method))

    async def stop(self) -> None:
        """End the server's input and see it off."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        await self._reader

    async def _send(self, message: Request | Notification) -> None:
        assert self._process.stdin is not None
        with suppress(ConnectionError):  # the reader sees the end too, and says so
            self._process.stdin.write(jsonrpc.encode(message) + b"\n")
            await self._process.stdin.drain()

    async def _read(self) -> None:
        assert self._process.stdout is not None
        framer = Framer()
        while chunk := await self._process.stdout.read(READ_BYTES):
            for frame in framer.feed(chunk):
                if not isinstance(frame, Frame):
                    continue
                message = jsonrpc.decode(frame.body)
                if isinstance(message, Response) and message.id in self._waiting:
                    answer = self._waiting[message.id]
                    if not answer.done():
                        answer.set_result(message)
