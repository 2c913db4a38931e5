"""The store as one SQLite file, in WAL mode: many read while one writes.

docs/store.md tells what is in each table, so that plain `sqlite3` can read it. Errors of SQLite
become `StoreError` here.
"""

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bridge.store.database import (
    BrokenStoreError,
    BusyStoreError,
    FullStoreError,
    Happened,
    Lease,
    NotOurStoreError,
    Observer,
    Query,
    Recorded,
    TracedXml,
)
from bridge.store.location import FILE_MODE, Location, exists, identity

APPLICATION_ID = 0x584D5042
"""`XMPB`, in the header of the file: says that it is such a store."""

VERSION = 1
"""Of the tables, in `user_version`."""

BUSY_SECONDS = 2.0
"""How long one statement waits for another process to let go of the lock."""

PAGES_FREED = 1_000
"""Handed back to the disk after a deletion, at 4 KiB each: a moment's work."""

TABLES = """
CREATE TABLE observers (
  id INTEGER PRIMARY KEY,
  account TEXT NOT NULL,
  nickname TEXT NOT NULL,
  run TEXT NOT NULL,
  UNIQUE (run, account, nickname)
);
CREATE TABLE rooms (
  id INTEGER PRIMARY KEY,
  jid TEXT NOT NULL,
  domain TEXT NOT NULL,
  recorder TEXT,
  beat REAL,
  seen_until INTEGER,
  UNIQUE (jid, domain)
);
CREATE TABLE events (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  at INTEGER NOT NULL,
  room INTEGER NOT NULL REFERENCES rooms,
  observer INTEGER NOT NULL REFERENCES observers,
  shared INTEGER NOT NULL,
  kind TEXT NOT NULL,
  stanza_id TEXT,
  text TEXT NOT NULL,
  event TEXT NOT NULL
);
CREATE INDEX events_at ON events (room, at);
CREATE UNIQUE INDEX events_stanza_id ON events (room, stanza_id)
  WHERE shared AND stanza_id IS NOT NULL;
CREATE TABLE stanzas (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  at INTEGER NOT NULL,
  observer INTEGER NOT NULL REFERENCES observers,
  direction TEXT NOT NULL,
  connection TEXT NOT NULL,
  xml TEXT NOT NULL
);
"""

_RECORDED = (
    "SELECT events.id, at, jid, event, account, nickname, run, shared FROM events "
    "JOIN rooms ON rooms.id = events.room JOIN observers ON observers.id = events.observer "
)

_encode = json.JSONEncoder(separators=(",", ":")).encode


