"""What `record` deletes, and when: on a real store, with clocks that the test moves."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.store import queries
from bridge.store import retention as module
from bridge.store.database import Ageing, Amount, Happened, Holding, Observer, TracedXml
from bridge.store.location import Place
from bridge.store.retention import (
    DAY_SECONDS,
    EXPIRE_SECONDS,
    JUMP_SECONDS,
    PUT_OFF_SECONDS,
    Clocks,
    Retention,
    surplus_of,
)
from bridge.store.sql import SqlDatabase
from tests.conftest import a_place
from tests.store.recorded import in_both, open_store, rows, selected

ME = Observer("bot@localhost", "McpDebug", "run")
ROOM = "room@conference.localhost"
NOISY, QUIET = "noisy@conference.localhost", "quiet@conference.localhost"
NOW = 1_700_000_000.0
DAYS = 30
YEARS = 10 * 365 * DAY_SECONDS
MIB = 1 << 20


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """What is decided is the same everywhere, so most tests have a file alone."""
    return a_place(request, tmp_path)


@pytest.fixture
def database(place: Place) -> Iterator[SqlDatabase]:
    with closing(open_store(place)) as opened:
        yield opened


@pytest.fixture
def bounded(monkeypatch: pytest.MonkeyPatch) -> int:
    """How many bytes one deletion removes at most."""
    monkeypatch.setattr(queries, "DELETED_BYTES", 100_000)
    return 100_000


def _say(
    database: SqlDatabase,
    count: int,
    at: float = NOW,
    *,
    step: float = 0.001,
    room: str = ROOM,
    body: str = "x",
) -> None:
    """Record so many messages of the same size, one after the other from `at` on."""
    event = {"kind": "message", "body": body}
    with database.transaction():
        told = [Happened(at + number * step, room, event, shared=True) for number in range(count)]
        database.append(ME, told)


def _kept(place: Place) -> Counter[str]:
    return Counter(each["room"] for each in rows(place))


@dataclass
class Machine:
    """A machine on which `record` runs, and its clocks."""

    database: SqlDatabase
    days: int = DAYS
    megabytes: int = 1_024
    wall: float = NOW
    elapsed: float = 5_000.0
    running: float = 3_000.0

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        self.retention = Retention(self.days, self.megabytes)
        self.look()

    def look(self) -> None:
        while self.retention.apply(self.database, Clocks(self.wall, self.elapsed, self.running)):
            pass

    def run(self, seconds: float, step: float = 60.0) -> None:
        while seconds > 0:
            passed = min(step, seconds)
            seconds -= passed
            self.wall += passed
            self.elapsed += passed
            self.running += passed
            self.look()


@in_both
def test_others_wait_no_longer_for_large_events_to_be_deleted(
    database: SqlDatabase, place: Place, bounded: int
) -> None:
    _say(database, 120, NOW - (DAYS + 1) * DAY_SECONDS, body="x" * 2_500)
    (holding,) = database.holdings()
    with database.transaction():
        gone = database.delete(holding, Amount(1_000, inf), (-inf, NOW))
    assert 0 < gone.bytes <= bounded
    machine = Machine(database, megabytes=0)
    assert rows(place) == []
    _say(database, 1, NOW, body="x" * (bounded + 1))
    machine.run(EXPIRE_SECONDS)
    assert rows(place) == []


@pytest.mark.parametrize("watched", [True, False])
def test_nor_for_those_of_many_rooms(watched: bool, database: SqlDatabase, bounded: int) -> None:
    old = NOW - DAYS * DAY_SECONDS
    for room in map(str, range(4)):
        _say(database, 11, old, room=room, body="x" * 2_500)
    _say(database, 450 * (not watched), NOW, body="x" * 2_500)
    retention = Retention(DAYS, 1_024)
    if watched:
        retention.apply(database, Clocks(NOW - 60.0, 0.0, 0.0))
    held, more = [sum(each.bytes for each in database.holdings())], True
    while more:
        more = retention.apply(database, Clocks(NOW + 60.0, 120.0, 120.0))
        held.append(sum(each.bytes for each in database.holdings()))
    assert max(before - after for before, after in pairwise(held)) <= bounded
    assert not any(each.oldest < NOW for each in database.holdings())


# --- Age ----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("bounded")
def test_that_it_goes_a_little_at_a_time_is_no_reason_to_doubt_the_clock(
    database: SqlDatabase, place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    machine = Machine(database)
    soon = NOW - DAYS * DAY_SECONDS + 1
    _say(database, 100, soon, body="x" * 2_500)  # more than one deletion may: all but one
    _say(database, 1)
    machine.run(60)
    assert len(rows(place)) == 1
    assert database.ageing() == Ageing()
    assert caplog.records == []


@pytest.mark.parametrize(
    "jump", [-90 * DAY_SECONDS, -61.0, JUMP_SECONDS, JUMP_SECONDS + 1, 90 * DAY_SECONDS]
)
def test_after_a_jump_nothing_goes_for_its_age_for_an_hour_of_running(
    jump: float, database: SqlDatabase, place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    machine = Machine(database)
    machine.wall += jump
    machine.run(60)
    jumped = jump != JUMP_SECONDS  # so much NTP corrects
    assert [each[:16] for each in caplog.messages] == ["the clock jumped"] * jumped
    _say(database, 5, machine.wall - (DAYS + 1) * DAY_SECONDS)
    _say(database, 95, machine.wall)
    machine.run(PUT_OFF_SECONDS - 60)
    assert len(rows(place)) == (100 if jumped else 95)
    machine.run(60)
    assert len(rows(place)) == 95


@in_both
def test_the_hour_is_added_up_over_runs_and_time_asleep_is_not_in_it(
    database: SqlDatabase, place: Place
) -> None:
    machine = Machine(database)
    machine.wall += 120
    machine.run(60)
    _say(database, 5, NOW - (DAYS + 1) * DAY_SECONDS)
    _say(database, 95)
    for _ in range(6):
        machine.run(590)
        assert len(rows(place)) == 100
        machine.wall += 7_200  # asleep
        machine.elapsed += 7_200
        machine.start()
    machine.run(120)
    assert len(rows(place)) == 95


@in_both
def test_a_newest_event_in_the_future_puts_it_off_too_and_does_so_once(
    database: SqlDatabase, place: Place
) -> None:
    _say(database, 5, NOW - (DAYS + 1) * DAY_SECONDS)
    _say(database, 95)
    _say(database, 1, NOW + YEARS)
    machine = Machine(database)
    _say(database, 1)  # of its own connection
    for _ in range(5):
        machine.run(700)
        assert len(rows(place)) == 102
        machine.start()
    machine.run(120)
    assert len(rows(place)) == 97


def test_what_was_recorded_while_the_clock_was_ahead_keeps_nothing_else_from_going(
    database: SqlDatabase, place: Place
) -> None:
    _say(database, 3_000, NOW + YEARS)
    _say(database, 100, NOW - DAYS * DAY_SECONDS - 100)
    Machine(database)
    assert len(rows(place)) == 3_000


def test_a_clock_that_is_years_ahead_takes_a_tenth_in_a_day_of_running(
    database: SqlDatabase, place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    _say(database, 1_000, NOW - 1_000)
    machine = Machine(database, wall=NOW + YEARS)
    assert len(rows(place)) == 900
    (told,) = caplog.records
    assert "more than a tenth of the store is older than 30 days" in told.getMessage()
    for _ in range(24):  # however often it is started anew
        machine.run(3_590, 3_590)
        machine.start()
    assert len(rows(place)) == 900
    caplog.clear()
    machine.run(300)
    assert len(rows(place)) == 810
    machine.run(4 * 3_600, 3_600)
    assert len(caplog.records) == 1
    machine.wall -= YEARS
    machine.run(3 * DAY_SECONDS, 3_600)
    assert len(rows(place)) == 810


def test_what_grows_too_old_while_the_clock_is_steady_goes_however_much_it_is(
    database: SqlDatabase, place: Place
) -> None:
    machine = Machine(database, days=1)
    for _ in range(6):
        _say(database, 100, machine.wall)
        machine.run(DAY_SECONDS / 2, 3_600)
        assert len(rows(place)) <= 300
    machine.run(DAY_SECONDS, 3_600)
    assert rows(place) == []


def test_a_store_of_few_large_events_gets_rid_of_one_a_day(
    database: SqlDatabase, place: Place
) -> None:
    _say(database, 3, NOW - 60 * DAY_SECONDS)
    machine = Machine(database)
    assert len(rows(place)) == 2
    machine.run(DAY_SECONDS, 3_600)
    assert len(rows(place)) == 1


@in_both
def test_what_is_too_old_goes_at_once_stanzas_and_connections_as_rooms_do(
    database: SqlDatabase, place: Place
) -> None:
    old = NOW - (DAYS + 1) * DAY_SECONDS
    with database.transaction():
        database.append_stanzas(ME, [TracedXml(at, "in", "1", "<a/>") for at in (old, NOW)])
    _say(database, 1, old, room="")
    _say(database, 1, old)
    _say(database, 60)
    Machine(database)
    assert len(rows(place)) == 60
    assert selected(place, "SELECT at FROM traffic") == [(NOW * 1000,)]


# --- Size ---------------------------------------------------------------------------------------


def _drained(database: SqlDatabase, megabytes: int) -> int:
    """Delete what is too much; return how many transactions it took."""
    retention, clocks = Retention(365, megabytes), Clocks(NOW, 0.0, 0.0)
    passes = 0
    while retention.apply(database, clocks):
        passes += 1
    return passes


@in_both
def test_what_is_too_much_goes_the_oldest_first_and_the_file_shrinks(
    database: SqlDatabase, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "EXPIRED_AT_ONCE", 100)
    _say(database, 1_500, body="long " * 200)
    assert 3 < _drained(database, 1) < 30
    assert database.size() <= MIB
    kept = [each["time"] for each in rows(place)]
    assert kept == [round(1000 * NOW) + number for number in range(1_500 - len(kept), 1_500)]
    assert 0 < len(kept) < 1_500
    if isinstance(place, Path):
        assert len(kept) * 1_000 > 0.6 * MIB
        database.close()
        assert place.stat().st_size < 1.5 * MIB


@pytest.mark.parametrize("text", ["x", "\U0001f600", '"\\'])
def test_noise_in_a_room_leaves_the_past_of_a_quiet_one(
    text: str, database: SqlDatabase, place: Place
) -> None:
    noise = text * (6_000 // len(json.dumps(text, ensure_ascii=False)[1:-1].encode()))
    _say(database, 200, room=QUIET, body="what somebody says in a quiet room")
    for number in range(6):
        _say(database, 60, NOW + number, room=NOISY, body=noise)
        _drained(database, 1)
    assert database.size() <= MIB
    kept = _kept(place)
    assert kept[QUIET] == 200
    assert kept[NOISY] * 6_000 > 0.5 * MIB


@pytest.mark.parametrize("of", ["stanzas", "connections"])
def test_neither_stanzas_nor_connections_push_a_room_out_of_its_share(
    of: str, database: SqlDatabase, place: Place
) -> None:
    _say(database, 400, room=QUIET, body="long " * 100)
    _say(database, 400, room=NOISY, body="long " * 100)
    if of == "stanzas":
        with database.transaction():
            database.append_stanzas(ME, [TracedXml(NOW, "in", "1", "long " * 1_000)] * 400)
    else:
        _say(database, 400, room="", body="long " * 1_000)
    _drained(database, 1)
    kept = _kept(place)
    assert (kept[QUIET], kept[NOISY]) == (400, 400)


def test_what_was_recorded_while_the_clock_was_ahead_is_not_kept_in_place_of_what_comes(
    database: SqlDatabase, place: Place
) -> None:
    _say(database, 1_500, NOW + YEARS, body="long " * 200)
    for _ in range(3):
        _say(database, 500, body="long " * 200)
        _drained(database, 1)
    assert {each["time"] < 1000 * (NOW + YEARS) for each in rows(place)} == {True}


def test_each_text_is_stored_once_as_utf8(database: SqlDatabase) -> None:
    _say(database, 40, body="é" * 10_000)
    database.checkpoint()
    assert 800_000 < database.size() < 1_060_000


@in_both
def test_what_a_room_holds_is_counted_as_it_is_written_and_deleted(database: SqlDatabase) -> None:
    twice = {"kind": "message", "body": "é", "stanzaId": "1"}
    with database.transaction():
        database.append(ME, [Happened(NOW, ROOM, twice, shared=True)])
    _say(database, 7, body="ü" * 50)
    with database.transaction():
        (room,) = database.holdings()
        gone = database.delete(room, Amount(3, inf), None)
        assert gone == (3, room.bytes - database.holdings()[0].bytes)
    (room,) = database.holdings()
    with database.transaction():
        assert database.delete(room, Amount(99, inf), None) == (5, room.bytes)
    assert database.holdings() == []


@given(
    st.lists(st.tuples(st.booleans(), st.integers(1, 10**6)), max_size=8),
    st.floats(1.0, 3.0),
    st.integers(1, 10**6),
)
def test_no_room_loses_what_is_within_its_share_and_something_goes_while_it_is_too_much(
    held: list[tuple[bool, int]], overhead: float, most: int
) -> None:
    holdings = [Holding(each, "r@x" * room, size, 0.0) for each, (room, size) in enumerate(held, 1)]
    total = sum(each.bytes for each in holdings)
    size = int(total * overhead) + 1
    leaving = surplus_of(holdings, size, most)
    assert (leaving is not None) == (size > most and bool(holdings))
    if leaving is not None:
        fullest, surplus = leaving
        rooms = sum(room for room, _ in held)
        share = total * most / size / max(1, rooms)
        assert surplus > 0
        assert not fullest.name or fullest.bytes - surplus >= share - 1e-6
        assert total - surplus >= total * most / size - 1e-6


def test_stanzas_take_no_more_than_a_quarter_however_little_else_there_is(
    database: SqlDatabase, place: Place
) -> None:
    with database.transaction():
        stanzas = [TracedXml(NOW + number, "in", "1", "long " * 200) for number in range(600)]
        database.append_stanzas(ME, stanzas)
    _say(database, 10)
    _drained(database, 1)
    kept = selected(place, "SELECT at, length(xml) FROM traffic ORDER BY id")
    assert 0.15 * MIB < sum(size for _, size in kept) <= 0.25 * MIB
    assert kept[-1][0] == 1000 * (NOW + 599)
    assert _kept(place) == {ROOM: 10}


def test_looking_at_a_store_that_has_nothing_to_delete_writes_nothing(
    database: SqlDatabase, place: Place
) -> None:
    _say(database, 10)
    before = selected(place, "SELECT * FROM file"), Path(f"{place}-wal").stat().st_size
    Machine(database).run(600)
    assert (selected(place, "SELECT * FROM file"), Path(f"{place}-wal").stat().st_size) == before


@pytest.mark.parametrize("most", [10, 16])
def test_a_store_takes_little_more_of_the_disk_than_it_may_while_much_is_said(
    most: int, database: SqlDatabase, place: Place
) -> None:
    assert isinstance(place, Path)
    now, peak = 0.0, 0
    retention = Retention(365, most)

    def taken() -> int:
        return sum(Path(f"{place}{end}").stat().st_size for end in ("", "-wal"))

    for number in range(2 * most):  # each time as much as one transaction of a recorder may have
        _say(database, 1_000, NOW + number, room=(QUIET, NOISY)[number % 2], body="long " * 200)
        now += 0.25
        retention.apply(database, Clocks(NOW + now, now, now))
        peak = max(peak, taken())
    assert peak < 1.3 * most * MIB
    while retention.apply(database, Clocks(NOW + now, now, now)):
        pass
    assert 0.5 * most * MIB < taken() <= 1.1 * most * MIB
