"""What a file has for a team's database: the rows that wait, and how far it was shipped."""

import fcntl
import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from bridge.store import queries
from bridge.store.database import Happened, Observer, Tenure, TracedXml
from bridge.store.location import FILE_MODE, unusable
from bridge.store.pairing import SAME_SECONDS, Key
from bridge.store.retention import EXPIRED_AT_ONCE
from bridge.store.sqlite import SqliteDatabase
from bridge.store.team import Sent, Shipped
from bridge.store.writer import gap

BATCH = 1_000
"""How many rows one transaction ships."""

CONFIRMED_SECONDS = 3_600.0
"""A row stays so long in the file after the database has it: readers compare it with others'."""

TENURE_SECONDS = 86_400.0
"""A tenure that ended so long ago is deleted from the file; the database has it."""

FULL = "the file of this machine was full, and the database away"
DAMAGED = "a damaged row could not be shipped"
"""Reasons of gaps that count lost events."""


@dataclass(frozen=True)
class Shipment:
    """What waits in a file, as it was at one moment."""

    sent: Sent
    """What the database has confirmed."""
    trying: Sent
    """What a transaction tried to add whose answer may be lost."""
    copied: int
    """Rows up to this id may be in the database under the former name of the file."""
    shipped: list[Shipped]
    stanzas: list[tuple[int, Observer, TracedXml]]
    last: Sent
    """How far the batch goes, with damaged rows."""
    damaged: int
    complete: bool
    """Whether nothing else waits."""
    tenures: list[tuple[str, str, Tenure]]
    """The newest tenures, each with its room and domain."""


