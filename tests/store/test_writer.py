"""Who writes what, for several bridges in one room, by values of time."""

import json
from contextlib import nullcontext
from pathlib import Path
from sys import getsizeof
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.store import database
from bridge.store import writer as module
from bridge.store.database import Happened, Observer, TracedXml, weight
from bridge.store.errors import BusyStoreError
from bridge.store.writer import OUTSIDE, Item, Left
from bridge.text import iso
from tests.conftest import a_place
from tests.store.hall import EPOCH, ROOM, SETTLED, STEPS, Bridge, Hall, Watched, play, said
from tests.support.memory import traced

FAULTS = (
    st.tuples(st.just("stall"), st.integers(0, 3)),
    st.tuples(st.just("break"), st.integers(0, 3), st.integers(0, 14)),
)


@pytest.fixture
def hall(request: pytest.FixtureRequest, tmp_path: Path) -> Hall:
    """What is decided is the same everywhere, so most tests have a file alone."""
    return Hall(a_place(request, tmp_path))


in_both = pytest.mark.parametrize("hall", ["sqlite", "postgresql"], indirect=True)


def _marks(hall: Hall, *, shared: bool = True) -> list[int]:
    return [event["jid"] for event, all_, _ in hall.rows() if "jid" in event and all_ is shared]


def _gaps(hall: Hall) -> list[tuple[str, str]]:
    return [(event["from"], event["to"]) for event, _, _ in hall.rows() if event["kind"] == "gap"]


@in_both
def test_when_nobody_was_there_is_said_once(hall: Hall) -> None:
    first = hall.start()
    hall.enter(first)
    hall.say()
    hall.pass_time(1)
    hall.close(first)
    ended = hall.at
    hall.pass_time(100)
    hall.say()
    second, third = hall.start(), hall.start()
    hall.enter(second)
    entered = hall.at
    hall.enter(third)
    hall.pass_time(10)
    hall.kill(second)
    hall.pass_time(10)
    assert _gaps(hall) == [(iso(ended), iso(entered))]
    (reason,) = (event["reason"] for event, _, _ in hall.rows() if event["kind"] == "gap")
    assert reason == "nobody recorded this room"


def test_what_was_said_before_we_came_stands_for_nothing_that_is_said_later(hall: Hall) -> None:
    first = hall.start()
    hall.enter(first)
    marks = [hall.say("again")]
    hall.pass_time(5)
    second = hall.start()
    hall.enter(second)
    hall.pass_time(1)
    marks.append(hall.say("again"))
    hall.kill(first)
    hall.pass_time(10)
    assert _marks(hall) == marks


def test_in_a_new_store_others_are_found_from_its_beginning(hall: Hall, tmp_path: Path) -> None:
    hall.start_two_inside()
    for _ in range(20):
        hall.say()
    hall.pass_time(1)
    other = Hall(tmp_path / "new.db")  # which closes it when the test has ended
    hall.database, hall.place = other.database, other.place
    marks = [hall.say()]
    hall.pass_time(SETTLED)
    marks.append(hall.say())
    hall.pass_time(SETTLED)
    assert _marks(hall) == marks
    assert _marks(hall, shared=False) == []


@pytest.mark.parametrize("jump", [-86_400.0, -40.0, 40.0, 86_400.0])
def test_a_clock_that_jumps_loses_nothing(jump: float, hall: Hall) -> None:
    first, _ = hall.start_two_inside()
    hall.pass_time(1)
    marks = [hall.say()]
    hall.jump += jump
    marks.append(hall.say())
    hall.pass_time(1)
    marks.append(hall.say())
    hall.kill(first)
    hall.pass_time(10)
    assert _marks(hall) == marks
    assert _gaps(hall) == []


# --- What others wrote while this process stood still ---------------------------------------------


def _after_a_stop(
    hall: Hall, count: int, body: str = "", *, ids: bool = False
) -> tuple[Bridge, Bridge]:
    """Two bridges, of which the second stood still while so much was said."""
    first, second = hall.start_two_inside()
    hall.pass_time(1)
    second.stalled = True
    for number in range(count):
        hall.say(f"{body}{number}", **({"stanzaId": f"s{number}"} if ids else {}))
        if number % 100 == 99:
            hall.pass_time(0.5)
    hall.pass_time(0.5)
    return first, second


