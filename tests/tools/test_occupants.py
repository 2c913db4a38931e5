import dataclasses
import time
from typing import Any

import pytest

from bridge.mcp.errors import ArgumentError, ToolError
from bridge.mcp.jsonrpc import compact
from bridge.text import iso, visible
from bridge.tools import occupants, resources
from bridge.tools.entries import NOTICE, RESULT_BYTES, json_size
from bridge.tools.link import MAX_NAMED
from bridge.tools.occupants import LEFT_BYTES, LEFT_SECONDS, MAX_LEFT
from bridge.xmpp.model import events
from bridge.xmpp.model.events import Phase
from bridge.xmpp.model.room import Departure, LastError, Occupant
from tests.tools.played import (
    FAULT,
    LOGS,
    OTHER_LOBBY,
    ROOM,
    STATUS,
    Played,
    arguments,
    fitting,
    in_room,
    in_rooms,
    wire,
)

TOOL = occupants.xmpp_occupants


def _occupants(played: Played, **given: object) -> dict[str, Any]:
    told = fitting(TOOL, TOOL(played.link, **arguments(TOOL, given)))
    assert told["notice"] == NOTICE
    return told


def _with(*there: Occupant) -> Played:
    return Played(dataclasses.replace(STATUS, occupants=(*STATUS.occupants, *there)))


def _without(*departures: Departure) -> Played:
    return Played(dataclasses.replace(STATUS, departures=departures))


def _named(nickname: str, **more: Any) -> Occupant:
    return Occupant(f"{ROOM}/{nickname}", nickname, "participant", "none", 1.5, **more)


def test_an_occupant_has_the_fields_of_the_contract_but_what_has_nothing_to_say() -> None:
    wilma = _named("Wilma", show="away", status="lunch", real_jid="w@x/y", last_message_at=2.25)
    stranger = Occupant(f"{ROOM}/Betty", "Betty", "visitor", "none", None)
    told = _occupants(_with(wilma, stranger))
    assert (told["room"], told["count"], told["more"]) == (ROOM, 3, False)
    assert told["cursor"] == "epoch-0"
    betty, own, other = told["occupants"]
    assert own["self"] is True
    silent = {"nickname": "Betty", "role": "visitor", "affiliation": "none", "voice": False}
    assert betty == silent
    assert other == {
        "nickname": "Wilma",
        "role": "participant",
        "affiliation": "none",
        "voice": True,
        "show": "away",
        "status": "lunch",
        "jid": "w@x/y",
        "since": "1970-01-01T00:00:01.500Z",
        "lastMessageAt": "1970-01-01T00:00:02.250Z",
    }


def test_who_is_of_one_account_is_told_of_each_of_them() -> None:
    played = _with(
        _named("Robot", real_jid="bot@x/1"),
        _named("robot-2", real_jid="bot@x/2"),
        _named("Wilma", real_jid="w@x/1"),
        _named("hidden"),
        _named("hidden too"),
    )
    same = {each["nickname"]: each.get("sameAccountAs") for each in _occupants(played)["occupants"]}
    told = {name: others for name, others in same.items() if others}
    assert told == {"Robot": ["robot-2"], "robot-2": ["Robot"]}
    crowd = [_named(f"{number:03}", real_jid=f"bot@x/{number}") for number in range(100)]
    first = _occupants(_with(*crowd))["occupants"][0]
    assert first["sameAccountAs"] == [f"{number:03}" for number in range(1, MAX_NAMED + 1)]


def test_the_people_are_told_in_the_order_of_their_nicknames_page_by_page() -> None:
    names = ["W\u200bilma", "a/b", "Zoe", *(f"{number:04}" for number in range(200))]
    played = _with(*map(_named, names))
    for limit in (7, 500):
        told: list[str] = []
        after: dict[str, object] = {}
        for _ in range(len(names) + 1):
            page = _occupants(played, limit=limit, **after)
            assert (page["count"], len(page["occupants"]) <= limit) == (len(names) + 1, True)
            assert json_size(page) <= RESULT_BYTES
            told += [each["nickname"] for each in page["occupants"]]
            if not page["more"]:
                break
            after = {"after": told[-1]}
        assert told == sorted(["McpDebug", *map(visible, names)])
    # Who was the last on a page may have left before the next is asked for.
    assert _occupants(played, after="Zod")["occupants"][0]["nickname"] == "Zoe"
    assert _occupants(played, after="a/b")["occupants"] == []