class Outbox:
    """The rows of a file that wait for one database. One thread of one process uses it."""

    def __init__(self, file: SqliteDatabase, *, stanzas: bool) -> None:
        """With `stanzas`, stanzas are shipped too."""
        self.file = file
        self._stanzas = stanzas
        file.all("INSERT OR IGNORE INTO shipped (target) VALUES (?)", (file.target,))
        self._lock = -1

    def locked(self) -> bool:
        """Return whether this process ships; only one may do so at a time."""
        if self._lock < 0:
            path = f"{self.file.path}-ship-{self.file.target[:8]}"
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            try:
                descriptor = os.open(path, flags, FILE_MODE)
            except OSError as error:
                raise unusable(self.file.path, error) from error
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(descriptor)
                return False
            self._lock = descriptor
        return True

    def close(self) -> None:
        """Let another process ship, and close the file."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1
        self.file.close()

    def waiting(self) -> int:
        """Return how many events and stanzas wait."""
        sent, _ = self.file.marks()
        rows = "SELECT count(*) FROM entries JOIN places ON places.id = room "
        stanzas = "SELECT count(*) FROM traffic JOIN runs ON runs.id = observer "
        count = 0
        for select, last in ((rows, sent.event), (stanzas, sent.stanza)):
            if select is rows or self._stanzas:
                where = "WHERE entries.id > ?" if select is rows else "WHERE traffic.id > ?"
                (number,) = self.file.row(
                    f"{select} {where} AND target = ?", (last, self.file.target)
                )
                count += number
        return count

    def batch(self) -> Shipment:
        """Read the rows that wait, as many as one transaction ships."""
        file = self.file
        with file.snapshot():
            sent, trying = self.file.marks()
            (copied,) = file.row("SELECT copied FROM file")
            rows = file.all(
                "SELECT entries.id, at, seen, jid, domain, account, nickname, run, shared, "
                "content, stanza, event FROM entries JOIN places ON places.id = room "
                "LEFT JOIN runs ON runs.id = observer WHERE places.target = ? AND entries.id > ? "
                "ORDER BY entries.id LIMIT ?",
                (file.target, sent.event, BATCH),
            )
            stanzas = file.all(
                "SELECT traffic.id, account, nickname, run, at, direction, connection, xml "
                "FROM traffic JOIN runs ON runs.id = observer WHERE target = ? AND traffic.id > ? "
                "ORDER BY traffic.id LIMIT ?",
                (file.target, sent.stanza, BATCH if self._stanzas else 0),
            )
            tenures = file.all(
                "SELECT jid, domain, tenures.id, run, since, until, since_at, until_at, ended "
                "FROM tenures JOIN places ON places.id = place WHERE target = ? AND until >= ?",
                (file.target, file.now() - CONFIRMED_SECONDS),
            )
        events = [shipped for row in rows if (shipped := _shipped(row)) is not None]
        return Shipment(
            sent,
            trying,
            copied,
            events,
            [
                (id_, Observer(*by), TracedXml(at / 1000, *texts))
                for id_, *by, at, direction, connection, xml in stanzas
                if {*map(type, texts := (direction, connection, xml))} == {str} and type(at) is int
            ],
            Sent(rows[-1][0] if rows else sent.event, stanzas[-1][0] if stanzas else sent.stanza),
            len(rows) - len(events),
            max(len(rows), len(stanzas)) < BATCH,
            [(jid, domain, Tenure(*row)._replace(file=file.name)) for jid, domain, *row in tenures],
        )

    def taken(self, since: float, row: int) -> set[int]:
        """Return the ids that events seen since this time, up to a row, have in the database.

        Later rows may have been compared for a transaction that was undone.
        """
        rows = self.file.all(
            "SELECT same.id FROM same JOIN entries ON entries.id = same.row "
            "WHERE seen >= ? AND same.row <= ?",
            (1000 * (since - 2 * SAME_SECONDS), row),
        )
        return {id_ for (id_,) in rows}

    def attempt(self, reached: Sent, last: Sent, same: Mapping[int, int]) -> None:
        """Write how far a transaction goes that is about to be committed.

        The database says that it has everything up to `reached`: a former attempt is over. `same`
        has the ids in the database of the events that it leaves out, by their ids here.
        """
        # What the database may have must not be undone here by a loss of power.
        self.file.all("PRAGMA synchronous = FULL")
        with self.file.transaction():
            self.file.all(
                "UPDATE shipped SET (sent, sent_stanza, trying, trying_stanza) = (?, ?, ?, ?) "
                "WHERE target = ?",
                (*reached, *last, self.file.target),
            )
            self.file.many("INSERT OR REPLACE INTO same VALUES (?, ?)", [*same.items()])
        self.file.all("PRAGMA synchronous = NORMAL")

    def confirm(self, sent: Sent, store: str, newest: int) -> None:
        """Write that the database of this name has everything up to `sent`.

        `newest` is its highest id.
        """
        self.file.all(
            "UPDATE shipped SET (sent, sent_stanza, trying, trying_stanza, store, newest) = "
            "(?, ?, ?, ?, ?, ?) WHERE target = ?",
            (*sent, *sent, store, newest, self.file.target),
        )

    def rename(self) -> None:
        """Give the file a new name, since the database knows the former one from elsewhere."""
        self.file.all(
            "UPDATE file SET id = lower(hex(randomblob(4))), copied = "
            "(SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'entries')"
        )
        (self.file.name,) = self.file.row("SELECT id FROM file")

    def lose(self, count: int, reason: str, at: float) -> None:
        """Add a gap which says that so many events were lost; inside of a transaction."""
        observers = self.file.all(
            "SELECT account, nickname, run FROM runs WHERE target = ? ORDER BY id DESC LIMIT 1",
            (self.file.target,),
        )
        for row in observers:
            lost = Happened(at, "", gap(at, at, events=count, reason=reason), seen=at)
            self.file.append(Observer(*row), [lost])

    def tidy(self, most: int) -> bool:
        """Delete what the database has had for an hour; return whether there is more.

        If the file takes more than `most` bytes, delete the oldest events, too, and count those
        that were not shipped.
        """
        file, now = self.file, self.file.now()
        sent, _ = self.file.marks()
        rows = (
            "SELECT {0}.id FROM {0} JOIN {1} ON {1}.id = {2} WHERE target = ? {3} ORDER BY {0}.id"
        )
        events = rows.format("entries", "places", "room", "AND entries.id <= ? AND seen < ?")
        stanzas = rows.format("traffic", "runs", "observer", "AND traffic.id <= ? AND at < ?")
        gone = 0
        with file.transaction():
            for table, select, last in (
                ("entries", events, sent.event),
                ("traffic", stanzas, sent.stanza),
            ):
                until = 1000 * (now - CONFIRMED_SECONDS)
                gone += self._delete(table, select, (file.target, last, until))
            if not gone and file.size() > most:
                for table, parent, key in (
                    ("traffic", "runs", "observer"),
                    ("entries", "places", "room"),
                ):
                    # Gaps count what is lost, and say who came when.
                    kept = "AND kind <> 'gap'" if table == "entries" else ""
                    oldest = rows.format(table, parent, key, kept)
                    gone += self._delete(table, oldest, (file.target,), sent.event)
                    if gone:
                        break
            file.all("DELETE FROM same WHERE row < (SELECT min(id) FROM entries)")
            file.all("DELETE FROM tenures WHERE until < ?", (now - TENURE_SECONDS,))
            file.shrink()
        if gone:
            file.checkpoint()
        return gone > 0

    def _delete(
        self, table: str, select: str, values: tuple[object, ...], sent: int | None = None
    ) -> int:
        """Delete some rows; events above the id `sent` are counted in a gap."""
        ids = [id_ for (id_,) in self.file.all(f"{select} LIMIT ?", (*values, EXPIRED_AT_ONCE))]
        self.file.remove(table, ids)
        lost = sum(id_ > sent for id_ in ids) if sent is not None and table == "entries" else 0
        if lost:
            self.lose(lost, FULL, time.time())
        return len(ids)


def _shipped(row: tuple[object, ...]) -> Shipped | None:
    """Return the event in a row; None if it is damaged."""
    id_, at, seen, jid, domain, *by, shared, content, stanza, exact = row
    texts = (jid, domain, exact, *by)
    if all(type(text) is str for text in texts) and type(at) is type(seen) is int:
        with suppress(ValueError, RecursionError):
            event = json.loads(str(exact))
            if type(event) is dict and type(event.get("kind")) is str and type(content) is int:
                if not 0 <= at <= queries.LATEST:
                    return None
                key = Key(content, stanza if type(stanza) is int else None)
                happened = Happened(
                    at / 1000, str(jid), event, bool(shared), seen=seen / 1000, key=key
                )
                return Shipped(Observer(*map(str, by)), happened, int(str(id_)))
    return None
