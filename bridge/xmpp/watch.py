"""Watching a standing connection: does the server answer, are we still in the room.

A half-open connection and a ghost in a room say nothing by themselves, so both are asked. The
server by a ping; the room, after a silence, by a ping to ourselves through it (XEP-0410).
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from bridge.xmpp import faults, refusals
from bridge.xmpp.faults import Fault, Stage

if TYPE_CHECKING:
    from bridge.xmpp.connection import Connection


@dataclass(frozen=True)
class Patience:
    """How long silences may last, all in seconds."""

    ping_interval: float = 30.0
    """Between two pings to the server."""
    ping_deadline: float = 15.0
    """For an answer to any ping."""
    silence: float = 60.0
    """Of the room, before it is asked whether we are in it."""
    known: float = 120.0
    """Of the room, after which we are out unless it has said otherwise."""
    tick: float = 5.0
    """Between two looks at the clocks."""
    jump: float = 10.0
    """The wall clock ahead of ours by so much: the machine was asleep; who knows what stands."""


PATIENCE = Patience()
"""What users are promised."""


class Verdict(Enum):
    """What a self-ping says."""

    IN = "in"
    OUT = "out"
    UNDECIDED = "undecided"


def verdict(condition: str | None) -> Verdict:
    """Read the answer to a self-ping: its error condition, or None for a result (XEP-0410, 3.1).

    An answer that another of our sessions under the same nickname gave means that we are in; a
    room that cannot be reached decides nothing.
    """
    match condition:
        case None | "service-unavailable" | "feature-not-implemented":
            return Verdict.IN
        case "remote-server-not-found" | "remote-server-timeout":
            return Verdict.UNDECIDED
        case _:
            return Verdict.OUT


class Watch:
    """Looks after one connection until it has ended."""

    def __init__(
        self,
        connection: "Connection",
        *,
        patience: Patience,
        on_self_ping: Callable[[float], None],
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._connection = connection
        self._patience = patience
        self._on_self_ping = on_self_ping
        self._wall = wall
        self._loop = asyncio.get_running_loop()
        self._offset = wall() - self._loop.time()
        self._pinged = self._loop.time()
        self._confirmed = self._loop.time()
        self._doubt = asyncio.Event()

    def doubt(self) -> None:
        """Ask the room at once whether we are in it: something said that we are not."""
        self._doubt.set()

    async def run(self) -> Fault:
        """Return the reason once the connection has ended, or ought to."""
        ended = self._connection.ended
        doubting = asyncio.ensure_future(self._doubt.wait())
        try:
            while not ended.done():
                await asyncio.wait(
                    (ended, doubting),
                    timeout=self._patience.tick,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if ended.done():
                    break
                if doubting.done():
                    self._doubt.clear()
                    doubting = asyncio.ensure_future(self._doubt.wait())
                    fault = await self._ask_room(self._connection.room_heard)
                else:
                    fault = await self._look()
                if fault is not None:
                    return fault
            return ended.result()
        finally:
            doubting.cancel()

    async def _look(self) -> Fault | None:
        now = self._loop.time()
        asleep = self._wall() - now - self._offset > self._patience.jump
        self._offset = self._wall() - now
        if asleep or now - self._pinged >= self._patience.ping_interval:
            self._pinged = now
            if not await self._answers():
                place = self._connection.place
                return faults.of_silence(Stage.STANDING, self._patience.ping_deadline, place)
        heard = max(self._connection.room_heard, self._confirmed)
        if asleep or self._loop.time() - heard >= self._patience.silence:
            return await self._ask_room(heard)
        return None

    async def _answers(self) -> bool:
        try:
            async with asyncio.timeout(self._patience.ping_deadline):
                await self._connection.ping(None)
        except TimeoutError:
            return False
        return True

    async def _ask_room(self, heard: float) -> Fault | None:
        started = self._loop.time()
        occupant = self._connection.occupant
        try:
            async with asyncio.timeout(self._patience.ping_deadline):
                found = verdict(await self._connection.ping(occupant))
        except TimeoutError:
            found = Verdict.UNDECIDED
        if found is Verdict.OUT and occupant != self._connection.occupant:
            return None  # we were renamed meanwhile: the next look asks under the new name
        if found is Verdict.IN:
            self._confirmed = self._loop.time()
            self._on_self_ping((self._confirmed - started) * 1000)
            return None
        if found is Verdict.OUT:
            return refusals.ghost(self._connection.place)
        # Another look and its two pings would end beyond what is promised.
        patience = self._patience
        if self._loop.time() - heard >= patience.known - patience.tick - 2 * patience.ping_deadline:
            return refusals.of_silent_room(self._loop.time() - heard, self._connection.place)
        return None
