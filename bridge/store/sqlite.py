"""The store as one SQLite file, in WAL mode: many read while one writes.

docs/store.md tells what is in each table, so that plain `sqlite3` can read it. Errors of SQLite
become `StoreError` here.
"""

import json
import os
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from math import inf
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bridge.store.database import Happened, Lease, Observer, Query, Recorded, Span, TracedXml
from bridge.store.errors import (
    REMEDY,
    BrokenStoreError,
    BusyStoreError,
    FullStoreError,
    NotOurStoreError,
)
from bridge.store.location import FILE_MODE, Location, exists, identity

APPLICATION_ID = 0x584D5042
"""`XMPB`, in the header of the file: says that it is such a store."""

VERSION = 1
"""Of the tables, in `user_version`. Raise it with every change of `TABLES`: a store of another
version is refused; there is no migration. A store without an index is the same, and slower."""

BUSY_SECONDS = 0.5
"""How long one statement waits for another process to let go of the lock."""

SPAN = 50_000
"""Row ids that one statement reads at most, which takes some 30 ms."""

PAGES_FREED = 500
"""Pages of 8 KiB that each deletion gives back to the disk, in some 10 ms."""


def _member(name: str, table: str = "events") -> str:
    """Return a member of an event as SQL; NULL of a damaged row, at which no index may fail."""
    event = f"{table}.event" if table else "event"
    return f"iif(json_valid({event}), json_extract({event}, '$.{name}'), NULL)"


TABLES = f"""
PRAGMA page_size = 8192;
PRAGMA auto_vacuum = INCREMENTAL;
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {VERSION};
BEGIN;
CREATE TABLE store (id TEXT NOT NULL, evicted INTEGER NOT NULL);
INSERT INTO store VALUES (lower(hex(randomblob(4))), 0);
CREATE TABLE observers (
  id INTEGER PRIMARY KEY, account TEXT NOT NULL, nickname TEXT NOT NULL, run TEXT NOT NULL,
  UNIQUE (run, account, nickname));
CREATE TABLE rooms (
  id INTEGER PRIMARY KEY, jid TEXT NOT NULL, domain TEXT NOT NULL,
  recorder TEXT, beat REAL, seen_until INTEGER, UNIQUE (jid, domain));
CREATE TABLE events (
  id INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL,
  room INTEGER NOT NULL REFERENCES rooms, observer INTEGER NOT NULL REFERENCES observers,
  shared INTEGER NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL, event TEXT NOT NULL);
CREATE INDEX events_at ON events (room, at);
CREATE UNIQUE INDEX events_stanza_id ON events (room, json_extract(event, '$.stanzaId'))
  WHERE shared AND json_extract(event, '$.stanzaId') IS NOT NULL;
CREATE INDEX events_id ON events (room, {_member("id", "")}, {_member("sender", "")}, at)
  WHERE kind = 'message';
CREATE TRIGGER eviction AFTER DELETE ON events BEGIN
  UPDATE store SET evicted = max(evicted, old.id);
END;
CREATE TABLE stanzas (
  id INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL,
  observer INTEGER NOT NULL REFERENCES observers, direction TEXT NOT NULL,
  connection TEXT NOT NULL, xml TEXT NOT NULL);
COMMIT;
PRAGMA journal_mode = WAL;
"""
"""WAL mode comes last: all of this must be in the file itself when it is renamed into place."""

# What a bridge said comes back from the room within a minute: xmppSend waits no longer.
_RECORDED = f"""
SELECT events.id, events.at, jid, events.event, account, nickname, run, events.shared, CASE
  WHEN NOT events.shared AND json_extract(events.event, '$.direction') = 'out' THEN EXISTS (
    SELECT 1 FROM events AS copy WHERE copy.room = events.room AND copy.kind = 'message'
    AND copy.at BETWEEN events.at - 1000 AND events.at + 60000
    AND json_extract(copy.event, '$.direction') = 'in'
    AND {_member("id", "copy")} = {_member("id")}
    AND {_member("sender", "copy")} = {_member("sender")}
    AND json_extract(copy.event, '$.from') = json_extract(events.event, '$.from'))
  ELSE FALSE END
FROM events NOT INDEXED CROSS JOIN rooms ON rooms.id = events.room
CROSS JOIN observers ON observers.id = events.observer
"""

_STANZAS = """
SELECT events.id, at, '', json_object('kind', 'stanza', 'direction', direction,
  'bytes', length(CAST(xml AS BLOB)), 'connection', connection, 'xml', xml),
  account, nickname, run, 0, 0
FROM stanzas AS events CROSS JOIN observers ON observers.id = events.observer
"""

_encode = json.JSONEncoder(separators=(",", ":")).encode


