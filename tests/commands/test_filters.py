import argparse

import pytest

from bridge.cli import parser
from bridge.commands.exit import UsageError
from bridge.commands.filters import Selection, selection_of
from bridge.xmpp.model import events
from bridge.xmpp.model.events import Event, MessageReceived, Phase
from bridge.xmpp.model.journal import Record

LAB, TEAM = "lab@conference.example.org", "team@conference.example.org"
OTHER_LAB = "lab@rooms.example.org"

HAPPENED: dict[str, tuple[Event, str]] = {
    "alice": (MessageReceived(f"{LAB}/Alice", "Alice", "Deploy FAILED, code 17"), LAB),
    "bob": (MessageReceived(f"{TEAM}/Bob", "Bob", "all is well"), TEAM),
    "typing": (MessageReceived(f"{LAB}/Bob", "Bob", payload=("composing",)), LAB),
    "zoe": (events.OccupantJoined(f"{LAB}/Zoe", "Zoe", "participant", "none"), LAB),
    "gone": (events.OccupantLeft(f"{TEAM}/Bob", "Bob", status="code 18"), TEAM),
    "phase": (events.ConnectionChanged(Phase.WAITING), ""),
}


def _picked(*words: str, rooms: tuple[str, ...] = (LAB, TEAM)) -> set[str]:
    selection = selection_of(_parsed(*words), rooms)
    assert selection is not None
    return _by(selection)


def _by(selection: Selection) -> set[str]:
    return {
        name
        for name, (event, room) in HAPPENED.items()
        if selection.picks(Record(1, 0.0, event, room))
    }


def _parsed(*words: str) -> argparse.Namespace:
    return parser().parse_args(["watch", *words])


@pytest.mark.parametrize(
    ("words", "picked"),
    [
        ("--room lab", {"alice", "zoe"}),
        ("--room LAB@conference.example.org", {"alice", "zoe"}),
        ("--room lab --room team", {"alice", "bob", "zoe", "gone"}),
        ("--from Alice", {"alice"}),
        ("--from Alice --from team@conference.example.org/Bob", {"alice", "bob", "gone"}),
        ("--contains failed", {"alice"}),
        (r"--pattern code.[0-9]+", {"alice", "gone"}),
        (r"--pattern code.[0-9]+ --kind leave", {"gone"}),
        ("--kind join --kind leave", {"zoe", "gone"}),
        ("--kind message", {"alice", "bob", "typing"}),
        ("--kind connection", {"phase"}),
        ("--kind connection --room lab", set()),
        ("--from Bob --contains well --room lab", set()),
    ],
)
def test_each_filter_narrows_and_one_that_is_given_again_widens(
    words: str, picked: set[str]
) -> None:
    assert _picked(*words.split()) == picked


def test_without_a_filter_nothing_is_selected() -> None:
    assert selection_of(_parsed(), (LAB,)) is None


def test_the_usual_selection_is_what_people_do() -> None:
    assert _by(Selection()) == {"alice", "bob", "zoe", "gone"}


@pytest.mark.parametrize(
    ("name", "what"), [("nix", "is no room of the settings"), ("lab", "is the name of several")]
)
def test_a_room_that_is_not_one_of_the_settings_is_refused_with_those(name: str, what: str) -> None:
    with pytest.raises(UsageError, match=what) as refused:
        selection_of(_parsed("--room", name), (LAB, OTHER_LAB))
    assert f'"{LAB}", "{OTHER_LAB}"' in str(refused.value)


@pytest.mark.parametrize("pattern", ["(a", "(?=a)"])
def test_what_is_no_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(UsageError, match="--pattern is no regular expression of RE2: "):
        selection_of(_parsed("--pattern", pattern), (LAB,))