def test_who_went_in_the_last_hour_is_told_newest_first() -> None:
    now = time.time()
    gone = [
        Departure("Early", now - LEFT_SECONDS - 5, "left"),
        Departure("Fred", now - LEFT_SECONDS + 60, 'kicked: "too loud"', "Wilma"),
        Departure("Betty", now, "left"),
    ]
    told = _occupants(_without(*gone))
    assert told["left"] == [
        {"nickname": "Betty", "at": iso(now), "why": "left"},
        {
            "nickname": "Fred",
            "at": iso(now - LEFT_SECONDS + 60),
            "why": 'kicked: "too loud"',
            "by": "Wilma",
        },
    ]
    assert told["count"] == 1
    assert "left" not in _occupants(_without(gone[0]))
    assert "left" not in _occupants(_without(*gone), after="A")


def test_who_is_asked_for_by_name_and_went_is_no_error() -> None:
    played = _without(*(Departure(each, time.time(), "left") for each in ("Fr\u200bed", "Betty")))
    for name in ("Fr\u200bed", visible("Fr\u200bed")):
        told = _occupants(played, nickname=name)
        assert (told["count"], told["occupants"]) == (0, [])
        assert [each["nickname"] for each in told["left"]] == [visible(name)]
    with pytest.raises(ToolError, match="Nobody"):
        _occupants(played, nickname="Fred")


@pytest.mark.parametrize(("character", "shown"), [("", MAX_LEFT), ("x", 4), ("\u202e", 4)])
def test_those_who_went_are_bounded_and_leave_most_to_those_who_are_there(
    character: str, shown: int
) -> None:
    text = character * 900
    gone = [
        Departure(f"{number}{text}", time.time() + number, f"left{text}", text or None)
        for number in range(MAX_LEFT + 1)
    ]
    told = _occupants(_without(*gone))
    assert len(told["left"]) == shown
    assert told["left"][0]["nickname"].startswith(str(MAX_LEFT))
    assert json_size(told["left"]) <= LEFT_BYTES + len("[]")
    assert [each["nickname"] for each in told["occupants"]] == ["McpDebug"]


def test_one_is_found_by_the_nickname_as_it_is_and_as_it_is_shown() -> None:
    exact = "W\u200bilma"
    played = _with(_named(exact), _named("Wilma"))
    for name in (exact, visible(exact)):
        (occupant,) = _occupants(played, nickname=name)["occupants"]
        assert (occupant["nickname"], occupant["escaped"]) == ("W\\u{200B}ilma", True)
    assert _occupants(played, nickname="Wilma")["count"] == 1


def test_a_nickname_that_nobody_has_is_told_with_those_that_there_are() -> None:
    strangers = [_named(f"x\u202e\n{number} {'y' * 900}") for number in range(30)]
    with pytest.raises(ToolError) as refusal:
        _occupants(_with(*strangers), nickname="wilma")
    error = refusal.value
    assert error.condition == "item-not-found"
    assert '"wilma"' in error.message
    assert '"McpDebug"' in error.message
    assert "and 11 more" in error.message
    assert error.message.endswith(NOTICE)
    assert visible(error.message) == error.message
    assert len(error.message) < 4_000


