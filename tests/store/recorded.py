"""What stands in a store, as plain `sqlite3` reads it."""

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.e2e.bridge_process import LOOK_EVERY_SECONDS


def rows(path: Path, where: str = "TRUE") -> list[dict[str, Any]]:
    """The events in their order, each in its exact form with its columns."""
    if not path.exists():
        return []
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as store:
        found = store.execute(
            "SELECT events.id, at, jid, shared, run, nickname, event FROM events "  # noqa: S608
            "JOIN rooms ON rooms.id = room JOIN observers ON observers.id = observer "
            f"WHERE {where} ORDER BY events.id"
        ).fetchall()
    names = ("place", "time", "room", "shared", "run", "observer")
    return [json.loads(event) | dict(zip(names, row, strict=True)) for *row, event in found]


def bodies(path: Path) -> list[str]:
    """What was said, as far as everybody heard it."""
    return [one["body"] for one in rows(path, "kind = 'message' AND shared")]


async def recorded(path: Path, body: str, seconds: float = 15.0) -> None:
    """Return once this stands in the store."""
    async with asyncio.timeout(seconds):
        # Whoever writes it is another process, which tells nobody.
        while body not in bodies(path):  # noqa: ASYNC110 - as said
            await asyncio.sleep(LOOK_EVERY_SECONDS)
