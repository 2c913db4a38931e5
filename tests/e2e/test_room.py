from pathlib import Path

from tests.e2e.bridge_process import BridgeProcess
from tests.e2e.company import in_company
from tests.servers.server import Endpoint, XmppServer
from tests.servers.witness import Witness

UNDER_WAY = {"resolving", "connecting", "securing", "authenticating", "joining"}


async def test_what_is_said_goes_both_ways_and_the_status_tells_before_during_and_after(
    endpoint: Endpoint, tmp_path: Path
) -> None:
    server = endpoint.server
    settings = endpoint.environment(MCP_BOT_NICKNAME="Beetle")
    room = settings["MUC_ROOM"]
    async with (
        Witness(server, server.witness, room, "Wilma", endpoint.transport) as witness,
        BridgeProcess(tmp_path, settings) as bridge,
    ):
        before = await bridge.call("xmppStatus")
        assert (before["connected"], before["room"], before["nickname"]) == (False, room, "Beetle")
        assert before["phase"] in UNDER_WAY
        assert "lastError" not in before
        assert before["occupants"] == 0

        await bridge.initialize()
        sent = await bridge.call("xmppSend", message="here I am")
        heard = await witness.heard("here I am")
        assert (heard.nick, heard.id) == ("Beetle", sent["id"])
        assert sent["sent"] is True
        assert (sent["to"], sent["message"]) == (room, "here I am")
        assert sent["roundTripMs"] > 0

        during = await bridge.joined()
        assert (during["phase"], during["room"], during["nickname"]) == ("joined", room, "Beetle")
        assert during["occupants"] == 2
        assert during["jid"].startswith(f"{server.bot.jid}/")
        assert during["service"] == settings["XMPP_SERVICE"]
        assert during["sasl"].startswith("SCRAM-SHA-")
        assert during["lastIncoming"] is None
        assert "roomCreated" not in during
        if endpoint.transport == "plaintext":
            assert during["tls"] is None
        else:
            assert during["tls"]["version"] == "TLSv1.3"
            assert during["tls"]["verified"] is True

        witness.say("does anybody hear me?\nsecond line <&>")
        incoming = (await bridge.until(lambda it: it["lastIncoming"]))["lastIncoming"]
        assert incoming.pop("receivedAt").endswith("Z")
        assert incoming == {
            "body": "does anybody hear me?\nsecond line <&>",
            "sender": "Wilma",
            "from": f"{room}/Wilma",
            "type": "groupchat",
        }
        await bridge.stderr_says("<Wilma> does anybody hear me?\\u{A}second line")

        await witness.kick("Beetle", "out with you")
        after = await bridge.until(lambda it: not it["connected"])
        assert after["phase"] == "waiting"
        assert after["nextAttemptAt"] > after["since"]
        assert f"again at {after['nextAttemptAt']} by" in after["lastError"]["retry"]
        assert after["lastError"]["condition"] == "not-allowed"
        assert "out with you" in after["lastError"]["message"]
        assert after["occupants"] == 0


async def test_with_several_rooms_the_log_and_the_clients_notices_say_which(
    prosody: XmppServer, tmp_path: Path
) -> None:
    rooms = [prosody.room() for _ in range(2)]
    settings = prosody.environment(MUC_ROOM=",".join(rooms))
    async with (
        Witness(prosody, prosody.witness, rooms[1], "Wilma") as wilma,
        BridgeProcess(tmp_path, settings) as bridge,
    ):
        await bridge.initialize()
        await bridge.request("logging/setLevel", {"level": "info"})
        await wilma.joined("McpDebug")
        await bridge.stderr_says(f" {rooms[0]}: in the room as ")
        wilma.say("hello\nthere")
        await bridge.stderr_says(f"Z {rooms[1]}: <Wilma> hello\\u{{A}}there")
        await wilma.kick("McpDebug", "out with you")
        await bridge.stderr_says(f"Z {rooms[1]}: waiting: ")
        # Those about the connection came before, or between; they concern every room.
        notice = ""
        while ": waiting: " not in notice:
            frame = await bridge.frame()
            assert frame["method"] == "notifications/message"
            notice = frame["params"]["data"]
        assert notice.partition("Z ")[2].startswith(f"{rooms[1]}: waiting: We were kicked")
    assert f" {rooms[0]}: logged in" not in bridge.stderr


SENDABLE = (
    "x" * 60_000,
    '"' * 33_333,
    "<&>]]>\t\n'\"",
    "\N{PILE OF POO}\u202e\u200b",
    "  blanks  ",
)
"""Bodies at the limits, which arrive as they are."""


async def test_a_body_at_the_limits_goes_through_as_it_is(
    xmpp_server: XmppServer, tmp_path: Path
) -> None:
    async with in_company(xmpp_server, tmp_path) as (bridge, witness):
        for body in SENDABLE:
            await bridge.bare("xmppSend", message=body)
            heard = await witness.heard(lambda it: it.nick == "McpDebug")
            assert heard.body == body
