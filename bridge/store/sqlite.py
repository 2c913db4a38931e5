"""The store as one SQLite file, in WAL mode: many read while one writes.

docs/store.md says what is in each table, so that plain `sqlite3` can read it.
"""

import re
from collections.abc import Sequence
from contextlib import closing
from math import inf
from pathlib import Path
from time import time

from bridge.store import former, queries
from bridge.store.clock import boot, steady
from bridge.store.database import (
    Ageing,
    Amount,
    Happened,
    Holding,
    Lease,
    Observer,
    Query,
    Recorded,
    Span,
    Tenure,
    TracedXml,
)
from bridge.store.decision import LEASE_SECONDS
from bridge.store.errors import BrokenStoreError
from bridge.store.pairing import SAME_SECONDS, Alike, Wanted, key_of
from bridge.store.sqlite_file import SqliteFile
from bridge.store.tables import FORMER_VERSION, ROW_BYTES, weight_of
from bridge.store.team import Sent

SPAN = 50_000
"""Ids that one statement reads at most, which takes some 30 ms."""

FORMER_SPAN = 1_000
"""The same as long as rows of the former version are shown: they are sorted in memory."""

PAGES_FREED = 500
"""Pages of 8 KiB that each deletion gives back to the disk, in some 10 ms."""

_NEWEST = "(SELECT coalesce(max(CAST(seq AS INTEGER)), 0) FROM sqlite_sequence WHERE name = ?)"
"""The highest id that a table ever had."""

MAX_ID = 10**17
"""No store reaches this id. A higher id means damage, and SQLite might find no id for the next
row."""

_INFINITE = "9e999"
"""Infinity in SQL."""

_TIMED = f"at > -{_INFINITE}"
"""A condition for rows whose time is not NULL. With `at NOT NULL` SQLite would not look at the
value, since the column is declared NOT NULL."""

_OURS = "SELECT id FROM runs WHERE run = ?"

_ROOM = "SELECT id FROM places WHERE jid = ? AND domain = ? AND target = ?"

_TENURE = (int, str, float, float, float, float, int)
"""The types of the columns of `Tenure`."""

_NAME = re.compile("[0-9a-f]{1,32}")
"""The name of a store."""


