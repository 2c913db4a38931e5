"""What becomes of what happens while a team's database is away, or slow, or refuses."""

import asyncio
import sqlite3
import time
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from bridge.settings.database_url import database_url
from bridge.store import postgresql_connection, recorder, spooled
from bridge.store.database import Observer
from bridge.store.errors import AwayStoreError, RefusedStoreError
from bridge.store.opening import Team, open_recorder_store, open_store
from bridge.store.spool import Addition, Spool, SpooledBatch
from tests.faults.relay import Relay, Treatment, Way
from tests.servers.postgresql import PASSWORD, Postgresql
from tests.store.hall import recorder_in_room, said
from tests.store.recorded import rows, until


@pytest.fixture
def team(postgresql: Postgresql, tmp_path: Path) -> Iterator[Team]:
    """An empty store; its server is up again after the test."""
    yield postgresql.team(tmp_path)
    postgresql.start()


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spooled, "RETRY_SECONDS", 0.2)
    monkeypatch.setattr(recorder, "RENEW_SECONDS", 0.2)
    monkeypatch.setattr(recorder, "RETRY_SECONDS", 0.2)
    monkeypatch.setattr(recorder, "AWAY_SECONDS", 0.2)


def _with(team: Team, **more: str) -> Team:
    """The same store, reached in another way."""
    return replace(team, url=replace(team.url, parameters={**team.url.parameters, **more}))


def _schema(team: Team) -> str:
    return team.url.parameters["options"].partition("=")[2]


class Member:
    def __init__(self, place: Team, run: str) -> None:
        opened = partial(open_recorder_store, place, making=False)
        self.recorder = recorder_in_room(opened, place.spool, run)

    def hears(self, *marks: int) -> None:
        for mark in marks:
            self.recorder.add(said(mark, at=time.time()))

    def waits_for_the_database(self) -> bool:
        return any("away" in one and "wait in" in one for one in self.recorder.warnings)


@asynccontextmanager
async def _member(place: Team, run: str = "run") -> AsyncIterator[Member]:
    member = Member(place, run)
    try:
        yield member
    finally:
        await asyncio.to_thread(member.recorder.close)


def _marks(place: Team, where: str = "shared") -> list[int]:
    return [one["jid"] for one in rows(place, where) if "jid" in one]


@pytest.mark.parametrize("fault", ["killed", "reset", "swallowed"])
async def test_what_happens_while_it_is_away_follows_in_order_and_once(
    fault: str, team: Team, postgresql: Postgresql, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgresql_connection, "STATEMENT_SECONDS", 1.0)
    monkeypatch.setattr(postgresql_connection, "CONNECT_SECONDS", 2)
    async with (
        Relay("127.0.0.1", postgresql.port) as relay,
        _member(_with(team, port=str(relay.port))) as member,
    ):
        member.hears(1)
        await until(lambda: _marks(team) == [1])
        if fault == "killed":
            postgresql.kill()
        elif fault == "reset":
            relay.refuse()
            relay.reset()
        else:
            relay.treat(Treatment.SWALLOW)
        member.hears(2, 3)
        await until(member.waits_for_the_database)
        silent = any("does not answer" in one for one in member.recorder.warnings)
        assert silent == (fault == "swallowed")
        member.hears(4)
        await member.recorder.flush()
        if fault == "killed":
            await asyncio.to_thread(postgresql.start)
        else:
            relay.cut()
            await relay.heal()
        member.hears(5)
        await until(lambda: _marks(team) == [1, 2, 3, 4, 5])
        await until(lambda: not member.recorder.warnings)
        member.hears(6)
        await until(lambda: 6 in _marks(team))
    assert _marks(team) == [1, 2, 3, 4, 5, 6]
    assert rows(team, "kind = 'gap'") == []


@pytest.mark.parametrize("fault", ["killed", "swallowed"])
async def test_who_ends_as_it_is_lost_leaves_what_waits_to_the_next_one(
    fault: str, team: Team, postgresql: Postgresql, caplog: pytest.LogCaptureFixture
) -> None:
    async with Relay("127.0.0.1", postgresql.port) as relay:
        async with _member(_with(team, port=str(relay.port))) as member:
            member.hears(1)
            await until(lambda: _marks(team) == [1])
            if fault == "killed":
                postgresql.kill()
            else:
                relay.treat(Treatment.SWALLOW)
            member.hears(2, 3)
        assert not any("were lost" in one for one in caplog.messages)
        relay.cut()
        await relay.heal()
        await asyncio.to_thread(postgresql.start)
        async with _member(_with(team, port=str(relay.port)), "later"):
            await until(lambda: _marks(team) == [1, 2, 3])


