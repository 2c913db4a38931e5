from dataclasses import replace

import pytest

from bridge.xmpp.checks.report import (
    CREATED_HINT,
    MAX_CAUSE_CHARACTERS,
    MAX_ROOM_CHARACTERS,
    MAX_ROOMS_NAMED,
    CheckedRoom,
    CheckStage,
    Visit,
    expected_stages,
    report_of,
)
from bridge.xmpp.model.faults import Fault

LAB = "lab@conference.example.org"
LOGS = "logs@conference.example.org"
TEAM = "team@conference.example.org"
ROOMS = (LAB, LOGS, TEAM)
BANNED = Fault("forbidden", "We are banned.", "Ask the owner.")
NOT_VISITED = f"Not visited: {LOGS}, {TEAM}."
CUT = Fault("connection-reset", "The connection was cut.", "Wait.")
STAGE = CheckStage("leave", True, 1.5, "the room confirmed it", "")


def test_a_room_that_joining_made_is_named_although_another_failed() -> None:
    report = report_of(ROOMS, [STAGE], 1.0, [Visit(LAB, BANNED), Visit(LOGS, created=True)], CUT)
    assert report.diagnosis.endswith(
        f"Not visited: {TEAM}. Joining created rooms that did not exist, {LOGS}: {CREATED_HINT}"
    )
    assert report.created == (LOGS,)


def test_the_words_of_a_fault_fit_into_one_line() -> None:
    fault = Fault("made\nup", "first\nsecond\u202e", "hint")
    report = report_of([LAB], [], 1.0, [], fault)
    assert (report.ok, report.condition) == (False, "made\\u{A}up")
    assert report.diagnosis == "first\\u{A}second\\u{202E}"


@pytest.mark.parametrize(
    ("others", "told"),
    [
        ([0], f"the room {LAB} with nobody else"),
        ([1], f"the room {LAB} with 1 other occupant"),
        ([2, 0, 1], "3 rooms with 3 other occupants"),
    ],
)
def test_of_rooms_that_are_well_it_counts_the_company(others: list[int], told: str) -> None:
    rooms = ROOMS[: len(others)]
    visits = [Visit(room, others=number) for room, number in zip(rooms, others, strict=True)]
    report = report_of(rooms, [STAGE], 0.4567, visits, None)
    assert report.diagnosis == f"Everything works: in {told}, 0.46 s in all."
    assert (report.ok, report.condition, report.ms) == (True, None, 456.7)
    each = [CheckedRoom(room, True, None) for room in ROOMS]
    assert report.rooms == (each if len(others) > 1 else None)


def test_of_several_rooms_that_failed_it_says_which_and_why() -> None:
    visits = [Visit(LAB, BANNED), Visit(LOGS), Visit(TEAM, CUT)]
    report = report_of(ROOMS, [STAGE], 1.0, visits, None)
    assert report.diagnosis == (
        f"2 of 3 rooms failed. {LAB}: We are banned. {TEAM}: The connection was cut."
    )
    assert (report.ok, report.condition) == (False, "forbidden")
    assert report.rooms == [
        CheckedRoom(LAB, False, "forbidden"),
        CheckedRoom(LOGS, True, None),
        CheckedRoom(TEAM, False, "connection-reset"),
    ]


def test_a_room_that_was_not_visited_is_not_well() -> None:
    for visits, told in (
        ([Visit(LAB, CUT)], f"1 of 3 rooms failed. {LAB}: {CUT.message} {NOT_VISITED}"),
        ([], CUT.message),
    ):
        report = report_of(ROOMS, [STAGE], 1.0, visits, CUT)
        assert (report.ok, report.diagnosis) == (False, told)
        assert report.rooms == [CheckedRoom(room, False, "connection-reset") for room in ROOMS]


