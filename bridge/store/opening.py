"""Opens a store: the file of a user, or the database of a team."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

from bridge.settings.database_url import DatabaseUrl
from bridge.store.database import Database, RecorderDatabase
from bridge.store.errors import NotOurStoreError
from bridge.store.spool import Spool
from bridge.store.sqlite import SqliteDatabase


@dataclass(frozen=True)
class Team:
    """The store of a team, as one of its users has set it."""

    url: DatabaseUrl
    spool: Path
    """The file that keeps events while the database is away."""
    megabytes: int
    """How large that file may get."""

    def __str__(self) -> str:
        return str(self.url)


Place: TypeAlias = Path | Team
"""Where a store is."""


def open_store(place: Place, *, writable: bool = True, making: bool = True) -> Database:
    """Open the store; raises `StoreError`.

    With `writable`, a missing file is made. The missing tables of a database are made only if
    `making` is set too.
    """
    if isinstance(place, Path):
        return SqliteDatabase(place, writable=writable)
    with _psycopg_needed():
        # Only a team needs psycopg, which takes a tenth of a second to load.
        from bridge.store.postgresql import PostgresqlDatabase
    return PostgresqlDatabase(place.url, writable=writable, making=writable and making)


def open_recorder_store(place: Place, *, making: bool) -> RecorderDatabase:
    """Open the store for a recorder, which has a spool for the time while a database is away."""
    if isinstance(place, Path):
        return SqliteDatabase(place)
    with _psycopg_needed():
        # Only a team needs psycopg, and its spool.
        from bridge.store.postgresql import PostgresqlDatabase
        from bridge.store.spooled import SpooledDatabase
    spool = Spool(place.spool, place.megabytes, place.url.name)
    return SpooledDatabase(partial(PostgresqlDatabase, place.url, making=making), spool)


@contextmanager
def _psycopg_needed() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise NotOurStoreError(
            f"BRIDGE_STORE names a PostgreSQL database, and {error.name or 'psycopg'} is missing; "
            "pip install 'xmpp-debug-bridge[postgresql]'"
        ) from error
