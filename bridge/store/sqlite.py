"""The store as one SQLite file, in WAL mode: many read while one writes.

docs/store.md says what is in each table, so that plain `sqlite3` can read it.
"""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from time import time
from typing import Any

from bridge.store import former, queries
from bridge.store.clock import boot, steady
from bridge.store.database import Former, Query, Recorded, Sent, Tenure
from bridge.store.decision import SILENCE_SECONDS
from bridge.store.errors import BrokenStoreError
from bridge.store.location import Place
from bridge.store.pairing import SAME_SECONDS
from bridge.store.sql import GIVEN, SqlDatabase
from bridge.store.sqlite_file import SqliteFile
from bridge.store.tables import FORMER_VERSION, weight_of

SPAN = 50_000
"""Ids that one statement reads at most, which takes some 30 ms."""

FORMER_SPAN = 1_000
"""The same as long as rows of the former version are shown: they are sorted in memory."""

PAGES_FREED = 500
"""Pages of 8 KiB that each deletion gives back to the disk, in some 10 ms."""

ROWS_AT_ONCE = 250
"""One statement inserts so many rows. The thread gives up the interpreter at each statement, and
waits 5 ms for a thread that computes: with fewer rows, a flood is not recorded while it lasts."""

_GIVEN = ", ".join(f"json_extract(value, '$.{name}') AS {name}" for name in GIVEN)

_ASKED = "SELECT 1 FROM pragma_table_info('tenures') WHERE name = 'asked'"
"""Finds the column of tenures that the first stores of this version do not have."""

_NAME = re.compile("[0-9a-f]{1,32}")
"""The name of a store."""


