"""A client on the far side of a `Session`, and what the log held meanwhile."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import pytest

from bridge.mcp.framing import Frame, Framer, Framing, encode
from bridge.mcp.server import Server
from bridge.mcp.session import Session
from bridge.mcp.toolset import Toolset
from tests.mcp.pipes import PATIENCE
from tests.mcp.sample_tools import TOOLS, Workbench, request, serving


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0
        self.step = 0.0
        """What passes with each look."""

    def __call__(self) -> float:
        self.now += self.step
        return self.now


async def at_once() -> None:
    """The client has read all."""


class Client:
    """The far side of a session: what it sends goes in as chunks, what comes out is kept."""

    def __init__(
        self,
        tools: Toolset = TOOLS,
        server: Server | None = None,
        loading: Mapping[type, asyncio.Event] = MappingProxyType({}),
    ) -> None:
        self.bench = Workbench()
        self.clock = Clock()
        self.frames: list[Frame] = []
        self.writes: list[bytes] = []
        self._framer = Framer()
        self._came = asyncio.Event()
        self._chunks: asyncio.Queue[bytes | None] = asyncio.Queue()
        server = server or serving(self.bench, tools)
        self.session = Session(
            server, self._receive, ready=at_once, clock=self.clock, loading=loading
        )
        self.running = asyncio.create_task(self.session.run(self._feed()))

    def send(self, *messages: object, framing: Framing = Framing.LINES) -> None:
        """Send all messages in one chunk."""
        frames = (Frame(json.dumps(each).encode(), framing) for each in messages)
        self.send_bytes(b"".join(map(encode, frames)))

    def send_bytes(self, data: bytes) -> None:
        self._chunks.put_nowait(data)

    async def replies(self, count: int) -> list[Any]:
        """Return all replies so far, once there are `count`."""
        async with asyncio.timeout(PATIENCE):
            while len(self.frames) < count:
                self._came.clear()
                await self._came.wait()
        return [json.loads(each.body) for each in self.frames]

    async def settled(self) -> list[Any]:
        """Return all replies so far, once a further request has been answered and taken away."""
        self.send(request("settled", "ping"))
        while not any(each.get("id") == "settled" for each in await self.replies(1)):
            await self.replies(len(self.frames) + 1)
        self.frames = [each for each in self.frames if json.loads(each.body).get("id") != "settled"]
        return [json.loads(each.body) for each in self.frames]

    async def idle(self) -> None:
        """Let the loop turn until nothing more happens by itself."""
        for _ in range(50):
            await asyncio.sleep(0)

    async def read(self) -> None:
        """Wait until all that was sent is read, and more is asked for."""
        async with asyncio.timeout(PATIENCE):
            await self._chunks.join()

    async def stop(self) -> list[Any]:
        """Cancel the session, as a signal does, and return all replies there ever were."""
        self.running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await self.running
        return [json.loads(each.body) for each in self.frames]

    async def end(self) -> list[Any]:
        """End the input and return all replies there ever were."""
        self._chunks.put_nowait(None)
        async with asyncio.timeout(PATIENCE):
            await self.running
        return [json.loads(each.body) for each in self.frames]

    async def _feed(self) -> AsyncIterator[bytes]:
        while (chunk := await self._chunks.get()) is not None:
            yield chunk
            self._chunks.task_done()

    def _receive(self, data: bytes) -> None:
        self.writes.append(data)
        frames = self._framer.feed(data)
        self.frames += [each for each in frames if isinstance(each, Frame)]
        assert len(frames) > 0
        self._came.set()


def ids(replies: list[Any]) -> list[Any]:
    return [each["id"] for each in replies]


@contextmanager
def logged(level: int) -> Iterator[list[str]]:
    lines: list[str] = []

    class Keeper(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(logging.Formatter().format(record))

    logger = logging.getLogger("bridge.mcp")
    keeper, before = Keeper(), logger.level
    logger.addHandler(keeper)
    logger.setLevel(level)
    try:
        yield lines
    finally:
        logger.removeHandler(keeper)
        logger.setLevel(before)