class SqliteDatabase:
    """A store in a file; one thread uses it. See `bridge.store.database.Database`."""

    def __init__(self, path: Path, *, writable: bool = True) -> None:
        """Open the store, to read only or to write; to write, it is made if there is none.

        Raises `StoreError`: `NotOurStoreError` where there is none to read.
        """
        self._location = Location(path) if writable else None
        self._ids: dict[tuple[str, ...], int] = {}
        try:
            if self._location is not None and not exists(path):
                self._location.claim()
                _make(path)
                self._location.share()
            _refuse_foreign(path)
            with _translated(path):
                self._connection = _connect(path, "rw" if writable else "ro")
                self._connection.execute("PRAGMA synchronous = NORMAL")
            self._path, self._file = path, identity(path)
        except BaseException:
            if self._location is not None:
                self._location.close()
            raise

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Begin to write: nobody else writes until the block ends."""
        known = dict(self._ids)
        try:
            with _translated(self._path):
                self._connection.execute("BEGIN IMMEDIATE")
                yield
                self._connection.execute("COMMIT")
        except BaseException:
            self._ids = known  # what was given an id in this block has none
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            raise

    def append(self, observer: Observer, happened: Iterable[Happened]) -> None:
        """Add events, in this order; one whose stanza id the room's records have is left out."""
        by = self._observer(observer)
        rows = [
            (
                round(one.at * 1000),
                self._room(one.room, observer.domain),
                by,
                one.shared,
                one.event["kind"],
                one.event.get("stanzaId"),
                one.text,
                _encode(one.event),
            )
            for one in happened
        ]
        with _translated(self._path):
            self._connection.executemany(
                "INSERT OR IGNORE INTO events "
                "(at, room, observer, shared, kind, stanza_id, text, event) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                rows,
            )

    def append_stanzas(self, observer: Observer, stanzas: Iterable[TracedXml]) -> None:
        """Add stanzas, in this order."""
        by = self._observer(observer)
        with _translated(self._path):
            self._connection.executemany(
                "INSERT INTO stanzas (at, observer, direction, connection, xml) "
                "VALUES (?, ?, ?, ?, ?)",
                [(round(at * 1000), by, *others) for at, *others in stanzas],
            )

    def lease(self, room: str, domain: str) -> Lease | None:
        """Return who records the room for accounts of this domain; None: nobody ever did."""
        found = self._all(
            "SELECT recorder, beat, seen_until FROM rooms WHERE jid = ? AND domain = ?",
            (room, domain),
        )
        if not found or found[0][0] is None:
            return None
        run, beat, seen_until = found[0]
        return Lease(run, beat, None if seen_until is None else seen_until / 1000)

    def take(self, room: str, domain: str, lease: Lease) -> None:
        """Write who records the room."""
        seen_until = None if lease.seen_until is None else round(lease.seen_until * 1000)
        self._all(
            "UPDATE rooms SET recorder = ?, beat = ?, seen_until = ? WHERE id = ?",
            (lease.run, lease.beat, seen_until, self._room(room, domain)),
        )

    def shared_after(self, room: str, domain: str, id_: int) -> Sequence[Recorded]:
        """Return what everybody in the room saw and was recorded after this place."""
        return self._recorded(
            "WHERE events.id > ? AND shared AND jid = ? AND domain = ? ORDER BY events.id",
            (id_, room, domain),
        )

    def newest(self) -> int:
        """Return the place of the newest event; 0 in an empty store."""
        found = self._all("SELECT seq FROM sqlite_sequence WHERE name = 'events'", ())
        return int(found[0][0]) if found else 0

    def page(self, query: Query, *, after: int, limit: int) -> Sequence[Recorded]:
        """Return the oldest `limit` events that match, of those behind this place."""
        where, values = _conditions(query)
        return self._recorded(
            f"WHERE events.id > ? AND {where} ORDER BY events.id LIMIT ?", (after, *values, limit)
        )

    def page_before(self, query: Query, *, before: int, limit: int) -> Sequence[Recorded]:
        """Return the newest `limit` events that match, of those ahead of this place; ascending."""
        where, values = _conditions(query)
        found = self._recorded(
            f"WHERE events.id < ? AND {where} ORDER BY events.id DESC LIMIT ?",
            (before, *values, limit),
        )
        return found[::-1]

    def expire(self, before: float, max_bytes: int, most: int) -> int:
        """Delete at most so many of the oldest events and stanzas; return how many went.

        Those from before this time go, and any while the store is larger than `max_bytes`.
        """
        # A store whose pages are free is not large: `incremental_vacuum` hands them back.
        (pages,), (size,), (free,) = (
            self._all(f"PRAGMA {name}", ())[0]
            for name in ("page_count", "page_size", "freelist_count")
        )
        too_large = (pages - free) * size > max_bytes
        deleted = 0
        for table in ("events", "stanzas"):
            with _translated(self._path):
                deleted += self._connection.execute(
                    f"DELETE FROM {table} WHERE id IN (SELECT id FROM {table} ORDER BY id LIMIT ?) "  # noqa: S608 - a name of ours
                    "AND (? OR at < ?)",
                    (most, too_large, round(before * 1000)),
                ).rowcount
        self._all(f"PRAGMA incremental_vacuum({PAGES_FREED})", ())
        return deleted

    def stands(self) -> bool:
        """Whether the store is still what is at its path."""
        return identity(self._path) == self._file

    def close(self) -> None:
        """Let go of it."""
        with suppress(sqlite3.Error):  # what was committed is safe; the rest is lost in any case
            self._connection.close()
        if self._location is not None:
            self._location.close()

    def _observer(self, observer: Observer) -> int:
        return self._id(
            "observers", account=observer.account, nickname=observer.nickname, run=observer.run
        )

    def _room(self, jid: str, domain: str) -> int:
        return self._id("rooms", jid=jid, domain=domain)

    def _id(self, table: str, **names: str) -> int:
        """Return the id of a row with these values, which is made if there is none."""
        key = (table, *names.values())
        if key not in self._ids:
            values = tuple(names.values())
            places = ", ".join("?" * len(values))
            columns = ", ".join(names)
            self._all(f"INSERT OR IGNORE INTO {table} ({columns}) VALUES ({places})", values)  # noqa: S608 - names of ours
            where = f"({columns}) = ({places})"
            self._ids[key] = self._all(f"SELECT id FROM {table} WHERE {where}", values)[0][0]  # noqa: S608 - names of ours
        return self._ids[key]

    def _all(self, statement: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        with _translated(self._path):
            return self._connection.execute(statement, values).fetchall()

    def _recorded(self, conditions: str, values: Sequence[object]) -> list[Recorded]:
        return [
            Recorded(id_, at / 1000, room, json.loads(event), Observer(*observer), bool(shared))
            for id_, at, room, event, *observer, shared in self._all(_RECORDED + conditions, values)
        ]


def put_aside(path: Path, broken: BrokenStoreError) -> Path | None:
    """Put a broken store aside, for a new one to be begun; return where it is now.

    None: another bridge has done so. Raises `BusyStoreError` while one has it open.
    """
    location = Location(path)
    try:
        location.claim()
        return location.put_aside() if broken.file == identity(path) else None
    finally:
        location.close()


def _make(path: Path) -> None:
    """Make an empty store; it comes to its place whole."""
    new = path.with_name(f"{path.name}-new")
    try:
        new.unlink(missing_ok=True)  # of a bridge that was killed here
        os.close(os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE))
        with _translated(new):
            connection = _connect(new, "rw")
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
            connection.executescript(TABLES)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.close()
        new.rename(path)
    except OSError as error:
        raise FullStoreError(f"{str(path)!r} cannot be made ({error.strerror})") from error


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(
        f"file:{quote(os.fsencode(path))}?mode={mode}",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )


