"""Catching up: what was said in a room while we were away, from its archive (XEP-0313)."""

import asyncio
from collections.abc import AsyncIterator, Callable

from bridge.text import iso
from bridge.xmpp.link.connection import Connection
from bridge.xmpp.model.events import Event, Gap
from bridge.xmpp.model.faults import ConnectionFailedError
from bridge.xmpp.muc.archive import ArchiveError, RoomArchive

OVERLAP_SECONDS = 60.0
"""How far before what we saw last the room is asked for what we missed: its clock may differ."""

CATCHING_UP_SECONDS = 60.0
"""How long the room's archive may take to answer what we missed."""

ARCHIVE_QUESTION_SECONDS = 5.0
"""How long rejoining waits for the answer whether there is an archive."""


class CatchingUp:
    """Asks one room for what was said in it while we were away."""

    def __init__(self, room: str, clock: Callable[[], float]) -> None:
        """`room` is a bare JID, prepared; `clock` returns seconds since the epoch."""
        self._room = room
        self._clock = clock
        self._last_seen: float | None = None
        """When we last heard the room in the stay before."""
        self._missed_since: float | None = None
        """The time from which what was said is still to be filled in."""
        self._archived: bool | None = None
        """Whether the room keeps an archive; None until it was asked."""

    def forget(self) -> None:
        """Forget former stays: another account may be shown other things."""
        self._last_seen = self._missed_since = self._archived = None

    def heard_until(self, at: float) -> None:
        """Note that a stay has ended, and when the room was heard last in it."""
        self._last_seen = at

    def since(self) -> str | None:
        """Return the time from which the room is asked what was said; None in the first stay."""
        if self._missed_since is None:
            self._missed_since = self._last_seen
        missed = self._missed_since
        return None if missed is None else iso(missed - OVERLAP_SECONDS)

    async def has_archive(self, connection: Connection) -> bool:
        """Return whether the room keeps an archive; False if it does not answer in time."""
        if self._archived is None:  # the last stay was too short to find out
            try:
                async with asyncio.timeout(ARCHIVE_QUESTION_SECONDS):
                    self._archived = await RoomArchive(connection, self._room, "").exists()
            except (ArchiveError, ConnectionFailedError, TimeoutError):
                return False
        return self._archived

    async def missed(self, connection: Connection, occupant: str) -> AsyncIterator[Event]:
        """Yield the messages that we missed, from the archive, or a gap if it fails.

        The room's history, which came with joining, may have been too short to hold it all.
        """
        since, until = self._missed_since, self._clock()
        if since is None:
            await self.has_archive(connection)  # so that it is known on the way back
            return
        archive = RoomArchive(connection, self._room, occupant)
        try:
            async with asyncio.timeout(CATCHING_UP_SECONDS):
                async for event in archive.since(iso(since - OVERLAP_SECONDS)):
                    yield event
        except (ArchiveError, TimeoutError):
            self._archived = False
            yield Gap(iso(since), iso(until))
        except ConnectionFailedError:
            return  # the next stay asks again
        self._missed_since = None
