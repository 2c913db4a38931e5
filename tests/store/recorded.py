"""What stands in a store, as other programs read it."""

import asyncio
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from bridge.store.decision import Absence, absence
from bridge.store.location import Place
from bridge.store.postgresql import PostgresqlDatabase
from bridge.store.postgresql_connection import conninfo
from bridge.store.sql import SqlDatabase
from bridge.store.sqlite import open_file
from bridge.text import iso

in_both = pytest.mark.parametrize("place", ["sqlite", "postgresql"], indirect=True)
in_a_file = pytest.mark.parametrize("place", ["sqlite"], indirect=True)
"""For a test of every kind of store, and for one of what only a file has."""


def open_store(place: Place, *, writable: bool = True, making: bool = True) -> SqlDatabase:
    """Open the file of a user, or the database of a team."""
    if isinstance(place, Path):
        return open_file(place, writable=writable)
    return PostgresqlDatabase(place.url, writable=writable, making=writable and making)


def selected(place: Place, statement: str) -> list[tuple[Any, ...]]:
    """Run a statement on a store, as other programs do."""
    if isinstance(place, Path):
        with closing(sqlite3.connect(f"file:{place}?mode=ro", uri=True)) as store:
            return store.execute(statement).fetchall()
    with psycopg.connect(conninfo(place.url), autocommit=True) as connection:
        return connection.execute(statement).fetchall()


def rows(place: Place, where: str = "TRUE") -> list[dict[str, Any]]:
    """The events in their order, each in its exact form with its columns."""
    if isinstance(place, Path) and not place.exists():
        return []
    selection = selected(
        place,
        "SELECT entries.id, at, jid, shared, run, nickname, event FROM entries "  # noqa: S608
        "JOIN places ON places.id = room JOIN runs ON runs.id = observer "
        f"WHERE {where} ORDER BY entries.id",
    )
    names = ("place", "time", "room", "shared", "run", "observer")
    told = [json.loads(event) | dict(zip(names, row, strict=True)) for *row, event in selection]
    return [each for each in told if "tenure" not in each]


def bodies(place: Place) -> list[str]:
    """What was said, as far as everybody heard it."""
    return [each["body"] for each in rows(place, "kind = 'message' AND shared = 1")]


def gaps(database: SqlDatabase, room: str, domain: str, now: float) -> list[tuple[str, str]]:
    """When no bridge was in a room, as it is computed."""
    tenures = database.tenures(room, domain)
    in_order = sorted(tenures, key=lambda each: each.since)
    absences = [absence(tenures, each, now, database.patience) for each in in_order]
    return [(iso(each.start), iso(each.end)) for each in absences if isinstance(each, Absence)]


async def recorded(place: Place, body: str, seconds: float = 15.0) -> None:
    """Return once this stands in the store."""
    await until(lambda: body in bodies(place), seconds)


async def until(satisfied: Callable[[], object], seconds: float = 30.0) -> None:
    """Return once it is so, whichever thread or process made it so, which tells nobody."""
    async with asyncio.timeout(seconds):
        while not await asyncio.to_thread(satisfied):  # noqa: ASYNC110 - as said
            await asyncio.sleep(0.03)
