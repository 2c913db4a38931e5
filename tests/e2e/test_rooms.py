"""One bridge in several rooms, as an agent sees it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.e2e.bridge_process import BridgeProcess, ToolFailedError
from tests.servers.server import XmppServer
from tests.servers.witness import Witness


@asynccontextmanager
async def _in_two_rooms(
    server: XmppServer, home: Path
) -> AsyncIterator[tuple[BridgeProcess, Witness, Witness]]:
    """A bridge that speaks MCP and is in two rooms; Wilma in the default one, Fred in the other."""
    lobby, logs = server.room(), server.room()
    async with (
        Witness(server, server.witness, lobby, "Wilma") as wilma,
        Witness(server, server.witness, logs, "Fred") as fred,
        BridgeProcess(home, server.environment(MUC_ROOM=f"{lobby}, {logs}")) as bridge,
    ):
        await bridge.initialize()
        await bridge.until(lambda it: {one["phase"] for one in it["rooms"]} == {"joined"})
        for witness in (wilma, fred):
            await witness.joined("McpDebug")
        yield bridge, wilma, fred


async def test_each_tool_looks_at_all_rooms_or_at_the_one_that_is_named(
    prosody: XmppServer, tmp_path: Path
) -> None:
    async with _in_two_rooms(prosody, tmp_path) as (bridge, wilma, fred):
        lobby, logs = wilma.room, fred.room
        name = logs.partition("@")[0]
        status = await bridge.call("xmppStatus")
        assert (status["room"], status["connected"]) == (lobby, True)
        assert [(one["room"], one["occupants"]) for one in status["rooms"]] == [
            (lobby, 2),
            (logs, 2),
        ]

        sent = await bridge.call("xmppSend", message="to the logs", room=name)
        assert sent["to"] == logs
        await fred.heard("to the logs")
        assert (await bridge.call("xmppSend", message="to the lobby"))["to"] == lobby
        await wilma.heard("to the lobby")

        wilma.say("not this one")
        fred.say("hello from Fred")
        waited = await bridge.call("xmppWait", since=sent["cursor"], room=logs)
        assert (waited["entry"]["body"], waited["entry"]["room"]) == ("hello from Fred", logs)
        waited = await bridge.call("xmppWait", since=sent["cursor"], contains="not this")
        assert waited["entry"]["room"] == lobby
        assert (await bridge.status())["lastIncoming"]["room"] in {lobby, logs}

        said = {"since": sent["cursor"], "kinds": ["message"]}
        everything = (await bridge.call("xmppHistory", **said))["entries"]
        assert {one["room"] for one in everything} == {lobby, logs}
        of_logs = (await bridge.call("xmppHistory", **said, room=name))["entries"]
        assert [one["body"] for one in of_logs] == ["hello from Fred"]

        occupants = await bridge.call("xmppOccupants")
        assert ("room" in occupants, occupants["count"]) == (False, 4)
        assert {(one["room"], one["nickname"]) for one in occupants["occupants"]} == {
            (lobby, "McpDebug"),
            (lobby, "Wilma"),
            (logs, "McpDebug"),
            (logs, "Fred"),
        }
        occupants = await bridge.call("xmppOccupants", room=logs)
        assert {one["nickname"] for one in occupants["occupants"]} == {"McpDebug", "Fred"}

        for tool in ("xmppPing", "xmppInfo"):
            asked = await bridge.call(tool, target="room", room=name)
            assert asked["address"] == logs
            with pytest.raises(ToolFailedError, match="Nobody in the room"):
                await bridge.call(tool, target="Fred")
        assert (await bridge.call("xmppPing", target="self", room=logs))["inRoom"] == "in"
        stanzas = (await bridge.call("xmppTrace", room=logs, limit=500))["entries"]
        assert stanzas
        assert not [one for one in stanzas if lobby in one["xml"]]
        with pytest.raises(ToolFailedError, match=f'"nowhere" is no room .*"{lobby}", "{logs}"'):
            await bridge.call("xmppSend", message="x", room="nowhere")


async def test_all_rooms_together_have_one_send_rate(sandbox: XmppServer, tmp_path: Path) -> None:
    rooms = [sandbox.room(), sandbox.room()]
    environment = sandbox.environment(MUC_ROOM=",".join(rooms), BRIDGE_SEND_RATE="1")
    async with BridgeProcess(tmp_path, environment) as bridge:
        await bridge.initialize()
        await bridge.until(lambda it: {one["phase"] for one in it["rooms"]} == {"joined"})
        assert (await bridge.call("xmppSend", message="one"))["to"] == rooms[0]
        with pytest.raises(ToolFailedError, match="1 message a minute"):
            await bridge.call("xmppSend", message="two", room=rooms[1])
