"""Reads what was recorded of the rooms, in threads: a store may be large, and the disk slow."""

import asyncio
import re
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterator,
    Sequence,
)
from contextlib import closing, suppress
from dataclasses import InitVar, dataclass, replace
from functools import partial
from math import inf
from pathlib import Path
from time import monotonic
from typing import TypeVar

from bridge.store.database import Database, Happened, Query, Recorded, Span
from bridge.store.errors import AwayStoreError
from bridge.store.location import lying_aside
from bridge.store.opening import Place, open_store
from bridge.store.pairing import unrecorded
from bridge.store.writer import MAX_COMPARED, newest
from bridge.text import seconds_of
from bridge.xmpp.model.events import decode, encode
from bridge.xmpp.model.filter import EventFilter
from bridge.xmpp.model.journal import RECORDED, CursorError, Loss, Record

CHUNK = 100
"""How many events a thread reads at a time. More would keep other threads waiting for too long."""

WALK_SECONDS = 10.0
"""Time for one page: clients give up on a call after a minute."""

_CURSOR = re.compile(RECORDED + "([0-9a-f]{1,32})-(0|[1-9][0-9]{0,17})")
"""Matches a cursor. The groups are the name of the store, and the row id of the last event before
the cursor."""

Answer = TypeVar("Answer")


class Reader:
    """Reads one store. A file is opened again for each query, since it may be replaced."""

    def __init__(
        self, place: Place, account: str, flush: Callable[[], Awaitable[int | None]] | None = None
    ) -> None:
        """Read what all accounts of the domain of `account`, a bare JID, have recorded.

        `flush` is awaited before each walk. It writes what this bridge has observed so far, and
        returns the number in the journal of the first event that is still not in the store.
        """
        self._place, self._account, self._flush = place, account, flush
        self._kept: list[Database] = []
        """The connections to a database that wait for the next queries."""

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
        seconds: float = WALK_SECONDS,
    ) -> "Walk":
        """Begin to read the events of these rooms that may match `wanted`.

        The database cannot check every condition, so the caller has to apply `wanted` to each
        event. The walk begins after the cursor `since`, or else at the time `start`. With
        `connection` it includes the events of this account's connection; with `stanzas` it has the
        account's stanzas instead of events. An iteration ends after `seconds`.
        Raises `CursorError` and `StoreError`.
        """
        unwritten = None if self._flush is None else await self._flush()
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
        span = await self.ask(lambda database: database.span(query))
        place = self._place
        aside = await asyncio.to_thread(lying_aside, place) if isinstance(place, Path) else None
        aside_at = aside[0] if aside else -inf
        return Walk(self, query, span, backward, seconds, unwritten, since, aside_at)

    async def ask(self, work: Callable[[Database], Answer]) -> Answer:
        """Return what `work` reads in the open store, in a thread; raises `StoreError`."""
        return await asyncio.to_thread(self._ask, work)

    def _ask(self, work: Callable[[Database], Answer]) -> Answer:
        if isinstance(self._place, Path):
            with closing(open_store(self._place, writable=False)) as database:
                return work(database)
        while True:
            kept: Database | None = None
            with suppress(IndexError):  # several threads may ask
                kept = self._kept.pop()
            database = kept or open_store(self._place, writable=False)
            try:
                answer = work(database)
            except BaseException as error:  # the connection is unfit even after a cancelled query
                database.close()
                if kept is not None and isinstance(error, AwayStoreError):
                    continue  # it was cut off since the last query
                raise
            self._kept.append(database)
            return answer

    def close(self) -> None:
        """Close the connection, if one is kept."""
        while self._kept:
            self._kept.pop().close()


