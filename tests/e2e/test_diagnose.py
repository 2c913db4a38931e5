"""Why a bot does not answer, asked of the installed command in the two calls that it takes."""

from pathlib import Path

from slixmpp import JID

from tests.e2e.bridge_process import BridgeProcess
from tests.servers.server import XmppServer
from tests.tools.troubled import ANSWER, COMMAND, ROBOT, Robot, in_private


async def test_two_calls_tell_that_a_bot_answers_in_private(
    prosody: XmppServer, tmp_path: Path
) -> None:
    settings = prosody.environment()
    room = settings["MUC_ROOM"]
    async with (
        Robot(prosody, prosody.robot, room, ROBOT, in_private) as robot,
        BridgeProcess(tmp_path, settings) as bridge,
    ):
        await bridge.initialize()
        await bridge.joined()
        asked = {"message": COMMAND, "awaitSeconds": 10, "from": ROBOT}
        sent = await bridge.call("xmppSend", **asked)
        (answer,) = sent["answers"]
        assert (answer["body"], answer["how"]) == (ANSWER, "private")
        # What comes after the call has returned is seen by the second.
        robot.client.send_message(JID(f"{room}/McpDebug"), "again", mtype="chat")
        await bridge.call("xmppWait", since=sent["cursor"], contains="again", timeoutSeconds=10)
        found = await bridge.call("xmppDiagnose", nickname=ROBOT)
        assert "in private" in found["verdict"]
        assert [one["body"] for one in found["answers"]] == [ANSWER, "again"]
