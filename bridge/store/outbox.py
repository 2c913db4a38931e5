"""What a file has for a team's database: the rows that wait, and how far it was shipped."""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

from bridge.files import lock_private
from bridge.store.database import Former, Happened, Observer, Recorded, Sent, Tenure
from bridge.store.location import Team, unusable
from bridge.store.pairing import key_of
from bridge.store.queries import encoded
from bridge.store.retention import EXPIRED_AT_ONCE
from bridge.store.sqlite import SqliteDatabase
from bridge.store.writer import gap

BATCH = 1_000
"""How many rows one transaction ships."""

CONFIRMED_SECONDS = 3_600.0
"""A row that the database has is deleted from the file once it is so old: until then readers
compare it with other machines' rows."""

TENURE_SECONDS = 86_400.0
"""A tenure that ended so long ago is deleted from the file; the database has it."""

MAX_NAMES = 100
"""The most former names that a file keeps: another role can bring about a new one at any time."""

FULL = "the file of this machine was full, and the database away"
DAMAGED = "a damaged row could not be shipped"
"""Reasons of gaps that count lost events."""

OF_TARGET = {
    "entries": "room IN (SELECT id FROM places WHERE target = ?)",
    "traffic": "observer IN (SELECT id FROM runs WHERE target = ?)",
}
"""The conditions for the rows of a file that are shipped to one database."""


@dataclass(frozen=True)
class Shipment:
    """What waits in a file, as it was at one moment."""

    sent: Sent
    """How far the database has confirmed the rows."""
    trying: Sent
    """How far the last transaction went; its answer may be lost."""
    events: list[Happened]
    stanzas: list[Recorded]
    last: Sent
    """How far the batch goes, with damaged rows."""
    damaged: int
    until: float
    """Up to this time by the clock of the file, the batch has all events; infinite if none is
    left."""
    complete: bool
    """Whether nothing else waits."""
    tenures: list[tuple[str, str, Tenure]]
    """All tenures in the file, each with its room and domain."""


