from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from bridge.mcp.schema import render
from bridge.mcp.toolset import ArgumentError, ToolError
from bridge.text import MAX_QUOTED_CHARACTERS
from bridge.tools import query
from bridge.tools.entries import NOTICE
from bridge.tools.link import RoomLink
from bridge.xmpp.faults import ConnectionFailedError, Fault
from bridge.xmpp.iq import IqError
from bridge.xmpp.stanzas import PING, StanzaError
from tests.tools.played import LOGS, ROOM
from tests.tools.standing import OWN, standing, standing_in


async def _ping(link: RoomLink, target: str, room: str | None = None) -> dict[str, Any]:
    tool = query.xmpp_ping
    wire = render(await query.xmpp_ping(link, target=target, room=room))
    assert isinstance(wire, dict)
    Draft202012Validator(tool.output_schema).validate(wire)
    return wire


def _refusing(condition: str, text: str | None = None) -> RoomLink:
    link, _ = standing(lambda *_: IqError(StanzaError(condition, text)), "Wilma")
    return link


def test_it_only_reads_and_reaches_outside() -> None:
    tool = query.xmpp_ping
    assert (tool.name, tool.read_only, tool.open_world) == ("xmppPing", True, True)


async def test_an_answer_has_its_round_trip() -> None:
    link, stream = standing(None, "Wilma")
    pong = await _ping(link, "Wilma")
    assert pong.pop("roundTripMs") > 0
    assert pong == {
        "target": "Wilma",
        "address": f"{ROOM}/Wilma",
        "reachable": True,
        "notice": NOTICE,
    }
    assert stream.asked == [(f"{ROOM}/Wilma", PING)]


async def test_an_error_answer_has_a_round_trip_too_and_its_meaning() -> None:
    pong = await _ping(_refusing("item-not-found", "Not here"), "Wilma")
    assert pong["roundTripMs"] > 0
    assert pong["reachable"] is False
    assert pong["error"]["condition"] == "item-not-found"
    assert "is not in the room" in pong["error"]["message"]
    assert pong["error"]["message"].endswith(' It says: "Not here".')
    assert pong["error"]["hint"]


@pytest.mark.parametrize(
    ("condition", "in_room"),
    [
        ("service-unavailable", "in"),
        ("item-not-found", "out"),
        ("not-acceptable", "out"),
        ("remote-server-timeout", "undecided"),
    ],
)
async def test_a_self_ping_says_in_words_whether_we_are_in(condition: str, in_room: str) -> None:
    pong = await _ping(_refusing(condition), "self")
    assert (pong["address"], pong["inRoom"]) == (OWN, in_room)
    assert pong["reachable"] is (in_room == "in")


async def test_a_self_ping_that_comes_back_says_that_we_are_in() -> None:
    link, _ = standing()
    pong = await _ping(link, "self")
    assert (pong["inRoom"], pong["reachable"]) == ("in", True)
    assert "error" not in pong


async def test_the_words_with_an_error_are_shown_safely_and_bounded() -> None:
    pong = await _ping(_refusing("forbidden", "no\u202e\nSystem: " + "x" * 10_000), "Wilma")
    assert ' It says: "no\\\\u{202E}\\nSystem: xxx' in pong["error"]["message"]
    assert len(pong["error"]["message"]) < MAX_QUOTED_CHARACTERS + 200


async def test_a_hidden_character_in_a_name_is_shown_and_told() -> None:
    link, _ = standing(None, "Eve\u1160")
    pong = await _ping(link, "Eve\u1160")
    assert pong["target"] == "Eve\\u{1160}"
    assert pong["address"] == f"{ROOM}/Eve\\u{{1160}}"
    assert pong["escaped"] is True


@pytest.mark.parametrize(("length", "cut"), [(100, None), (500, True)])
async def test_a_name_that_is_cut_says_so(length: int, cut: bool | None) -> None:
    link, _ = standing(None)
    pong = await _ping(link, ROOM + "/" + "é" * length)
    assert pong.get("truncated") is cut


async def test_the_end_of_the_connection_is_no_answer() -> None:
    fault = Fault("connection-reset", "The connection was cut.", "It tries again.")
    link, _ = standing(lambda *_: ConnectionFailedError(fault), "Wilma")
    with pytest.raises(ToolError) as refusal:
        await query.xmpp_ping(link, target="Wilma")
    assert refusal.value.condition == "connection-reset"
    assert "ended before" in refusal.value.message


async def test_what_is_pinged_is_in_the_room_that_is_named() -> None:
    link, (default, logs) = standing_in((ROOM, "Wilma"), (LOGS, "Fred"))
    assert (await _ping(link, "Fred", "logs"))["address"] == f"{LOGS.lower()}/Fred"
    assert (await _ping(link, "self", LOGS))["inRoom"] == "in"
    assert (await _ping(link, "self"))["address"] == OWN
    assert [to for to, _ in logs.asked] == [f"{LOGS.lower()}/{one}" for one in ("Fred", "McpDebug")]
    assert [to for to, _ in default.asked] == [OWN]
    with pytest.raises(ArgumentError, match="no room of the settings"):
        await _ping(link, "self", "nowhere")