@pytest.mark.parametrize("extra", [0, 1])
def test_of_many_rooms_some_are_named_and_the_rest_counted(extra: int) -> None:
    rooms = [f"room-{number}@muc" for number in range(MAX_ROOMS_NAMED + extra)]
    report = report_of(rooms, [], 1.0, [Visit(room, BANNED) for room in rooms], None)
    assert report.diagnosis.startswith(f"{len(rooms)} of {len(rooms)} rooms failed. room-0@muc: ")
    assert report.diagnosis.count("banned") == MAX_ROOMS_NAMED
    assert report.diagnosis.endswith(" 1 more failed, see the phases.") is bool(extra)
    report = report_of(["first@muc", *rooms], [], 1.0, [Visit("first@muc", CUT)], CUT)
    assert report.diagnosis.endswith(f"{rooms[MAX_ROOMS_NAMED - 1]}{' and 1 more' * extra}.")
    made = report_of(rooms, [], 1.0, [Visit(room, created=True) for room in rooms], None)
    assert f"{rooms[MAX_ROOMS_NAMED - 1]}{' and 1 more' * extra}: {CREATED_HINT}" in made.diagnosis


def test_the_diagnosis_of_fifty_rooms_is_a_few_sentences_whatever_they_are_called() -> None:
    rooms = [f"{'x' * 1000}{number}@muc" for number in range(50)]
    fault = Fault("forbidden", "y" * 5000, "")
    told = [
        report_of(rooms, [], 1.0, visits, early).diagnosis
        for visits, early in [
            ([Visit(room, fault) for room in rooms], None),
            ([Visit(room, fault) for room in rooms[:10]], fault),
            ([Visit(room, created=True) for room in rooms], None),
        ]
    ]
    most = MAX_ROOMS_NAMED * (2 * MAX_ROOM_CHARACTERS + MAX_CAUSE_CHARACTERS + 100) + 200
    assert all(len(one) <= most for one in told)


def test_the_phases_of_a_room_are_expected_once_for_each_of_several() -> None:
    names = ["settings", "resolve", "connect", "tls", "sasl", "bind"]
    in_a_room = ["disco", "join", "occupants", "leave"]
    assert expected_stages([LAB], send=False) == [(name, None) for name in names + in_a_room]
    in_a_room.insert(3, "send")
    assert expected_stages([LAB, TEAM], send=True) == [
        *((name, None) for name in names),
        *((name, LAB) for name in in_a_room),
        *((name, TEAM) for name in in_a_room),
    ]


def test_a_report_is_told_under_the_names_of_the_contract() -> None:
    told = report_of([LAB], [STAGE], 1.0, [Visit(LAB)], None).encode()
    stage = {"name": "leave", "ok": True, "ms": 1.5, "detail": "the room confirmed it", "hint": ""}
    assert told == {
        "ok": True,
        "phases": [stage],
        "diagnosis": f"Everything works: in the room {LAB} with nobody else, 1.00 s in all.",
        "condition": None,
        "roomCreated": False,
        "ms": 1000.0,
        "offers": {},
        "uses": {},
    }
    of_two = report_of([LAB, TEAM], [replace(STAGE, room=LAB)], 1.0, [Visit(LAB, BANNED)], BANNED)
    assert of_two.encode()["phases"] == [stage | {"room": LAB}]
    assert of_two.encode()["rooms"] == [
        {"room": LAB, "ok": False, "condition": "forbidden"},
        {"room": TEAM, "ok": False, "condition": "forbidden"},
    ]


def test_rooms_that_may_be_meant_are_named_beside_one_that_joining_made() -> None:
    visits = [Visit(LAB, created=True, candidates=[LOGS, "l\u202e@muc"])]
    report = report_of([LAB], [STAGE], 1.0, visits, None)
    assert " was made by joining it: " in report.diagnosis
    assert report.encode()["candidates"] == [LOGS, "l\\u{202E}@muc"]
    assert report.diagnosis.endswith(
        f'{CREATED_HINT} Rooms with similar names: "{LOGS}", "l\\\\u{{202E}}@muc".'
    )
