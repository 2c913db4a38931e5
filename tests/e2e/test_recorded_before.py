"""A fresh agent asks what happened before it came, where `record` has run, on a real server."""

import signal
from pathlib import Path

from bridge.text import iso, seconds_of
from tests.e2e.bridge_process import BridgeProcess
from tests.e2e.watching import Watching
from tests.servers.server import XmppServer
from tests.servers.witness import Witness
from tests.store.recorded import recorded


async def test_a_fresh_agents_first_question_tells_who_kicked_the_bot_last_night(
    prosody: XmppServer, tmp_path: Path
) -> None:
    settings = prosody.environment()
    room = settings["MUC_ROOM"]
    path = tmp_path / ".local" / "state" / "xmpp-bridge" / "rooms.db"
    async with (
        Witness(prosody, prosody.witness, room, "Wilma") as wilma,
        Watching(tmp_path, settings, command="record") as recording,
    ):
        await wilma.joined("McpDebug-record")
        async with Witness(prosody, prosody.robot, room, "Robot") as robot:
            robot.say("beep")
            await wilma.heard("beep")
            await wilma.kick("Robot", "too loud")
            await wilma.left("Robot")
        wilma.say("good night")
        await recorded(path, "good night")
        recording.signal(signal.SIGTERM)
        assert await recording.ended() == 0

        async with BridgeProcess(tmp_path, settings) as bridge:
            await bridge.initialize()
            page = await bridge.call("xmppHistory", after="2026-01-01T00:00:00Z", kinds=["leave"])
            left = [each for each in page["entries"] if each["sender"] == "Robot"]
            assert [each["source"] for each in left] == ["recorded"]
            assert (left[0]["meaning"], left[0]["reason"]) == (["kicked"], "too loud")
            assert left[0].get("actor", "Wilma") == "Wilma"  # not every server says who
            at = seconds_of(left[0]["at"])
            assert at is not None

            await bridge.joined()
            result = await bridge.call("xmppDiagnose", nickname="Robot")
            assert f'"Robot" left the room at {left[0]["at"]}: kicked' in result["verdict"]
            sent = await bridge.call("xmppSend", message="what was that?")
            page = await bridge.call("xmppHistory", after=iso(at), **{"from": "McpDebug"})
            said = [each for each in page["entries"] if each.get("body") == "what was that?"]
            assert len(said) == 1
            assert "observer" not in said[0]
            page = await bridge.call("xmppHistory", since=page["next"])
            assert page["more"] is False
            newest = await bridge.call("xmppHistory", after=sent["reflectedAt"])
            assert all("source" not in each for each in newest["entries"])
    async with Watching(tmp_path, settings, command="log") as log:
        await log.shows("* <Robot> left")
        assert await log.ended() == 0
