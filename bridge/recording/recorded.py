"""Reads what was recorded of the rooms, in threads: a store may be large, and the disk slow."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from pathlib import Path
from time import monotonic
from typing import TypeVar

from bridge.store.clock import Instant, steady
from bridge.store.database import Query, Recorded, Span, Tenure
from bridge.store.decision import absence
from bridge.store.errors import AwayStoreError
from bridge.store.location import Place, Team, lying_aside
from bridge.store.pairing import Alike, Wanted, key_of, paired, same, told_at
from bridge.store.postgresql import PostgresqlDatabase
from bridge.store.reading import UNKNOWN, Extent, Reading
from bridge.store.sqlite import open_file
from bridge.store.writer import gap
from bridge.text import seconds_of
from bridge.xmpp.model.events import decode, encode
from bridge.xmpp.model.filter import EventFilter
from bridge.xmpp.model.journal import RECORDED, CursorError, Loss, Record

CHUNK = 100
"""How many events a thread reads at a time. More would keep other threads waiting for too long."""

WALK_SECONDS = 10.0
"""Time for one page: clients give up on a call after a minute."""

THEIRS = 1_000
"""How many events of other machines a reader remembers. A bridge of this machine writes the same
events within a second."""

UNRECORDED = "nobody recorded this room"
"""The `reason` of a gap in which no bridge was in the room."""

UNSURE_SECONDS = 0.2
"""The pause before we look again whether another bridge was in the room at the end of a gap."""

_CURSOR = re.compile(
    RECORDED + "([0-9a-f]{1,32})-(0|[1-9][0-9]{0,17})(?:-([0-9a-f]{1,32})-(0|[1-9][0-9]{0,17}))?"
)
"""Matches a cursor. The groups are the name of the store, and the row id of the last event before
the cursor; for a team's database also the name of this machine's file, and its last row before the
cursor."""

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
        self._kept: list[PostgresqlDatabase] = []
        """The connections to a database that wait for the next queries."""
        self._theirs: dict[Alike, tuple[str, int]] = {}
        """The events of other machines that were read last, with room and hash of the content."""
        self.away = ""
        """Why a team's database is not read, but this machine's file alone; empty if it is."""

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
        cursor = () if since is None else _match(since).groups()
        span, extent = await self.ask(lambda reading: reading.begin(query, cursor))
        place = self._place if isinstance(self._place, Path) else self._place.file
        aside = await asyncio.to_thread(lying_aside, place)
        begun = _begun(query, span, cursor, aside[0] if aside else -inf)
        return Walk(self, query, span, extent, backward, seconds, unwritten, *begun)

    async def ask(self, work: Callable[[Reading], Answer], extent: Extent | None = None) -> Answer:
        """Return what `work` reads in the open store, in a thread; raises `StoreError`.

        `extent` is what a walk reads.
        """
        return await asyncio.to_thread(self._ask, work, extent)

    def _ask(self, work: Callable[[Reading], Answer], extent: Extent | None) -> Answer:
        place, file = self._place, None
        with ExitStack() as opened:
            away = extent is not None and extent.away
            if isinstance(place, Path) or away or place.file.exists():
                file = opened.enter_context(closing(open_file(place, writable=False)))
            while isinstance(place, Team) and not away:
                kept: PostgresqlDatabase | None = None
                with suppress(IndexError):  # several threads may ask
                    kept = self._kept.pop()
                database = kept
                try:
                    database = database or PostgresqlDatabase(place.url, writable=False)
                    answer = work(Reading(database, file, extent))
                except BaseException as error:  # after any error, the connection is not kept
                    if database is not None:
                        database.close()
                    if not isinstance(error, AwayStoreError):
                        raise
                    if kept is None:  # a kept one may have been cut since its last query
                        if file is None or extent is not None:
                            raise
                        self.away = str(error)
                        break
                else:
                    self._kept.append(database)
                    self.away = ""
                    return answer
            return work(Reading(None, file, extent))

    def was_read(self, row: Recorded, extent: Extent) -> bool:
        """Whether a row of the file is an event that was read as another machine's row.

        The file says so itself once a bridge has compared it with the database.
        """
        theirs, is_theirs = self._theirs, row.id <= extent.base and row.file not in extent.own
        if not (row.shared and (theirs if extent.away else is_theirs)):
            return False
        key = key_of(row.event)
        if not extent.away:
            theirs[Alike(row.id, row.at, key.stanza)] = row.room, key.content
            if len(theirs) > THEIRS:
                del theirs[next(iter(theirs))]
            return False
        alike = [
            it
            for it, (room, content) in theirs.items()
            if (room == row.room and it.id <= extent.base)
            and (content == key.content or (it.stanza is not None and it.stanza == key.stanza))
        ]
        match = same(Wanted(key, row.at, -inf), alike, ())
        return match is not None and bool(theirs.pop(match))

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
    _extent: Extent
    _backward: bool
    _seconds: float
    unwritten: int | None
    """The number in the journal of the first event of this bridge that the store may not have yet;
    None if it has all."""
    _read_up_to: int
    gap: Loss | None
    """The events after the cursor, or after the start time, that were deleted or put aside."""
    more: bool = False
    """Whether the iteration ended early: its time was over, unread events were deleted, or the
    database went away."""
    unreadable: int = 0
    """How many rows were left out so far, since they cannot be read."""
    _own: int = 0
    """The last row of this machine's file that was read out of a team's database."""
    _rows: dict[int, int] = field(default_factory=dict)
    """The numbers of records that were compared, by the ids of their rows: ids of the file, and of
    the database below zero."""
    _known: range = range(0)
    """The numbers of the records whose rows are skipped."""
    _ahead: tuple[float, float] = (0.0, 0.0)
    """How many seconds the database's clock is ahead of the steady clock, and the file's is."""

    @property
    def oldest_at(self) -> float:
        """When the oldest event of any room was, in seconds since the epoch; infinite if none."""
        return self._span.oldest

    @property
    def away(self) -> str:
        """Why a team's database is not read, but this machine's file alone; empty if it is."""
        return self._reader.away

    @property
    def is_over(self) -> bool:
        """Whether the store has nothing after the cursor."""
        return self._read_up_to >= self._span.last

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
        if not self._extent.file:
            return f"{RECORDED}{self._span.store}-{id_}"
        base, row = self._place(id_)
        return f"{RECORDED}{self._span.store}-{base}-{self._extent.file}-{row}"

    def _place(self, id_: int) -> tuple[int, int]:
        """Return up to which id of a team's database, and which row of the file, `id_` reaches."""
        extent = self._extent
        read = max(extent.before[1], self._own)
        row = read if id_ < extent.base else id_ - extent.base + extent.sent
        return min(id_, extent.base), row

    def record(self, row: Recorded) -> Record:
        """Return an event out of the store as a record of the journal."""
        now, in_file = Instant.now(), row.id > self._extent.base
        seen = row.seen - self._ahead[in_file]
        # How old a row of an earlier start of the machine is, people's clock alone tells.
        if in_file and not 0 <= seen <= now.steady:
            seen = now.steady - (now - row.at)
        return Record(row.id, Instant.of(row.at, seen), decode(row.event), row.room)

    async def compare(self, records: Sequence[Record], run: str, known: range) -> None:
        """Find the rows of the `records`, which `run` has observed.

        The rows of those with `known` numbers are skipped: the reader was shown these.
        """
        self._known = known

        def look(database: Reading) -> None:
            here, now = database.here(), Instant.now()
            for room in {record.room for record in records}:
                ours = [record for record in records if record.room == room]
                wanted = [_wanted(record, here + (record.at - now)) for record in ours]
                alike = database.alike(room, self._query.domain, wanted, run)
                # An event may have a row in the file, and one in a team's database.
                for is_file in (True, False):
                    looked = [[row for row in it if (row.id > 0) is is_file] for it in alike]
                    rows = zip(ours, paired(wanted, looked, set()), strict=True)
                    self._rows |= {row.id: it.number for it, row in rows if row is not None}

        await self._reader.ask(look)

    def unrecorded(self, records: Sequence[Record]) -> list[Record]:
        """Return the compared `records` that the store lacked up to `next`."""
        base, last = self._place(self._span.last if self._backward else self._read_up_to)
        there = {number for id_, number in self._rows.items() if -base <= id_ <= last}
        return [record for record in records if record.number not in there]

    async def __aiter__(self) -> AsyncIterator[Recorded]:
        deadline = monotonic() + self._seconds
        first, last = self._read_up_to, self._span.last
        while first < last and not self.more:
            read = partial(self._read, after=first, until=last)
            try:
                rows, end, now, unreadable = await self._reader.ask(read, self._extent)
            except AwayStoreError:  # a walk that goes on from `next` reads this machine's file
                if self._backward:
                    raise
                self.more = True
                return
            if rows is None:
                await asyncio.sleep(UNSURE_SECONDS)
                continue
            self.unreadable += unreadable
            lost = not self._backward and now.evicted > max(first, self._span.evicted)
            if now.store != self._span.store or lost:
                self.more = True
                return
            for row in rows:
                is_own = 0 < row.row <= self._extent.own.get(row.file, 0)
                in_file = is_own or row.id > self._extent.base
                is_known = self._rows.get(row.row if in_file else -row.id) in self._known
                if not (is_known or self._reader.was_read(row, self._extent)):
                    yield row
                self._read_up_to = max(self._read_up_to, row.id)
                if is_own and not self._backward:
                    self._own = max(self._own, row.row)
            first, last = (first, end) if self._backward else (end, last)
            self._read_up_to = max(self._read_up_to, first)
            self.more = first < last and monotonic() > deadline

    def _read(
        self, database: Reading, *, after: int, until: int
    ) -> tuple[list[Recorded] | None, int, Span, int]:
        """Return some events, the row id up to which all were read, and the span of the store then.

        The last value counts the rows that were left out because they cannot be read. The events
        are None if it is not known yet where a gap among them began.
        """
        here = database.here() - steady()
        self._ahead = here + database.ahead(), here
        rows, end, damaged = database.page(
            self._query, after=after, until=until, limit=CHUNK, backward=self._backward
        )
        readable = [
            row for row in rows if self._query.stanzas or "tenure" in row.event or _is_event(row)
        ]
        unreadable = damaged + len(rows) - len(readable)
        span = database.span(replace(self._query, start=None, end=None))
        return _with_gaps(database, self._query.domain, readable), end, span, unreadable


