"""A connection to a PostgreSQL database: its transactions, and the meaning of its errors.

No statement is prepared on the server, and nothing outlives a transaction on a connection, so that
poolers may stand in front. Errors of psycopg become `StoreError` here.
"""

import os
import re
import socket
import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from math import inf
from time import monotonic
from typing import Any

from bridge.settings.database_url import VERIFIED, DatabaseUrl
from bridge.store.errors import (
    AwayStoreError,
    BusyStoreError,
    NotOurStoreError,
    RefusedStoreError,
    StoreError,
)
from bridge.store.queries import MAX_ID
from bridge.text import one_line

CONNECT_SECONDS = 5
"""How long connecting may take."""

STATEMENT_SECONDS = 10.0
"""How long one statement may take; then the connection is cut."""

LOOKS = 10
"""The watchdog of a connection looks so often in `STATEMENT_SECONDS` whether to cut it."""

LOCK_SECONDS = 2
"""How long a transaction waits for the lock."""

MAX_MESSAGE = 300
"""We show at most so many characters of a server's error."""

MAX_STEP = 10**12
"""A row is passed over, too, if its id is further ahead of the highest one that was given: a single
row must not use the ids up."""

NEWEST = f"""
SELECT greatest(event, (SELECT max(id) FROM entries WHERE id <= given.event + {MAX_STEP})) AS event,
  greatest(stanza, (SELECT max(id) FROM traffic WHERE id <= given.stanza + {MAX_STEP})) AS stanza
FROM (SELECT CASE WHEN newest <= {MAX_ID} THEN newest ELSE 0 END AS event,
  CASE WHEN newest_stanza <= {MAX_ID} THEN newest_stanza ELSE 0 END AS stanza FROM store) AS given
"""
"""Finds the highest ids of events and stanzas."""

BEGIN = f"""
BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = '{LOCK_SECONDS}s';
SET LOCAL idle_in_transaction_session_timeout = '{STATEMENT_SECONDS:.0f}s'
"""
"""Begins a transaction. If a bridge dies holding the lock, the session timeout frees it."""

REPEATED = frozenset({"40001", "40P01", "55P03", "23505"})
"""Errors that mean that another bridge was faster: serialization failure, deadlock, no lock, a
row or table made at the same time."""

REFUSED = re.compile("28...|3D...")
"""The codes of errors about passwords, roles and names of databases."""

REFUSALS = re.compile(
    "authentication failed|certificate|no password supplied|does not exist|no such (database|user)"
)
"""The words of such errors, also from PgBouncer. While it connects, libpq does not pass the codes
on."""

NO_TABLES = frozenset({"42P01", "3F000", "42703"})
OTHER_TABLES = "42P07"
FORBIDDEN = "42501"
READ_ONLY = "25006"

NEEDED = "docs/store.md says what a role needs for its tables"
MAKE_IT = "`xmpp-bridge record --prepare-store` makes them, under a role that may"
ELSEWHERE = "name another database, or another schema by its `search_path`"