def _refuse_foreign(path: Path) -> None:
    """Raise `NotOurStoreError` for what is no store of this version, which is left as it is."""
    if not exists(path):
        raise NotOurStoreError(f"{str(path)!r} does not exist")
    with closing(_connect(path, "ro&immutable=1")) as header:  # reads, locks and writes nothing
        try:
            application = header.execute("PRAGMA application_id").fetchone()[0]
            version = header.execute("PRAGMA user_version").fetchone()[0]
        except sqlite3.DatabaseError:
            application = version = None
    if application != APPLICATION_ID:
        raise NotOurStoreError(f"{str(path)!r} is something other than a store of this program")
    if version != VERSION:
        raise NotOurStoreError(
            f"{str(path)!r} is a store of another version ({version}, this program has {VERSION})"
        )


def _conditions(query: Query) -> tuple[str, list[object]]:
    """Return the query as SQL, and its values."""

    def among(name: str, wanted: Sequence[str]) -> str:
        values.extend(wanted)
        return f"{name} IN ({', '.join('?' * len(wanted))})"

    values: list[object] = []
    where = [
        f"({among('jid', query.rooms)} OR (jid = '' AND {among('account', query.connection_of)}))"
    ]
    where.append(among("domain", [query.domain]))
    for condition, bound in (("at >= ?", query.start), ("at <= ?", query.end)):
        if bound is not None:
            where.append(condition)
            values.append(round(bound * 1000))
    if query.kinds is not None:
        where.append(among("kind", sorted(query.kinds)))
    if query.contains:
        where.append(f"({' OR '.join(['instr(text, ?)'] * len(query.contains))})")
        values.extend(query.contains)
    return " AND ".join(where), values


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    """Raise what SQLite raises as the `StoreError` that it means."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        text = f"{str(path)!r}: {error}"
        if code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
            raise BrokenStoreError(text, identity(path)) from error
        if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
            raise BusyStoreError(text) from error
        raise FullStoreError(text) from error