def _wanted(record: Record, seen: float) -> Wanted:
    event = encode(record.event)
    return Wanted(key_of(event), told_at(event, seen), -inf, ours=True)


def _match(cursor: str) -> re.Match[str]:
    if (match := _CURSOR.fullmatch(cursor)) is None:
        raise CursorError("it does not look like a cursor; take one from a result, unchanged")
    return match


def _begun(
    query: Query, span: Span, cursor: Sequence[str], aside: float
) -> tuple[int, Loss | None]:
    """Return the row id after which a walk begins, and what was lost before; see `Walk.gap`.

    `aside` is when the newest store that still lies aside was put there, in seconds since the
    epoch; minus infinity if there is none.
    """
    if not cursor:
        start = -inf if query.start is None else query.start
        if max(aside, span.whole_from) <= start:
            return span.first, None
        return span.first, Loss(1, span.evicted, "restarted" if aside > start else "evicted")
    id_ = int(cursor[1])
    if cursor[0] not in {UNKNOWN, span.store}:
        return 0, Loss(id_ + 1, span.evicted, "restarted")
    if id_ > span.last and query.end is None:
        raise CursorError("it lies ahead of everything that was recorded")
    return id_, Loss(id_ + 1, span.evicted, "evicted") if id_ < span.evicted else None


def _with_gaps(database: Reading, domain: str, rows: list[Recorded]) -> list[Recorded] | None:
    """Return the rows with a gap in place of each entry of a bridge that ended one.

    None if that is not known yet.
    """
    known, kept = dict[str, list[Tenure]](), list[Recorded]()
    for row in rows:
        if "tenure" in row.event:
            if row.room not in known:
                known[row.room] = database.tenures(row.room, domain)
            # By its run: where a file was copied, two stays may have the same number.
            entered = (row.observer.run, row.event["tenure"])
            tenures = (it for it in known[row.room] if (it.run, it.id) == entered)
            if (tenure := next(tenures, None)) is None:
                continue
            match absence(known[row.room], tenure, database.now(), database.patience):
                case True:
                    return None
                case (float(start), float(end)):
                    kept.append(replace(row, event=gap(start, end, reason=UNRECORDED)))
        else:
            kept.append(row)
    return kept


def _is_event(row: Recorded) -> bool:
    try:
        decode(row.event)
    except ValueError:
        return False
    return True
