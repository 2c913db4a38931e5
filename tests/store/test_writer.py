"""Who writes what, for several bridges in one room, by values of time."""

import json
from itertools import permutations
from pathlib import Path
from sys import getsizeof
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.store import database
from bridge.store import writer as module
from bridge.store.database import Happened, Observer, TracedXml, weight
from bridge.store.writer import OUTSIDE, Entered, Item, Left, Moment
from bridge.text import iso
from tests.conftest import a_place
from tests.store.hall import EPOCH, ROOM, SETTLED, STEPS, Bridge, Hall, play, said
from tests.support.memory import traced

FAULTS = (
    st.tuples(st.just("stall"), st.integers(0, 3)),
    st.tuples(st.just("break"), st.integers(0, 3), st.integers(0, 14)),
)


@pytest.fixture
def hall(request: pytest.FixtureRequest, tmp_path: Path) -> Hall:
    """What is decided is the same everywhere, so most tests have a file alone."""
    return Hall(a_place(request, tmp_path))


def _marks(hall: Hall, *, shared: bool = True) -> list[int]:
    return [event["jid"] for event, all_, _ in hall.rows() if "jid" in event and all_ is shared]


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
    assert hall.gaps() == [(iso(ended), iso(entered))]


@pytest.mark.parametrize("before", [5.0, 0.5])
def test_what_was_said_before_we_came_stands_for_nothing_that_is_said_later(
    before: float, hall: Hall
) -> None:
    first = hall.start()
    hall.enter(first)
    marks = [hall.say("again")]
    hall.pass_time(before)
    second = hall.start()
    hall.enter(second)
    hall.pass_time(1)
    marks.append(hall.say("again"))
    hall.kill(first)
    hall.pass_time(10)
    assert _marks(hall) == marks


def test_what_others_saw_while_the_room_let_us_in_is_the_same_however_late_we_hear_of_it(
    hall: Hall,
) -> None:
    first, second = hall.start(), hall.start()
    hall.enter(first)
    hall.pass_time(1)
    second.stalled = second.inside = True  # the room let it in, and it has heard nothing yet
    asked, marks = hall.now, [hall.say(), hall.say("again"), hall.say("again")]
    hall.pass_time(9)
    heard = [event for event in second.waiting if isinstance(event, Happened)]
    late = [event._replace(at=hall.at, steady=hall.now) for event in heard]
    second.waiting = [Entered(ROOM, hall.at, hall.now, asked), *late]
    second.stalled = False
    hall.pass_time(1)
    assert _marks(hall) == marks


def test_a_message_is_known_that_others_were_told_as_history_with_its_time_cut_to_a_second(
    hall: Hall,
) -> None:
    hall.now += 0.9
    first, second = hall.start(), hall.start()
    hall.enter(first)
    mark = hall.say()
    hall.enter(second)
    stamp = iso(float(int(hall.at)))
    second.waiting.append(said(mark, at=hall.at, delayedFrom=stamp)._replace(earlier=True))
    hall.write(second)
    hall.pass_time(1)
    assert _marks(hall) == [mark]


@pytest.mark.parametrize("jump", [-3_600.0, -40.0, 40.0, 3_600.0])
def test_history_is_known_by_a_bridge_whose_clock_was_changed(jump: float, hall: Hall) -> None:
    first = hall.start()
    hall.enter(first)
    mark, stamp = hall.say(), iso(hall.at)
    hall.pass_time(1)
    hall.jump = jump
    for _ in range(2):
        second = hall.start()
        hall.enter(second)
        shown = min(stamp, iso(hall.at))
        told = {"delayedFrom": shown} | ({} if shown == stamp else {"stampedAt": stamp})
        second.waiting.append(said(mark, at=hall.at, **told)._replace(earlier=True))
        hall.pass_time(50)
    assert _marks(hall) == [mark]


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
    assert hall.gaps() == []


# --- What is like something else ------------------------------------------------------------------


