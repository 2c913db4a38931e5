"""Opens a store: the file of a user, or the database of a team."""

import re
from dataclasses import dataclass
from pathlib import Path
from socket import gethostname
from typing import TypeAlias

from bridge.settings.database_url import DatabaseUrl
from bridge.store.sqlite import SqliteDatabase


@dataclass(frozen=True)
class Team:
    """The store of a team, as one of its users has set it."""

    url: DatabaseUrl
    file: Path
    """The file of this user and machine, from which the events are shipped to the database."""
    megabytes: int | None
    """How large that file may get, in MiB. None, while a setting is wrong: nothing is deleted."""

    def __str__(self) -> str:
        return str(self.url)


Place: TypeAlias = Path | Team
"""Where a store is."""


def team_file(folder: Path) -> Path:
    """Return the file of this machine in the folder of a user; homes may be shared (NFS)."""
    host = re.sub("[^A-Za-z0-9.-]", "_", gethostname()) or "localhost"
    return folder / f"team-{host}.db"


def open_file(place: Place, *, writable: bool = True) -> SqliteDatabase:
    """Open the file into which the bridges of this machine write; raises `StoreError`."""
    if isinstance(place, Path):
        return SqliteDatabase(place, writable=writable)
    return SqliteDatabase(place.file, writable=writable, target=place.url.name)
