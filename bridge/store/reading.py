"""Reads a store: a file, or a team's database and behind it what the file has not shipped yet.

Of a team's store, the ids of a reading are the database's up to its `base`. The ids above that are
the rows of the file, counted from the first that the database did not have when the reading began.
A reader may have seen a row of its file before the database had it, or before the database had
another machine's row of the same event. Such a row is not shown again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf

from bridge.store.database import Query, Recorded, Span, Tenure
from bridge.store.outbox import happened
from bridge.store.pairing import Alike, Wanted, key_of
from bridge.store.postgresql import PostgresqlDatabase
from bridge.store.queries import MAX_ID
from bridge.store.shipping import known_to, shift
from bridge.store.sql import SqlDatabase
from bridge.store.sqlite import SqliteDatabase

UNKNOWN = "0"
"""The name of a team's database in a cursor, as long as this machine's file was never shipped."""


@dataclass(frozen=True)
class Extent:
    """The bounds of a reading, the same for all of its pages."""

    base: int
    """The highest id of the database when the reading began."""
    last: int
    """The last id of the database within the query's times."""
    sent: int
    """The last row of the file that the database had then."""
    before: tuple[int, int]
    """The reader was shown everything up to this id of the database and this row of the file."""
    file: str
    """The name of the file; empty if there is none."""
    away: bool = False
    """Whether the database is not read."""
    store: str = ""
    """The name of a team's database that is away; empty if it is read."""
    own: Mapping[str, int] = field(default_factory=dict)
    """The file's last row in the database by each of its names. Further rows of the same name are
    from a copy of the file."""


