"""A file that keeps events while a team's database is away, until the database has them.

`bridge.store.sqlite` makes the file, with a table of its own for batches. A batch is what one
transaction would have written. All bridges of a user share the file, whatever their databases are.
"""

import json
import logging
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from bridge.store.database import Happened, Observer, TracedXml
from bridge.store.errors import FullStoreError
from bridge.store.sqlite import SqliteDatabase

TABLE = """
CREATE TABLE IF NOT EXISTS batches (
  id INTEGER PRIMARY KEY AUTOINCREMENT, target TEXT NOT NULL, run TEXT NOT NULL,
  number INTEGER NOT NULL, events INTEGER NOT NULL, parts TEXT NOT NULL)
"""
INDEX = "CREATE INDEX IF NOT EXISTS batches_target ON batches (target, id, events)"
"""`target` is the name of the database, `events` how many events and stanzas a batch has."""

log = logging.getLogger(__name__)


class Addition(NamedTuple):
    """The items of one observer that a transaction adds."""

    observer: Observer
    happened: list[Happened]
    stanzas: list[TracedXml]


class SpooledBatch(NamedTuple):
    """What one transaction of a run adds. Run and number tell whether the database has it."""

    run: str
    number: int
    parts: list[Addition]
    id: int = 0

    @property
    def events(self) -> int:
        """How many events and stanzas it has."""
        return sum(len(part.happened) + len(part.stanzas) for part in self.parts)


class Spool:
    """The batches that wait for one database; one thread uses it. Methods raise `StoreError`."""

    def __init__(self, path: Path, megabytes: int, target: str) -> None:
        self.path = path
        self._bytes = megabytes << 20
        self._target = target
        self._file: SqliteDatabase | None = None

    def add(self, batch: SpooledBatch) -> None:
        """Keep a batch; raises `FullStoreError` if there is no more space for it."""
        file = self._opened()
        parts = [(tuple(vars(part.observer).values()), *part[1:]) for part in batch.parts]
        if file.size() >= self._bytes:
            raise FullStoreError(f"{str(self.path)!r} is full, and the database is away")
        with file.transaction():
            file.all(
                "INSERT INTO batches (target, run, number, events, parts) VALUES (?, ?, ?, ?, ?)",
                (self._target, batch.run, batch.number, batch.events, json.dumps(parts)),
            )

    def first(self) -> SpooledBatch | None:
        """Return the batch that has waited longest; None if none waits."""
        if self._file is None and not self.path.exists():
            return None
        rows = self._opened().all(
            "SELECT run, number, parts, id, events FROM batches WHERE target = ? "
            "ORDER BY id LIMIT 1",
            (self._target,),
        )
        for run, number, text, id_, events in rows:
            if (parts := _parts(text)) is None:
                log.warning(
                    "a batch in %s is damaged: %d events and stanzas are lost", self.path, events
                )
            return SpooledBatch(run, number, parts or [], id_)
        return None

    def remove(self, batch: SpooledBatch) -> None:
        """Drop a batch that the database has."""
        file = self._opened()
        with file.transaction():
            file.all("DELETE FROM batches WHERE id = ?", (batch.id,))
            file.shrink()

    def waiting(self) -> int:
        """Return how many events and stanzas wait."""
        if self._file is None and not self.path.exists():
            return 0
        ((count,),) = self._opened().all(
            "SELECT coalesce(sum(events), 0) FROM batches WHERE target = ?", (self._target,)
        )
        return int(count)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _opened(self) -> SqliteDatabase:
        if self._file is not None and not self._file.is_current():
            self.close()
        if self._file is None:
            self._file = SqliteDatabase(self.path)
            self._file.all(TABLE)
            self._file.all(INDEX)
        return self._file


def _parts(text: str) -> list[Addition] | None:
    """Return the parts of a batch; None if the row is damaged."""
    with suppress(ValueError, TypeError):
        return [
            Addition(
                Observer(*observer),
                [Happened(*event) for event in happened],
                [TracedXml(*stanza) for stanza in stanzas],
            )
            for observer, happened, stanzas in json.loads(text)
        ]
    return None