class Outbox(SqliteDatabase):
    """A file whose rows wait for one database. One thread of one process uses it."""

    def __init__(self, team: Team, *, stanzas: bool) -> None:
        """With `stanzas`, stanzas are shipped too."""
        super().__init__(team.file, target=team.url.name)
        self._stanzas, self._is_locked = stanzas, False

    def locked(self) -> bool:
        """Take the lock for shipping, until the file is closed; return whether we have it."""
        if not self._is_locked:
            try:
                lock = lock_private(Path(f"{self.path}-ship-{self.target[:8]}"))
            except BlockingIOError:
                return False
            except OSError as error:
                raise unusable(self.path, error) from error
            self.opened.callback(os.close, lock)
            self._is_locked = True
            (self.name,) = self.row("SELECT id FROM file")  # who had the lock may have changed it
        return True

    def waiting(self) -> int:
        """Return how many events and stanzas wait."""
        waiting, (sent, _) = 0, self.marks()
        for table, last in (("entries", sent.event), ("traffic", sent.stanza)):
            if table == "entries" or self._stanzas:
                count = f"SELECT count(*) FROM {table} NOT INDEXED WHERE {OF_TARGET[table]}"
                waiting += self.row(f"{count} AND id > ?", (self.target, last))[0]
        return waiting

    def batch(self) -> Shipment:
        """Read the rows that wait, as many as one transaction ships."""
        with self.snapshot():
            sent, trying = self.marks()
            rows = self._rows("entries", sent.event, BATCH)
            stanzas = self._rows("traffic", sent.stanza, BATCH if self._stanzas else 0)
            rooms = self.all("SELECT jid, domain FROM places WHERE target = ?", (self.target,))
            stays = [(*place, it) for place in rooms for it in self.tenures(*place)]
        events = self.readable(rows, stanzas=False)
        return Shipment(
            sent,
            trying,
            [*map(happened, events)],
            self.readable(stanzas, stanzas=True),
            Sent(rows[-1][0] if rows else sent.event, stanzas[-1][0] if stanzas else sent.stanza),
            len(rows) - len(events),
            inf if len(rows) < BATCH else max((event.seen for event in events), default=0.0),
            max(len(rows), len(stanzas)) < BATCH,
            stays,
        )

    def _rows(self, table: str, last: int, limit: int) -> list[tuple[Any, ...]]:
        return self.all(
            f"{self.select(stanzas=table == 'traffic')} WHERE {OF_TARGET[table]} "
            "AND events.id > ? ORDER BY events.id LIMIT ?",
            (self.target, last, limit),
        )

    def attempt(self, reached: Sent, last: Sent, same: Mapping[int, int]) -> None:
        """Write how far a transaction goes that is about to be committed.

        The database says that it has everything up to `reached`, so a former attempt is over.
        `same` has the events that the transaction leaves out: their ids in the database, by their
        ids here.
        """
        # A loss of power must not undo here what the database may have.
        self.all("PRAGMA synchronous = FULL")
        with self.transaction():
            self.all(
                "INSERT INTO shipped (target, sent, sent_stanza, trying, trying_stanza) "
                "VALUES (?, ?, ?, ?, ?) ON CONFLICT (target) DO UPDATE SET sent = excluded.sent, "
                "sent_stanza = excluded.sent_stanza, trying = excluded.trying, "
                "trying_stanza = excluded.trying_stanza",
                (self.target, *reached, *last),
            )
            note = "INSERT OR REPLACE INTO same SELECT key, value FROM json_each(?)"
            self.all(note, (encoded(same),))
        self.all("PRAGMA synchronous = NORMAL")

    def confirm(self, batch: Shipment, store: str, newest: int) -> None:
        """Write that the database of this name has the batch; its highest id is `newest`.

        Damaged rows are counted in a gap, and old tenures deleted that the database has.
        """
        with self.transaction():
            self.all(
                "UPDATE shipped SET (sent, sent_stanza, trying, trying_stanza, store, newest) = "
                "(?, ?, ?, ?, ?, ?) WHERE target = ?",
                (*batch.last, *batch.last, store, newest, self.target),
            )
            if batch.damaged:
                now = time.time()
                self.lose(batch.damaged, DAMAGED, now, now)
            if batch.until == inf:  # else it has tenures only up to the end of the batch
                self.all(
                    "DELETE FROM tenures WHERE until < ? AND place IN "
                    "(SELECT id FROM places WHERE target = ?)",
                    (self.now() - TENURE_SECONDS, self.target),
                )

    def rename(self, sent: Sent) -> None:
        """Give the file a new name, since a copy of it is shipped by the former one.

        The database has the file's rows up to `sent` by that name.
        """
        former = Former(*sent, self.newest(), self.newest(stanzas=True))
        names = [*(self.formers() | {self.name: former}).items()][-MAX_NAMES:]
        change = "UPDATE file SET copied = ?, id = lower(hex(randomblob(4)))"
        self.all(change, (encoded(dict(names)),))
        (self.name,) = self.row("SELECT id FROM file")

    def lose(self, count: int, reason: str, first: float, last: float) -> None:
        """Add a gap which says that so many events were lost; inside of a transaction.

        `first` and `last` are the times of the first and the last, in seconds since the epoch.
        """
        observers = self.all(
            "SELECT account, nickname, run FROM runs WHERE target = ? ORDER BY id DESC LIMIT 1",
            (self.target,),
        )
        for row in observers:
            event = gap(first, last, events=count, reason=reason)
            lost = Happened(last, "", event, seen=time.time())
            self.append(Observer(*row), [lost])

    def tidy(self, most: int) -> bool:
        """Delete rows that the database has and that are over an hour old.

        If the file takes more than `most` bytes, delete the oldest rows, too, and count the events
        that were not shipped. Return whether any row was deleted: then there may be more.
        """
        sent, _ = self.marks()
        until = 1000 * (self.now() - CONFIRMED_SECONDS)
        got = 1000 * (time.time() - CONFIRMED_SECONDS)  # a room's history is older than this
        with self.transaction():
            old = "id <= ? AND seen < ? AND at < ?"
            gone = self._delete("entries", sent, old, sent.event, until, got)
            gone += self._delete("traffic", sent, "id <= ? AND at < ?", sent.stanza, until)
            if not gone and self.size() > most:
                gone = self._delete("traffic", sent, "TRUE")
                # Gaps stay: they count what is lost, and mark when a bridge came.
                gone = gone or self._delete("entries", sent, "kind <> 'gap'")
            self.all("DELETE FROM same WHERE row < (SELECT min(id) FROM entries)")
            self.shrink()
        if gone:
            self.checkpoint()
        return gone > 0

    def _delete(self, table: str, sent: Sent, where: str, *values: float) -> int:
        """Delete the first rows; events that were not sent are counted in a gap."""
        rows = self.all(
            f"SELECT id, at FROM {table} NOT INDEXED WHERE {OF_TARGET[table]} AND {where} "
            "ORDER BY id LIMIT ?",
            (self.target, *values, EXPIRED_AT_ONCE),
        )
        if rows:
            self.remove(table, [id_ for id_, _ in rows])
        if table == "entries" and (lost := [at for id_, at in rows if id_ > sent.event]):
            now = time.time()
            # A time that is damaged, or in the future, counts as now.
            times = [at / 1000 if type(at) is int and 0 <= at < 1000 * now else now for at in lost]
            self.lose(len(lost), FULL, min(times), max(times))
        return len(rows)


def happened(row: Recorded) -> Happened:
    """Return an event out of a file as it goes into a database."""
    what = Happened(row.at, row.room, row.event, row.shared, seen=row.seen, key=key_of(row.event))
    return what._replace(observer=row.observer, row=row.id)
