"""What becomes of what happens while a team's database is away, or slow, or refuses."""

import asyncio
import json
import sqlite3
import time
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from bridge.recording.recorded import Reader
from bridge.settings.database_url import database_url
from bridge.store import outbox, postgresql_connection, recorder, shipping
from bridge.store.database import Happened
from bridge.store.errors import AwayStoreError, NotOurStoreError, RefusedStoreError
from bridge.store.location import Team
from bridge.store.recorder import Recorder
from bridge.store.shipping import Shipper
from bridge.store.sqlite import open_file
from bridge.store.tables import APPLICATION_ID
from bridge.store.team_former import SPOOL
from bridge.text import iso
from bridge.xmpp.model.events import MessageReceived, encode
from bridge.xmpp.model.filter import EventFilter
from tests.faults.relay import Relay, Treatment, Way
from tests.servers.postgresql import PASSWORD, Postgresql
from tests.store.hall import ROOM, recorder_in_room, said
from tests.store.recorded import bodies, open_store, rows, selected, until


@pytest.fixture
def team(postgresql: Postgresql, tmp_path: Path) -> Iterator[Team]:
    """An empty store; its server is up again after the test."""
    yield postgresql.team(tmp_path)
    postgresql.start()


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipping, "RETRY_SECONDS", 0.2)
    monkeypatch.setattr(shipping, "REFUSED_SECONDS", 0.2)
    monkeypatch.setattr(shipping, "BEAT_SECONDS", 0.2)
    monkeypatch.setattr(recorder, "RENEW_SECONDS", 0.2)
    monkeypatch.setattr(recorder, "RETRY_SECONDS", 0.2)


def _with(team: Team, **more: str) -> Team:
    """The same store, reached in another way."""
    return replace(team, url=replace(team.url, parameters={**team.url.parameters, **more}))


def _schema(team: Team) -> str:
    return team.url.parameters["options"].partition("=")[2]


class Member:
    def __init__(self, place: Team, run: str) -> None:
        self._shippers: list[Shipper] = []
        self.recorder: Recorder = recorder_in_room(
            partial(open_file, place), place.file, run, committed=self._committed
        )
        self._shippers.append(Shipper(place, self.recorder.refuse, stanzas=True, retention=None))

    def _committed(self) -> None:
        for shipper in self._shippers:
            shipper.wake()

    @property
    def warnings(self) -> list[str]:
        return [*self.recorder.warnings, *self._shippers[0].warnings]

    def close(self) -> None:
        self.recorder.close()
        self._shippers[0].close()

    def hears(self, *marks: int) -> None:
        for mark in marks:
            self.recorder.add(said(mark, at=time.time()))

    def waits_for_the_database(self) -> bool:
        return any("away" in each and "wait in" in each for each in self.warnings)


@asynccontextmanager
async def _member(place: Team, run: str = "run") -> AsyncIterator[Member]:
    member = Member(place, run)
    try:
        yield member
    finally:
        await asyncio.to_thread(member.close)


def _marks(place: Team, where: str = "shared = 1") -> list[int]:
    return [each["jid"] for each in rows(place, where) if "jid" in each]


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
        silent = any("does not answer" in each for each in member.warnings)
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
        await until(lambda: not member.warnings)
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
        assert not any("were lost" in each for each in caplog.messages)
        relay.cut()
        await relay.heal()
        await asyncio.to_thread(postgresql.start)
        async with _member(_with(team, port=str(relay.port)), "later"):
            await until(lambda: _marks(team) == [1, 2, 3])


@pytest.mark.parametrize(
    ("least", "most", "ahead"), [(-9, 0.1, 0), (-0.1, 9, 0), (2, 9, 2), (-9, -2, -2), (0.5, 1, 0)]
)
def test_a_database_that_is_slow_to_tell_its_time_has_no_other_clock(
    least: float, most: float, ahead: float
) -> None:
    assert shipping.shift(least, most) == ahead


