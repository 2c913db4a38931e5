"""Many bridges on one PostgreSQL: what they read, through what, and by which clocks."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bridge.settings.database_url import database_url
from bridge.store.database import Database, Lease, Observer, Query
from bridge.store.errors import BusyStoreError, NotOurStoreError, RefusedStoreError
from bridge.store.opening import Team, open_store
from bridge.store.postgresql import PostgresqlDatabase
from bridge.store.writer import Entered, Moment, Writer
from tests.servers.certificates import Authority
from tests.servers.postgresql import PASSWORD, USER, Postgresql, running_pgbouncer
from tests.store.hall import EPOCH, ROOM, said
from tests.store.member import Member
from tests.store.recorded import rows, selected

ME = Observer("bot@localhost", "McpDebug", "run")
QUERY = Query((ROOM,), "localhost")
IDS = "SELECT id FROM events ORDER BY id"
RECORDERS, READERS, EACH = 16, 4, 10


@pytest.fixture
def team(postgresql: Postgresql, tmp_path: Path) -> Team:
    return postgresql.team(tmp_path)


async def test_whoever_reads_on_from_a_cursor_sees_every_id_of_sixteen_recorders(
    team: Team,
) -> None:
    open_store(team).close()
    over, told = threading.Event(), [list[int]() for _ in range(READERS)]

    def read(ids: list[int]) -> None:
        place, last = 0, False
        with closing(open_store(team, writable=False)) as database:
            while not last:
                last = over.is_set()
                newest = database.newest()
                while place < newest:
                    events, place = database.page(QUERY, after=place, until=newest, limit=50)
                    ids += [event.id for event in events]

    with ThreadPoolExecutor(READERS) as threads:
        readers = [threads.submit(read, ids) for ids in told]
        members = [Member(team, f"run{number}") for number in range(RECORDERS)]
        assert all(member.is_in() for member in members)
        for number in range(EACH):
            for run, member in enumerate(members):
                member.hears(number)  # of which everybody tells
                member.hears(-1 - number - EACH * run)
            await asyncio.sleep(0.02)
        for member in members:
            member.end()
        over.set()
        for reader in readers:
            reader.result()
    assert told == [[row[0] for row in selected(team, IDS)]] * READERS
    marks = sorted(event["jid"] for event in rows(team, "kind = 'message'"))
    assert marks == [*range(-EACH * RECORDERS, EACH)]


def test_of_writers_that_commit_crosswise_a_reader_misses_no_event(
    team: Team, postgresql: Postgresql
) -> None:
    told, place = list[int](), 0
    waits = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"

    def write(database: Database, mark: int) -> None:
        with database.transaction():
            database.append(ME, [said(mark)])

    def read() -> None:
        nonlocal place
        newest = reading.newest()
        while place < newest:
            events, place = reading.page(QUERY, after=place, until=newest, limit=9)
            told.extend(event.event["jid"] for event in events)

    with (
        closing(open_store(team)) as first,
        closing(open_store(team)) as second,
        closing(open_store(team, writable=False)) as reading,
        ThreadPoolExecutor() as threads,
    ):
        for mark in range(1, 20, 2):
            with first.transaction():
                later = threads.submit(write, second, mark + 1)
                while not later.done() and not postgresql.query(waits):
                    read()
                first.append(ME, [said(mark)])
                read()
            read()
            later.result()
            first, second = second, first
        read()
    assert told == [*range(1, 21)]


def test_behind_a_pooler_in_transaction_mode_all_is_the_same(
    team: Team, postgresql: Postgresql, tmp_path: Path
) -> None:
    schema = team.url.parameters["options"].partition("=")[2]
    with running_pgbouncer(postgresql, schema) as url:
        pooled = Team(database_url(url), tmp_path / "spool.db", 10)
        with (
            closing(open_store(pooled)) as first,
            closing(open_store(pooled)) as second,
            closing(open_store(pooled, writable=False)) as reading,
        ):
            for number in range(6):
                for database in (first, second):
                    with database.transaction():
                        database.append(ME, [said(number)])
                        if number == 3 and database is first:
                            with pytest.raises(BusyStoreError), second.transaction():
                                pass
                        database.has(ROOM, "localhost", "a0")
                events, _ = reading.page(QUERY, after=0, until=reading.newest(), limit=99)
                assert len(events) == 2 * number + 2
            assert reading.span(QUERY).last == 12
        with pytest.raises(RefusedStoreError, match="nowhere"):
            open_store(replace(pooled, url=database_url(url.replace("/pooled", "/nowhere"))))


@pytest.mark.parametrize(
    "damage",
    [
        "rooms SET recorder = 'x', beat = NULL",
        "rooms SET recorder = 'x', beat = 0, seen_until = NULL",
        "rooms SET recorder = 'x', beat = 0, seen_until = 9000000000000000000",
        "rooms SET recorder = 'x', beat = 0, seen_until = -1",
        "store SET newest = 0",
        "events SET observer = 99",
    ],
)
async def test_what_another_client_wrote_keeps_nothing_from_being_recorded_or_counted(
    damage: str, team: Team, postgresql: Postgresql
) -> None:
    schema = team.url.parameters["options"].partition("=")[2]
    with closing(open_store(team)) as database, database.transaction():
        database.append(ME, [said(1), said(2)])
        database.take(ROOM, "localhost", Lease("run", time.monotonic() - 100, EPOCH))
    postgresql.query(f"UPDATE {schema}.{damage}")
    writer, moment = Writer(), Moment(time.time(), time.monotonic())
    with closing(open_store(team)) as database:
        entered = Entered(ROOM, moment.at, moment.now)
        writer.write(database, [replace(ME, run="next"), entered, said(3)], moment)
        writer.write(database, [], Moment(moment.at, moment.now, closing=True))
        events, _ = database.page(QUERY, after=0, until=database.newest(), limit=9)
    marks = [event.event["jid"] for event in events if "jid" in event.event]
    assert [*database.unreadable, *marks] == [1, 2, 3]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("DELETE FROM store", "other tables"),
        ("INSERT INTO store SELECT * FROM store", "other tables"),
        ("ALTER TABLE store DROP version", "no tables of a store"),
        ("DROP TABLE store", "no tables of a store"),
    ],
)
def test_tables_of_another_program_are_left_alone_and_named(
    change: str, named: str, team: Team, postgresql: Postgresql
) -> None:
    schema = team.url.parameters["options"].partition("=")[2]
    postgresql.query(f"SET search_path = {schema}; {change}")
    with pytest.raises(NotOurStoreError, match=named):
        open_store(team, making=False)
    with pytest.raises(NotOurStoreError, match="already exists; name another database"):
        open_store(team)


@pytest.mark.parametrize(
    ("trouble", "refused"), [("", False), ("authority", True), ("name", True), ("mode", False)]
)
def test_the_certificate_and_its_name_are_checked_unless_the_url_says_otherwise(
    trouble: str,
    refused: bool,
    postgresql: Postgresql,
    authority: Authority,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    anchors = Authority(tmp_path / "other") if trouble in {"authority", "mode"} else authority
    # The anchors that Python uses.
    monkeypatch.setenv("SSL_CERT_FILE", str(anchors.ca_file))
    host = "other.example" if trouble == "name" else "db.example"
    more = "&sslmode=require" if trouble == "mode" else ""
    where = f"{host}:{postgresql.port}/postgres?hostaddr=127.0.0.1{more}"
    url = database_url(f"postgresql://{USER}:{PASSWORD}@{where}")
    assert (url.warning is None) == (trouble != "mode")
    if not refused:
        PostgresqlDatabase(url, making=True).close()
        return
    with pytest.raises(RefusedStoreError, match="certificate") as raised:
        PostgresqlDatabase(url, making=True)
    assert PASSWORD not in str(raised.value)


@pytest.mark.parametrize("wrong", [3_600.0, -3_600.0])
@pytest.mark.parametrize("holder", [0, 1])
def test_a_clock_that_is_wrong_by_an_hour_doubles_nothing_and_loses_nothing(
    wrong: float, holder: int, team: Team
) -> None:
    now = 1_000.0
    offsets = [0.0, wrong]
    databases, writers = [], []
    for offset in offsets:
        database = PostgresqlDatabase(team.url)
        database.wall = lambda offset=offset: time.time() + offset  # type: ignore[misc]
        database.now = lambda: now
        databases.append(database)
        writers.append(Writer())

    def write(index: int, *items: Any) -> None:
        moment = Moment(EPOCH + now + offsets[index], now)
        writers[index].write(databases[index], items, moment)

    order = [holder, 1 - holder]
    for index in order:
        at = EPOCH + now + offsets[index]
        me = Observer("bot@localhost", str(index), f"run{index}")
        write(index, me, Entered(ROOM, at, now))
        now += 0.5
    for mark in range(1, 60):
        now += 0.5
        alive = order if mark < 30 else order[1:]  # the holder is killed
        for index in alive:
            write(index, said(mark, "", EPOCH + now + offsets[index]))
    for _ in range(40):
        now += 0.5
        write(order[1])
    for database in databases:
        database.close()
    told = rows(team)
    assert [(one["kind"], one["shared"], one["jid"]) for one in told] == [
        ("message", True, mark) for mark in range(1, 60)
    ]
    assert {one["run"] for one in told} == {"run0", "run1"}
