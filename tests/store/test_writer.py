"""Who writes what, for several bridges in one room, by values of time."""

import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.text import iso
from tests.store.hall import Hall

SETTLED = 20.0
"""Seconds after which everything is decided."""


@pytest.fixture
def hall(tmp_path: Path) -> Hall:
    return Hall(tmp_path)


def _marks(hall: Hall, *, shared: bool = True) -> list[int]:
    return [event["mark"] for event, all_, _ in hall.rows() if "mark" in event and all_ is shared]


def _gaps(hall: Hall) -> list[tuple[str, str]]:
    return [(event["from"], event["to"]) for event, _, _ in hall.rows() if event["kind"] == "gap"]


def test_of_two_in_a_room_one_writes_and_the_other_takes_over_without_a_gap(hall: Hall) -> None:
    first, second = hall.start(), hall.start()
    for one in (first, second):
        hall.enter(one)
    marks = []
    for _ in range(4):
        marks.append(hall.say())
        hall.pass_time(1)
    assert {run for _, _, run in hall.rows()} == {first.run}
    marks.append(hall.say())  # which the first one never writes
    hall.kill(first)
    hall.pass_time(2)
    marks.append(hall.say())
    hall.pass_time(8)
    assert _marks(hall) == marks
    assert _marks(hall, shared=False) == []
    assert _gaps(hall) == []


def test_a_bridge_that_ends_hands_over_at_once(hall: Hall) -> None:
    first, second = hall.start(), hall.start()
    for one in (first, second):
        hall.enter(one)
    hall.pass_time(1)
    hall.close(first)
    mark = hall.say()
    hall.pass_time(0.5)
    assert _marks(hall) == [mark]
    assert _gaps(hall) == []


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


def test_who_was_killed_left_a_gap_from_its_last_transaction_on(hall: Hall) -> None:
    first = hall.start()
    hall.enter(first)
    hall.pass_time(1)
    written = hall.at
    hall.say()
    hall.now += 0.2
    hall.kill(first)
    hall.enter(hall.start())
    entered = hall.at
    hall.pass_time(10)
    assert _marks(hall) == []
    assert _gaps(hall) == [(iso(written), iso(entered))]


def test_a_restart_of_the_machine_leaves_a_gap_though_its_clock_begins_anew(hall: Hall) -> None:
    hall.enter(hall.start())
    hall.pass_time(1)
    hall.kill(hall.bridges[0])
    hall.jump, hall.now = hall.jump + hall.now - 30 + 5, 30.0
    hall.enter(hall.start())
    hall.pass_time(1)
    assert len(_gaps(hall)) == 1


def test_what_only_one_saw_is_kept_with_its_observer(hall: Hall) -> None:
    first, second = hall.start(), hall.start()
    for one in (first, second):
        hall.enter(one)
        hall.pass_time(1)
    first.inside = False  # its connection hangs, and it does not know
    mark = hall.say()
    first.inside = True
    hall.pass_time(SETTLED)
    assert [(event["mark"], all_, run) for event, all_, run in hall.rows()] == [
        (mark, False, second.run)
    ]


def test_two_alike_are_two(hall: Hall) -> None:
    first, second = hall.start(), hall.start()
    for one in (first, second):
        hall.enter(one)
    hall.pass_time(1)
    for _ in range(3):
        hall.say("again")
    hall.pass_time(3)
    hall.kill(first)
    hall.say("again")
    hall.pass_time(10)
    assert len(_marks(hall)) == 4
    assert _marks(hall, shared=False) == []


def test_what_was_written_is_not_written_again_when_its_writer_ends_before_we_see_it(
    hall: Hall,
) -> None:
    first, second = hall.start(), hall.start()
    for one in (first, second):
        hall.enter(one)
    hall.pass_time(1)
    second.stalled = True
    mark = hall.say()
    late = second.waiting.pop()
    hall.pass_time(1)
    second.stalled = False
    hall.pass_time(1)
    hall.close(first)
    hall.pass_time(0.5)
    second.waiting.append(late)
    hall.pass_time(1)
    assert _marks(hall) == [mark]


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
    first, second = hall.start(), hall.start()
    for one in (first, second):
        hall.enter(one)
    for _ in range(20):
        hall.say()
    hall.pass_time(1)
    (tmp_path / "new").mkdir()
    other = Hall(tmp_path / "new")  # which closes it when the test has ended
    hall.database = other.database
    marks = [hall.say()]
    hall.pass_time(SETTLED)
    marks.append(hall.say())
    hall.pass_time(SETTLED)
    assert _marks(hall) == marks
    assert _marks(hall, shared=False) == []


