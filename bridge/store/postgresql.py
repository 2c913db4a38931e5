"""The store in a PostgreSQL database, which bridges on many machines share.

Every writing transaction first locks the one row of `store`, so ids come in the order of commits.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from bridge.settings.database_url import DatabaseUrl
from bridge.store import queries
from bridge.store.database import Mark, Query, Sent, Span, Tenure
from bridge.store.errors import ForbiddenStoreError, NotOurStoreError, StoreError
from bridge.store.postgresql_connection import NEEDED, NEWEST, DatabaseConnection
from bridge.store.postgresql_tables import (
    ATTEND,
    BYTES,
    FORMER_VERSION,
    NEWEST_OF,
    STORE,
    TABLES,
    VERSION,
)
from bridge.store.sql import GIVEN, SqlDatabase
from bridge.store.team_former import migrate

STATEMENT_BYTES = 2 << 20
"""Events that are longer than so many characters are added by several statements. A server takes a
second for some megabytes."""

SPAN = 200_000
"""Ids that one statement reads at most, which takes a tenth of a second."""

SILENCE_SECONDS = 10.0
"""The tenures of a file that has not been heard of for so many seconds have ended."""


class PostgresqlDatabase(DatabaseConnection, SqlDatabase):
    """A store in a database; one thread uses it."""

    BYTES = BYTES
    CONTAINS = "strpos({}, ?) > 0"
    LOWER = 'lower({} COLLATE "C")'
    SAID = "said"
    SETTINGS = "store"
    GIVEN = f"json_to_recordset(?::json) AS given ({', '.join(f'{name} bigint' for name in GIVEN)})"
    OTHER = (
        "CASE WHEN events.observer = given.observer THEN events.number = given.number "
        "ELSE events.shared = 1 AND NOT EXISTS (SELECT 1 FROM files JOIN json_each_text(?::json) "
        "AS own ON own.key = name WHERE files.id = events.file AND events.number <= "
        "own.value::bigint AND (given.ours = 0 OR events.number >= ?)) END AND events.id <= ?"
    )
    FILES = "LEFT JOIN files ON files.id = file"
    NUMBER = "events.number"
    asked = "coalesce(asked, since)"
    file = "coalesce(files.name, '')"

    def __init__(
        self,
        url: DatabaseUrl,
        *,
        writable: bool = True,
        making: bool = False,
        migrating: bool = False,
    ) -> None:
        """Connect; with `making`, make the tables if there are none. Raises `StoreError`.

        With `migrating`, a store of the former version becomes one of this version.
        """
        SqlDatabase.__init__(self, SPAN)
        DatabaseConnection.__init__(self, url)
        self.patience = SILENCE_SECONDS
        try:
            self._check(making=making, migrating=migrating)
            adds, deletes = self.row(
                "SELECT has_table_privilege('entries', 'INSERT'), "
                "has_table_privilege('entries', 'DELETE')"
            )
            self.may_delete = bool(writable and deletes)
            """Whether the role may delete."""
            if writable and not adds:
                raise ForbiddenStoreError(f"{url}: this role may only read; {NEEDED}")
        except BaseException:  # after any error, only we can close the connection
            self.close()
            raise

    def _check(self, *, making: bool, migrating: bool = False) -> None:
        """Raise `NotOurStoreError` unless the tables have this version."""
        find = "SELECT version, id FROM store"
        try:
            version, self.name = self.row(find)
        except NotOurStoreError:
            if not making:
                raise
            self._make()
            version, self.name = self.row(find)
        if version == FORMER_VERSION and migrating:
            migrate(self)
            version, self.name = self.row(find)
        if version == FORMER_VERSION:
            raise NotOurStoreError(
                f"{self.url} has a store of version {version}; `xmpp-bridge record "
                "--prepare-store` of this version migrates it, under a role that may"
            )
        if version != VERSION:
            raise NotOurStoreError(
                f"{self.url} has a store of version {version}, and this xmpp-bridge has "
                f"{VERSION}; use the xmpp-bridge of that version, or name another database"
            )

    def _make(self) -> None:
        """Make the tables, unless another bridge is faster."""
        try:
            self.all(f"BEGIN; {STORE} {TABLES} COMMIT")
        except StoreError:
            self.roll_back()
            with suppress(NotOurStoreError):  # another bridge may have been faster
                self._check(making=False)
                return
            raise

    def now(self) -> float:
        """Return the time by the clock of the database, in seconds since the epoch."""
        (now,) = self.row("SELECT extract(epoch FROM clock_timestamp())::float8")
        return float(now)

    def mark(self, file: str, host: str, sent: Sent) -> Mark:
        """Return what the database knows about a file; make it known if it is not."""
        self.all(
            "INSERT INTO files (name, host, sent, sent_stanza) SELECT ?, ?, ?, ? "
            "WHERE NOT EXISTS (SELECT 1 FROM files WHERE name = ?)",
            (file, host, *sent, file),
        )
        names = "id, host, extract(epoch FROM clock_timestamp())::float8, sent, sent_stanza"
        find = f"SELECT {names} FROM files WHERE name = ?"
        id_, shipped_by, now, event, stanza = self.row(find, (file,))
        return Mark(id_, shipped_by, now, Sent(event, stanza))

    def hear(self, mark: Mark) -> None:
        """Write up to which rows the file was shipped, and that it was heard of now."""
        self.all(
            "UPDATE files SET sent = ?, sent_stanza = ?, "
            "beat = extract(epoch FROM clock_timestamp()) WHERE id = ?",
            (*mark.sent, mark.id),
        )

    def attend(self, file: int, tenures: Sequence[tuple[str, str, Tenure]]) -> None:
        """Write the tenures of a file, each with its room and domain."""
        rows = [
            it._asdict() | {"file": file, "place": self.place(*where), "ended": int(it.ended)}
            for *where, it in tenures
        ]
        self.all(ATTEND, (queries.encoded(rows),))

    def silent(self, file: str, seconds: float) -> list[tuple[Any, ...]]:
        """Return the hosts that went silent in the last `seconds` with tenures not ended, and when.

        The file of this name is left out.
        """
        return self.all(
            "SELECT host, max(files.beat) FROM files WHERE name <> ? AND EXISTS "
            "(SELECT 1 FROM tenures WHERE file = files.id AND ended = 0) GROUP BY host "
            "HAVING extract(epoch FROM clock_timestamp()) - max(files.beat) BETWEEN ? AND ?",
            (file, SILENCE_SECONDS, seconds),
        )

    def add(self, table: str, rows: Sequence[dict[str, Any]]) -> int:
        """Insert rows; return the id of the last one."""
        texts, size, last = list[str](), 0, self.newest(stanzas=table == "traffic")
        for row in rows:
            last = row.get("id", last + 1)
            event = None if row.get("plain") else queries.event_of(row.get("event"))
            said = event and queries.said_of(event)
            texts.append(queries.encoded(row | {"id": last, "said": said}))
            size += len(texts[-1])
            if size >= STATEMENT_BYTES:
                self._insert(table, texts)
                texts, size = [], 0
        self._insert(table, texts)
        # The highest rows of a former version may have been deleted.
        newest = NEWEST_OF[table]
        self.all(
            f"UPDATE store SET {newest} = ? WHERE {newest} < ? OR {newest} > ?",
            (last, last, queries.MAX_ID),
        )
        return last

    def _insert(self, table: str, rows: Sequence[str]) -> None:
        """Insert rows, each a JSON object with its columns."""
        select = f"SELECT * FROM json_populate_recordset(NULL::{table}, ?::json)"
        self.all(f"INSERT INTO {table} {select}", (f"[{','.join(rows)}]",))

    def newest(self, *, stanzas: bool = False) -> int:
        """Return the highest id that was given to an event, or to a stanza; 0 if there was none."""
        return int(self.row(NEWEST)[stanzas])

    def reached(self, file: str, *, stanzas: bool) -> tuple[int, int | None]:
        """Return the highest id, and the last row of the file that the database has then.

        The row is None if the database does not know the file.
        """
        column = "sent_stanza" if stanzas else "sent"
        newest, newest_stanza, sent = self.row(
            f"SELECT *, (SELECT {column} FROM files WHERE name = ?) FROM ({NEWEST}) AS newest",
            (file,),
        )
        return newest_stanza if stanzas else newest, sent

    def run_of(self, file: str, row: int, after: int, *, stanzas: bool) -> str | None:
        """Return the run of a file's row; None if there is none with an id `after` this one."""
        rows = self.all(
            f"SELECT run FROM {'traffic' if stanzas else 'entries'} AS events "
            f"JOIN runs ON runs.id = observer {self.FILES} "
            "WHERE events.id > ? AND name = ? AND number = ?",
            (after, file, row),
        )
        return rows[0][0] if rows else None

    def size(self) -> int:
        """Return how many bytes the events and stanzas take, with their part of the indexes."""
        (size,) = self.row(
            "SELECT (SELECT coalesce(sum(bytes), 0) FROM places) + stanza_bytes FROM store"
        )
        return max(1, int(size))

    def remove(self, table: str, ids: Sequence[int]) -> None:
        """Delete rows, and count what is gone."""
        deletion = f"DELETE FROM {table} WHERE id = ANY(?) RETURNING {BYTES[table]} AS size"
        if table == "traffic":
            less = "(SELECT coalesce(sum(size), 0) FROM gone)"
            update = f"UPDATE store SET stanza_bytes = stanza_bytes - {less}"
        else:
            deletion += ", id, room"
            update = (
                "UPDATE places SET bytes = bytes - less, evicted = greatest(evicted, last) FROM "
                "(SELECT room, sum(size) AS less, max(id) AS last FROM gone GROUP BY room) AS gone "
                "WHERE id = room"
            )
        self.all(f"WITH gone AS ({deletion}) {update}", ([*ids],))

    def span(self, query: Query) -> Span:
        """Return the range of ids; the tables may have been made anew since we connected."""
        (self.name,) = self.row("SELECT id FROM store")
        return super().span(query)