@pytest.mark.parametrize("kept", [True, False])
async def test_a_lost_answer_to_commit_doubles_nothing_and_loses_nothing(
    kept: bool, team: Team, postgresql: Postgresql, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgresql_connection, "STATEMENT_SECONDS", 1.0)
    async with (
        Relay("127.0.0.1", postgresql.port) as relay,
        _member(_with(team, port=str(relay.port))) as member,
    ):
        member.hears(1)
        await until(lambda: _marks(team) == [1])
        swallow = partial(relay.treat, Treatment.SWALLOW, Way.TO_CLIENT)
        moment, deed = (b"COMMIT", swallow) if kept else (b"COMMI", relay.reset)
        # Not before a row is on the way: until then a commit says only that the file is there.
        relay.once(Way.TO_SERVER, b"number 2", partial(relay.once, Way.TO_SERVER, moment, deed))
        member.hears(2, 3)
        await until(member.waits_for_the_database)
        relay.cut()
        await relay.heal()
        member.hears(4)
        await until(lambda: 4 in _marks(team))
        await until(lambda: not member.warnings)
    assert _marks(team, "TRUE") == [1, 2, 3, 4]


async def test_a_slow_database_loses_nothing_doubles_nothing_and_holds_up_nobody(
    team: Team, postgresql: Postgresql, tmp_path: Path
) -> None:
    elsewhere = replace(team, file=tmp_path / "elsewhere" / "team.db")
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
            f"CREATE {kind} TRIGGER refuse AFTER INSERT ON {schema}.entries {when} "
            f"FOR EACH ROW EXECUTE FUNCTION {schema}.refuse()"
        )
        member.hears(2, 3)
        await until(lambda: 3 in _marks(team))
    assert _marks(team, "TRUE") == [1, 2, 3]
    assert postgresql.query(f"SELECT last_value FROM {schema}.tries") == [(3,)]  # noqa: S608


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
    assert {each["run"] for each in rows(team, "shared = 1 AND kind = 'message'")} == {
        "run",
        "later",
    }


async def test_equal_messages_in_two_batches_of_a_former_bridge_stay_two(
    team: Team, tmp_path: Path
) -> None:
    async with _member(replace(team, file=tmp_path / "elsewhere" / "team.db")) as elsewhere:
        elsewhere.hears(0)
        await until(lambda: _marks(team) == [0])
    with closing(sqlite3.connect(team.file.with_name(SPOOL))) as spool, spool:
        spool.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        spool.execute("CREATE TABLE batches (id, target, run, number, parts, events)")
        for number in (1, 2):
            event = said(number, "again", time.time())[:4]
            parts = json.dumps([[["bot@localhost", "McpDebug", "former"], [event], []]])
            batch = (number, team.url.name, "former", number, parts, 1)
            spool.execute("INSERT INTO batches VALUES (?, ?, ?, ?, ?, ?)", batch)
    async with _member(team) as member:
        member.hears(3)
        await until(lambda: 3 in _marks(team))
    assert _marks(team) == [0, 1, 2, 3]


async def test_a_spool_that_cannot_be_read_is_named_and_ships_nothing_until_it_is_gone(
    team: Team,
) -> None:
    with closing(sqlite3.connect(team.file.with_name(SPOOL))) as spool, spool:
        spool.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        spool.execute("CREATE TABLE batches (others)")
    async with _member(team) as member:
        member.hears(1)
        await until(lambda: any(SPOOL in each for each in member.warnings))
        team.file.with_name(SPOOL).unlink()
        await until(lambda: _marks(team) == [1])
        await until(lambda: not member.warnings)


async def test_a_full_file_loses_the_oldest_and_counts_them(
    team: Team, postgresql: Postgresql, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipping, "EXPIRE_SECONDS", 0.2)
    monkeypatch.setattr(outbox, "EXPIRED_AT_ONCE", 50)
    async with _member(replace(team, megabytes=1)) as member:
        member.hears(1)
        await until(lambda: _marks(team) == [1])
        postgresql.kill()
        began, long = float(round(time.time()) - 60), "long " * 2_000
        for number in range(200):
            member.recorder.add(said(number + 2, long, began))
            if number % 50 == 49:
                await member.recorder.flush()
        await until(lambda: outbox.FULL in str(selected(team.file, "SELECT event FROM entries")))
        await asyncio.to_thread(postgresql.start)
        await until(lambda: _dropped(team) + len(_marks(team)) == 201)
        assert _dropped(team) >= 50
    assert {each["from"] for each in rows(team, "kind = 'gap'")} == {iso(began)}
    assert _marks(team)[-1] == 201


def _dropped(place: Team) -> int:
    return sum(each["events"] for each in rows(place, "kind = 'gap'"))


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
    with (
        pytest.raises(AwayStoreError, match=named),
        closing(open_store(_with(team, user=role))) as database,
        database.transaction(),
    ):
        pass
    async with _member(_with(team, user=role)) as member:
        member.hears(1)
        await until(lambda: any(named in each for each in member.warnings))
        assert all(PASSWORD not in each for each in member.warnings)
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
        await until(lambda: any(named in each for each in member.warnings))
        assert all(PASSWORD not in each for each in member.warnings)
    with pytest.raises(RefusedStoreError):
        open_store(place)


