"""The store as one SQLite file, in WAL mode: many read while one writes.

docs/store.md says what is in each table, so that plain `sqlite3` can read it. Errors of SQLite
become `StoreError` here.
"""

import os
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from math import inf
from pathlib import Path
from time import monotonic
from typing import Any
from urllib.parse import quote

from bridge.files import replacing
from bridge.store import queries
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
    TracedXml,
)
from bridge.store.errors import (
    REMEDY,
    BrokenStoreError,
    BusyStoreError,
    FullStoreError,
    NotOurStoreError,
    StoreError,
)
from bridge.store.location import (
    BESIDE,
    Location,
    exists,
    identity,
    move_aside,
    unusable,
)
from bridge.store.tables import APPLICATION_ID, ROW_BYTES, TABLES, VERSION, member, weight_of

BUSY_SECONDS = 0.5
"""How long one statement waits for another process to let go of the lock."""

SPAN = 50_000
"""Ids that one statement reads at most, which takes some 30 ms."""

PAGES_FREED = 500
"""Pages of 8 KiB that each deletion gives back to the disk, in some 10 ms."""

BROKEN = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CONSTRAINT})
"""The errors of a damaged file. Our own writes never violate a constraint."""

FREE_BYTES = 16 << 20
"""With less free space, a disk counts as full. With more, `SQLITE_FULL` may mean damage: SQLite
also raises it for a page number that is too high."""

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

_NAME = re.compile("[0-9a-f]{1,32}")
"""The name of a store."""