class SqliteDatabase:
    """A store in a file; one thread uses it. See `bridge.store.database.Database`."""

    def __init__(self, path: Path, *, writable: bool = True) -> None:
        """Open the store, to read only or to write; to write, it is made if there is none.

        Raises `StoreError`: `NotOurStoreError` where there is none to read.
        """
        self._path = path
        self._ids: dict[tuple[str, ...], int] = {}
        if not writable or exists(path):
            _refuse_foreign(path)
        self._location = Location(path) if writable else None
        try:
            if self._location is not None:
                if not exists(path):
                    self._location.lock(alone=True)
                    if not exists(path):  # another bridge may have been faster
                        _make(path)
                self._location.lock(alone=False)
            self._file = identity(path)
            with self._translated():
                self._connection = _connect(path, "rw" if writable else "ro")
                self._connection.execute("PRAGMA synchronous = NORMAL")
        except BaseException:
            if self._location is not None:
                self._location.close()
            raise

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Open a transaction: no other process writes until the block ends."""
        known = dict(self._ids)
        try:
            with self._translated():
                self._connection.execute("BEGIN IMMEDIATE")
                yield
                self._connection.execute("COMMIT")
        except BaseException:
            self._ids = known  # what was given an id in this block has none
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            raise

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Raise what SQLite raises as the `StoreError` that it means."""
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            text = f"{str(self._path)!r}: {error}"
            if code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
                raise BrokenStoreError(text, self._file) from error
            if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
                raise BusyStoreError(text) from error
            raise FullStoreError(text) from error

    def append(self, observer: Observer, happened: Iterable[Happened]) -> None:
        """Add events, in this order, without shared ones whose stanza id the room already has."""
        rows = [
            (
                round(one.at * 1000),
                self._id("rooms", jid=one.room, domain=observer.domain),
                self._id("observers", **vars(observer)),
                one.shared,
                one.event["kind"],
                _storable(one.text),
                _encode(one.event),
            )
            for one in happened
        ]
        self._connection.executemany(
            "INSERT OR IGNORE INTO events "
            "(at, room, observer, shared, kind, text, event) VALUES (?, ?, ?, ?, ?, ?, ?)",
            rows,
        )

    def append_stanzas(self, observer: Observer, stanzas: Iterable[TracedXml]) -> None:
        """Add stanzas, in this order."""
        by = self._id("observers", **vars(observer))
        self._connection.executemany(
            "INSERT INTO stanzas (at, observer, direction, connection, xml) VALUES (?, ?, ?, ?, ?)",
            [(round(at * 1000), by, *map(_storable, others)) for at, *others in stanzas],
        )

    def lease(self, room: str, domain: str) -> Lease | None:
        """Return the lease of the room for accounts of this domain; None if there never was one."""
        found = self._all(
            "SELECT recorder, beat, seen_until FROM rooms WHERE jid = ? AND domain = ?",
            (room, domain),
        )
        if not found or found[0][0] is None:
            return None
        run, beat, seen_until = found[0]
        return Lease(run, beat, seen_until / 1000)

    def take(self, room: str, domain: str, lease: Lease) -> None:
        """Write the lease of the room, whoever holds it now."""
        self._all(
            "UPDATE rooms SET recorder = ?, beat = ?, seen_until = ? WHERE id = ?",
            (
                lease.run,
                lease.beat,
                round(lease.seen_until * 1000),
                self._id("rooms", jid=room, domain=domain),
            ),
        )

    def shared_after(self, room: str, domain: str, id_: int) -> Sequence[Recorded]:
        """Return the shared events of the room that have a higher row id."""
        return self._recorded(
            "WHERE events.id > ? AND shared AND jid = ? AND domain = ? ORDER BY events.id",
            (id_, room, domain),
        )

    def newest(self) -> int:
        """Return the row id of the newest event; 0 in an empty store."""
        found = self._all("SELECT seq FROM sqlite_sequence WHERE name = 'events'", ())
        return int(found[0][0]) if found else 0

    def span(self, query: Query) -> Span:
        """Return between which row ids the events of the query's rooms and time are."""
        within, values = _within(query)
        start, end = (None if at is None else round(at * 1000) for at in (query.start, query.end))
        table = "stanzas" if query.stanzas else "events"
        last = f"(SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = '{table}')"
        (found,) = self._all(
            f"SELECT id, iif(?, 0, evicted), (SELECT at FROM {table} ORDER BY id), "
            f"iif(? IS NULL, 0, coalesce((SELECT min(id) - 1 FROM {table} "
            f"WHERE {within} AND at >= ?), {last})), "
            f"iif(? IS NULL, {last}, coalesce((SELECT max(id) FROM {table} "
            f"WHERE {within} AND at <= ?), 0)) FROM store",
            (query.stanzas, start, *values, start, end, *values, end),
        )
        store, evicted, oldest, first, last_ = found
        return Span(store, evicted, inf if oldest is None else oldest / 1000, first, last_)

    def page(
        self, query: Query, *, after: int, until: int, limit: int, backward: bool = False
    ) -> tuple[list[Recorded], int]:
        """Return the first events that match, and the row id up to which all rows were read.

        Only row ids above `after` and up to `until` are read, `SPAN` of them at most: there may be
        more matches above the id that is returned. With `backward` it starts at `until` with the
        last event, and there may be more up to the id that is returned.
        """
        first, last = after, until
        if backward:
            first = max(after, until - SPAN)
        else:
            last = min(until, after + SPAN)
        within, values = _within(query)
        conditions, further = _conditions(query)
        found = self._recorded(
            f"WHERE events.id > ? AND events.id <= ? AND {within} AND {conditions} "
            f"ORDER BY events.id {'DESC' if backward else 'ASC'} LIMIT ?",
            (first, last, *values, *further, limit),
            _STANZAS if query.stanzas else _RECORDED,
        )
        if len(found) == limit:
            return found, found[-1].id - backward
        return found, first if backward else last

    def expire(self, before: float, max_bytes: int, most: int) -> int:
        """Delete at most `most` of the oldest events and stanzas; return how many were deleted.

        These are those from before this time, and any while the store is larger than `max_bytes`.
        """
        ((pages, free, size),) = self._all(
            "SELECT page_count, freelist_count, page_size "
            "FROM pragma_page_count, pragma_freelist_count, pragma_page_size",
            (),
        )
        deleted = 0
        for table in ("events", "stanzas"):
            oldest = f"SELECT id FROM {table} ORDER BY id LIMIT ?"
            deleted += self._connection.execute(
                f"DELETE FROM {table} WHERE id IN ({oldest}) AND (? OR at < ?)",
                (most, (pages - free) * size > max_bytes, round(before * 1000)),
            ).rowcount
        for _ in range(min(free, PAGES_FREED)):
            self._all("PRAGMA incremental_vacuum(1)", ())  # of more, `sqlite3` does but the first
        return deleted

    def stands(self) -> bool:
        """Whether the file at the path is still the one that was opened."""
        return identity(self._path) == self._file

    def close(self) -> None:
        """Close the store."""
        with suppress(sqlite3.Error):  # what was committed is safe; the rest is lost in any case
            self._connection.close()
        if self._location is not None:
            self._location.close()

    def _id(self, table: str, **values: str) -> int:
        """Return the id of a row with these values, which is made if there is none."""
        key = (table, *values.values())
        if key not in self._ids:
            names, places = ", ".join(values), ", ".join("?" * len(values))
            insert = f"INSERT OR IGNORE INTO {table} ({names}) VALUES ({places})"
            self._all(insert, key[1:])
            select = f"SELECT id FROM {table} WHERE ({names}) = ({places})"
            self._ids[key] = self._all(select, key[1:])[0][0]
        return self._ids[key]

    def _all(self, statement: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        with self._translated():
            return self._connection.execute(statement, values).fetchall()

    def _recorded(
        self, conditions: str, values: Sequence[object], select: str = _RECORDED
    ) -> list[Recorded]:
        return [
            Recorded(id_, at / 1000, room, json.loads(event), Observer(*by), bool(shared), echoed)
            for id_, at, room, event, *by, shared, echoed in self._all(select + conditions, values)
        ]


def _storable(text: str) -> str:
    """Return `text` without the half characters that only a server that lies can send."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _make(path: Path) -> None:
    """Make an empty store; it is renamed into place once complete."""
    new = Path(f"{path}-new")
    try:
        new.unlink(missing_ok=True)  # of a bridge that was killed here
        os.close(os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE))
        with closing(_connect(new, "rw")) as connection:
            connection.executescript(TABLES)
        new.rename(path)
    except (OSError, sqlite3.Error) as error:
        raise FullStoreError(f"{str(path)!r} cannot be made ({error})") from error


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(
        f"file:{quote(os.fsencode(path))}?mode={mode}",
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
            # In the middle of a checkpoint the file is shorter than its header says, and whole with
            # its WAL: this leaves its length out of the look.
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


def _within(query: Query) -> tuple[str, list[object]]:
    """Return the query's rooms and accounts as an SQL condition, with its values."""
    by = f"observer IN (SELECT id FROM observers WHERE {_among('account', query.connection_of)})"
    if query.stanzas:
        return by, [*query.connection_of]
    rooms = f"SELECT id FROM rooms WHERE domain = ? AND {_among('jid', query.rooms)}"
    none = "SELECT id FROM rooms WHERE domain = ? AND jid = ''"
    return (
        f"(room IN ({rooms}) OR (room IN ({none}) AND {by}))",
        [query.domain, *query.rooms, query.domain, *query.connection_of],
    )


def _conditions(query: Query) -> tuple[str, list[object]]:
    """Return the other conditions of the query as SQL, and their values."""
    where, values = ["TRUE"], list[object]()
    for condition, bound in (("at >= ?", query.start), ("at <= ?", query.end)):
        if bound is not None:
            where.append(condition)
            values.append(round(bound * 1000))
    if query.kinds is not None:
        where.append(_among("kind", query.kinds))
        values += query.kinds
    if query.mentions:
        where.append("instr(lower(event), lower(?))")
        values.append(_encode(query.mentions)[1:-1])
    if query.contains:
        where.append(f"({' OR '.join(['instr(text, ?)'] * len(query.contains))})")
        values += query.contains
    return " AND ".join(where), values


def _among(name: str, wanted: Collection[str]) -> str:
    return f"{name} IN ({', '.join('?' * len(wanted))})"
