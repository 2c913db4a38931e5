"""The file of a store in SQLite: its lock, its transactions, and the meaning of SQLite's errors."""

import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bridge.files import replacing
from bridge.store import queries
from bridge.store.errors import (
    REMEDY,
    BrokenStoreError,
    BusyStoreError,
    NotOurStoreError,
    StoreError,
)
from bridge.store.location import BESIDE, Location, exists, identity, move_aside, unusable
from bridge.store.tables import APPLICATION_ID, FORMER_VERSION, NEW_FILE, TABLES, VERSION

BUSY_SECONDS = 0.5
"""How long one statement waits for another process to let go of the lock."""

WAL_PAGES = 512
"""Pages of 8 KiB after which the `-wal` is moved into the file: 4 MB, which takes some tens of
milliseconds."""

BROKEN = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CONSTRAINT})
"""The errors of a damaged file. Our own writes never violate a constraint."""

FREE_BYTES = 16 << 20
"""With less free space, a disk counts as full. With more, `SQLITE_FULL` may mean damage: SQLite
also raises it for a page number that is too high."""

_FUNCTIONS = {"searchable": queries.said_of, "message_of": queries.message_of}
"""The functions of our own in SQL: they take the exact form of an event, as a BLOB."""


class SqliteFile:
    """An open file with a store; one thread uses it. Methods may raise `StoreError`."""

    def __init__(self, path: Path, *, writable: bool) -> None:
        """Open the file, to read only or to write. To write, make it if there is none.

        Raises `StoreError`: `NotOurStoreError` if there is none to read.
        """
        self.path = path
        self.warnings: dict[str, str] = {}
        """What is wrong with the store: a sentence for each kind of trouble."""
        if not writable or exists(path):
            _check_version(path)
        self.writable = writable
        with ExitStack() as opened:
            if writable:
                self._location = opened.enter_context(closing(Location(path)))
                self._make_ready(self._location)
            self._file = identity(path)
            with self.translated():
                self._connection = _connect(path, "rw" if writable else "ro")
                opened.callback(self._connection.close)
                self._connection.text_factory = queries.decoded
                for name, read in _FUNCTIONS.items():
                    of_event = partial(_of_event, read)
                    self._connection.create_function(name, 1, of_event, deterministic=True)
                self._connection.execute("PRAGMA synchronous = NORMAL")
                self._connection.execute(f"PRAGMA wal_autocheckpoint = {WAL_PAGES}")
                self._connection.execute(f"PRAGMA journal_size_limit = {WAL_PAGES * 2048}")
                # This makes the `-wal`, where the version of a store may be that is migrated.
                (self.version,) = self._connection.execute("PRAGMA user_version").fetchone()
                """The version of the tables when the file was opened."""
            self._wal = identity(Path(f"{path}-wal")) if writable else None
            self.opened = opened.pop_all()
            """What is closed with the file."""

    def _make_ready(self, location: Location) -> None:
        """Lock the location, make the store if there is none, and note what is wrong with it."""
        if not exists(self.path):
            location.lock(alone=True)
            if not exists(self.path):  # another bridge may have been faster
                move_aside(self.path)  # the rest of a deleted or moved store
                _make(self.path)
        location.lock(alone=False)
        self.warnings = location.made_safe()

    def begin(self) -> None:
        """Open a transaction in which no other process writes."""
        self.all("BEGIN IMMEDIATE")

    def roll_back(self) -> None:
        """Undo the transaction; if none began, do not look for the damage that this may mean."""
        with suppress(sqlite3.Error):
            self._connection.execute("ROLLBACK")

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Raise errors of SQLite as the `StoreError` that they mean."""
        try:
            yield
        except UnicodeDecodeError as error:  # the message of SQLite quotes damaged tables
            text = f"{str(self.path)!r} has other tables"
            raise BrokenStoreError(text, self._file) from error
        except sqlite3.Error as error:
            code = _code(error)
            text = f"{str(self.path)!r}: {error}"
            broken = (
                code in BROKEN
                or (code == sqlite3.SQLITE_ERROR and not self._has_our_tables())
                or (code == sqlite3.SQLITE_FULL and self._has_damaged_pages())
            )
            if broken:
                raise BrokenStoreError(text, self._file) from error
            busy = code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
            raise (BusyStoreError if busy else StoreError)(text) from error

    def _has_damaged_pages(self) -> bool:
        """Whether a page is damaged. False, too, if the disk may really be full."""
        with suppress(OSError):
            disk = os.statvfs(self.path.parent)
            if disk.f_bavail * disk.f_frsize >= FREE_BYTES:
                try:
                    with closing(_connect(self.path, "ro")) as store:
                        return bool(store.execute("PRAGMA quick_check(1)").fetchone() != ("ok",))
                except sqlite3.Error as error:
                    return _code(error) in BROKEN
        return False

    def _has_our_tables(self) -> bool:
        with closing(sqlite3.connect(":memory:")) as new:
            new.executescript(TABLES)
            try:
                ours, theirs = (
                    {*database.execute("SELECT name, sql FROM sqlite_schema")}
                    for database in (new, self._connection)
                )
            except sqlite3.Error as error:  # the file has a format that SQLite does not know
                return _code(error) != sqlite3.SQLITE_ERROR
        return ours <= theirs

    def is_current(self) -> bool:
        """Whether the file at the path is still the one that was opened."""
        return identity(self.path) == self._file

    def close(self) -> None:
        """Close the store."""
        with suppress(sqlite3.Error):  # committed rows are safe; others are lost in any case
            self.opened.close()
        # If the file was replaced, SQLite leaves the old `-wal` there, and would read it as part
        # of the new file.
        wal = identity(Path(f"{self.path}-wal"))
        if wal is not None and wal == self._wal and not self.is_current():
            with suppress(StoreError):
                move_aside(self.path, BESIDE[1:])

    def checkpoint(self) -> None:
        """Move what is in the `-wal` into the file, as far as no reader needs it."""
        self.all("PRAGMA wal_checkpoint(TRUNCATE)")

    def row(self, statement: str, values: Sequence[object] = ()) -> tuple[Any, ...]:
        """Return the only row; raise `BrokenStoreError` if it is missing or has a NULL."""
        match self.all(statement, values):
            case [row] if None not in row:
                return row
        raise BrokenStoreError(f"{str(self.path)!r} has other tables", self._file)

    def all(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows that a statement returns."""
        with self.translated():
            return self._connection.execute(statement, values).fetchall()

    def each(self, statement: str, values: Sequence[object]) -> Iterator[tuple[Any, ...]]:
        """Yield the rows that a statement returns, each read as it is needed."""
        with self.translated(), closing(self._connection.execute(statement, values)) as rows:
            yield from rows

    def guard(self) -> dict[str, str]:
        """Let only the owner use the store's files: other programs may have changed the modes."""
        return self._location.made_safe()

    def is_alone(self) -> bool:
        """Whether no other process has the file open."""
        try:
            self._location.lock(alone=True)
        except BusyStoreError:
            return False
        finally:
            self._location.lock(alone=False)
        return True


def _of_event(read: Callable[[Mapping[str, Any]], object], exact: bytes | None) -> Any:
    """Return what is read from the exact form of an event; None if it is damaged."""
    event = None if exact is None else queries.event_of(exact.decode(errors="replace"))
    return None if event is None else read(event)


def _code(error: sqlite3.Error) -> int:
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _make(path: Path) -> None:
    """Make an empty store; it is renamed into place once complete."""
    try:
        with replacing(path) as new, closing(_connect(new, "rw")) as connection:
            connection.executescript(NEW_FILE)
    except OSError as error:
        raise unusable(path, error) from error
    except sqlite3.Error as error:
        raise StoreError(f"{str(path)!r} cannot be made ({error})") from error


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(
        f"file://{quote(os.fsencode(path.absolute()))}?mode={mode}",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )


def _check_version(path: Path) -> None:
    """Raise `NotOurStoreError` unless the file is a store of this version, or of one to migrate.

    Nothing is changed.
    """
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
    if version not in {VERSION, FORMER_VERSION}:
        raise NotOurStoreError(
            f"{str(path)!r} is a store of version {version}, and this xmpp-bridge has {VERSION}; "
            f"{REMEDY}"
        )
