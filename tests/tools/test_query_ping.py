from typing import Any
from xml.etree.ElementTree import Element

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from bridge.mcp.errors import ToolError
from bridge.mcp.toolset import Tool
from bridge.tools import query
from bridge.tools.entries import NOTICE
from bridge.tools.link import RoomLink
from bridge.xmpp.link.stanzas import PING, IqError, StanzaError
from tests.tools.played import ROOM
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


@pytest.mark.parametrize("tool", [query.xmpp_ping, query.xmpp_info])
async def test_out_of_the_room_a_nickname_is_refused_with_the_reason(tool: Tool) -> None:
    with pytest.raises(ToolError) as refusal:
        await tool(outside()[0], target="Wilma")
    assert refusal.value.condition == "not-allowed"
    assert refusal.value.message == (
        f"A nickname is known in the room only. Not in the room {ROOM} (phase waiting): "
        "We were kicked."
    )
