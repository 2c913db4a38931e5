from dataclasses import replace
from pathlib import Path

import pytest

from bridge.settings.load import load
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
    settings_stage,
)
from bridge.xmpp.model.faults import Fault

LAB = "lab@conference.example.org"
LOGS = "logs@conference.example.org"
TEAM = "team@conference.example.org"
ROOMS = (LAB, LOGS, TEAM)
BANNED = Fault("forbidden", "We are banned.", "Ask the owner.")
CUT = Fault("connection-reset", "It was cut.", "Wait.")
WORKS = "Everything works: in"
MADE = f"Joining created rooms that did not exist, {LOGS}: {CREATED_HINT}"
PASSED = "All stages passed: in"
MUTE = f"Without voice in {LAB}: nobody gets what the bridge says there until a moderator"
STAGE = CheckStage("leave", True, 1.5, "the room confirmed it", "")


@pytest.mark.parametrize(
    ("visits", "early", "conditions", "diagnosis"),
    [
        ([Visit(LAB)], None, [None], f"{WORKS} the room {LAB} with nobody else, 0.46 s in all."),
        (
            [Visit(LAB, others=1)],
            None,
            [None],
            f"{WORKS} the room {LAB} with 1 other occupant, 0.46 s in all.",
        ),
        (
            [Visit(LAB, others=1, voiceless=True)],
            None,
            [None],
            f"{PASSED} the room {LAB} with 1 other occupant, 0.46 s in all. {MUTE} gives it voice.",
        ),
        (
            [Visit(LAB, others=2), Visit(LOGS, created=True), Visit(TEAM, others=1)],
            None,
            [None, None, None],
            f"{WORKS} 3 rooms with 3 other occupants, 0.46 s in all. {MADE}",
        ),
        (
            [Visit(LAB, BANNED), Visit(LOGS), Visit(TEAM, CUT)],
            None,
            [BANNED, None, CUT],
            f"2 of 3 rooms failed. {LAB}: We are banned. {TEAM}: It was cut.",
        ),
        (
            [Visit(LAB, BANNED), Visit(LOGS, created=True)],
            CUT,
            [BANNED, None, CUT],
            f"1 of 3 rooms failed. {LAB}: We are banned. Not visited: {TEAM}. {MADE}",
        ),
        (
            [Visit(LAB, CUT)],
            CUT,
            [CUT, CUT, CUT],
            f"1 of 3 rooms failed. {LAB}: It was cut. Not visited: {LOGS}, {TEAM}.",
        ),
        ([], CUT, [CUT, CUT, CUT], "It was cut."),
    ],
)
def test_the_outcome_is_told_of_each_room_and_of_all(
    visits: list[Visit], early: Fault | None, conditions: list[Fault | None], diagnosis: str
) -> None:
    rooms = ROOMS[: len(conditions)]
    report = report_of(rooms, [STAGE], 0.4567, visits, early)
    assert (report.diagnosis, report.ms) == (diagnosis, 456.7)
    told = [fault.condition if fault else None for fault in conditions]
    assert (report.ok, report.condition) == (not any(told), told[0])
    each = [CheckedRoom(room, not it, it) for room, it in zip(rooms, told, strict=True)]
    assert report.rooms == (each if len(rooms) > 1 else None)
    assert report.created == tuple(visit.room for visit in visits if visit.created)


def test_the_words_of_a_fault_fit_into_one_line() -> None:
    fault = Fault("made\nup", "first\nsecond\u202e", "hint")
    report = report_of([LAB], [], 1.0, [], fault)
    assert (report.ok, report.condition) == (False, "made\\u{A}up")
    assert report.diagnosis == "first\\u{A}second\\u{202E}"


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
    assert all(len(each) <= most for each in told)


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


def test_the_stage_of_the_settings_has_the_milliseconds_that_reading_them_took(
    tmp_path: Path,
) -> None:
    configuration = load({}, cwd=tmp_path, package_root=tmp_path, searching=False)
    assert settings_stage(configuration, 0.25).ms == 250
