"""One bridge in several rooms, as an agent sees it."""

from pathlib import Path

import pytest

from tests.e2e.bridge_process import BridgeProcess, ToolFailedError
from tests.servers.server import XmppServer
from tests.servers.witness import Witness


async def test_each_tool_looks_at_all_rooms_or_at_the_one_that_is_named(
    prosody: XmppServer, tmp_path: Path
) -> None:
    lobby, logs = prosody.room(), prosody.room()
    name = logs.partition("@")[0]
    environment = prosody.environment(MUC_ROOM=f"{lobby}, {logs}", BRIDGE_SEND_RATE="2")
    async with (
        Witness(prosody, prosody.witness, lobby, "Wilma") as wilma,
        Witness(prosody, prosody.witness, logs, "Fred") as fred,
        BridgeProcess(tmp_path, environment) as bridge,
    ):
        await bridge.initialize()
        await bridge.until(lambda it: {one["phase"] for one in it["rooms"]} == {"joined"})
        sent = await bridge.call("xmppSend", message="to the logs", room=name)
        assert sent["to"] == logs
        await fred.heard("to the logs")
        assert (await bridge.call("xmppSend", message="to the lobby"))["to"] == lobby
        await wilma.heard("to the lobby")
        # All rooms together have one rate.
        with pytest.raises(ToolFailedError, match="2 messages a minute"):
            await bridge.call("xmppSend", message="one too many", room=name)

        wilma.say("not this one")
        fred.say("hello from Fred")
        waited = await bridge.call("xmppWait", since=sent["cursor"], room=logs)
        assert (waited["entry"]["body"], waited["entry"]["room"]) == ("hello from Fred", logs)
        waited = await bridge.call("xmppWait", since=sent["cursor"], contains="not this")
        assert waited["entry"]["room"] == lobby
        said = {"since": sent["cursor"], "kinds": ["message"]}
        everything = (await bridge.call("xmppHistory", **said))["entries"]
        assert {one["room"] for one in everything} == {lobby, logs}
        occupants = await bridge.call("xmppOccupants", room=logs)
        assert {one["nickname"] for one in occupants["occupants"]} == {"McpDebug", "Fred"}
        for tool in ("xmppPing", "xmppInfo"):
            asked = await bridge.call(tool, target="room", room=name)
            assert asked["address"] == logs
        stanzas = (await bridge.call("xmppTrace", room=logs, limit=500))["entries"]
        assert stanzas
        assert not [one for one in stanzas if lobby in one["xml"]]
        with pytest.raises(ToolFailedError, match=f'"nowhere" is no room .*"{lobby}", "{logs}"'):
            await bridge.call("xmppSend", message="x", room="nowhere")
