"""Reads what was recorded of the rooms, in threads: a store may be large, and the disk slow."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TypeVar

from bridge.store.database import Query, Recorded, Span
from bridge.store.sqlite import SqliteDatabase
from bridge.text import seconds_of
from bridge.xmpp.events import decode
from bridge.xmpp.filter import EventFilter
from bridge.xmpp.journal import RECORDED, CursorError, Loss, Record

CHUNK = 100
"""Events that are read at a time: more would keep the interpreter from others for too long."""

WALK_SECONDS = 10.0
"""Time for one page: clients give up on a call after a minute."""

_CURSOR = re.compile(RECORDED + "([0-9a-f]{1,32})-(0|[1-9][0-9]{0,17})")
"""The name of the store, and the place of the last event before the cursor."""

Found = TypeVar("Found")


class Reader:
    """Reads one store, from a connection of its own for each look."""

    def __init__(
        self, path: Path, account: str, flush: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        """Read for this account, a bare JID: what accounts of its domain recorded counts.

        `flush` is awaited first: it writes down what this bridge has seen.
        """
        self._path, self._account, self._flush = path, account, flush

    async def walk(
        self,
        rooms: Collection[str],
        wanted: EventFilter,
        *,
        since: str | None = None,
        start: str | None = None,
        end: str | None = None,
        backward: bool = False,
        connection: bool = True,
        stanzas: bool = False,
    ) -> "Walk":
        """Begin to read what may be `wanted` of these rooms; whoever reads tries each event.

        Behind the cursor `since`, else from the time `start` on. Of the `connection`, and of
        `stanzas`, there is only what the account itself recorded. Raises `CursorError` and
        `StoreError`.
        """
        if self._flush is not None:
            await self._flush()
        query = Query(
            rooms=tuple(rooms),
            domain=self._account.partition("@")[2],
            connection_of=(self._account,) if connection else (),
            start=seconds_of(start),
            end=seconds_of(end),
            kinds=wanted.kinds,
            contains=wanted.words.searchable if wanted.words else (),
            mentions=wanted.nickname,
            stanzas=stanzas,
        )
        span = await self.look(lambda database: database.span(query))
        return Walk(self, query, span, since, backward=backward)

    def is_cursor(self, since: str) -> bool:
        """Whether it is a cursor of a store, rather than of the journal."""
        return since.startswith(RECORDED)

    async def look(self, work: Callable[[SqliteDatabase], Found]) -> Found:
        """Return what `work` finds in the store; raises `StoreError`."""
        return await asyncio.to_thread(self._look, work)

    def _look(self, work: Callable[[SqliteDatabase], Found]) -> Found:
        with closing(SqliteDatabase(self._path, writable=False)) as database:
            return work(database)


class Walk:
    """What a query finds in one order: that in which it was recorded, or backward."""

    def __init__(
        self, reader: Reader, query: Query, span: Span, since: str | None, *, backward: bool
    ) -> None:
        self.gap: Loss | None = None
        """What is deleted of what came after the cursor, or from the time asked for on."""
        self.oldest_at = span.oldest
        """When the oldest record of any room is of, in seconds since the epoch; infinite: none."""
        self.more = False
        """Whether it ended early: its time was over, or ahead of what was deleted meanwhile."""
        self._reader, self._query, self._span, self._backward = reader, query, span, backward
        self._place = span.first
        if since is not None:
            self._begin_behind(since)
        elif span.evicted and span.oldest > (query.start or 0):
            self.gap = Loss(1, span.evicted, "evicted")

    @property
    def next(self) -> str:
        """The cursor behind everything that was looked at; backward that behind the newest."""
        return self.cursor_of(max(self._place, self._span.last * self._backward))

    @property
    def oldest(self) -> str:
        """The cursor ahead of everything that is kept."""
        return self.cursor_of(self._span.evicted)

    def cursor_of(self, place: int) -> str:
        """Return the cursor right behind this place."""
        return f"{RECORDED}{self._span.store}-{place}"

    def record(self, found: Recorded) -> Record:
        """Return what was found as the journal would have it."""
        return Record(found.id, found.at, decode(found.event), found.room)

    async def __aiter__(self) -> AsyncIterator[Recorded]:
        end = monotonic() + WALK_SECONDS
        first, last = self._place, self._span.last
        while first < last and not self.more:
            look = partial(self._look, after=first, until=last)
            found, far, now = await self._reader.look(look)
            lost = not self._backward and now.evicted > max(first, self._span.evicted)
            if now.store != self._span.store or lost:
                self.more = True
                return
            for one in found:
                yield one
                self._place = max(self._place, one.id)
            first, last = (first, far) if self._backward else (far, last)
            self._place = max(self._place, first)
            self.more = first < last and monotonic() > end

    def _begin_behind(self, cursor: str) -> None:
        found = _CURSOR.fullmatch(cursor)
        if found is None:
            raise CursorError("it does not look like a cursor; take one from a result, unchanged")
        place, evicted = int(found[2]), self._span.evicted
        if found[1] != self._span.store:
            self._place, self.gap = 0, Loss(place + 1, evicted, "restarted")
        elif place > self._span.last and self._query.end is None:
            raise CursorError("it lies ahead of everything that was recorded")
        else:
            self._place = place
            self.gap = Loss(place + 1, evicted, "evicted") if place < evicted else None

    def _look(
        self, database: SqliteDatabase, *, after: int, until: int
    ) -> tuple[list[Recorded], int, Span]:
        """Return some events, how far was looked for them, and how the store is after that."""
        found, far = database.page(
            self._query, after=after, until=until, limit=CHUNK, backward=self._backward
        )
        return found, far, database.span(replace(self._query, start=None, end=None))
