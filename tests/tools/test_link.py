"""Which room a name means."""

from dataclasses import replace

import pytest

from bridge.mcp.errors import ArgumentError, ToolError
from bridge.text import NAME_CHARACTERS
from bridge.tools.link import MAX_NAMED
from bridge.xmpp.model.room import Departure
from tests.tools.played import LOGS, OTHER_LOBBY, ROOM, Played, in_room, in_rooms


@pytest.mark.parametrize(
    ("name", "room"),
    [
        (None, ROOM),
        (ROOM, ROOM),
        (ROOM.upper(), ROOM),
        (LOGS, LOGS),
        ("logs", LOGS),
        (OTHER_LOBBY, OTHER_LOBBY),
    ],
)
def test_a_room_is_named_by_its_jid_or_by_a_local_part_of_its_own(
    name: str | None, room: str
) -> None:
    assert in_rooms(ROOM, LOGS, OTHER_LOBBY).link.room(name).name == room


@pytest.mark.parametrize(
    ("name", "condition"),
    [
        ("lobby", "bad-request"),
        ("nowhere", "item-not-found"),
        (f"{ROOM}/Wilma", "item-not-found"),
        ("", "item-not-found"),
        ("\ud800", "item-not-found"),
        ('"\u202e\n', "item-not-found"),
    ],
)
def test_another_name_is_refused_with_the_rooms_that_there_are(name: str, condition: str) -> None:
    with pytest.raises(ArgumentError) as refusal:
        in_rooms(ROOM, LOGS, OTHER_LOBBY).link.room(name)
    error = refusal.value
    assert error.condition == condition
    assert all(f'"{room}"' in error.message for room in (ROOM, LOGS, OTHER_LOBBY))
    assert error.message.isprintable()
    if name.isalnum():
        assert f'"{name}"' in error.message


ELSEWHERE = "is in the room", {"nickname": "Robot", "room": LOGS}
A_ROOM = "is the name of a room", {"room": LOGS}


@pytest.mark.parametrize(
    ("name", "asked", "sentence", "step"),
    [
        ("Robot", ROOM, *ELSEWHERE),
        ("robot", ROOM, *ELSEWHERE),
        (f"{LOGS}/Robot", ROOM, "is in the room", {"nickname": f"{LOGS}/Robot", "room": LOGS}),
        ("robot@x", ROOM, "is in the room", {"nickname": "robot@x", "room": LOGS}),
        (LOGS.upper(), ROOM, *A_ROOM),
        ("logs", LOGS, *A_ROOM),
        ("lobby", ROOM, "", {}),  # two rooms have this name
        ("Robot", LOGS, "", {}),
        (f"{LOGS}/Robot", LOGS, "", {}),
        ("robot", LOGS, "", {}),  # the room asked about has a similar name itself
        ("Wilma", ROOM, "", {}),
        ("Fred", ROOM, f'"Fred" was in the room "{LOGS}"', {"nickname": "Fred", "room": LOGS}),
        ("Fred", LOGS, "", {}),
        ("Nobody", ROOM, "", {}),
    ],
)
def test_a_name_that_means_a_room_or_somebody_in_another_room_is_told(
    name: str, asked: str, sentence: str, step: dict[str, object]
) -> None:
    played = in_rooms(ROOM, LOGS, OTHER_LOBBY)
    played.picture, there = in_room(ROOM, "Wilma"), in_room(LOGS, "Robot", "Wilma")
    mcp, robot, wilma = there.occupants
    people = (mcp, replace(robot, real_jid="robot@x/1"), wilma)
    gone = (Departure("Fred", 1.0, "left"),)
    played.further[0].picture = replace(there, occupants=people, departures=gone)
    link = played.link
    said, arguments = link.elsewhere(name, [link.room(asked)])
    assert (sentence in said, bool(said), arguments) == (True, bool(sentence), step)


def test_of_many_rooms_some_are_named_and_the_rest_counted() -> None:
    rooms = [f"{number}{'x' * 900}@conference.example" for number in range(50)]
    for name in ("nowhere", "y" * 2_000, "\u202e" * 2_000):
        with pytest.raises(ArgumentError) as refusal:
            in_rooms(*rooms).link.room(name)
        message = refusal.value.message
        assert message.endswith(f" and {50 - MAX_NAMED} more.")
        assert message.count('"') == 2 * (MAX_NAMED + 1)
        named = len(" (U+202E RIGHT-TO-LEFT OVERRIDE)")
        assert len(message) < (MAX_NAMED + 2) * (NAME_CHARACTERS + len('"…", ')) + named


def test_without_settings_there_is_no_room() -> None:
    for name in (None, ROOM):
        with pytest.raises(ToolError) as refusal:
            Played(room_jid="").link.room(name)
        assert refusal.value.condition == "unconfigured"
