from pathlib import Path

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