class Reading:
    """Reads a database and a file, or either alone; one thread uses it."""

    def __init__(
        self,
        database: PostgresqlDatabase | None,
        file: SqliteDatabase | None,
        extent: Extent | None,
    ) -> None:
        self._database, self._file, self._extent = database, file, extent
        source = database or file
        assert source is not None  # one of the two is there
        self._source: SqlDatabase = source
        self.patience = source.patience

    def begin(self, query: Query, cursor: Sequence[str | None] = ()) -> tuple[Span, Extent]:
        """Return the range of ids, and the extent for the pages.

        A cursor says what the reader was shown: the name of the database, and up to which id; the
        name of this machine's file, and up to which row.
        """
        store, id_, file, row = cursor or ("", "0", None, None)
        if self._file is not None and not self._file.target:  # there is no database
            return self._file.span(query), Extent(0, 0, 0, (0, 0), "", away=True)
        marks, name = self._marks(query.stanzas), "" if self._file is None else self._file.name
        before = int(id_ or 0), self._row(file or "", int(row or 0), stanzas=query.stanzas)
        if self._database is None:
            assert self._file is not None
            known, base = self._file.reached()
            if store:
                known, base = store, before[0]
            span = self._file.span(query)
            last = base + max(0, span.last - before[1])
            span = span._replace(store=known, evicted=0, whole_from=-inf, begin=base)
            span = span._replace(first=base, last=last)
            return span, Extent(base, base, before[1], before, name, True, known)
        base, reached = self._database.reached(name, stanzas=query.stanzas)
        sent, span = marks[0], self._database.span(query)
        if store not in {"", UNKNOWN, span.store}:  # the cursor is from another database
            before = (0, 0)
        if reached is not None and self._is_ours(reached, query.stanzas):
            sent = reached
        own = {} if self._file is None else self._file.own(sent, stanzas=query.stanzas)
        last, sent = min(span.last, base), max(sent, before[1])
        extent = Extent(base, last, sent, before, name, own=own)
        tail = 0 if self._file is None else self._file.span(query).last - extent.sent
        last = extent.last if tail <= 0 and query.end is not None else base + max(0, tail)
        return span._replace(first=min(span.first, base), last=last), extent

    def _marks(self, stanzas: bool) -> tuple[int, int]:
        """Return the rows up to which the file was shipped, and up to which that was tried."""
        if self._file is None:
            return 0, 0
        sent, trying = self._file.marks()
        return (sent.stanza, trying.stanza) if stanzas else (sent.event, trying.event)

    def _is_ours(self, reached: int, stanzas: bool) -> bool:
        """Whether the database has the file up to a row, and not a copy of the file."""
        sent, trying = self._marks(stanzas)
        if self._file is None or self._database is None or not sent <= reached <= trying:
            return False
        _, after = self._file.reached()
        run = self._database.run_of(self._file.name, reached, after, stanzas=stanzas)
        return run is None or self._file.has_row(reached, run, stanza=stanzas)

    def _row(self, name: str, row: int, *, stanzas: bool) -> int:
        """Return up to which row a reader was shown the file, by the name in the cursor."""
        if self._file is None:
            return 0
        if name == self._file.name:
            return row
        former = self._file.formers().get(name)
        return min(row, former.last_stanza if stanzas else former.last) if former else 0

    def span(self, query: Query) -> Span:
        """Return the range of the ids in the database; without a database, in the file."""
        span, extent = self._source.span(query), self._extent
        if extent is not None and extent.store:  # the ids are the database's, not the file's
            return span._replace(store=extent.store, evicted=0)
        return span

    def now(self) -> float:
        """Return the time by the clock of the database, or of the file."""
        return self._source.now()

    def here(self) -> float:
        """Return the time by the clock of the file; without a file, of the database."""
        return (self._file or self._source).now()

    def ahead(self) -> float:
        """Return by how much the database's clock is ahead of the file's."""
        if self._database is None or self._file is None:
            return 0.0
        begun, now = self._file.now(), self._database.now()
        return shift(now - self._file.now(), now - begun)

    def tenures(self, room: str, domain: str) -> list[Tenure]:
        """Return the room's tenures; of the file's own, what the file says counts."""
        ahead, tenures = self.ahead(), dict[tuple[str, int], Tenure]()
        for source, moved_by in ((self._database, 0.0), (self._file, ahead)):
            for it in () if source is None else source.tenures(room, domain):
                moved = it._replace(since=it.since + moved_by, until=it.until + moved_by)
                tenures[it.file, it.id] = moved
        return [*tenures.values()]

    def alike(
        self, room: str, domain: str, wanted: Sequence[Wanted], run: str
    ) -> list[list[Alike]]:
        """Return for each wanted event of this run the rows that it may be.

        The events have the times of the clock of `here`.
        """
        rows = [list[Alike]() for _ in wanted]
        if self._file is not None:
            rows = self._file.alike(room, domain, wanted, run)
        if self._database is not None:
            # The database's ids are negative here, to tell them from the file's.
            ahead = self.ahead()
            moved = [each._replace(seen=each.seen + ahead) for each in wanted]
            theirs = self._database.alike(room, domain, moved, "{}", 0, MAX_ID)
            for alike, more in zip(rows, theirs, strict=True):
                alike += [it._replace(id=-it.id) for it in more]
        return rows

    def page(
        self, query: Query, *, after: int, until: int, limit: int, backward: bool = False
    ) -> tuple[list[Recorded], int, int]:
        """Return the first events that match, and the id up to which all were read.

        The last value counts the damaged rows that were left out.
        """
        extent = self._extent
        assert extent is not None
        if until > extent.base if backward else after >= extent.base:
            return self._tail(extent, query, after, until, limit, backward=backward)
        if self._database is None or (not backward and after >= extent.last):
            return [], after if backward else extent.base, 0
        rows, end, damaged = self._database.page(
            query, after=after, until=min(until, extent.last), limit=limit, backward=backward
        )
        if not backward and end >= extent.last < until:
            end = extent.base
        return [row for row in rows if not self._was_shown(extent, query, row)], end, damaged

    def _tail(
        self, extent: Extent, query: Query, after: int, until: int, limit: int, *, backward: bool
    ) -> tuple[list[Recorded], int, int]:
        if self._file is None:
            return [], max(after, extent.base) if backward else until, 0
        off = extent.base - extent.sent
        rows, end, damaged = self._file.page(
            query,
            after=max(after, extent.base) - off,
            until=until - off,
            limit=limit,
            backward=backward,
        )
        kept = [row for row in rows if not self._comes(extent, query, row)]
        return [replace(row, id=row.id + off) for row in kept], end + off, damaged

    def _was_shown(self, extent: Extent, query: Query, row: Recorded) -> bool:
        """Whether the reader has seen the event as a row of its file."""
        shown_id, shown_row = extent.before
        if self._file is None or not shown_row or row.id <= shown_id:
            return False
        if row.file in extent.own and row.row <= extent.own[row.file]:
            return row.row <= shown_row
        unsent, _ = self._marks(query.stanzas)  # read first: what was sent since then is noted
        copied = row.row <= shown_row and self._file.has_row(
            row.row, row.observer.run, stanza=query.stanzas
        )
        if copied or self._file.has_same(row.id, shown_row):
            return True
        if not row.shared:
            return False
        known = self._known(extent, query, row, unsent, is_ours=False)
        return any(id_ == row.id and mine <= shown_row for mine, id_ in known.items())

    def _comes(self, extent: Extent, query: Query, row: Recorded) -> bool:
        """Whether a row of the file is an event that the database has from another machine."""
        if self._file is None or query.stanzas:
            return False
        if self._database is None:
            last, _ = extent.before
            return last > 0 and 0 < self._file.same_as(row.row) <= last
        unsent, _ = self._marks(query.stanzas)
        if row.row <= unsent:
            return 0 < self._file.same_as(row.row) <= extent.base
        known = self._known(extent, query, row, unsent, is_ours=True)
        return 0 < known.get(row.row, 0) <= extent.base

    def _known(
        self, extent: Extent, query: Query, row: Recorded, unsent: int, *, is_ours: bool
    ) -> dict[int, int]:
        """Return which of the file's rows like `row` that wait the database has from others.

        These are the ids in the database, by the rows in the file. The rows that wait come after
        `unsent`, and `row` is one of them if it `is_ours`.
        """
        assert self._file is not None
        assert self._database is not None
        ahead, where = self.ahead(), (row.room, query.domain)
        wanted = Wanted(key_of(row.event), row.seen - (0.0 if is_ours else ahead), -inf)
        (alike,) = self._file.alike(*where, [wanted], "")
        ids = {it.id for it in alike if it.id > unsent} | ({row.row} if is_ours else set())
        rows = [*map(happened, self._file.with_ids([*ids]))]
        stays = [(*where, it) for it in self._file.tenures(*where)]
        return known_to(self._database, rows, self._file, stays, extent.own, ahead)