async def test_who_reads_as_the_database_goes_away_goes_on_in_the_file(
    team: Team, postgresql: Postgresql
) -> None:
    def hears(*bodies: str) -> None:
        for body in bodies:
            event = encode(MessageReceived(f"{ROOM}/Wilma", "Wilma", body))
            member.recorder.add(Happened(time.time(), ROOM, event, shared=True))

    async def goes_on(cursor: str) -> str:
        walk = await reader.walk([ROOM], EventFilter(), since=cursor)
        told.extend([row.event["body"] async for row in walk])
        return walk.next

    async with (
        Relay("127.0.0.1", postgresql.port) as relay,
        _member(place := _with(team, port=str(relay.port))) as member,
    ):
        hears("1", "2")
        await until(lambda: bodies(team) == ["1", "2"])
        reader, told = Reader(place, "bot@localhost"), list[str]()
        walk = await reader.walk([ROOM], EventFilter())
        async for row in walk:  # a page has room for the first only
            if told:
                break
            told.append(row.event["body"])
        walk = await reader.walk([ROOM], EventFilter(), since=walk.next)
        relay.refuse()
        relay.reset()
        assert [row async for row in walk] == []
        assert walk.more
        hears("3")
        await member.recorder.flush()
        cursor = await goes_on(walk.next)
        await relay.heal()
        hears("4")
        await until(lambda: bodies(team) == ["1", "2", "3", "4"])
        await goes_on(cursor)
        reader.close()
    assert told == ["1", "2", "3", "4"]


@pytest.mark.parametrize("ids", [True, False])
async def test_what_was_read_as_another_machines_is_not_read_again_out_of_the_file(
    ids: bool, team: Team, postgresql: Postgresql, tmp_path: Path
) -> None:
    def hears(member: Member, *bodies: str) -> None:
        for at, body in enumerate(bodies):
            id_ = f"{body}-{at}" if ids else None
            event = encode(MessageReceived(f"{ROOM}/Wilma", "Wilma", body, stanza_id=id_))
            member.recorder.add(Happened(time.time(), ROOM, event, shared=True))

    async def goes_on(cursor: str | None) -> str:
        walk = await reader.walk([ROOM], EventFilter(), since=cursor)
        told.extend([row.event["body"] async for row in walk])
        return walk.next

    said = ["1", "again", "again", "2"]
    elsewhere = replace(team, file=tmp_path / "elsewhere" / "team.db")
    async with (
        Relay("127.0.0.1", postgresql.port) as relay,
        _member(place := _with(team, port=str(relay.port))) as ours,
        _member(elsewhere, "theirs") as theirs,
    ):
        hears(theirs, *said)
        await until(lambda: bodies(team) == said)
        reader, told = Reader(place, "bot@localhost"), list[str]()
        cursor = await goes_on(None)
        relay.refuse()
        relay.reset()
        hears(ours, *said, "again")
        await ours.recorder.flush()
        cursor = await goes_on(cursor)
        assert told == [*said, "again"]
        await relay.heal()
        await until(lambda: bodies(team) == told)
        await goes_on(cursor)
        reader.close()
    assert told == [*said, "again"]


async def test_a_walk_of_the_file_alone_fails_as_a_store_does_if_the_file_goes(
    team: Team,
) -> None:
    async with _member(team) as member:
        member.hears(1)
        await member.recorder.flush()
    reader = Reader(_with(team, port="1"), "bot@localhost")
    walk = await reader.walk([ROOM], EventFilter())
    assert "away" in walk.away or "refused" in walk.away
    team.file.unlink()
    with pytest.raises(NotOurStoreError, match="does not exist"):
        assert [row async for row in walk]


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
        await until(lambda: member.warnings and first() is None)
        assert ["may only read" in each for each in member.warnings] == [True]
        assert _heard(member, 8)() is None
        # What is not in the store begins there: the first is, if it was written before the refusal.
        assert await member.recorder.flush() in {7, 8}
    assert _marks(team, "TRUE") == []
    assert len([each for each in caplog.messages if "may only read" in each]) == 1
    assert not any("were lost" in each for each in caplog.messages)