def test_a_message_that_waits_is_no_later_one_of_a_bridge_that_came_after_it(hall: Hall) -> None:
    first, second = hall.start(), hall.start()
    hall.enter(first)
    hall.write(first)
    marks = [hall.say("again")]
    heard = [*first.waiting]
    hall.enter(second)
    marks.append(hall.say("again"))
    hall.write(second)
    first.waiting = heard
    hall.write(first)
    assert sorted(_marks(hall)) == marks


@pytest.mark.parametrize("order", [*permutations(range(3))])
@pytest.mark.parametrize("pause", [0.1, 3.0])
def test_of_bridges_that_come_together_each_occupant_is_there_once_whichever_writes_first(
    pause: float, order: tuple[int, ...], hall: Hall
) -> None:
    there, bridges = ["Carl"], [hall.start() for _ in range(3)]
    for bridge in bridges:
        hall.now += pause
        asked = hall.now
        for name in there:
            bridge.waiting.append(_joined(name, hall, earlier=True))
        for each in bridges:
            if each.inside:
                each.waiting.append(_joined(bridge.run, hall))
        hall.enter(bridge)
        bridge.waiting[-1] = Entered(ROOM, hall.at, hall.now, asked)
        bridge.waiting.append(_joined(bridge.run, hall))
        there.append(bridge.run)
    for number in order:
        hall.write(bridges[number])
    hall.pass_time(SETTLED)
    assert sorted(event["sender"] for event, _, _ in hall.rows()) == sorted(there)


def _joined(name: str, hall: Hall, *, earlier: bool = False) -> Happened:
    event = {"kind": "join", "sender": name}
    return Happened(hall.at, ROOM, event, shared=True, earlier=earlier, steady=hall.now)


def test_two_equal_messages_stay_two_whoever_wrote_the_first(hall: Hall) -> None:
    first, second = hall.start_two_inside()
    hall.pass_time(1)
    marks = [hall.say("again")]
    hall.write(first)
    marks.append(hall.say("again"))
    hall.kill(first)
    hall.pass_time(2)
    assert _marks(hall) == marks
    marks.append(hall.say("again"))
    hall.pass_time(2)
    assert _marks(hall) == marks
    assert second.writer.pending == []


def test_what_another_bridge_wrote_is_known_by_its_stanza_id_however_late_it_is_heard(
    hall: Hall,
) -> None:
    first, second = hall.start_two_inside()
    hall.pass_time(1)
    second.stalled = True
    marks = [hall.say("hello", stanzaId=f"s{number}") for number in range(200)]
    heard = [each for each in second.waiting if isinstance(each, Happened)]
    second.waiting.clear()
    hall.pass_time(40)
    for each in heard:  # the server had kept them
        second.waiting.append(each._replace(at=hall.at, steady=hall.now))
    second.stalled = False
    hall.kill(first)
    hall.pass_time(SETTLED)
    assert _marks(hall) == marks


def test_with_a_stanza_id_on_one_side_alone_the_fields_tell(hall: Hall) -> None:
    first, second = hall.start_two_inside()
    hall.pass_time(1)
    mark = hall.say("hello", stanzaId="s1")
    (plain,) = (each for each in second.waiting if isinstance(each, Happened))
    event = {name: value for name, value in plain.event.items() if name != "stanzaId"}
    second.waiting = [plain._replace(event=event)]
    hall.write(first)
    hall.pass_time(2)
    assert _marks(hall) == [mark]


def test_whoever_is_killed_loses_nothing_that_is_older_than_a_second(hall: Hall) -> None:
    first, second = hall.start_two_inside()
    hall.pass_time(1)
    first.stalled = True
    marks = [hall.say()]
    hall.pass_time(1)
    assert _marks(hall) == marks
    hall.kill(second)
    hall.kill(first)
    hall.enter(hall.start())
    hall.pass_time(SETTLED)
    assert _marks(hall) == marks


def test_a_holder_that_is_started_again_at_once_doubles_nothing_and_leaves_no_gap(
    hall: Hall,
) -> None:
    first, _ = hall.start_two_inside()
    hall.pass_time(1)
    marks = list[int]()
    for _ in range(8):
        marks.append(hall.say())
        hall.write(first)
        marks.append(hall.say())
        hall.kill(first)
        first = hall.start()
        hall.enter(first)
        marks.append(hall.say())
        hall.pass_time(1)
    hall.pass_time(SETTLED)
    assert _marks(hall) == marks
    assert hall.gaps() == []


