from pathlib import Path

import pytest

from tests.e2e.bridge_process import RpcFailedError, ToolFailedError
from tests.e2e.company import in_company
from tests.servers.server import XmppServer

UNKNOWN = {"remote-server-not-found", "not-allowed", "forbidden", "service-unavailable"}
"""How servers refuse a domain that they cannot, or here may not, reach."""


async def test_everybody_answers_who_is_there(xmpp_server: XmppServer, tmp_path: Path) -> None:
    async with in_company(xmpp_server, tmp_path) as (bridge, wilma):
        room = wilma.room
        for target, address in (
            ("server", xmpp_server.domain),
            ("self", f"{room}/McpDebug"),
            ("Wilma", f"{room}/Wilma"),
        ):
            pong = await bridge.call("xmppPing", target=target)
            assert (pong["target"], pong["address"]) == (target, address)
            assert pong["reachable"] is True
            assert 0 < pong["roundTripMs"] < 15_000
            assert "error" not in pong
            assert ("notice" in pong) is address.endswith("Wilma")
            answers = "The room counts us among its occupants."
            assert pong["verdict"] == (answers if "inRoom" in pong else "It answers.")
            assert pong.get("inRoom") == ("in" if address.endswith("McpDebug") else None)
        # Who does not answer a ping itself is told by what its server says.
        pong = await bridge.call("xmppPing", target="room")
        assert pong["reachable"] is True
        assert pong["roundTripMs"] > 0
        if xmpp_server.name != "sandbox":
            assert pong["error"]["condition"] == "service-unavailable"
            assert "does not know pings" in pong["error"]["message"]
        pong = await bridge.call("xmppPing", target=f"{xmpp_server.witness.jid}/nowhere")
        assert pong["roundTripMs"] > 0
        if not pong["reachable"]:
            assert pong["error"]["condition"] == "service-unavailable"
            assert "in its place" in pong["error"]["message"]
        pong = await bridge.call("xmppPing", target="fred@nowhere.invalid")
        assert (pong["address"], pong["reachable"]) == ("fred@nowhere.invalid", False)
        assert pong["error"]["condition"] in UNKNOWN
        assert "fred@nowhere.invalid" in pong["error"]["message"]


async def test_while_the_room_keeps_us_out_whatever_has_an_address_is_asked(
    prosody: XmppServer, tmp_path: Path
) -> None:
    async with in_company(prosody, tmp_path) as (bridge, wilma):
        room = wilma.room
        await wilma.muc.set_affiliation(room, "outcast", jid=prosody.bot.jid)
        await bridge.until(lambda it: it["phase"] == "failed")
        for target, address in (
            ("server", prosody.domain),
            ("room", room),
            (prosody.muc, prosody.muc),
        ):
            pong = await bridge.call("xmppPing", target=target)
            assert (pong["address"], pong["reachable"]) == (address, True)
            assert (await bridge.call("xmppInfo", target=target))["answered"] is True
        pong = await bridge.call("xmppPing", target="self")
        assert (pong["address"], pong["inRoom"]) == (f"{room}/McpDebug", "out")
        for tool in ("xmppPing", "xmppInfo"):
            with pytest.raises(RpcFailedError) as bare:
                await bridge.bare(tool, target="Wilma")
            assert bare.value.code == -32603
            assert bare.value.message.startswith(
                "A nickname is known in the room only. Not in the room"
            )
            assert (bare.value.data["condition"], bare.value.data["hint"] != "") == (
                "forbidden",
                True,
            )
            # Under MCP it is the same in words.
            with pytest.raises(ToolFailedError) as told:
                await bridge.call(tool, target="Wilma")
            for name, text in bare.value.data.items():
                assert f"{name.capitalize()}: {text}" in str(told.value)
