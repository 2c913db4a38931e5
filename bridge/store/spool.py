"""Ships what a bridge of the former version left in a spool while a team's database was away."""

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
from bridge.store.postgresql import PostgresqlDatabase
from bridge.store.tables import APPLICATION_ID

SPOOL = "spool.db"
"""The file that all bridges of a user shared, whatever their databases were."""

KEPT = "SELECT 1 FROM batches WHERE run = ? AND number >= ?"
KEEP = """
INSERT INTO batches VALUES (?, ?)
  ON CONFLICT (run) DO UPDATE SET number = greatest(batches.number, excluded.number)
"""
"""The database keeps the number of the last batch that it has of each run."""

log = logging.getLogger(__name__)


def follow(
    path: Path,
    target: str,
    database: PostgresqlDatabase,
    ship: Callable[[list[Happened]], None],
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
    except sqlite3.OperationalError as error:
        raise BusyStoreError(f"{str(path)!r}: {error}") from error
    except sqlite3.Error as error:
        raise NotOurStoreError(f"what waits in {str(path)!r} cannot be read: {error}") from error


def _ship(text: Any, database: PostgresqlDatabase, ship: Callable[[list[Happened]], None]) -> bool:
    """Ship the parts of a batch; return False if it is damaged."""
    events, stanzas = list[Happened](), list[tuple[Observer, list[TracedXml]]]()
    try:
        for by, happened, traced in json.loads(text):
            observer = Observer(*by)
            for event in happened:
                each = Happened(*event)
                each = each._replace(seen=each.at, key=key_of(each.event), observer=observer)
                events.append(each)
            stanzas.append((observer, [TracedXml(*stanza) for stanza in traced]))
    except (ValueError, TypeError, AttributeError):
        return False
    ship(events)
    for observer, some in stanzas:
        database.append_stanzas(observer, some)
    return True