@dataclass(eq=False)
class Walk:
    """Iterates over the results of a query, in the order of their row ids or backward.

    An iteration may end before all is read; `next` is the cursor with which to go on.
    """

    _reader: Reader
    _query: Query
    _span: Span
    _backward: bool
    _seconds: float
    unwritten: int | None
    """The number in the journal of the first event of this bridge that the store may not have yet;
    None if it has all."""
    since: InitVar[str | None]
    aside: InitVar[float]
    """When the newest store that still lies aside was put there, in seconds since the epoch; minus
    infinity if there is none."""
    gap: Loss | None = None
    """The events after the cursor, or after the start time, that were deleted or put aside."""
    more: bool = False
    """Whether the iteration ended early: its time was over, or unread events were deleted."""
    unreadable: int = 0
    """How many rows were left out so far, since they cannot be read."""

    def __post_init__(self, since: str | None, aside: float) -> None:
        self.oldest_at = self._span.oldest
        """When the oldest event of any room was, in seconds since the epoch; infinite if none."""
        self._read_up_to = self._span.first
        start = -inf if self._query.start is None else self._query.start
        if since is not None:
            self._begin_after(since)
        elif aside > start:
            self.gap = Loss(1, self._span.evicted, "restarted")
        elif self._span.whole_from > start:
            self.gap = Loss(1, self._span.evicted, "evicted")

    @property
    def next(self) -> str:
        """The cursor after all that was read; in a backward walk, after the newest event."""
        return self.cursor_of(self._span.last if self._backward else self._read_up_to)

    @property
    def oldest(self) -> str:
        """The cursor before the oldest event."""
        return self.cursor_of(self._span.begin)

    def cursor_of(self, id_: int) -> str:
        """Return the cursor right after the event with this row id."""
        return f"{RECORDED}{self._span.store}-{id_}"

    def record(self, row: Recorded) -> Record:
        """Return an event out of the store as a record of the journal."""
        return Record(row.id, row.at, decode(row.event), row.room)

    async def unrecorded(self, records: Sequence[Record], run: str) -> list[Record]:
        """Return the `records`, which `run` has observed, that the store lacks."""
        query = replace(self._query, start=None, contains=(), mentions="")

        def missing(database: Database) -> list[Record]:
            known = set[int]()

            def theirs() -> Iterator[Recorded]:
                most = MAX_COMPARED + len(records)  # all of `records` may be in the store
                # A room's history has older messages, which the second round finds.
                for kinds in (None, frozenset({"message"})):
                    for row in newest(database, replace(query, kinds=kinds), self._span.last, most):
                        if row.id not in known and (row.shared or row.observer.run == run):
                            known.add(row.id)
                            yield row

            ours = [
                Happened(record.at, record.room, encode(record.event), number=record.number)
                for record in records
            ]
            numbers = unrecorded(ours, theirs())
            return [record for record in records if record.number in numbers]

        return await self._reader.ask(missing)

    async def __aiter__(self) -> AsyncIterator[Recorded]:
        deadline = monotonic() + self._seconds
        first, last = self._read_up_to, self._span.last
        while first < last and not self.more:
            read = partial(self._read, after=first, until=last)
            rows, end, now, unreadable = await self._reader.ask(read)
            self.unreadable += unreadable
            lost = not self._backward and now.evicted > max(first, self._span.evicted)
            if now.store != self._span.store or lost:
                self.more = True
                return
            for row in rows:
                yield row
                self._read_up_to = max(self._read_up_to, row.id)
            first, last = (first, end) if self._backward else (end, last)
            self._read_up_to = max(self._read_up_to, first)
            self.more = first < last and monotonic() > deadline

    def _begin_after(self, cursor: str) -> None:
        match = _CURSOR.fullmatch(cursor)
        if match is None:
            raise CursorError("it does not look like a cursor; take one from a result, unchanged")
        id_, evicted = int(match[2]), self._span.evicted
        if match[1] != self._span.store:
            self._read_up_to, self.gap = 0, Loss(id_ + 1, evicted, "restarted")
        elif id_ > self._span.last and self._query.end is None:
            raise CursorError("it lies ahead of everything that was recorded")
        else:
            self._read_up_to = id_
            self.gap = Loss(id_ + 1, evicted, "evicted") if id_ < evicted else None

    def _read(
        self, database: Database, *, after: int, until: int
    ) -> tuple[list[Recorded], int, Span, int]:
        """Return some events, the row id up to which all were read, and the span of the store then.

        The last value counts the rows that were left out because they cannot be read.
        """
        rows, end = database.page(
            self._query, after=after, until=until, limit=CHUNK, backward=self._backward
        )
        readable = [row for row in rows if self._query.stanzas or _is_event(row)]
        unreadable = len(database.unreadable) + len(rows) - len(readable)
        return readable, end, database.span(replace(self._query, start=None, end=None)), unreadable


def _is_event(row: Recorded) -> bool:
    try:
        decode(row.event)
    except ValueError:
        return False
    return True