@pytest.mark.parametrize("jump", [-86_400.0, -40.0, 40.0, 86_400.0])
def test_a_clock_that_jumps_loses_nothing(jump: float, hall: Hall) -> None:
    first, second = hall.start(), hall.start()
    for one in (first, second):
        hall.enter(one)
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


@pytest.mark.parametrize("calls", range(8))
def test_a_transaction_that_breaks_at_any_call_is_made_again_as_a_whole(
    calls: int, hall: Hall
) -> None:
    first, second = hall.start(), hall.start()
    for one in (first, second):
        hall.enter(one)
    hall.pass_time(1)
    for one in (first, second):
        one.stalled = True
    marks = [hall.say(), hall.say()]
    hall.now += 7
    hall.write(second, breaking=calls)
    hall.write(first, breaking=calls)
    for one in (first, second):
        one.stalled = False
    hall.pass_time(SETTLED)
    assert _marks(hall) == marks
    assert _marks(hall, shared=False) == []


STEPS = st.one_of(
    st.tuples(st.just("start")),
    st.tuples(st.just("say"), st.sampled_from(["", "again", "named"])),
    st.tuples(st.sampled_from(["enter", "leave", "kill", "close"]), st.integers(0, 3)),
    st.tuples(st.just("stall"), st.integers(0, 3)),
    st.tuples(st.just("break"), st.integers(0, 3), st.integers(0, 8)),
    st.tuples(st.just("pass"), st.sampled_from([0.5, 1.0, 3.0, 8.0])),
)


@settings(max_examples=80, deadline=None)
@given(st.lists(STEPS, max_size=40))
def test_whatever_comes_and_goes_every_event_is_there_once_or_in_a_gap(
    steps: list[tuple[str, ...]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        hall = Hall(Path(folder))
        for _ in range(2):
            hall.enter(hall.start())
        hall.pass_time(0.5)
        alike = set[int]()
        for name, *arguments in steps:
            _step(hall, name, arguments, alike)
        for one in hall.bridges:
            one.stalled = False
        hall.pass_time(SETTLED)
        for one in [*hall.bridges]:
            hall.close(one)
        hall.enter(hall.start())
        hall.pass_time(1)
        shared, own = Counter(_marks(hall)), Counter(_marks(hall, shared=False))
        # One that stood still while others said that nobody was there keeps what it saw.
        assert own.keys() & shared.keys() <= alike
        in_gaps = {
            mark
            for mark, at in hall.happened.items()
            for from_, to in _gaps(hall)
            if from_ <= iso(at) <= to
        }
        assert {mark for mark, count in shared.items() if count > 1} == set()
        missing = hall.happened.keys() - shared.keys() - own.keys() - in_gaps
        # Of what is alike, one may stand for another.
        assert missing - alike == set()


def _step(hall: Hall, name: str, arguments: Sequence[object], alike: set[int]) -> None:
    match name, arguments:
        case "start", []:
            hall.start()
        case "say", [str(body)]:
            more = {"stanzaId": f"id{len(hall.happened)}-{hall.now}"} if body == "named" else {}
            mark = hall.say("" if more else body, **more)
            if body == "again":
                alike.add(mark)
        case "pass", [float(seconds)]:
            hall.pass_time(seconds)
        case _, [int(number), *rest] if hall.bridges:
            bridge = hall.bridges[number % len(hall.bridges)]
            if name == "stall":
                bridge.stalled = not bridge.stalled
            elif name == "break":
                hall.write(bridge, breaking=int(str(rest[0])))
            else:
                getattr(hall, name)(bridge)
