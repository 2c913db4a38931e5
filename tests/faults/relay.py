"""A TCP relay in front of a server's port, which does on command what networks do by chance.

With certificates it ends TLS on both sides, and so sees and can meddle with the stanzas
themselves; without, it passes on bytes that it does not understand.
"""

import asyncio
import re
import socket
import ssl
import struct
from asyncio import StreamReader, StreamWriter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Self, TypeAlias

CHUNK_BYTES = 65_536
"""The most that is passed on at once."""


class Way(Enum):
    TO_SERVER = "to server"
    TO_CLIENT = "to client"


class Treatment(Enum):
    """What happens to bytes that go one way."""

    PASS = "pass"
    CORRUPT = "corrupt"
    """One bit of each chunk is flipped."""
    STALL = "stall"
    """They wait, and so does whoever goes on sending; nothing is lost."""
    SWALLOW = "swallow"
    """They are lost, and with them the news that the sender hung up: a black hole."""


STILL = frozenset({Treatment.STALL, Treatment.SWALLOW})
"""Nothing arrives under these."""

Moment: TypeAlias = int | bytes
"""After so many bytes of one connection, or once what this pattern matches has passed."""


@dataclass(frozen=True)
class Secured:
    """What a relay needs to end TLS on both sides."""

    as_server: ssl.SSLContext
    as_client: ssl.SSLContext
    domain: str


@dataclass
class _Plan:
    way: Way
    moment: Moment
    deed: Callable[[], None]