def test_what_others_wrote_is_read_in_slices_and_before_they_have_to_wait(hall: Hall) -> None:
    _, second = _after_a_stop(hall, 1_000, "long " * 2_000)
    second.waiting.clear()  # it has yet to hear all of that
    watched = Watched(hall.database)
    with traced() as memory:
        hall.write(second, onto=watched)
        _, peak = memory()
    assert watched.before == 1_000
    assert (watched.at_once, watched.locked) == (module.SLICE, 0)
    assert peak < 3_000_000  # of more than 10 MB
    hall.pass_time(SETTLED)
    assert len(_marks(hall)) == 1_000


@in_both
@pytest.mark.parametrize("most", [11, 12])
def test_what_others_write_faster_than_we_read_is_not_read_while_they_wait(
    most: int, hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_UNREAD", most)
    first, second = _after_a_stop(hall, 0)
    marks = [hall.say()]

    def meanwhile() -> None:
        marks.extend(hall.say() for _ in range(11))
        hall.write(first)

    watched = Watched(hall.database, meanwhile)
    with pytest.raises(BusyStoreError) if most < 12 else nullcontext():
        hall.write(second, onto=watched)
    assert watched.locked == (0 if most < 12 else 12)
    second.stalled = False
    hall.pass_time(SETTLED)
    hall.kill(first)
    marks.append(hall.say())
    hall.pass_time(SETTLED)
    assert (_marks(hall), _marks(hall, shared=False)) == (marks, [])


@in_both
def test_a_lease_that_is_renewed_while_we_wait_for_the_lock_is_nobody_elses(hall: Hall) -> None:
    first, second = hall.start(), hall.start()
    hall.enter(first)
    hall.pass_time(1)
    hall.enter(second)

    def meanwhile() -> None:
        hall.now += 5
        hall.write(first)

    hall.write(second, onto=Watched(hall.database, meanwhile))
    lease = hall.database.lease(ROOM, "localhost")
    assert lease is not None
    assert lease.run == first.run
    assert _gaps(hall) == []


@in_both
@pytest.mark.parametrize("late", [20.0, 3_600.0])
@pytest.mark.parametrize("lives", [True, False])
def test_what_is_heard_long_after_others_wrote_it_is_not_there_twice(
    late: float, lives: bool, hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_FOUND", 10)
    first, second = _after_a_stop(hall, 200, ids=True)
    heard = [one for one in second.waiting if isinstance(one, Happened)]
    second.waiting.clear()
    hall.now += late
    hall.write(first)
    if not lives:
        hall.kill(first)
    for one in heard:  # the server had kept them
        second.waiting.append(one._replace(at=hall.at))
    second.stalled = False
    hall.pass_time(SETTLED)
    assert len(_marks(hall)) == 200
    assert _marks(hall, shared=False) == []


def test_little_is_kept_of_what_others_wrote_and_we_have_not_heard(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_FOUND", 100)
    _, second = _after_a_stop(hall, 1_000)
    second.waiting.clear()
    hall.write(second)
    (room,) = second.writer._rooms.values()  # noqa: SLF001 - what it keeps
    assert len(room.foreign) == 100


# --- A room that has not let us in ----------------------------------------------------------------


def _presence(number: int, room: str = ROOM) -> Happened:
    event = {"kind": "join", "sender": f"Wilma {number}"}
    return Happened(EPOCH + number, room, event, shared=True, earlier=True)


def _knock(hall: Hall, *items: Item) -> Bridge:
    """A bridge that is not in the room, and is told this."""
    one = hall.start()
    one.waiting += items
    hall.write(one)
    return one


def _lost(hall: Hall) -> list[tuple[int, str, str, bool]]:
    return [
        (event["events"], event["from"], event["to"], shared)
        for event, shared, _ in hall.rows()
        if event.get("reason") == OUTSIDE
    ]


def test_what_a_room_says_that_does_not_let_us_in_is_bounded_and_counted_once_it_does(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_WAITING", 100)
    one = _knock(hall)
    for number in range(1_000):
        one.waiting.append(_presence(number))
        hall.write(one)
        (room,) = one.writer._rooms.values()  # noqa: SLF001 - what it keeps
        assert len(room.earlier) <= 100
    assert hall.rows() == []
    hall.enter(one)
    hall.pass_time(1)
    assert _lost(hall) == [(900, iso(EPOCH + 100), iso(EPOCH + 999), False)]
    assert len([event for event, _, _ in hall.rows() if event["kind"] == "join"]) == 100
    hall.pass_time(SETTLED)
    hall.close(one)
    assert len(_lost(hall)) == 1


@pytest.mark.parametrize("ends", ["close", "observer"])
def test_what_no_room_let_us_in_for_is_counted_at_the_end(ends: str, hall: Hall) -> None:
    one = _knock(hall, *map(_presence, range(3)), Left(ROOM, hall.at, hall.now))
    one.waiting += [*map(_presence, range(3, 5)), Left(ROOM, hall.at, hall.now), _presence(5)]
    hall.pass_time(1)
    assert hall.rows() == []
    if ends == "observer":
        one.waiting.append(Observer("bot@localhost", "another", "another"))
        hall.write(one)
    else:
        hall.close(one)
    assert _lost(hall) == [(6, iso(EPOCH), iso(EPOCH + 5), False)]
    assert {run for _, _, run in hall.rows()} == {one.run}


# --- How much is kept -----------------------------------------------------------------------------


LONG = 40_000
HEAVY: list[dict[str, Any]] = [
    *({name: "x" * LONG} for name in ("body", "id", "sender", "from", "status", "replaces")),
    {"body": "😀" * LONG},
    {"reactions": ["ab" * 20 for _ in range(LONG // 40)]},
    {"payload": ["x" * LONG]},
    {"body": ""},
]
"""What may be large in an event, and nothing."""


def _heavy(number: int, fields: dict[str, Any]) -> Happened:
    # Every text is an object of its own, as those that are read from the network.
    exact = json.loads(json.dumps({"kind": "message", "sender": f"W{number}"} | fields))
    return Happened(EPOCH + number, f"{ROOM}{number}"[:-1], exact, shared=True)


@pytest.mark.parametrize("fields", HEAVY, ids=lambda one: next(iter(one)))
def test_a_unit_of_weight_is_so_much_memory_whatever_is_large(fields: dict[str, Any]) -> None:
    count = 50
    _heavy(0, fields)
    with traced() as memory:
        kept = [_heavy(number, fields) for number in range(count)]
        taken, _ = memory()
    weights = sum(map(weight, kept))
    assert taken <= weights * database.UNIT_BYTES
    assert weights <= count + 2 * taken / database.UNIT_BYTES  # and not much less


def test_a_stanza_and_each_begun_unit_count() -> None:
    least = weight(TracedXml(0.0, "in", "1", ""))
    assert least == 1
    room = database.UNIT_BYTES - database.ITEM_BYTES
    fits = "x" * (room - getsizeof("") - 1)
    assert weight(TracedXml(0.0, "in", "1", fits)) == 1
    assert weight(TracedXml(0.0, "in", "1", fits + "x")) == 2


@pytest.mark.parametrize("fields", [HEAVY[0], HEAVY[-1]], ids=["large", "small"])
def test_what_others_are_to_write_is_kept_by_its_weight_and_the_rest_is_written(
    fields: dict[str, Any], hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_WAITING", 100)
    first, second = hall.start_two_inside()
    hall.pass_time(1)
    first.inside = False  # its connection hangs, and it does not know
    marks = [hall.say(**fields) for _ in range(150)]
    hall.pass_time(0.5)
    (room,) = second.writer._rooms.values()  # noqa: SLF001 - what it keeps
    assert room.weight <= 100
    written = len(marks) - len(room.pending)
    assert _marks(hall, shared=False) == marks[:written]
    hall.pass_time(SETTLED)
    assert _marks(hall, shared=False) == marks


@in_both
@pytest.mark.parametrize(("among", "times"), [(5, 1), (4, 2)])
def test_what_the_room_tells_of_before_is_compared_with_the_newest_rows(
    among: int, times: int, hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "COMPARED_IDS", among)
    first = hall.start()
    hall.enter(first)
    hall.say("hello")
    told = said(0, "hello", hall.at, delayedFrom=iso(hall.at))
    for _ in range(4):
        hall.say()
    hall.close(first)
    hall.pass_time(SETTLED)
    second = hall.start()
    second.waiting.append(told._replace(earlier=True))
    hall.enter(second)
    hall.pass_time(1)
    assert [event.get("body") for event, _, _ in hall.rows()].count("hello") == times


@settings(max_examples=40, deadline=None)
@given(steps=st.lists(st.one_of(*STEPS, *FAULTS), max_size=40))
def test_whatever_comes_and_goes_every_event_is_there_once_or_in_a_gap(
    steps: list[tuple[Any, ...]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    hall = Hall(tmp_path_factory.mktemp("any") / "rooms.db")
    play(hall, steps, _meet)
    # One that stood still while others said that nobody was there keeps what it saw.
    assert {*_marks(hall)}.isdisjoint({*_marks(hall, shared=False)} - hall.alike)


def _meet(hall: Hall, name: str, number: int, *calls: int) -> None:
    bridge = hall.bridges[number % len(hall.bridges)]
    if name == "stall":
        bridge.stalled = not bridge.stalled
    else:
        hall.write(bridge, breaking=calls[0])
