"""A search through the room's archive: page after page, until enough is found or time is up."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING

from bridge.frozen import dataclass
from bridge.xmpp import archive
from bridge.xmpp.archive import (
    NOTHING,
    Abilities,
    ArchivePage,
    ArchiveQuery,
    ArchiveRefusedError,
    ArchiveSilentError,
    NoArchiveError,
    UnknownPositionError,
    pages,
)
from bridge.xmpp.events import Event
from bridge.xmpp.mam import Archived

if TYPE_CHECKING:
    from bridge.xmpp.connection import Connection

MAX_PAGES = 500
"""Asked for in one `collect`: fifty thousand results, and an end where none would come."""

MAX_COLLECTED_CHARACTERS = 8 * 1024 * 1024
"""In what one `collect` returns; one result always fits."""


@dataclass(frozen=True)
class Collected:
    """What was found on the way through an archive, until enough was found or time was up."""

    results: tuple[Archived, ...]
    """Oldest first; of each, the events that were wanted."""
    next_id: str | None
    """Where the way goes on: `after` it, or `before` it when the newest were asked for. None where
    nothing was looked at."""
    more: bool
    """Whether there may be more that way."""
    looked_at: int
    """How many results were looked at, wanted or not."""
    filtered: frozenset[str] = frozenset()
    """What the server itself left out, as `ArchivePage` has it."""


async def collect(
    connection: "Connection",
    room: str,
    *,
    query: ArchiveQuery,
    wanted: Callable[[Event], bool],
    limit: int,
    budget_seconds: float,
) -> Collected:
    """Walk through the archive until `limit` results satisfy `query` and are `wanted`.

    Stops sooner where the archive ends, the time is up or a bound is met; `more` then tells, and
    `next_id` is where another walk goes on. Raises `ArchiveSilentError` if not even one page came
    in time, otherwise as `page` does.
    """
    able = NOTHING
    walk = _Walk(query, wanted, limit)
    try:
        async with asyncio.timeout_at(asyncio.get_running_loop().time() + budget_seconds):
            if query.sender is not None or query.text is not None:
                able = await archive.abilities(connection, room)
            elif not await archive.exists(connection, room):
                raise NoArchiveError(f"{room} keeps no archive")
            if not archive.asked(query, able) or not await _walk_filtered(
                connection, room, walk, able
            ):
                await walk.through(pages(connection, room, query))
    except (TimeoutError, ArchiveSilentError) as error:
        if not walk.turned:
            raise ArchiveSilentError(f"{room} has not answered in time") from error
    return walk.collected()


async def _walk_filtered(
    connection: "Connection", room: str, walk: "_Walk", able: Abilities
) -> bool:
    """Let the server filter; return False where what it says must not be believed.

    An id that a filter has left out may be unknown to who filters first and turns pages then; and
    `feature-not-implemented` may be said of a filter.
    """
    try:
        found = pages(connection, room, walk.query, able)
        return await walk.through(found, doubtful=True)
    except (UnknownPositionError, ArchiveRefusedError, NoArchiveError):
        if walk.turned:
            raise
        return False


class _Walk:
    """What was found so far, and where we stand."""

    def __init__(self, query: ArchiveQuery, wanted: Callable[[Event], bool], limit: int) -> None:
        self.query = query
        self.turned = 0
        """Pages seen to their end, or to where enough was found."""
        self._wanted = wanted
        self._limit = limit
        self._found: list[Archived] = []
        self._size = 0
        self._looked_at = 0
        self._next_id = query.after or query.before or None
        self._more = True
        self._filtered: frozenset[str] | None = None

    async def through(
        self, found: AsyncGenerator[ArchivePage, None], *, doubtful: bool = False
    ) -> bool:
        """Go on from page to page; False if, `doubtful`, the very first is empty."""
        async with aclosing(found):
            async for one in found:
                if doubtful and not self.turned and not one.results:
                    return False
                self.turned += 1
                filtered = self._filtered
                self._filtered = one.filtered if filtered is None else filtered & one.filtered
                if self._enough(one) or self.turned == MAX_PAGES:
                    return True
        self._more = False
        return True

    def collected(self) -> Collected:
        """Return what was found, oldest first."""
        backward = self.query.before is not None
        return Collected(
            tuple(reversed(self._found) if backward else self._found),
            self._next_id,
            self._more,
            self._looked_at,
            self._filtered or frozenset(),
        )

    def _enough(self, page: ArchivePage) -> bool:
        """Look through a page; return whether to stop there."""
        backward = self.query.before is not None
        left = len(page.results)
        for result in reversed(page.results) if backward else page.results:
            fitting = self._fitting(result)
            size = 0 if fitting is None else fitting.characters
            if self._found and self._size + size > MAX_COLLECTED_CHARACTERS:
                return True
            self._next_id = result.id
            self._looked_at += 1
            left -= 1
            if fitting is None:
                continue
            self._found.append(fitting)
            self._size += size
            if len(self._found) == self._limit:
                self._more = bool(left) or not page.complete
                return True
        beyond = page.first if backward else page.last
        self._next_id = beyond or self._next_id
        self._more = not page.complete
        return False

    def _fitting(self, result: Archived) -> Archived | None:
        if not (archive.is_from(result, self.query) and archive.has_text(result, self.query)):
            return None
        events = tuple(event for event in result.events if self._wanted(event))
        return replace(result, events=events) if events else None
