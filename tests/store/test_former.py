"""Stores that the former version of the program made, as files kept in `former`."""

import asyncio
import signal
import sqlite3
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from bridge.settings.database_url import database_url
from bridge.store import former, team_former
from bridge.store.database import Query
from bridge.store.errors import AwayStoreError, NotOurStoreError
from bridge.store.postgresql import PostgresqlDatabase
from bridge.store.sqlite import SqliteDatabase
from tests.e2e.watching import Watching, run
from tests.servers.postgresql import Postgresql
from tests.store.damaged import FORMS
from tests.store.former.files import (
    LOBBY,
    SETTINGS,
    STATE,
    restore,
    shown,
    shown_stanzas,
    unpack,
    unpack_spool,
    without_cursors,
)

DESK = "desk@rooms.localhost"


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


def _texts(path: Path) -> list[object]:
    """What a reader is shown of both rooms."""
    with closing(SqliteDatabase(path, writable=False)) as database:
        query = Query((LOBBY, DESK), "localhost", connection_of=("bot@localhost",))
        rows, _, _ = database.page(query, after=0, until=database.newest(), limit=1_000)
        return [row.event.get("body", row.event["kind"]) for row in rows]


def test_what_a_former_bridge_adds_while_its_rows_are_moved_is_moved_too_and_all_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(former, "MOVED", 20)
    path = unpack("store", tmp_path / "store")
    before = _texts(path)
    with closing(SqliteDatabase(path)) as database, closing(SqliteDatabase(path)):
        assert former.move(database, database.is_alone)
        assert _texts(path) == before
        with closing(sqlite3.connect(path)) as store, store:
            store.execute(
                "INSERT INTO events (at, room, observer, shared, kind, plain, event) "
                "SELECT at, room, observer, 1, kind, 1, "
                "json_set(json_remove(event, '$.stanzaId'), '$.body', 'late') FROM events "
                "WHERE id = (SELECT max(id) FROM events WHERE kind = 'message' AND shared)"
            )
        for _ in before:
            assert former.move(database, database.is_alone)  # another process might be a former one
        assert _texts(path) == [*before, "late"]
        assert database.all("SELECT id FROM events") == []
    with closing(SqliteDatabase(path)) as database:
        assert not former.move(database, database.is_alone)
        assert not former.look(database)
    assert _texts(path) == [*before, "late"]


@pytest.mark.parametrize("form", FORMS)
def test_whatever_stands_in_a_former_row_it_is_moved_and_the_others_are_read(
    form: str, tmp_path: Path
) -> None:
    path = unpack("store", tmp_path / "store")
    with closing(sqlite3.connect(path)) as store, store:
        newest = "(SELECT max(id) FROM events WHERE kind = 'message')"
        store.execute(f"UPDATE events SET event = {form} WHERE id = {newest}")  # noqa: S608
    before = _texts(path)
    with closing(SqliteDatabase(path)) as database:
        while former.move(database, database.is_alone):
            pass
    assert _texts(path) == before


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


def test_a_migration_of_a_database_that_is_cut_off_goes_on_where_it_was(
    postgresql: Postgresql, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(team_former, "MOVED", 15)
    url, insert, calls = database_url(restore(postgresql)), PostgresqlDatabase.insert, count(1)

    def insert_twice(self: PostgresqlDatabase, rows: Sequence[dict[str, Any]]) -> None:
        insert(self, rows)
        if next(calls) == 3:
            raise AwayStoreError("cut off")

    monkeypatch.setattr(PostgresqlDatabase, "insert", insert_twice)
    with pytest.raises(AwayStoreError, match="cut off"):
        PostgresqlDatabase(url, migrating=True)
    with pytest.raises(NotOurStoreError, match="--prepare-store"):
        PostgresqlDatabase(url)
    with closing(PostgresqlDatabase(url, migrating=True)) as database:
        for new, former_ in (("entries", "former_events"), ("traffic", "former_stanzas")):
            ids = f"SELECT id FROM {new} EXCEPT SELECT id FROM {former_}"  # noqa: S608 - of the test
            assert database.all(ids) == []
            many = f"SELECT (SELECT count(*) FROM {new}) = count(*) FROM {former_}"  # noqa: S608
            assert database.row(many) == (True,)
    assert next(calls) > 5