async def test_a_spool_that_is_none_is_named_and_what_comes_later_is_recorded(
    team: Team, postgresql: Postgresql, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgresql_connection, "STATEMENT_SECONDS", 1.0)
    monkeypatch.setattr(spooled, "LOOK_SECONDS", 0.2)
    async with (
        Relay("127.0.0.1", postgresql.port) as relay,
        _member(_with(team, port=str(relay.port))) as member,
    ):
        member.hears(1)
        await until(lambda: _marks(team) == [1])
        team.spool.mkdir()
        lost = partial(relay.once, Way.TO_SERVER, b"COMMI", relay.reset)
        relay.once(Way.TO_SERVER, b"number 2", lost)
        member.hears(2)
        await until(lambda: any("cannot follow" in one for one in member.recorder.warnings))
        member.hears(3)
        await until(lambda: _marks(team) == [1, 3])
        team.spool.rmdir()
        await until(lambda: _marks(team) == [1, 3, 2])
        await until(lambda: not member.recorder.warnings)


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("megabytes", [10, 0])
async def test_a_lost_answer_to_commit_doubles_nothing_and_loses_nothing(
    megabytes: int, kept: bool, team: Team, postgresql: Postgresql, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgresql_connection, "STATEMENT_SECONDS", 1.0)
    async with (
        Relay("127.0.0.1", postgresql.port) as relay,
        _member(replace(_with(team, port=str(relay.port)), megabytes=megabytes)) as member,
    ):
        member.hears(1)
        await until(lambda: _marks(team) == [1])
        swallow = partial(relay.treat, Treatment.SWALLOW, Way.TO_CLIENT)
        moment, deed = (b"COMMIT", swallow) if kept else (b"COMMI", relay.reset)
        # Not before a row is on the way: until then every commit renews a lease.
        relay.once(Way.TO_SERVER, b"number 2", partial(relay.once, Way.TO_SERVER, moment, deed))
        member.hears(2, 3)
        await until(member.waits_for_the_database)
        if not megabytes:
            assert any("memory" in one for one in member.recorder.warnings)
        relay.cut()
        await relay.heal()
        member.hears(4)
        await until(lambda: 4 in _marks(team))
        await until(lambda: not member.recorder.warnings)
    assert _marks(team, "TRUE") == [1, 2, 3, 4]


async def test_a_slow_database_loses_nothing_doubles_nothing_and_holds_up_nobody(
    team: Team, postgresql: Postgresql, tmp_path: Path
) -> None:
    elsewhere = replace(team, spool=tmp_path / "elsewhere" / "spool.db")
    async with (
        Relay("127.0.0.1", postgresql.port) as relay,
        _member(_with(team, port=str(relay.port)), "slow") as slow,
    ):
        slow.hears(1)
        await until(lambda: _marks(team) == [1])
        async with _member(elsewhere, "quick") as quick:
            relay.delay(0.1)
            began = len(relay.passed[Way.TO_SERVER])
            for member in (slow, quick):
                member.hears(*range(2, 300))
            # The relay is in this thread: whoever waited for the database would wait for ever.
            assert len(relay.passed[Way.TO_SERVER]) == began
            await until(lambda: 299 in _marks(team))
            assert slow.recorder.problem is None
            assert not team.spool.exists()
    assert _marks(team, "TRUE") == [*range(1, 300)]


@pytest.mark.parametrize("at", ["INSERT", "COMMIT"])
async def test_a_transaction_that_cannot_be_serialized_is_repeated_and_written_once(
    at: str, team: Team, postgresql: Postgresql
) -> None:
    schema = _schema(team)
    # The sequence counts on when a transaction is undone.
    kind, when = {"INSERT": ("", ""), "COMMIT": ("CONSTRAINT", "INITIALLY DEFERRED")}[at]
    async with _member(team) as member:
        member.hears(1)
        await until(lambda: _marks(team) == [1])
        postgresql.query(
            f"CREATE SEQUENCE {schema}.tries; "
            f"CREATE FUNCTION {schema}.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            f"IF nextval('{schema}.tries') = 1 THEN RAISE serialization_failure; END IF; "
            "RETURN NULL; END $$; "
            f"CREATE {kind} TRIGGER refuse AFTER INSERT ON {schema}.events {when} "
            f"FOR EACH ROW EXECUTE FUNCTION {schema}.refuse()"
        )
        member.hears(2, 3)
        await until(lambda: 3 in _marks(team))
    assert _marks(team, "TRUE") == [1, 2, 3]
    assert postgresql.query(f"SELECT last_value FROM {schema}.tries") == [(3,)]  # noqa: S608
    assert not team.spool.exists()


async def test_what_a_bridge_left_that_ended_follows_with_the_next_one(
    team: Team, postgresql: Postgresql
) -> None:
    async with _member(team) as member:
        member.hears(1)
        await until(lambda: _marks(team) == [1])
        postgresql.kill()
        member.hears(2, 3)
        await until(member.waits_for_the_database)
    async with _member(team, "later") as later:
        await until(later.waits_for_the_database)
        later.hears(4)
        await asyncio.to_thread(postgresql.start)
        await until(lambda: _marks(team) == [1, 2, 3, 4])
    assert {one["run"] for one in rows(team, "shared AND kind = 'message'")} == {"run", "later"}


