"""Reads from a room's archive what was said while we were away (XEP-0313)."""

import asyncio
from collections.abc import AsyncIterator

from bridge.store.clock import Instant
from bridge.text import iso
from bridge.xmpp.link.connection import Connection
from bridge.xmpp.model.events import Event, Gap
from bridge.xmpp.model.faults import ConnectionFailedError
from bridge.xmpp.muc.archive import ArchiveError, RoomArchive

OVERLAP_SECONDS = 60.0
"""We ask for messages from this long before the room last sent something. The room's clock may
differ from ours."""

CATCHING_UP_SECONDS = 60.0
"""How long the room's archive may take to send what we missed."""


class CatchingUp:
    """Asks a room's archive for what was said in the room while we were away."""

    def __init__(self, room: str) -> None:
        """`room` is a bare JID, prepared."""
        self._room = room
        self.heard_until: float | None = None
        """When the room last sent something in the former stay."""
        self._missed_since: float | None = None
        """Messages since this time are still missing; None if none are."""
        self.failed = False
        """Whether the archive has failed to send what we missed. If so, we use the history."""

    def forget(self) -> None:
        """Forget former stays: the room may show another account other messages."""
        self.heard_until = self._missed_since = None
        self.failed = False

    def since(self) -> str | None:
        """Return the time since which we ask the room for messages; None in the first stay."""
        if self._missed_since is None and self.heard_until is not None:
            now = Instant.now()  # the clock may have been set since
            self._missed_since = now - (now - self.heard_until)
        missed = self._missed_since
        return None if missed is None else iso(missed - OVERLAP_SECONDS)

    async def missed(self, connection: Connection, occupant: str) -> AsyncIterator[Event]:
        """Yield the messages that we missed, from the archive, or a gap if it fails.

        The room's history, which came with joining, may have been too short to hold all of them.
        """
        since, until = self._missed_since, Instant.now()
        if since is None:
            return
        archive = RoomArchive(connection, self._room, occupant)
        try:
            async with asyncio.timeout(CATCHING_UP_SECONDS):
                await archive.check_announced()
                async for event in archive.since(iso(since - OVERLAP_SECONDS)):
                    yield event
        except (ArchiveError, TimeoutError):
            self.failed = True
            yield Gap(iso(since), iso(until))
        except ConnectionFailedError:
            return  # the next stay asks again
        self._missed_since = None
