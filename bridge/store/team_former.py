"""What the former version left to a team: the tables of its database, and a spool.

A bridge of that version wrote into the spool while the database was away.
"""

import json
import logging
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from bridge.store.database import Happened, Observer, TracedXml
from bridge.store.errors import BusyStoreError, NotOurStoreError
from bridge.store.location import exists
from bridge.store.pairing import key_of
from bridge.store.postgresql_tables import FORMER_VERSION, TABLES
from bridge.store.queries import former_columns
from bridge.store.sql import SqlDatabase
from bridge.store.tables import APPLICATION_ID

SPOOL = "spool.db"
"""The file that all bridges of a user shared, whatever their databases were."""

KEPT = "SELECT 1 FROM batches WHERE run = ? AND number >= ?"
KEEP = """
INSERT INTO batches VALUES (?, ?)
  ON CONFLICT (run) DO UPDATE SET number = greatest(batches.number, excluded.number)
"""
"""The database keeps the number of the last batch that it has of each run."""

MOVED = 2_000
"""Rows that one transaction copies."""

KNOWN = """
INSERT INTO runs SELECT id, account, nickname, run FROM observers ON CONFLICT DO NOTHING;
INSERT INTO places (id, jid, domain, evicted)
  SELECT id, jid, domain, evicted FROM rooms ON CONFLICT DO NOTHING
"""

EVENTS = """
SELECT id, room, observer, at, shared::int, kind, 0, event FROM events
WHERE id > (SELECT coalesce(max(id), 0) FROM entries) ORDER BY id LIMIT ?
"""

STANZAS = """
INSERT INTO traffic SELECT id, at, observer, direction, connection, xml, 0, id FROM stanzas
WHERE id > (SELECT coalesce(max(id), 0) FROM traffic) ORDER BY id LIMIT ? RETURNING id
"""

END = """
INSERT INTO tenures SELECT 0, id, id, 'former', 0, seen_until / 1e3, 0, seen_until / 1e3, 1
  FROM rooms WHERE seen_until BETWEEN 0 AND 253402300799999 ON CONFLICT DO NOTHING;
SELECT setval(pg_get_serial_sequence('runs', 'id'), (SELECT coalesce(max(id), 1) FROM runs));
SELECT setval(pg_get_serial_sequence('places', 'id'), (SELECT coalesce(max(id), 1) FROM places));
UPDATE store SET version = 2;
ALTER TABLE events RENAME TO former_events;
ALTER TABLE stanzas RENAME TO former_stanzas
"""
"""From now on, a bridge of the former version says that its user needs this version."""

log = logging.getLogger(__name__)


def migrate(database: SqlDatabase) -> None:
    """Copy the rows of the former version. Raises `StoreError`."""
    if not database.row("SELECT to_regclass('entries') IS NOT NULL")[0]:
        database.all(f"BEGIN; {TABLES} COMMIT")
    moved = True
    while moved:
        with database.transaction():
            if database.row("SELECT version FROM store") != (FORMER_VERSION,):
                return  # another bridge was faster
            database.all(KNOWN)
            events = database.all(EVENTS, (MOVED,))
            rows = [former_columns(row) | {"file": 0, "number": row[0]} for row in events]
            database.insert(rows)
            moved = bool(database.all(STANZAS, (MOVED,)) or events)
            if not moved:
                database.all(END)


def follow(
    path: Path, target: str, database: SqlDatabase, ship: Callable[[list[Happened]], None]
) -> None:
    """Ship each batch in the spool for the database `target` once; raises `StoreError`.

    `ship` adds the events that the database lacks, inside of a transaction.
    """
    if not exists(path):
        return
    try:
        with closing(sqlite3.connect(path, isolation_level=None, timeout=0.5)) as spool:
            if spool.execute("PRAGMA application_id").fetchone() != (APPLICATION_ID,):
                return
            if not spool.execute("SELECT 1 FROM sqlite_schema WHERE name = 'batches'").fetchall():
                return
            first = "SELECT id, run, number, parts, events FROM batches WHERE target = ? "
            while rows := spool.execute(f"{first} ORDER BY id LIMIT 1", (target,)).fetchall():
                id_, run, number, text, count = rows[0]
                with database.transaction():
                    if not (database.all(KEPT, (run, number)) or _ship(text, database, ship)):
                        lost = f"{count} events and stanzas are lost"
                        log.warning("a batch in %s is damaged: %s", path, lost)
                    database.all(KEEP, (run, number))
                spool.execute("DELETE FROM batches WHERE id = ?", (id_,))
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY:
            raise BusyStoreError(f"{str(path)!r}: {error}") from error
        raise NotOurStoreError(f"what waits in {str(path)!r} cannot be read: {error}") from error


def _ship(text: Any, database: SqlDatabase, ship: Callable[[list[Happened]], None]) -> bool:
    """Ship the parts of a batch; return False if it is damaged."""
    events, stanzas = list[Happened](), list[tuple[Observer, list[TracedXml]]]()
    try:
        for by, happened, traced in json.loads(text):
            observer = Observer(*by)
            for event in happened:
                each = Happened(*event)
                at = round(each.at, 3)  # the time that the former version showed
                each = each._replace(at=at, seen=at, key=key_of(each.event), observer=observer)
                events.append(each)
            stanzas.append((observer, [TracedXml(*stanza) for stanza in traced]))
    except (ValueError, TypeError, AttributeError):
        return False
    ship(events)
    for observer, some in stanzas:
        database.append_stanzas(observer, some)
    return True
