from typing import Any
from xml.etree.ElementTree import Element

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from bridge.mcp.errors import ToolError
from bridge.mcp.schema import MismatchError
from bridge.mcp.toolset import Tool
from bridge.tools import query
from bridge.tools.entries import NOTICE
from bridge.tools.link import RoomLink
from bridge.xmpp.link.stanzas import PING, IqError, StanzaError
from bridge.xmpp.model.faults import ConnectionFailedError, Fault
from tests.tools.played import ROOM, arguments
from tests.tools.standing import OWN, outside, standing
from tests.xmpp.elements import parsed

SILENCE_SECONDS = 0.3
"""For an answer that does not come."""


async def _ping(
    link: RoomLink, target: str, room: str | None = None, seconds: float = 10
) -> dict[str, Any]:
    tool = query.xmpp_ping
    wire = await query.xmpp_ping(link, target=target, timeout_seconds=seconds, room=room)
    assert isinstance(wire, dict)
    assert None not in wire.values()
    Draft202012Validator(tool.output_schema).validate(wire)
    return wire


def _refusing(condition: str, text: str | None = None) -> RoomLink:
    link, _ = standing(lambda *_: IqError(StanzaError(condition, text)), "Wilma")
    return link


async def test_an_answer_has_its_round_trip() -> None:
    link, stream = standing(None, "Wilma")
    pong = await _ping(link, "Wilma")
    assert pong.pop("roundTripMs") > 0
    assert pong == {
        "target": "Wilma",
        "address": f"{ROOM}/Wilma",
        "reachable": True,
        "verdict": "It answers.",
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
    assert pong["verdict"] == "An error came back, which does not prove that it is there."
    assert pong["notice"] == NOTICE
    assert "server" not in pong


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


async def test_a_silent_occupant_is_compared_with_the_room_and_the_server_in_the_time_given() -> (
    None
):
    def answer(to: str, _: str) -> Element | Exception | None:
        return None if to == f"{ROOM}/Wilma" else parsed("<iq type='result'/>")

    link, stream = standing(answer, "Wilma")
    pong = await _ping(link, "Wilma", seconds=SILENCE_SECONDS)
    assert pong["reachable"] is False
    assert "roundTripMs" not in pong
    assert pong["error"]["condition"] == "remote-server-timeout"
    assert pong["error"]["message"] == f'"{ROOM}/Wilma" did not answer within 0.3 s.'
    assert pong["verdict"] == "The occupant alone is silent: the room and our server answer."
    assert pong["notice"] == NOTICE
    assert (pong["self"]["address"], pong["self"]["inRoom"]) == (OWN, "in")
    assert (pong["server"]["address"], pong["server"]["reachable"]) == ("example", True)
    assert min(pong["self"]["roundTripMs"], pong["server"]["roundTripMs"]) > 0
    assert [to for to, _ in stream.asked] == [f"{ROOM}/Wilma", "example", OWN]


async def test_where_all_are_silent_it_is_the_connection() -> None:
    pong = await _ping(standing(lambda *_: None, "Wilma")[0], "Wilma", seconds=SILENCE_SECONDS)
    assert pong["verdict"] == "Our own server is silent, or the connection to it is dead."
    for one in ("self", "server"):
        assert (pong[one]["reachable"], "roundTripMs" in pong[one]) == (False, False)
    assert pong["self"]["inRoom"] == "undecided"


@pytest.mark.parametrize(
    ("target", "address"),
    [
        ("server", "example"),
        ("room", ROOM),
        ("self", OWN),
        (f"{ROOM}/Wilma", f"{ROOM}/Wilma"),
        ("conference.example", "conference.example"),
        ("fred@example", "fred@example"),
    ],
)
async def test_out_of_the_room_whatever_has_an_address_is_asked(target: str, address: str) -> None:
    link, stream = outside()
    assert (await _ping(link, target))["address"] == address
    assert stream.asked == [(address, PING)]


async def test_out_of_the_room_the_room_says_so_to_a_self_ping() -> None:
    link, _ = outside(lambda *_: IqError(StanzaError("not-acceptable", None)))
    pong = await _ping(link, "self")
    assert (pong["address"], pong["inRoom"]) == (OWN, "out")
    assert pong["verdict"] == "The room answers, and does not count us among its occupants."


@pytest.mark.parametrize("tool", [query.xmpp_ping, query.xmpp_info])
async def test_out_of_the_room_a_nickname_is_refused_with_the_reason(tool: Tool) -> None:
    with pytest.raises(ToolError) as refusal:
        await tool(outside()[0], target="Wilma")
    assert refusal.value.condition == "not-allowed"
    assert refusal.value.message == (
        f"A nickname is known in the room only. Not in the room {ROOM} (phase waiting): "
        "We were kicked."
    )


@pytest.mark.parametrize(("seconds", "fits"), [(0.09, False), (0.1, True), (50, True), (51, False)])
def test_the_time_for_an_answer_has_bounds(seconds: float, fits: bool) -> None:
    given = {"target": "server", "timeoutSeconds": seconds}
    if fits:
        assert arguments(query.xmpp_ping, given)["timeout_seconds"] == seconds
    else:
        with pytest.raises(MismatchError, match="timeoutSeconds"):
            arguments(query.xmpp_ping, given)


async def test_a_hidden_character_in_a_name_is_shown_and_told() -> None:
    link, _ = standing(None, "Eve\u1160")
    pong = await _ping(link, "Eve\u1160")
    assert pong["target"] == "Eve\\u{1160}"
    assert pong["address"] == f"{ROOM}/Eve\\u{{1160}}"
    assert pong["escaped"] is True


async def test_the_end_of_the_connection_is_no_answer() -> None:
    fault = Fault("connection-reset", "The connection was cut.", "It tries again.")
    link, _ = standing(lambda *_: ConnectionFailedError(fault), "Wilma")
    with pytest.raises(ToolError) as refusal:
        await query.xmpp_ping(link, target="Wilma")
    assert refusal.value.condition == "connection-reset"
    assert "ended before" in refusal.value.message
