"""Stores that the former version of the program made, as files kept in `former`."""

import asyncio
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from bridge.settings.database_url import database_url
from bridge.store.postgresql import PostgresqlDatabase
from tests.e2e.watching import Watching, run
from tests.servers.postgresql import Postgresql
from tests.store.former.files import (
    SETTINGS,
    STATE,
    restore,
    shown,
    shown_stanzas,
    unpack,
    unpack_spool,
    without_cursors,
)


async def _logged(
    home: Path, settings: Mapping[str, str], *more: str, damaged: str = "", until: str
) -> list[dict[str, Any]]:
    """What `log --json` shows up to a time; stderr says how many rows are damaged, or nothing."""
    code, out, err = await run(home, settings, "log", "--json", *more)
    assert code == 0
    assert f"{damaged} " in err if damaged else not err, err
    return [line for line in without_cursors(out) if line["at"] <= until]


@asynccontextmanager
async def _recording(home: Path, settings: Mapping[str, str]) -> AsyncIterator[None]:
    """A recorder that reaches no server; it has written so into the store at the end."""
    async with Watching(home, settings, command="record") as recording:
        await recording.says("connecting")
        yield
        recording.signal(signal.SIGTERM)
        assert await recording.ended() == 0
    begun = shown("spool")[-1]["at"]
    code, news, _ = await run(home, settings, "log", "--json", "--since", begun)
    assert (code, '"phase": "connecting"' in news) == (0, True)


@pytest.mark.parametrize(("name", "damaged"), [("store", "2"), ("wal", "")])
async def test_a_file_of_the_former_version_is_read_before_and_after_more_is_written(
    name: str, damaged: str, tmp_path: Path
) -> None:
    unpack(name, tmp_path / STATE)
    events, stanzas = shown(name), shown_stanzas()
    until = events[-1]["at"]
    assert await _logged(tmp_path, SETTINGS, damaged=damaged, until=until) == events
    async with _recording(tmp_path, SETTINGS):
        pass
    assert await _logged(tmp_path, SETTINGS, damaged=damaged, until=until) == events
    if name == "store":
        until = stanzas[-1]["at"]
        assert await _logged(tmp_path, SETTINGS, "--stanzas", until=until) == stanzas


async def test_a_database_of_the_former_version_is_read_and_what_waits_for_it_is_not_lost(
    postgresql: Postgresql, tmp_path: Path
) -> None:
    settings = SETTINGS | {"BRIDGE_STORE": restore(postgresql)}
    code, out, err = await run(tmp_path, settings, "record", "--prepare-store")
    assert (code, out.endswith(" is ready\n"), err) == (0, True, "")
    before, after = shown("database"), shown("spool")
    assert await _logged(tmp_path, settings, until=before[-1]["at"]) == before
    unpack_spool(tmp_path / STATE, settings["BRIDGE_STORE"])
    until, followed = after[-1]["at"], list[dict[str, Any]]()
    async with _recording(tmp_path, settings), asyncio.timeout(30):
        while len(followed) < len(after):
            followed = await _logged(tmp_path, settings, until=until)
    assert followed == after


def test_a_migrated_database_gives_no_id_again_though_its_newest_event_was_deleted(
    postgresql: Postgresql,
) -> None:
    url = restore(postgresql)
    schema = url.rpartition("%3D")[2]
    postgresql.query(f"UPDATE {schema}.store SET newest = 1000")  # noqa: S608 - of the test
    with closing(PostgresqlDatabase(database_url(url), migrating=True)) as database:
        assert database.newest() == 1000