class SqliteDatabase:
    """A store in a file; one thread uses it. See `bridge.store.database.Database`."""

    def __init__(self, path: Path, *, writable: bool = True) -> None:
        """Open the store, to read only or to write. To write, make it if there is none.

        Raises `StoreError`: `NotOurStoreError` if there is none to read.
        """
        self._path = path
        self.now: Callable[[], float] = monotonic
        self.waiting = 0
        self.warnings: dict[str, str] = {}
        """What is wrong with the store: a sentence for each kind of trouble."""
        self.unreadable: set[int] = set()
        """The ids of the unreadable rows that were left out so far."""
        if not writable or exists(path):
            _refuse_foreign(path)
        with ExitStack() as opened:
            if writable:
                self._make_ready(opened.enter_context(closing(Location(path))))
            self._file = identity(path)
            with self._translated():
                self._connection = _connect(path, "rw" if writable else "ro")
                opened.callback(self._connection.close)
                self._connection.text_factory = queries.decoded
                self._connection.create_function(
                    "searchable", 1, queries.searchable_of, deterministic=True
                )
                self._connection.execute("PRAGMA synchronous = NORMAL")
                self._connection.execute("PRAGMA user_version").fetchone()  # which makes the `-wal`
            self._wal = identity(Path(f"{path}-wal")) if writable else None
            self._opened = opened.pop_all()

    @property
    def deletable(self) -> "SqliteDatabase":
        """The store itself: a process that may write to the file may delete from it."""
        return self

    def _make_ready(self, location: Location) -> None:
        """Lock the location, make the store if there is none, and note what is wrong with it."""
        if not exists(self._path):
            location.lock(alone=True)
            if not exists(self._path):  # another bridge may have been faster
                move_aside(self._path)  # the rest of a deleted or moved store
                _make(self._path)
        location.lock(alone=False)
        self.warnings = location.made_safe()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Open a transaction: no other process writes until the block ends."""
        try:
            with self._translated():
                self._connection.execute("BEGIN IMMEDIATE")
                yield
                self._connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            raise

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Raise errors of SQLite as the `StoreError` that they mean."""
        try:
            yield
        except UnicodeDecodeError as error:  # the message of SQLite quotes damaged tables
            text = f"{str(self._path)!r} has other tables"
            raise BrokenStoreError(text, self._file) from error
        except sqlite3.Error as error:
            code = _code(error)
            text = f"{str(self._path)!r}: {error}"
            broken = (
                code in BROKEN
                or (code == sqlite3.SQLITE_ERROR and not self._has_our_tables())
                or (code == sqlite3.SQLITE_FULL and self._has_damaged_pages())
            )
            if broken:
                raise BrokenStoreError(text, self._file) from error
            busy = code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
            raise (BusyStoreError if busy else FullStoreError)(text) from error

    def _has_damaged_pages(self) -> bool:
        """Whether a page is damaged. If the disk may really be full, this is unknown, and False."""
        with suppress(OSError):
            if shutil.disk_usage(self._path.parent).free >= FREE_BYTES:
                try:
                    with closing(_connect(self._path, "ro")) as store:
                        return bool(store.execute("PRAGMA quick_check(1)").fetchone() != ("ok",))
                except sqlite3.Error as error:
                    return _code(error) in BROKEN
        return False

    def _has_our_tables(self) -> bool:
        with closing(sqlite3.connect(":memory:")) as new:
            new.executescript(TABLES)
            try:
                ours, theirs = (
                    database.execute("SELECT name, sql FROM sqlite_schema").fetchall()
                    for database in (new, self._connection)
                )
            except sqlite3.Error as error:  # the file has a format that SQLite does not know
                return _code(error) != sqlite3.SQLITE_ERROR
        return ours == theirs

    def append(self, observer: Observer, happened: Sequence[Happened]) -> None:
        """Add events, in this order, without shared ones whose stanza id the room already has."""
        by, newest, rows = self._id("observers", **vars(observer)), self.newest(), []
        rooms = {
            jid: self._id("rooms", jid=jid, domain=observer.domain)
            for jid in {event.room for event in happened}
        }
        for at, room, event, shared, *_ in happened:
            exact = queries.encoded(event)
            values = round(at * 1000), rooms[room], by, shared, event["kind"]
            rows.append((*values, queries.is_plain(exact), exact))
        self._connection.executemany(
            "INSERT OR IGNORE INTO events (at, room, observer, shared, kind, plain, event) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            rows,
        )
        # A trigger would take as long as the insertion itself.
        self._connection.execute(
            "UPDATE rooms SET bytes = coalesce(bytes, 0) + more FROM "
            f"(SELECT room, sum({weight_of('event')}) AS more FROM events "
            "WHERE id > ? GROUP BY room) WHERE id = room",
            (newest,),
        )

    def append_stanzas(self, observer: Observer, stanzas: Sequence[TracedXml]) -> None:
        """Add stanzas, in this order."""
        by = self._id("observers", **vars(observer))
        rows = [
            (round(at * 1000), by, direction, connection, queries.storable(xml))
            for at, direction, connection, xml in stanzas
        ]
        self._connection.executemany(
            "INSERT INTO stanzas (at, observer, direction, connection, xml) VALUES (?, ?, ?, ?, ?)",
            rows,
        )
        if more := sum(len(row[-1].encode()) + ROW_BYTES for row in rows):
            self._connection.execute(
                "UPDATE store SET stanza_bytes = coalesce(stanza_bytes, 0) + ?", (more,)
            )

    def lease(self, room: str, domain: str) -> Lease | None:
        """Return the lease of the room for accounts of this domain; None if none can be read."""
        leases = self.all(
            "SELECT recorder, beat, seen_until FROM rooms WHERE jid = ? AND domain = ?",
            (room, domain),
        )
        match leases:
            case [(str(run), float(beat), int(seen_until))] if 0 <= seen_until <= queries.LATEST:
                return Lease(run, beat, seen_until / 1000)
        return None

    def take(self, room: str, domain: str, lease: Lease) -> None:
        """Write the lease of the room, whichever run holds it now."""
        id_ = self._id("rooms", jid=room, domain=domain)
        self.all(
            "UPDATE rooms SET recorder = ?, beat = ?, seen_until = ? WHERE id = ?",
            (lease.run, lease.beat, round(lease.seen_until * 1000), id_),
        )

    def has(self, room: str, domain: str, stanza_id: str) -> bool:
        """Whether there is a shared event of the room with this stanza id."""
        (there,) = self._row(
            f"SELECT EXISTS (SELECT 1 FROM events WHERE shared AND {member('stanzaId')} = ? "
            "AND room = (SELECT id FROM rooms WHERE jid = ? AND domain = ?))",
            (stanza_id, room, domain),
        )
        return bool(there)

    def newest(self) -> int:
        """Return the highest id that an event ever had; 0 if there was none."""
        newest, highest = self._row(
            f"SELECT {_NEWEST}, coalesce(max(CAST(seq AS INTEGER)), 0) FROM sqlite_sequence",
            ("events",),
        )
        if highest > MAX_ID:
            text = f"{str(self._path)!r} counts more rows than there can be"
            raise BrokenStoreError(text, self._file)
        return int(newest)

    def span(self, query: Query) -> Span:
        """Return the range of the ids that the events of the query's rooms and time have."""
        within, values = queries.within(query)
        start, end = (None if at is None else round(at * 1000) for at in (query.start, query.end))
        table, rooms = queries.table_of(query), queries.rooms_of(query)
        name, oldest, first, last = self._row(
            f"SELECT coalesce(id, ''), coalesce((SELECT at / 1e3 FROM {table} "
            f"WHERE {queries.DATED} ORDER BY id), {_INFINITE}), iif(? IS NULL, 0, "
            f"coalesce((SELECT min(id) - 1 FROM {table} WHERE {within} AND at >= ?), {_NEWEST})), "
            f"iif(? IS NULL, {_NEWEST}, coalesce((SELECT max(id) FROM {table} "
            f"WHERE {within} AND at <= ?), 0)) FROM store",
            (start, *values, start, table, end, table, *values, end),
        )
        store = name if isinstance(name, str) and _NAME.fullmatch(name) else "0"
        evicted, whole_from, begin = self._row(
            "SELECT coalesce(max(gone), 0), coalesce(max(iif(gone, coalesce((SELECT at / 1e3 "
            f"FROM events WHERE room = known.id AND {queries.DATED} ORDER BY at LIMIT 1), "
            f"{_INFINITE}), NULL)), -{_INFINITE}), coalesce(min((SELECT id FROM events "
            "WHERE room = known.id ORDER BY id LIMIT 1)) - 1, max(gone), 0) "
            "FROM (SELECT id, CAST(evicted AS INTEGER) AS gone FROM rooms "
            f"WHERE domain = ? AND {queries.among('jid', rooms)}) AS known",
            (query.domain, *rooms),
        )
        return Span(store, oldest, evicted, whole_from, begin, first, last)

    def page(
        self, query: Query, *, after: int, until: int, limit: int, backward: bool = False
    ) -> tuple[list[Recorded], int]:
        """Return the first events that match, and the id up to which all were read.

        At most `SPAN` ids are read; ids that no row has are passed over.
        """
        first, last, order = after, min(until, after + SPAN), "ASC"
        if backward:
            first, last, order = max(after, until - SPAN), until, "DESC"
        statement, values = queries.matching(query)
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
            (edge_id,) = self._row(
                f"SELECT coalesce({edge}, ?) FROM {queries.table_of(query)} "
                "WHERE id > ? AND id <= ?",
                rest,
            )
            read_to = min(edge_id, first) if backward else max(edge_id, last)
        return queries.readable(rows, self), read_to

    def latest(self) -> float:
        """Return the time of the newest event; minus infinity if there is none."""
        rows = self.all(
            f"SELECT CAST(at AS INTEGER) FROM events WHERE {_TIMED} ORDER BY id DESC LIMIT 1", ()
        )
        return rows[0][0] / 1000 if rows else -inf

    def holdings(self) -> Sequence[Holding]:
        """Return what the store has of each room, of connections, and of stanzas."""
        rows = self.all(
            "SELECT id, jid, CAST(bytes AS INTEGER), CAST((SELECT at FROM events WHERE room = "
            f"rooms.id AND {_TIMED} ORDER BY at LIMIT 1) AS INTEGER) AS oldest FROM rooms "
            "WHERE oldest NOT NULL UNION ALL SELECT 0, '', CAST(stanza_bytes AS INTEGER), "
            f"CAST((SELECT at FROM stanzas WHERE {_TIMED} ORDER BY at LIMIT 1) AS INTEGER) "
            "AS oldest FROM store WHERE oldest NOT NULL",
            (),
        )
        # The size in a damaged store may be 0 or negative.
        return [Holding(id_, name, max(size or 0, 1), at / 1000) for id_, name, size, at in rows]

    def size(self) -> int:
        """Return how many bytes of the disk are in use, without free pages."""
        (size,) = self._row(
            "SELECT (page_count - freelist_count) * page_size "
            "FROM pragma_page_count, pragma_freelist_count, pragma_page_size",
            (),
        )
        return int(size)

    def delete(self, holding: Holding, most: Amount, span: tuple[float, float] | None) -> Amount:
        """Delete rows, no more than `most`; return how much was deleted.

        The rows that were written first are deleted first. With `span`, a start (inclusive) and an
        end (exclusive), only rows whose time is within it are deleted, the earliest first.
        """
        table, text = ("events", "event") if holding.id else ("stanzas", "xml")
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
            self._translated(),
            closing(self._connection.execute(statement, (*values, most.rows))) as rows,
        ):
            ids, gone = queries.fitting(rows, most)
        these = f"DELETE FROM {table} WHERE id IN (SELECT value FROM json_each(?))"
        try:
            self.all(these, (queries.encoded(ids),))
        except BrokenStoreError:  # an index may disagree with a damaged row
            self.all(f"REINDEX {table}", ())
            self.all(these, (queries.encoded(ids),))
        return Amount(len(ids), gone)

    def shrink(self) -> None:
        """Give some of the free pages back to the disk."""
        (free,) = self._row("PRAGMA freelist_count", ())
        for _ in range(min(free, PAGES_FREED)):
            # With a higher number than 1, one call frees one page all the same.
            self.all("PRAGMA incremental_vacuum(1)", ())

    def ageing(self) -> Ageing:
        """Return what was written last by `set_ageing`."""
        names = ", ".join(f"coalesce(CAST({name} AS REAL), 0)" for name in Ageing._fields)
        return Ageing(*self._row(f"SELECT {names} FROM store", ()))

    def set_ageing(self, ageing: Ageing) -> None:
        """Write `ageing` to the store, for this process and later ones."""
        places = ", ".join("?" * len(ageing))
        self.all(f"UPDATE store SET ({', '.join(Ageing._fields)}) = ({places})", ageing)

    def is_current(self) -> bool:
        """Whether the file at the path is still the one that was opened."""
        return identity(self._path) == self._file

    def cut(self) -> None:
        """Do nothing: there is no server, and the wait for a lock is short."""

    def close(self) -> None:
        """Close the store."""
        with suppress(sqlite3.Error):  # committed rows are safe; others are lost in any case
            self._opened.close()
        # If the file was replaced, SQLite leaves the old `-wal` there, and would read it as part
        # of the new file.
        wal = identity(Path(f"{self._path}-wal"))
        if wal is not None and wal == self._wal and not self.is_current():
            with suppress(StoreError):
                move_aside(self._path, BESIDE[1:])

    def _id(self, table: str, **values: str) -> int:
        """Return the id of the row with these values; make the row if there is none."""
        names, places = ", ".join(values), ", ".join("?" * len(values))
        key = (*values.values(),)
        self.all(f"INSERT OR IGNORE INTO {table} ({names}) VALUES ({places})", key)
        (id_,) = self._row(f"SELECT id FROM {table} WHERE ({names}) = ({places})", key)
        return int(id_)

    def _row(self, statement: str, values: Sequence[object]) -> tuple[Any, ...]:
        """Return the only row; raise `BrokenStoreError` if it is missing or has a NULL."""
        match self.all(statement, values):
            case [row] if None not in row:
                return row
        raise BrokenStoreError(f"{str(self._path)!r} has other tables", self._file)

    def all(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows that a statement returns."""
        with self._translated():
            return self._connection.execute(statement, values).fetchall()


def _code(error: sqlite3.Error) -> int:
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _make(path: Path) -> None:
    """Make an empty store; it is renamed into place once complete."""
    try:
        with replacing(path) as new, closing(_connect(new, "rw")) as connection:
            connection.executescript(TABLES)
    except OSError as error:
        raise unusable(path, error) from error
    except sqlite3.Error as error:
        raise FullStoreError(f"{str(path)!r} cannot be made ({error})") from error


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(
        f"file://{quote(os.fsencode(path.absolute()))}?mode={mode}",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )


def _refuse_foreign(path: Path) -> None:
    """Raise `NotOurStoreError` unless the file is a store of this version; it is not changed."""
    if not exists(path):
        raise NotOurStoreError(f"{str(path)!r} does not exist; `xmpp-bridge record` makes it")
    with closing(_connect(path, "ro&immutable=1")) as header:  # reads, locks and writes nothing
        try:
            # During a checkpoint the file is shorter than its header says, and complete only
            # together with its WAL. With this setting SQLite does not compare the length.
            header.execute("PRAGMA writable_schema = ON")
            application = header.execute("PRAGMA application_id").fetchone()[0]
            version = header.execute("PRAGMA user_version").fetchone()[0]
        except sqlite3.DatabaseError:
            application = version = None
    if application != APPLICATION_ID:
        raise NotOurStoreError(f"{str(path)!r} is not a store of xmpp-bridge; {REMEDY}")
    if version != VERSION:
        raise NotOurStoreError(
            f"{str(path)!r} is a store of version {version}, and this xmpp-bridge has {VERSION}; "
            f"{REMEDY}"
        )