class SqliteDatabase(SqliteFile, SqlDatabase):
    """A store in a file; one thread uses it."""

    BYTES = {"entries": weight_of("event"), "traffic": weight_of("xml")}  # noqa: RUF012 - a constant
    CONTAINS = "instr({}, ?) > 0"
    LOWER = "lower({})"
    # Python makes this searchable form, which takes ten times as long as `lower`.
    SAID = "searchable(CAST(event AS BLOB))"
    SETTINGS = "file"
    GIVEN = f"(SELECT {_GIVEN} FROM json_each(?)) AS given"
    OTHER = (
        "CASE WHEN events.observer IN (SELECT id FROM runs WHERE run = ?) "
        "THEN given.ours ELSE events.shared END = 1"
    )
    ENTRIES = "entries AS events NOT INDEXED"
    TARGETED = " AND target = ?"

    def __init__(self, path: Path, *, writable: bool = True, target: str = "") -> None:
        """Open the store, to read only or to write. To write, make it if there is none.

        `target` names the database to which the rows are shipped; empty if the file is all.
        """
        SqlDatabase.__init__(self, SPAN, target)
        SqliteFile.__init__(self, path, writable=writable)
        self.patience = SILENCE_SECONDS
        try:
            is_former = self.version == FORMER_VERSION
            if is_former:
                former.begin(self, writable=writable)
            self.has_former = former.look(self, shows=not (writable or is_former))
            self._ids_read = FORMER_SPAN if self.has_former else SPAN
            self.name, self.ahead = self._clock()
            if writable and not self.all(_ASKED):
                with self.transaction():
                    if not self.all(_ASKED):  # another bridge may have been faster
                        self.all("ALTER TABLE tenures ADD asked REAL")
            if self.all(_ASKED):
                self.asked = "min(coalesce(asked, since), since)"
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

    @property
    def file(self) -> str:
        """The name of this file, in SQL."""
        return f"'{self.name}'"

    def astray(self, query: Query) -> str:
        """Return a condition for rows that refer to an observer or a room that does not exist."""
        rooms = "" if query.stanzas else " OR room NOT IN (SELECT id FROM places)"
        return f" OR observer NOT IN (SELECT id FROM runs){rooms}"

    def add(self, table: str, rows: Sequence[dict[str, Any]]) -> int:
        """Insert rows; return the id of the last one.

        Of rows with ids, which a former version wrote, damaged ones that no table takes are lost.
        """
        names, last = queries.COLUMNS[table], rows[-1].get("id")
        how = "INSERT" if last is None else "INSERT OR IGNORE"
        for begin in range(0, len(rows), ROWS_AT_ONCE):
            some = rows[begin : begin + ROWS_AT_ONCE]
            places = ", ".join([f"({', '.join('?' * len(names))})"] * len(some))
            statement = f"{how} INTO {table} ({', '.join(names)}) VALUES {places}"
            self.all(statement, [row.get(name) for row in some for name in names])
        return int(last or self.row("SELECT last_insert_rowid()")[0])

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read everything in the block as it is at one moment."""
        self.all("BEGIN")
        try:
            yield
        finally:
            self.roll_back()

    def enter(self, room: str, domain: str, entered: Tenure) -> int:
        """Begin the tenure of a run; return its id."""
        _, *times, _, asked = entered
        (id_,) = self.row(
            "INSERT INTO tenures (place, run, since, until, since_at, until_at, ended, asked) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
            (self.place(room, domain), *times, asked),
        )
        return int(id_)

    def extend(self, tenure: int, until: float, at: float, *, ended: bool) -> None:
        """Write that everything that the run saw up to this time is in the store."""
        self.all(
            "UPDATE tenures SET until = ?, until_at = ?, ended = ? WHERE id = ?",
            (until, at, ended, tenure),
        )

    def newest(self, *, stanzas: bool = False) -> int:
        """Return the highest id that an event, or a stanza, ever had; 0 if there was none."""
        # A store that is not migrated has the former names.
        names = ("traffic", "stanzas") if stanzas else ("entries", "events")
        last = "(SELECT max(CAST(seq AS INTEGER)) FROM sqlite_sequence WHERE name = ?)"
        newest, highest = self.row(
            f"SELECT coalesce({last}, {last}, 0), coalesce(max(CAST(seq AS INTEGER)), 0) "
            "FROM sqlite_sequence",
            names,
        )
        if highest > queries.MAX_ID:  # SQLite might find no id for the next row
            text = f"{str(self.path)!r} counts more rows than there can be"
            raise BrokenStoreError(text, self._file)
        return int(newest)

    def oldest(self) -> int:
        """Return the lowest id of an event that the file still has; `MAX_ID` if it has none."""
        (id_,) = self.row(
            "SELECT coalesce(min(id), ?) FROM entries NOT INDEXED WHERE kind <> 'gap' AND "
            "room IN (SELECT id FROM places WHERE target = ?)",
            (queries.MAX_ID, self.target),
        )
        return int(id_)

    def size(self) -> int:
        """Return how many bytes of the disk are in use, without free pages but with the `-wal`."""
        (size,) = self.row(
            "SELECT (page_count - freelist_count) * page_size "
            "FROM pragma_page_count, pragma_freelist_count, pragma_page_size"
        )
        wal = Path(f"{self.path}-wal")
        return int(size) + (wal.stat().st_size if wal.exists() else 0)

    def shrink(self) -> None:
        """Give some of the free pages back to the disk."""
        (free,) = self.row("PRAGMA freelist_count")
        for _ in range(min(free, PAGES_FREED)):
            # With a higher number than 1, one call frees one page all the same.
            self.all("PRAGMA incremental_vacuum(1)")

    def remove(self, table: str, ids: Sequence[int]) -> None:
        """Delete rows, damaged ones, too; triggers count what is gone."""
        delete = f"DELETE FROM {table} WHERE id IN (SELECT value FROM json_each(?))"
        try:
            self.all(delete, (queries.encoded(ids),))
        except BrokenStoreError:  # an index may disagree with a damaged row
            self.all(f"REINDEX {table}")
            self.all(delete, (queries.encoded(ids),))

    def marks(self) -> tuple[Sent, Sent]:
        """Return how far the database confirmed the file's rows, and how far the last try went."""
        rows = self.all(
            "SELECT sent, sent_stanza, trying, trying_stanza FROM shipped WHERE target = ?",
            (self.target,),
        )
        row = rows[0] if rows else (0, 0, 0, 0)
        return Sent(*row[:2]), Sent(*row[2:])

    def formers(self) -> dict[str, Former]:
        """Return the former names of the file."""
        (text,) = self.row("SELECT copied FROM file")
        with suppress(ValueError, TypeError, AttributeError):
            return {name: Former(*map(int, it)) for name, it in json.loads(text).items()}
        return {}

    def own(self, reached: int, *, stanzas: bool = False) -> dict[str, int]:
        """Return the file's last row in the database, by each name that the file has had.

        `reached` is its last row there by its present name.
        """
        formers = self.formers().items()
        own = {name: it.sent_stanza if stanzas else it.sent for name, it in formers}
        return own | {self.name: reached}

    def has_row(self, row: int, run: str, *, stanza: bool) -> bool:
        """Whether the file has this row from this run: what else has it is a copy of the file."""
        rows = f"{'traffic' if stanza else 'entries'} AS events JOIN runs ON runs.id = observer"
        find = f"SELECT 1 FROM {rows} WHERE events.id = ? AND run = ?"
        return bool(self.all(find, (row, run)))

    def with_ids(self, ids: Sequence[int]) -> list[Recorded]:
        """Return the events with these ids, in order."""
        where = "WHERE events.id IN (SELECT value FROM json_each(?)) ORDER BY events.id"
        rows = self.all(f"{self.select(stanzas=False)} {where}", (queries.encoded(ids),))
        return self.readable(rows, stanzas=False)

    def taken(self, since: float, row: int) -> set[int]:
        """Return the ids in the database of the file's events seen since this time, up to a row.

        Later rows may have been compared for a transaction that was undone.
        """
        rows = self.all(
            "SELECT same.id FROM same JOIN entries ON entries.id = same.row "
            "WHERE seen >= ? AND same.row <= ?",
            (1000 * (since - 2 * SAME_SECONDS), row),
        )
        return {id_ for (id_,) in rows}

    def reached(self) -> tuple[str, int]:
        """Return the name of the database that last confirmed rows, and its highest id then."""
        rows = self.all("SELECT store, newest FROM shipped WHERE target = ?", (self.target,))
        return rows[0] if rows else ("0", 0)

    def same_as(self, row: int) -> int:
        """Return the id in the database of the event that this row is, too; 0 if none is known."""
        rows = self.all("SELECT id FROM same WHERE row = ?", (row,))
        return int(rows[0][0]) if rows else 0

    def has_same(self, id_: int, row: int) -> bool:
        """Whether a row up to `row` is the event that has this id in the database."""
        return bool(self.all("SELECT 1 FROM same WHERE id = ? AND row <= ?", (id_, row)))


def open_file(place: Place, *, writable: bool = True) -> SqliteDatabase:
    """Open the file into which the bridges of this machine write; raises `StoreError`."""
    if isinstance(place, Path):
        return SqliteDatabase(place, writable=writable)
    return SqliteDatabase(place.file, writable=writable, target=place.url.name)