class DatabaseConnection:
    """A connection that one thread uses. Every method may raise `StoreError`."""

    def __init__(self, url: DatabaseUrl) -> None:
        try:
            import psycopg  # it takes a tenth of a second to load, and only a team needs it
        except ImportError as error:
            raise NotOurStoreError(
                f"BRIDGE_STORE names a PostgreSQL database, and {error.name or 'psycopg'} is "
                "missing; pip install 'xmpp-debug-bridge[postgresql]'"
            ) from error
        self.url = url
        self._is_cut = False
        self._deadline = inf
        self._ended = threading.Event()
        with translated(url):
            self._connection = psycopg.connect(
                conninfo(url), autocommit=True, prepare_threshold=None
            )
        threading.Thread(target=self._watch, name="watchdog", daemon=True).start()

    def all(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows that a statement returns; a `?` in it stands for a value."""
        if values:
            statement = statement.replace("%", "%%").replace("?", "%s")
        with self._guarded():
            cursor = self._connection.execute(statement, values or None)
            return cursor.fetchall() if cursor.description is not None else []

    def row(self, statement: str, values: Sequence[object] = ()) -> tuple[Any, ...]:
        """Return the only row; raises `NotOurStoreError` if it is missing, or not the only one."""
        match self.all(statement, values):
            case [row]:
                return row
        raise NotOurStoreError(f"{self.url} has other tables than a store; {ELSEWHERE}")

    def begin(self) -> None:
        """Open a transaction and lock the store."""
        self.all(BEGIN)
        self.row("SELECT id FROM store FOR UPDATE")

    def close(self) -> None:
        """Close the connection."""
        self._ended.set()
        with suppress(StoreError), translated(self.url):
            self._connection.close()

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Have the connection cut if the server does not answer in time.

        If a server is stopped, or a network swallows everything, nothing raises an error.
        """
        self._deadline = monotonic() + STATEMENT_SECONDS
        try:
            with translated(self.url):
                yield
        except AwayStoreError as error:
            if not self._is_cut:
                raise
            raise type(error)(f"{self.url} does not answer") from error
        finally:
            self._deadline = inf

    def _watch(self) -> None:
        while not self._ended.wait(STATEMENT_SECONDS / LOOKS):
            if monotonic() > self._deadline:
                self.cut()

    def cut(self) -> None:
        """Make the statement fail that waits for the server; any thread may call this."""
        self._is_cut = True
        with suppress(OSError, StoreError), translated(self.url):
            descriptor = os.dup(self._connection.fileno())
            with socket.socket(fileno=descriptor) as hanging:
                hanging.shutdown(socket.SHUT_RDWR)


@contextmanager
def translated(url: DatabaseUrl) -> Iterator[None]:
    """Raise errors of psycopg as the `StoreError` that they mean."""
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        # The whole text quotes our statement, too.
        text = _text(url, error.diag.message_primary or str(error))
        state = error.sqlstate or ""
        if state in REPEATED:
            raise BusyStoreError(text) from error
        if state in NO_TABLES:
            raise NotOurStoreError(f"{url} has no tables of a store; {MAKE_IT}") from error
        if state == FORBIDDEN:
            raise NotOurStoreError(f"{text}; {NEEDED}; {MAKE_IT}") from error
        if state == OTHER_TABLES:
            raise NotOurStoreError(f"{text}; {ELSEWHERE}") from error
        lost = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
        if lost or state == READ_ONLY:
            refused = REFUSED.fullmatch(state) or (not state and REFUSALS.search(text))
            raise (RefusedStoreError if refused else AwayStoreError)(text) from error
        if not state:  # psycopg itself refuses the URL
            raise NotOurStoreError(text) from error
        raise StoreError(text) from error


def _text(url: DatabaseUrl, error: str) -> str:
    """Return the error as one line without the password."""
    text = " ".join(error.split())
    if url.password is not None:  # before the text is cut, which may leave half a password
        text = text.replace(url.password.reveal(), "***")
    return f"{url}: {one_line(text, MAX_MESSAGE)}"


def conninfo(url: DatabaseUrl) -> str:
    """Return where and how libpq connects, with the password."""
    from psycopg.conninfo import make_conninfo

    parameters: dict[str, Any] = {
        "connect_timeout": CONNECT_SECONDS,
        "application_name": "xmpp-bridge",
        **url.parameters,
    }
    if url.sslmode is not None:
        parameters["sslmode"] = url.sslmode
    if url.sslmode == VERIFIED:
        # psycopg brings an OpenSSL of its own, which has its anchors elsewhere.
        parameters.setdefault("sslrootcert", ssl.get_default_verify_paths().cafile or "system")
    if url.password is not None:
        parameters["password"] = url.password.reveal()
    return make_conninfo(**parameters)