async def test_of_a_damaged_batch_the_log_says_how_much_is_lost_and_the_next_follows(
    team: Team, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(Spool(team.spool, 10, team.url.name)) as spool:
        for mark in (1, 3):
            heard = [said(mark, at=time.time()), said(mark + 1, at=time.time())]
            observer = Observer("bot@localhost", "McpDebug", "ended")
            spool.add(SpooledBatch("ended", mark, [Addition(observer, heard, [])]))
    with closing(sqlite3.connect(team.spool)) as file, file:
        file.execute("UPDATE batches SET parts = '[' WHERE number = 1")
    async with _member(team):
        await until(lambda: _marks(team) == [3, 4])
    assert [one for one in caplog.messages if "2 events" in one and str(team.spool) in one]


async def test_a_full_spool_says_what_it_dropped(
    team: Team, postgresql: Postgresql, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "MAX_WAITING", 100)
    async with _member(replace(team, megabytes=1)) as member:
        member.hears(1)
        await until(lambda: _marks(team) == [1])
        postgresql.kill()
        long, count = "long " * 2_000, 0
        while not any("is full" in one for one in member.recorder.warnings):
            for _ in range(50):
                count += 1
                member.recorder.add(said(count + 1, long, time.time()))
            await member.recorder.flush()
        for _ in range(200):
            count += 1
            member.recorder.add(said(count + 1, long, time.time()))
        await asyncio.to_thread(postgresql.start)
        await until(lambda: _dropped(team) + len(_marks(team)) == count + 1)
        assert _dropped(team) > 100
    assert any("is full" in one["reason"] for one in rows(team, "kind = 'gap'"))


def _dropped(place: Team) -> int:
    return sum(one["events"] for one in rows(place, "kind = 'gap'"))


@pytest.mark.parametrize(
    ("named", "limit", "lifted"),
    [
        ("read-only", *(f"SET default_transaction_read_only = {on}" for on in ("on", "off"))),
        ("too many connections", "CONNECTION LIMIT 0", "CONNECTION LIMIT 9"),
    ],
)
async def test_what_a_role_may_not_is_named_and_spooled_until_it_may(
    named: str, limit: str, lifted: str, team: Team, postgresql: Postgresql
) -> None:
    role, schema = f"limited{len(named)}", _schema(team)
    postgresql.query(
        f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'; GRANT ALL ON SCHEMA {schema} TO {role}; "
        f"GRANT ALL ON ALL TABLES IN SCHEMA {schema} TO {role}; ALTER ROLE {role} {limit}"
    )
    with pytest.raises(AwayStoreError, match=named):
        open_store(_with(team, user=role))
    async with _member(_with(team, user=role)) as member:
        member.hears(1)
        await until(lambda: any(named in one for one in member.recorder.warnings))
        assert all(PASSWORD not in one for one in member.recorder.warnings)
        postgresql.query(f"ALTER ROLE {role} {lifted}")
        await until(lambda: _marks(team) == [1])


@pytest.mark.parametrize(
    ("named", "wrong"),
    [
        ("password authentication failed", lambda it: it.url().replace(PASSWORD, "another-4711")),
        ("does not exist", lambda it: it.url("nowhere")),
        ("certificate", lambda it: f"{it.url()}&sslmode=verify-full"),
    ],
)
async def test_a_place_that_is_wrong_is_refused_and_named_by_who_records_there(
    named: str, wrong: Callable[[Postgresql], str], team: Team, postgresql: Postgresql
) -> None:
    place = replace(team, url=database_url(wrong(postgresql)))
    async with _member(place) as member:
        member.hears(1)
        await until(lambda: any(named in one for one in member.recorder.warnings))
        assert all(PASSWORD not in one for one in member.recorder.warnings)
    with pytest.raises(RefusedStoreError):
        open_store(place)


class Heard(dict[str, object]):
    """An event that tells whether it is kept."""


def _heard(member: Member, number: int) -> weakref.ref[Heard]:
    heard = said(number, at=time.time())
    event = Heard(heard.event)
    member.recorder.add(heard._replace(event=event, number=number))
    return weakref.ref(event)


async def test_who_may_only_read_keeps_nothing_and_says_so_once(
    team: Team, postgresql: Postgresql, caplog: pytest.LogCaptureFixture
) -> None:
    schema = _schema(team)
    postgresql.query(
        f"CREATE ROLE reading LOGIN PASSWORD '{PASSWORD}'; "
        f"GRANT USAGE ON SCHEMA {schema} TO reading; "
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO reading"
    )
    async with _member(_with(team, user="reading")) as member:
        first = _heard(member, 7)
        await until(lambda: member.recorder.warnings and first() is None)
        assert ["may only read" in one for one in member.recorder.warnings] == [True]
        assert _heard(member, 8)() is None
        assert await member.recorder.flush() == 7  # what is not in the store begins there
    assert _marks(team, "TRUE") == []
    assert len([one for one in caplog.messages if "may only read" in one]) == 1
    assert not any("were lost" in one for one in caplog.messages)
