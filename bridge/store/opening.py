"""Opens a store: the file of a user, or the database of a team."""

import platform
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from bridge.settings.database_url import DatabaseUrl
from bridge.store.database import Database
from bridge.store.errors import NotOurStoreError
from bridge.store.sqlite import SqliteDatabase
from bridge.store.team import TeamDatabase


@dataclass(frozen=True)
class Team:
    """The store of a team, as one of its users has set it."""

    url: DatabaseUrl
    file: Path
    """The file of this user and machine, from which the events are shipped to the database."""
    megabytes: int | None
    """How large that file may get; None, as long as a setting is wrong, if nothing is deleted."""

    def __str__(self) -> str:
        return str(self.url)


Place: TypeAlias = Path | Team
"""Where a store is."""


def team_file(folder: Path) -> Path:
    """Return the file of this machine in the folder of a user; homes may be shared (NFS)."""
    host = re.sub("[^A-Za-z0-9.-]", "_", platform.node()) or "localhost"
    return folder / f"team-{host}.db"


def open_store(place: Place, *, writable: bool = True, making: bool = True) -> Database:
    """Open the store; raises `StoreError`.

    With `writable`, a missing file is made. The missing tables of a database are made only if
    `making` is set too.
    """
    if isinstance(place, Path):
        return SqliteDatabase(place, writable=writable)
    return open_database(place, writable=writable, making=writable and making)


def open_database(
    team: Team, *, writable: bool = False, making: bool = False, migrating: bool = False
) -> TeamDatabase:
    """Connect to the database of a team; raises `StoreError`.

    With `making`, missing tables are made; with `migrating`, a store of the former version becomes
    one of this version.
    """
    with _psycopg_needed():
        # Only a team needs psycopg, which takes a tenth of a second to load.
        from bridge.store.postgresql import PostgresqlDatabase
        from bridge.store.postgresql_moving import migrate
    if migrating:
        migrate(team.url)
    return PostgresqlDatabase(team.url, writable=writable, making=making)


def open_file(place: Place, *, writable: bool = True) -> SqliteDatabase:
    """Open the file into which the bridges of this machine write; raises `StoreError`."""
    if isinstance(place, Path):
        return SqliteDatabase(place, writable=writable)
    return SqliteDatabase(place.file, writable=writable, target=place.url.name)


@contextmanager
def _psycopg_needed() -> Iterator[None]:
    """Say what to install if the libraries for a team's database are missing."""
    try:
        yield
    except ImportError as error:
        raise NotOurStoreError(
            f"BRIDGE_STORE names a PostgreSQL database, and {error.name or 'psycopg'} is missing; "
            "pip install 'xmpp-debug-bridge[postgresql]'"
        ) from error