@pytest.mark.parametrize("quotes", [False, True])
def test_a_resource_out_of_the_room_says_why_it_shows_nobody(quotes: bool) -> None:
    error = LastError(FAULT._replace(quotes=quotes), 1.0)
    picture = dataclasses.replace(STATUS, phase=Phase.WAITING, occupants=(), last_error=error)
    told = wire(resources.occupants.function(Played(picture).link))
    assert (told["occupants"], told["count"], told["more"]) == ([], 0, False)
    for each in (told, wire(resources.messages.function(Played(picture).link))):
        assert each["outBecause"].endswith(f"(phase waiting): {FAULT.message} {FAULT.hint}")
        assert ("notice" in each) is quotes
    assert "outBecause" not in wire(resources.occupants.function(Played().link))


def test_recent_messages_are_those_that_say_something() -> None:
    played = Played()
    heard = played.publish(events.MessageReceived("r/W", "W", "hello"))
    composing = ("composing (http://jabber.org/protocol/chatstates)",)
    typing = played.publish(events.MessageReceived("r/W", "W", "", payload=composing))
    mute = played.publish(events.MessageReceived("r/W", "W", "", payload=("answer (x)",)))
    bounced = played.publish(events.SendFailed("id-1", "not-acceptable"))
    played.publish(events.MessageReceived("r/W", "W", "", encrypted="OMEMO"))
    told = wire(resources.messages.function(played.link))
    assert [each.get("encrypted") for each in told["entries"]] == [None, "OMEMO"]
    uris = [resources.STATUS, resources.MESSAGES, *_uris(ROOM, "messages")]
    assert resources.changed_by(played.journal.encode(heard), [ROOM]) == uris
    assert resources.changed_by(played.journal.encode(typing), [ROOM]) == []
    for each in (mute, bounced):  # nothing to read, but the status has another cursor
        assert resources.changed_by(played.journal.encode(each), [ROOM]) == [resources.STATUS]


def test_each_room_has_its_own_resources() -> None:
    played = _in_three()
    played.hear("in the lobby")
    played.hear("in the logs", room=LOGS)
    for room, body in ((ROOM, "in the lobby"), (LOGS, "in the logs")):
        told = wire(resources.room_messages.function(played.link, room=room))
        assert (told["room"], [each["body"] for each in told["entries"]]) == (room, [body])
        told = wire(resources.room_occupants.function(played.link, room=room))
        assert told == _occupants(played, room=room)


def test_recent_messages_fit_in_a_page_and_are_the_newest() -> None:
    played = Played()
    played.hear(*(f"{number} {'x' * 50_000}" for number in range(60)))
    told = wire(resources.messages.function(played.link))
    assert json_size(told) <= RESULT_BYTES
    numbers = [int(each["body"].split()[0]) for each in told["entries"]]
    assert numbers == list(range(60 - len(numbers), 60))


@pytest.mark.parametrize(
    "event",
    [
        events.OccupantJoined("r/W", "W", "participant", "none"),
        events.OccupantChanged("r/W", "W", "visitor", "none", former_role="participant"),
        events.OccupantLeft("r/W", "W"),
        events.NicknameChanged("r/W", "W", "V"),
        events.ConnectionChanged(Phase.WAITING),
    ],
)
def test_whatever_changes_who_is_here_changes_the_resource(event: events.Event) -> None:
    played = in_rooms(ROOM, LOGS)
    lobby = [resources.OCCUPANTS, *_uris(ROOM, "occupants")]
    logs = _uris(LOGS, "occupants")
    for room, changed in ((ROOM, lobby), (LOGS, logs), ("", lobby + logs)):
        published = played.journal.encode(played.publish(event, room))
        uris = resources.changed_by(published, [ROOM, LOGS])
        assert uris == [resources.STATUS, *changed]


def _uris(room: str, what: str) -> list[str]:
    return [f"bridge://room/{each}/{what}" for each in (room.replace("@", "%40"), room)]


def _in_three() -> Played:
    played = in_rooms(ROOM, LOGS, OTHER_LOBBY)
    played.picture = in_room(ROOM, "Wilma")
    played.further[0].picture = in_room(LOGS, "Fred", "Wilma")
    return played