def test_little_is_remembered_of_what_others_wrote(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_TAKEN", 100)
    first, second = hall.start_two_inside()
    hall.pass_time(1)
    for _ in range(1_000):
        hall.say()
    hall.write(first)
    hall.pass_time(1)
    (room,) = second.writer._rooms.values()  # noqa: SLF001 - what it keeps
    assert len(room.taken) == 100
    assert len(_marks(hall)) == 1_000


# --- A room that has not let us in ----------------------------------------------------------------


def _presence(number: int, room: str = ROOM) -> Happened:
    event = {"kind": "join", "sender": f"Wilma {number}"}
    return Happened(EPOCH + number, room, event, shared=True, earlier=True)


def _knock(hall: Hall, *items: Item) -> Bridge:
    """A bridge that is not in the room, and is told this."""
    bridge = hall.start()
    bridge.waiting += items
    hall.write(bridge)
    return bridge


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
    bridge = _knock(hall)
    for number in range(1_000):
        bridge.waiting.append(_presence(number))
        hall.write(bridge)
        (room,) = bridge.writer._rooms.values()  # noqa: SLF001 - what it keeps
        assert len(room.earlier) <= 100
    assert hall.rows() == []
    hall.enter(bridge)
    hall.pass_time(1)
    assert _lost(hall) == [(900, iso(EPOCH + 100), iso(EPOCH + 999), False)]
    assert len([event for event, _, _ in hall.rows() if event["kind"] == "join"]) == 100
    hall.pass_time(SETTLED)
    hall.close(bridge)
    assert len(_lost(hall)) == 1


@pytest.mark.parametrize("ends", ["close", "observer"])
def test_what_no_room_let_us_in_for_is_counted_at_the_end(ends: str, hall: Hall) -> None:
    bridge = _knock(hall, *map(_presence, range(3)), Left(ROOM, hall.at, hall.now))
    bridge.waiting += [*map(_presence, range(3, 5)), Left(ROOM, hall.at, hall.now), _presence(5)]
    hall.pass_time(1)
    assert hall.rows() == []
    if ends == "observer":
        bridge.waiting.append(Observer("bot@localhost", "another", "another"))
        hall.write(bridge)
    else:
        hall.close(bridge)
    assert _lost(hall) == [(6, iso(EPOCH), iso(EPOCH + 5), False)]
    assert {run for _, _, run in hall.rows()} == {bridge.run}


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


@pytest.mark.parametrize("fields", HEAVY, ids=lambda each: next(iter(each)))
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


@settings(max_examples=40, deadline=None)
@given(steps=st.lists(st.one_of(*STEPS, *FAULTS), max_size=40))
def test_whatever_comes_and_goes_every_event_is_there_once_or_in_a_gap(
    steps: list[tuple[Any, ...]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    hall = Hall(tmp_path_factory.mktemp("any") / "rooms.db")
    play(hall, steps, _meet)
    assert _marks(hall, shared=False) == []


def _meet(hall: Hall, name: str, number: int, *calls: int) -> None:
    bridge = hall.bridges[number % len(hall.bridges)]
    if name == "stall":
        bridge.stalled = not bridge.stalled
    else:
        hall.write(bridge, breaking=calls[0])


def test_a_kill_between_two_transactions_of_one_backlog_leaves_a_gap(hall: Hall) -> None:
    bridge = hall.start()
    hall.enter(bridge)
    hall.pass_time(1)
    stored = hall.now
    marks = [hall.say() for _ in range(4)]
    first, waiting = bridge.waiting[:2], bridge.waiting[2:]
    bridge.writer.write(hall.database, first, Moment(hall.at, hall.now + 1, more=True))
    assert len(waiting) == 2
    hall.kill(bridge)
    hall.pass_time(SETTLED)
    hall.enter(hall.start())
    hall.pass_time(1)
    assert _marks(hall) == marks[:2]
    ((begin, _),) = hall.gaps()
    assert begin <= iso(EPOCH + stored)
