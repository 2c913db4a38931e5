"""A bot of a real library in a process of its own, which does what a test says and writes a log."""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Self

SECONDS = 60.0
"""How long a bot may take for each step."""
LONGEST_LINE = 1 << 22
_QUOTES = re.compile(r"[\"'\\]")
_CLOSED = re.compile(r"closed \d+")


class Clock:
    """The clock of the programs' containers: a line takes a millisecond, whatever the load."""

    def __init__(self) -> None:
        self._now = datetime(2026, 11, 24, 17, 49, 31, tzinfo=UTC)

    def forward(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)

    def seconds(self) -> float:
        """Seconds since the epoch."""
        self.forward(0.001)
        return self._now.timestamp()

    def stamp(self) -> str:
        """What Kubernetes writes before each line."""
        self.forward(0.001)
        return f"{self._now:%FT%T.%f}Z stdout F "


class BotProgram:
    """The process, and the log that its library writes."""

    def __init__(self, process: asyncio.subprocess.Process, clock: Clock) -> None:
        self.lines: list[str] = []
        """The log, each line as a container has it: with the time of `clock`."""
        self._process = process
        self._clock = clock
        self._text, self._seen = "", 0
        """The log without quotes, whose signs each library chooses; how far it was looked at."""
        self._streams = 0
        """How many streams were begun."""
        self._closed: set[str] = set()
        """What the program said of those that are over."""
        self._news = asyncio.Condition()

    @classmethod
    @asynccontextmanager
    async def running(
        cls, command: Sequence[str], environment: Mapping[str, str], clock: Clock
    ) -> AsyncIterator[Self]:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=pipe,
            stdout=pipe,
            stderr=asyncio.subprocess.STDOUT,  # so that the log is there before the end is told
            env={**os.environ, **environment},
            limit=LONGEST_LINE,
        )
        program = cls(process, clock)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(program._read())
            try:
                yield program
            finally:
                process.kill()
                await process.wait()

    def write(self, line: str) -> None:
        assert self._process.stdin is not None
        self._streams += line.startswith("login ")
        self._process.stdin.write(f"{line}\n".encode())

    async def sees(self, text: str) -> None:
        """Wait until the log has a text, written without quotes, behind the one before."""
        await self._until(lambda: self._text.find(text, self._seen) >= 0, text)
        self._seen = self._text.find(text, self._seen) + len(text)

    async def closed(self) -> None:
        """Wait until the latest stream is over."""
        told = f"closed {self._streams}"
        await self._until(lambda: told in self._closed, "the end of the stream")

    async def _until(self, is_so: Callable[[], bool], what: str) -> None:
        try:
            async with asyncio.timeout(SECONDS), self._news:
                await self._news.wait_for(is_so)
        except TimeoutError:
            raise TimeoutError(f"{what!r} never came: {self._text[self._seen :][-3000:]}") from None

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for data in self._process.stdout:
            line = data.decode(errors="replace").rstrip("\n")
            async with self._news:
                if _CLOSED.fullmatch(line):
                    self._closed.add(line)
                else:
                    self.lines.append(self._clock.stamp() + line)
                    self._text += _QUOTES.sub("", line) + "\n"
                self._news.notify_all()


class Line:
    """The network between a bot and its server: a connection that can be cut, or swallow all."""

    def __init__(self, host: str, port: int) -> None:
        self._target = host, port
        self._writers: set[asyncio.StreamWriter] = set()
        self.swallows = False
        self.port = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.cut()

    def cut(self) -> None:
        self.swallows = False
        for writer in self._writers:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner, outer = await asyncio.open_connection(*self._target)
        self._writers |= {writer, outer}
        await asyncio.gather(self._pass(reader, outer), self._pass(inner, writer))
        self._writers -= {writer, outer}

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65_536):
                if not self.swallows:
                    writer.write(data)
                    await writer.drain()
        except OSError:
            pass
        writer.close()