@pytest.mark.parametrize(
    ("given_", "room", "told"),
    [
        (
            {},
            None,
            {ROOM: "McpDebug Wilma", LOGS: "Fred McpDebug Wilma", OTHER_LOBBY: "McpDebug"},
        ),
        ({"nickname": "Wilma"}, None, {ROOM: "Wilma", LOGS: "Wilma"}),
        ({"room": "logs"}, LOGS, {None: "Fred McpDebug Wilma"}),
        ({"room": LOGS, "after": "Fred"}, LOGS, {None: "McpDebug Wilma"}),
        ({"room": LOGS, "nickname": "Wilma"}, LOGS, {None: "Wilma"}),
    ],
)
def test_of_several_rooms_all_are_listed_or_the_one_that_is_named(
    given_: dict[str, object], room: str | None, told: dict[str | None, str]
) -> None:
    listed = _occupants(_in_three(), **given_)
    assert (listed.get("room"), "notIn" in listed, listed["more"]) == (room, False, False)
    people = [(each.get("room"), each["nickname"]) for each in listed["occupants"]]
    assert people == [(each, name) for each, names in told.items() for name in names.split()]
    with pytest.raises(ArgumentError, match="one room"):  # which the order is of
        _occupants(_in_three(), after="Fred")


def test_rooms_in_which_the_bridge_is_not_are_named() -> None:
    played = _in_three()
    out = dataclasses.replace(STATUS, phase=Phase.WAITING, last_error=LastError(FAULT, 0.0))
    for each in (played, played.further[1]):
        each.picture = out
    listed = _occupants(played)
    assert (listed["notIn"], listed["count"]) == ([ROOM, OTHER_LOBBY], 3)
    assert {each["room"] for each in listed["occupants"]} == {LOGS}
    with pytest.raises(ToolError, match=f"The bridge is not in the room {OTHER_LOBBY} "):
        _occupants(played, room=OTHER_LOBBY)
    played.further[0].picture = out
    with pytest.raises(ToolError, match=f"The bridge is not in the room {ROOM} "):
        _occupants(played)


def test_fifty_rooms_with_long_names_fit_into_a_page() -> None:
    played = in_rooms(*(f"{number:x<900}@conference.example" for number in range(50)))
    for number, each in enumerate((played, *played.further)):
        status = in_room(each.name, *map(str, range(100)))
        each.picture = dataclasses.replace(STATUS, phase=Phase.WAITING) if number % 2 else status
    listed = _occupants(played)
    assert len(compact(listed).encode()) <= RESULT_BYTES
    assert (listed["count"], listed["more"]) == (25 * 101, True)
    assert listed["truncated"] is True
    assert len(listed["occupants"]) > 1


ADDRESSES = ["Wilma", f"{ROOM}/Wilma", f"{ROOM.upper()}/Wilma", "w@x", "W@x/y"]


@pytest.mark.parametrize("asked", ADDRESSES)
async def test_an_occupant_is_named_by_nickname_or_by_address(asked: str) -> None:
    there = _with(_named("Wilma", real_jid="w@x/y"), _named("Two", real_jid="two@x/1"))
    told = _occupants(there, nickname=asked)
    assert [each["nickname"] for each in told["occupants"]] == ["Wilma"]
    assert there.link.occupant(asked, None)[1] == "Wilma"


@pytest.mark.parametrize("asked", ["w@x", "nobody@x", "other@rooms.example/Wilma"])
def test_an_address_of_several_occupants_or_of_none_is_no_occupants(asked: str) -> None:
    both = _with(_named("Wilma", real_jid="w@x/y"), _named("Two", real_jid="w@x/1"))
    assert both.link.occupant(asked, None)[1] == asked
    with pytest.raises(ToolError, match="is called"):
        _occupants(both, nickname=asked)


def test_a_nickname_that_looks_like_an_address_is_a_nickname() -> None:
    mail = _named("w@x", real_jid="mail@x/1")
    assert _with(mail, _named("Wilma", real_jid="w@x/y")).link.occupant("w@x", None)[1] == "w@x"