class SqliteDatabase(SqliteFile):
    """A store in a file; one thread uses it. See `bridge.store.database.Database`."""

    def __init__(self, path: Path, *, writable: bool = True, target: str = "") -> None:
        """Open the store, to read only or to write. To write, make it if there is none.

        `target` names the database to which the rows are shipped; empty if the file is all.
        """
        super().__init__(path, writable=writable)
        self.unreadable: set[int] = set()
        """The ids of the unreadable rows that were left out so far."""
        self.target = target
        self.patience = LEASE_SECONDS
        try:
            if self.version == FORMER_VERSION:
                former.begin(self)
            self.has_former = former.look(self)
            self._span = FORMER_SPAN if self.has_former else SPAN
            self._unmoved = self.version == FORMER_VERSION and not writable
            self.name, self.ahead = self._clock()
        except BaseException:  # after any error, only we can close the file
            self.close()
            raise

    def _clock(self) -> tuple[str, float]:
        """Return the name of the file, and by how much its clock is ahead of the steady one.

        The clock of the file is the wall clock as it was when the file was first opened after the
        machine was started.
        """
        statement = "SELECT coalesce(id, ''), boot, ahead FROM file"
        name, known, ahead = self.row(statement)
        if known != boot() or not boot() or type(ahead) is not float:
            ahead = time() - steady()
            if self.writable:
                with self.transaction():  # another bridge may have been faster
                    _, known, other = self.row(statement)
                    if known == boot() and type(other) is float:
                        ahead = other
                    self.all("UPDATE file SET boot = ?, ahead = ?", (boot(), ahead))
        return name if isinstance(name, str) and _NAME.fullmatch(name) else "0", ahead

    def now(self) -> float:
        """Return the time by the clock of the file."""
        return steady() + self.ahead

    def append(self, observer: Observer, happened: Sequence[Happened]) -> None:
        """Add events, in this order."""
        if not happened:
            return
        by, newest, rows = self.observer(observer), self.newest(), []
        rooms = {jid: self.place(jid, observer.domain) for jid in {each.room for each in happened}}
        for each in happened:
            exact = queries.encoded(each.event)
            key = each.key or key_of(each.event)
            seen = each.at if each.seen is None else each.seen
            times = round(each.at * 1000), round(seen * 1000)
            values = rooms[each.room], by, each.shared, each.event["kind"]
            rows.append((*times, *values, queries.is_plain(exact), *key, exact))
        self.many(
            "INSERT INTO entries "
            "(at, seen, room, observer, shared, kind, plain, content, stanza, event) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            rows,
        )
        # A trigger would take as long as the insertion itself.
        self.all(
            "UPDATE places SET bytes = coalesce(bytes, 0) + more FROM "
            f"(SELECT room, sum({weight_of('event')}) AS more FROM entries "
            "WHERE id > ? GROUP BY room) WHERE id = room",
            (newest,),
        )

    def append_stanzas(self, observer: Observer, stanzas: Sequence[TracedXml]) -> None:
        """Add stanzas, in this order."""
        if not stanzas:
            return
        by = self.observer(observer)
        rows = [
            (round(at * 1000), by, direction, connection, queries.storable(xml))
            for at, direction, connection, xml in stanzas
        ]
        self.many(
            "INSERT INTO traffic (at, observer, direction, connection, xml) VALUES (?, ?, ?, ?, ?)",
            rows,
        )
        more = sum(len(row[-1].encode()) + ROW_BYTES for row in rows)
        self.all("UPDATE file SET stanza_bytes = coalesce(stanza_bytes, 0) + ?", (more,))

    def alike(
        self, room: str, domain: str, run: str, wanted: Sequence[Wanted]
    ) -> list[list[Alike]]:
        """Return for each wanted event of this run the shared rows of other runs that it may be."""
        select = (
            f"SELECT id, seen / 1e3, stanza FROM entries WHERE room = ({_ROOM}) AND {{}} "
            f"AND iif(observer IN ({_OURS}), ?, shared)"
        )
        named = select.format("stanza = ?")
        near = select.format("content = ? AND seen BETWEEN ? AND ?")
        place, rows = (room, domain, self.target), []
        for each in wanted:
            key, whose = each.key, (run, each.ours)
            alike = key.stanza is not None and self.all(named, (*place, key.stanza, *whose))
            around = (1000 * (each.seen + off) for off in (-SAME_SECONDS, SAME_SECONDS))
            alike = alike or self.all(near, (*place, key.content, *around, *whose))
            rows.append([Alike(*row) for row in alike if type(row[1]) is float])
        return rows

    def lease(self, room: str, domain: str) -> Lease | None:
        """Return the lease of the room for accounts of this domain; None if none can be read."""
        match self.all("SELECT holder, beat FROM places WHERE id = ?", (self.place(room, domain),)):
            case [(str(run), float(beat))]:
                return Lease(run, beat)
        return None

    def take(self, room: str, domain: str, lease: Lease) -> None:
        """Write the lease of the room, whichever run holds it now."""
        statement = "UPDATE places SET (holder, beat) = (?, ?) WHERE id = ?"
        self.all(statement, (*lease, self.place(room, domain)))

    def tenures(self, room: str, domain: str, since: float = -inf) -> list[Tenure]:
        """Return who was in the room when; with `since`, only tenures until then or later."""
        rows = self.all(
            "SELECT id, run, since, until, since_at, until_at, ended FROM tenures "
            f"WHERE place = ({_ROOM}) AND until >= ?",
            (room, domain, self.target, since),
        )
        return [
            Tenure(*row)._replace(file=self.name)
            for row in rows
            if tuple(map(type, row)) == _TENURE
        ]

    def enter(self, room: str, domain: str, run: str, since: float, at: float) -> int:
        """Begin the tenure of a run; return its id."""
        (id_,) = self.row(
            "INSERT INTO tenures (place, run, since, until, since_at, until_at, ended) "
            "VALUES (?, ?, ?, ?, ?, ?, 0) RETURNING id",
            (self.place(room, domain), run, since, since, at, at),
        )
        return int(id_)

    def extend(self, tenure: int, until: float, at: float, *, ended: bool) -> None:
        """Write that everything that the run saw up to this time is in the store."""
        self.all(
            "UPDATE tenures SET until = ?, until_at = ?, ended = ? WHERE id = ?",
            (until, at, ended, tenure),
        )

    def newest(self) -> int:
        """Return the highest id that an event ever had; 0 if there was none."""
        newest, highest = self.row(
            f"SELECT {_NEWEST}, coalesce(max(CAST(seq AS INTEGER)), 0) FROM sqlite_sequence",
            (self._sequence("entries"),),
        )
        if highest > MAX_ID:
            text = f"{str(self.path)!r} counts more rows than there can be"
            raise BrokenStoreError(text, self._file)
        return int(newest)

    def span(self, query: Query) -> Span:
        """Return the range of the ids that the events of the query's rooms and time have."""
        within, values = queries.within(query, self.target)
        start, end = (None if at is None else round(at * 1000) for at in (query.start, query.end))
        table, rooms = queries.table_of(query), queries.rooms_of(query)
        select = f"FROM {table} WHERE {within} AND at"
        oldest, first, last = self.row(
            f"SELECT coalesce((SELECT at / 1e3 FROM {table} "
            f"WHERE {queries.DATED} ORDER BY id), {_INFINITE}), iif(? IS NULL, 0, "
            f"coalesce((SELECT min(id) - 1 {select} >= ?), {_NEWEST})), "
            f"iif(? IS NULL, {_NEWEST}, coalesce((SELECT max(id) {select} <= ?), 0))",
            (
                start,
                *values,
                start,
                self._sequence(table),
                end,
                self._sequence(table),
                *values,
                end,
            ),
        )
        evicted, whole_from, begin = self.row(
            "SELECT coalesce(max(gone), 0), coalesce(max(iif(gone, coalesce((SELECT at / 1e3 "
            f"FROM entries WHERE room = known.id AND {queries.DATED} ORDER BY at LIMIT 1), "
            f"{_INFINITE}), NULL)), -{_INFINITE}), coalesce(min((SELECT id FROM entries "
            "WHERE room = known.id ORDER BY id LIMIT 1)) - 1, max(gone), 0) "
            "FROM (SELECT id, CAST(evicted AS INTEGER) AS gone FROM places "
            f"WHERE domain = ? AND target = ? AND {queries.among('jid', rooms)}) AS known",
            (query.domain, self.target, *rooms),
        )
        return Span(self.name, oldest, evicted, whole_from, begin, first, last)

    def page(
        self, query: Query, *, after: int, until: int, limit: int, backward: bool = False
    ) -> tuple[list[Recorded], int]:
        """Return the first events that match, and the id up to which all were read.

        At most `SPAN` ids are read; ids that no row has are passed over.
        """
        first, last, order = after, min(until, after + self._span), "ASC"
        if backward:
            first, last, order = max(after, until - self._span), until, "DESC"
        statement, values = queries.matching(query, self.target)
        # SQLite relies on the order of the ids, and checks only one of the two bounds for each row.
        # A row with a damaged id may be out of order. The `+` makes SQLite check both bounds.
        rows = self.all(
            f"{statement} AND events.id > ? AND events.id <= ? "
            f"AND +events.id > ? AND +events.id <= ? ORDER BY events.id {order} LIMIT ?",
            (*values, first, last, first, last, limit),
        )
        ids = [row[0] for row in rows]
        if len(rows) == limit:
            read_to = min(ids) - 1 if backward else max(ids)
        else:  # a damaged count may promise many ids that no row has
            edge, rest = ("min(id) - 1", (until, last, until))
            if backward:
                edge, rest = "max(id)", (after, after, first)
            (edge_id,) = self.row(
                f"SELECT coalesce({edge}, ?) FROM {queries.table_of(query)} "
                "WHERE id > ? AND id <= ?",
                rest,
            )
            read_to = min(edge_id, first) if backward else max(edge_id, last)
        return queries.readable(rows, self, self.name), read_to

    def _sequence(self, table: str) -> str:
        """Return the name under which SQLite counts the ids of a table."""
        former = {"entries": "events", "traffic": "stanzas"}
        return former[table] if self._unmoved else table

    def latest(self) -> float:
        """Return the time of the newest event; minus infinity if there is none."""
        rows = self.all(
            f"SELECT CAST(at AS INTEGER) FROM entries WHERE {_TIMED} ORDER BY id DESC LIMIT 1", ()
        )
        return rows[0][0] / 1000 if rows else -inf

    def holdings(self) -> Sequence[Holding]:
        """Return what the store has of each room, of connections, and of stanzas."""
        rows = self.all(
            "SELECT id, jid, CAST(bytes AS INTEGER), CAST((SELECT at FROM entries WHERE room = "
            f"places.id AND {_TIMED} ORDER BY at LIMIT 1) AS INTEGER) AS oldest FROM places "
            "WHERE oldest NOT NULL UNION ALL SELECT 0, '', CAST(stanza_bytes AS INTEGER), "
            f"CAST((SELECT at FROM traffic WHERE {_TIMED} ORDER BY at LIMIT 1) AS INTEGER) "
            "AS oldest FROM file WHERE oldest NOT NULL",
            (),
        )
        # The size in a damaged store may be 0 or negative.
        return [Holding(id_, name, max(size or 0, 1), at / 1000) for id_, name, size, at in rows]

    def size(self) -> int:
        """Return how many bytes of the disk are in use, without free pages but with the `-wal`."""
        (size,) = self.row(
            "SELECT (page_count - freelist_count) * page_size "
            "FROM pragma_page_count, pragma_freelist_count, pragma_page_size"
        )
        wal = Path(f"{self.path}-wal")
        return int(size) + (wal.stat().st_size if wal.exists() else 0)

    def delete(self, holding: Holding, most: Amount, span: tuple[float, float] | None) -> Amount:
        """Delete rows, no more than `most`; return how much was deleted.

        The rows that were written first are deleted first. With `span`, a start (inclusive) and an
        end (exclusive), only rows whose time is within it are deleted, the earliest first.
        """
        table, text = ("entries", "event") if holding.id else ("traffic", "xml")
        where, order, values = "TRUE", "id", list[float]()
        if holding.id:
            where, values = "room = ?", [holding.id]
        if span is not None:
            where, order = f"{where} AND at >= ? AND at < ?", "at"
            values += [1000 * at for at in span]
        statement = (
            f"SELECT id, {weight_of(text)} FROM {table} WHERE {where} ORDER BY {order} LIMIT ?"
        )
        with (
            self.translated(),
            closing(self._connection.execute(statement, (*values, most.rows))) as rows,
        ):
            ids, gone = queries.fitting(rows, most)
        self.remove(table, "id IN (SELECT value FROM json_each(?))", queries.encoded(ids))
        return Amount(len(ids), gone)

    def shrink(self) -> None:
        """Give some of the free pages back to the disk."""
        (free,) = self.row("PRAGMA freelist_count")
        for _ in range(min(free, PAGES_FREED)):
            # With a higher number than 1, one call frees one page all the same.
            self.all("PRAGMA incremental_vacuum(1)")

    def ageing(self) -> Ageing:
        """Return what was written last by `set_ageing`."""
        names = ", ".join(f"coalesce(CAST({name} AS REAL), 0)" for name in Ageing._fields)
        return Ageing(*self.row(f"SELECT {names} FROM file", ()))

    def set_ageing(self, ageing: Ageing) -> None:
        """Write `ageing` to the store, for this process and later ones."""
        places = ", ".join("?" * len(ageing))
        self.all(f"UPDATE file SET ({', '.join(Ageing._fields)}) = ({places})", ageing)

    def observer(self, observer: Observer) -> int:
        """Return the id of an observer; make it if there is none."""
        return self._id("runs", **vars(observer), target=self.target)

    def place(self, jid: str, domain: str) -> int:
        """Return the id of a room for accounts of a domain; make it if there is none."""
        return self._id("places", jid=jid, domain=domain, target=self.target)

    def _id(self, table: str, **values: str) -> int:
        """Return the id of the row with these values; make the row if there is none."""
        names, places = ", ".join(values), ", ".join("?" * len(values))
        key = (*map(queries.storable, values.values()),)
        find = f"SELECT id FROM {table} WHERE ({names}) = ({places})"
        if not (rows := self.all(find, key)):
            self.all(f"INSERT OR IGNORE INTO {table} ({names}) VALUES ({places})", key)
            rows = [self.row(find, key)]
        if type(rows[0][0]) is not int:
            raise BrokenStoreError(f"{str(self.path)!r} has other tables", self._file)
        return rows[0][0]

    def marks(self) -> tuple[Sent, Sent]:
        """Return how far the file was shipped, and how far it was tried to ship it."""
        rows = self.all(
            "SELECT sent, sent_stanza, trying, trying_stanza FROM shipped WHERE target = ?",
            (self.target,),
        )
        row = rows[0] if rows else (0, 0, 0, 0)
        return Sent(*row[:2]), Sent(*row[2:])

    def reached(self) -> tuple[str, int]:
        """Return the name of the database that had the file last, and its highest id then."""
        rows = self.all("SELECT store, newest FROM shipped WHERE target = ?", (self.target,))
        return rows[0] if rows else ("0", 0)

    def same_as(self, row: int) -> int:
        """Return the id in the database of the event that this row is, too; 0 if none is known."""
        rows = self.all("SELECT id FROM same WHERE row = ?", (row,))
        return int(rows[0][0]) if rows else 0

    def has_same(self, id_: int, row: int) -> bool:
        """Whether a row up to `row` is the event that has this id in the database."""
        return bool(self.all("SELECT 1 FROM same WHERE id = ? AND row <= ?", (id_, row)))
