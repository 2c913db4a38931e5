"""Who was in a room and when, as far as its events tell."""

from collections.abc import Mapping
from typing import Any

import pytest

from bridge.page.attendance import LOST, MAX_LANES, Attendance
from bridge.page.pseudonyms import Pseudonyms
from bridge.page.timeline import Lane, Presence
from bridge.xmpp.model.room import GONE_MEANWHILE

BEGIN = 100
Exact = Mapping[str, Any]


def join(name: str, role: str = "participant", **more: Any) -> Exact:
    return {"kind": "join", "sender": name, "role": role, "affiliation": "none", **more}


def phase(name: str) -> Exact:
    return {"kind": "connection", "phase": name}


ENTERED: Exact = {"kind": "connection", "sender": "Us"}
ENTERING = [(100, phase("joining")), (110, join("Ann")), (120, join("Us")), (121, ENTERED)]


def seat(from_: int, to: int | None = None, role: str = "participant", **more: Any) -> Presence:
    return Presence(from_, to, role, "none", **more)


def lanes(*events: tuple[int, Exact], begin: int = BEGIN, by: str = "us") -> list[Lane]:
    attendance = Attendance()
    for at, exact in events:
        attendance.take(at, BEGIN, exact, by)
    return [lane for _, lane in attendance.lanes(begin, Pseudonyms(on=False))]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([(150, join("Ann"))], [seat(150)]),
        ([(150, join("Ann")), (160, join("Ann"))], [seat(150)]),
        ([(150, {"kind": "message", "source": "live", "sender": "Ann"})], None),
        ([(150, {"kind": "message", "source": "history", "sender": "Ann"})], []),
        (
            [(150, join("Ann")), (170, {**join("Ann", "visitor"), "kind": "role"})],
            [seat(150, 170), seat(170, role="visitor")],
        ),
        (
            [
                (150, join("Ann")),
                (180, {"kind": "leave", "sender": "Ann", "codes": [307], "actor": "Bob>"}),
            ],
            [seat(150, 180, left="kicked by <Bob\\u{3E}>")],
        ),
        (
            [(150, join("Ann")), (180, {"kind": "leave", "sender": "Ann", "status": "bye\n"})],
            [seat(150, 180, left="left: bye\\u{A}")],
        ),
        (
            [(150, join("Ann")), (180, {"kind": "leave", "destroyed": True})],
            [seat(150, 180, left="the room was destroyed")],
        ),
    ],
)
def test_a_lane_is_what_an_occupant_did(
    events: list[tuple[int, Exact]], expected: list[Presence] | None
) -> None:
    spans = [span for lane in lanes(*events) for span in lane.spans]
    assert spans == ([Presence(BEGIN, before=True)] if expected is None else expected)


def test_who_leaves_unseen_was_there_from_the_beginning() -> None:
    (lane,) = lanes((150, {"kind": "leave", "sender": "Ann"}))
    assert lane.spans == (Presence(BEGIN, 150, before=True, left="left"),)


def test_a_changed_nickname_goes_on_in_a_lane_of_its_own() -> None:
    change = {"kind": "nick", "sender": "Ann", "newNickname": "Anna"}
    first, second = lanes((150, join("Ann", self=True)), (170, change))
    assert first == Lane("Ann", self_=True, spans=(seat(150, 170, left="is now <Anna>"),))
    assert second == Lane("Anna", self_=True, spans=(seat(170),))


def test_whom_the_room_lists_when_we_join_was_there_before_and_we_were_not() -> None:
    us, ann = lanes(*ENTERING)
    assert us == Lane("Us", self_=True, spans=(seat(120),))
    assert ann == Lane("Ann", spans=(seat(110, before=True),))


def test_a_lost_connection_ends_our_lane_and_those_of_who_went_meanwhile() -> None:
    again = [(300, phase("joining")), (310, join("Bob")), (320, join("Us")), (330, phase("joined"))]
    us, ann, bob = lanes(*ENTERING, (130, phase("joined")), (200, phase("waiting")), *again)
    assert us.spans == (seat(120, 200, left=LOST), seat(320))
    assert ann.spans == (seat(110, 330, before=True, left=GONE_MEANWHILE),)
    assert bob.spans == (seat(310, before=True),)


def test_a_second_bridge_that_joins_lists_nobody_anew() -> None:
    attendance = Attendance()
    second = [(200, phase("joining")), (210, ENTERED), (220, phase("joined"))]
    for by, events in (("one", [*ENTERING, (130, phase("joined"))]), ("two", second)):
        for at, exact in events:
            attendance.take(at, BEGIN, exact, by)
    (_, us), (_, ann) = attendance.lanes(BEGIN, Pseudonyms(on=False))
    assert (us.spans[-1].to, ann.spans[-1].to) == (None, None)


def test_lanes_before_the_page_begins_are_left_out_and_there_are_not_too_many() -> None:
    assert not lanes((150, join("Ann")), (160, {"kind": "leave", "sender": "Ann"}), begin=161)
    assert lanes((150, join("Ann")), (161, {"kind": "leave", "sender": "Ann"}), begin=161)
    many = [(150 + number, join(f"n{number}")) for number in range(MAX_LANES + 1)]
    assert len(lanes(*many, (9_000, join("Us", self=True)))) == MAX_LANES
    assert lanes(*many, (9_000, join("Us", self=True)))[0].self_