class Relay:
    """Listens on a free port of 127.0.0.1 from `async with` to its end.

    Commands hold for the connections there are and for those to come, until `heal`.
    """

    def __init__(self, host: str, port: int, secured: Secured | None = None) -> None:
        self.port = 0
        self.accepted = 0
        """Connections so far."""
        self.passed = {way: bytearray() for way in Way}
        """All that has gone each way: bytes of TLS unless `secured`."""
        self._target = host, port
        self._secured = secured
        self._treatments = dict.fromkeys(Way, Treatment.PASS)
        self._delays = dict.fromkeys(Way, 0.0)
        self._plans: list[_Plan] = []
        self._forgeries: list[tuple[Way, bytes, bytes]] = []
        self._links: set[_Link] = set()
        self._changed = asyncio.Event()
        self._server: asyncio.Server | None = None

    # At once.

    def treat(self, treatment: Treatment, *ways: Way) -> None:
        """Do this to all bytes that come from now on, both ways unless told."""
        for way in ways or Way:
            self._treatments[way] = treatment
        self._changed.set()
        self._changed = asyncio.Event()

    def delay(self, seconds: float, *ways: Way) -> None:
        """Hold each chunk back for so long."""
        for way in ways or Way:
            self._delays[way] = seconds

    def forge(self, way: Way, true: bytes, false: bytes) -> None:
        """Replace some bytes by others wherever they come by."""
        self._forgeries.append((way, true, false))

    def cut(self) -> None:
        for link in set(self._links):
            link.close()

    def reset(self) -> None:
        """Break all connections off, with RST on both sides."""
        for link in set(self._links):
            link.close(reset=True)

    def refuse(self) -> None:
        """Cut all connections and let nobody listen at the port, until `heal`."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self.cut()

    # At a moment.

    def once(self, way: Way, moment: Moment, deed: Callable[[], None]) -> None:
        """Do `deed` when `moment` comes on any connection; the bytes up to it are passed on."""
        self._plans.append(_Plan(way, moment, deed))

    # And no more.

    async def heal(self) -> None:
        """Be a good network again: what was stalled arrives, what was swallowed never does."""
        self._plans.clear()
        self._forgeries.clear()
        self.delay(0.0)
        self.treat(Treatment.PASS)
        if self._server is None:
            self._server = await asyncio.start_server(
                self._accept,
                "127.0.0.1",
                self.port,
                ssl=None if self._secured is None else self._secured.as_server,
            )
            self.port = self._server.sockets[0].getsockname()[1]

    async def __aenter__(self) -> Self:
        await self.heal()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.refuse()
        for link in set(self._links):
            await link.gone.wait()

    async def _accept(self, reader: StreamReader, writer: StreamWriter) -> None:
        if self._server is None:  # `refuse` came between
            writer.transport.abort()
            return
        self.accepted += 1
        link = _Link(writer)
        self._links.add(link)
        try:
            with suppress(OSError):
                await self._relay(link, reader)
        finally:
            await link.end()
            self._links.discard(link)
            link.gone.set()

    async def _relay(self, link: "_Link", reader: StreamReader) -> None:
        secured = self._secured
        from_server, to_server = await asyncio.open_connection(
            *self._target,
            ssl=None if secured is None else secured.as_client,
            server_hostname=None if secured is None else secured.domain,
        )
        link.add(to_server)
        pumps = [
            asyncio.create_task(self._pump(Way.TO_SERVER, reader, to_server)),
            asyncio.create_task(self._pump(Way.TO_CLIENT, from_server, link.to_client)),
            asyncio.create_task(link.closed.wait()),
        ]
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        for pump in pumps:
            pump.cancel()
        await asyncio.wait(pumps)

    async def _pump(self, way: Way, reader: StreamReader, writer: StreamWriter) -> None:
        count = 0
        with suppress(OSError):
            while True:
                await self._until(lambda: self._treatments[way] is not Treatment.STALL)
                data = await reader.read(CHUNK_BYTES)
                if not data:
                    break
                while data:
                    due = self._due(way, count, data)
                    size = len(data) if due is None else due[1]
                    await self._pass(way, data[:size], writer)
                    count += size
                    data = data[size:]
                    if due is not None:
                        self._plans.remove(due[0])
                        due[0].deed()
        await self._until(lambda: self._treatments[way] not in STILL)

    def _due(self, way: Way, count: int, data: bytes) -> tuple[_Plan, int] | None:
        """The first plan whose moment lies in `data`, and how much of it comes before."""
        fits: list[tuple[int, _Plan]] = []
        for plan in self._plans:
            if plan.way is not way:
                continue
            if isinstance(plan.moment, int):
                if count <= plan.moment < count + len(data):
                    fits.append((plan.moment - count, plan))
            elif match := re.search(plan.moment, data):
                fits.append((match.end(), plan))
        return min(((plan, size) for size, plan in fits), key=lambda each: each[1], default=None)

    async def _pass(self, way: Way, data: bytes, writer: StreamWriter) -> None:
        if not data:
            return
        if self._delays[way]:  # as slow as a test wants the network
            await asyncio.sleep(self._delays[way])
        # What was read before a stall began waits here.
        await self._until(lambda: self._treatments[way] is not Treatment.STALL)
        if self._treatments[way] is Treatment.SWALLOW:
            return
        if self._treatments[way] is Treatment.CORRUPT:
            at = len(data) // 2
            data = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        for forged, true, false in self._forgeries:
            data = data.replace(true, false) if forged is way else data
        self.passed[way] += data
        writer.write(data)
        await writer.drain()

    async def _until(self, satisfied: Callable[[], bool]) -> None:
        while not satisfied():
            await self._changed.wait()


class _Link:
    def __init__(self, to_client: StreamWriter) -> None:
        self.to_client = to_client
        self.closed = asyncio.Event()
        self.gone = asyncio.Event()
        """All its tasks have ended."""
        self._writers = [to_client]

    def add(self, writer: StreamWriter) -> None:
        self._writers.append(writer)
        if self.closed.is_set():
            writer.transport.abort()

    def close(self, *, reset: bool = False) -> None:
        if self.closed.is_set():
            return
        self.closed.set()
        for writer in self._writers:
            sock = writer.get_extra_info("socket")
            if reset and sock is not None:
                # No lingering: what is under way is thrown away, and the other side gets RST.
                no_lingering = struct.pack("ii", 1, 0)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, no_lingering)
                writer.transport.abort()
            else:
                writer.close()

    async def end(self) -> None:
        self.close()
        for writer in self._writers:
            # TLS would wait half a minute for the other side's farewell.
            writer.transport.abort()
            with suppress(OSError):
                await writer.wait_closed()
