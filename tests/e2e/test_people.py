"""Who is in the room and who went, as the tools tell it on real servers."""

from contextlib import AsyncExitStack
from pathlib import Path

from tests.e2e.bridge_process import BridgeProcess
from tests.faults.scene import configure
from tests.servers.server import XmppServer
from tests.servers.witness import Witness


async def test_who_came_when_who_spoke_who_is_who_and_who_put_whom_out(
    real_server: XmppServer, tmp_path: Path
) -> None:
    settings = real_server.environment()
    room = settings["MUC_ROOM"]
    async with (
        Witness(real_server, real_server.witness, room, "Wilma") as wilma,
        AsyncExitStack() as stack,
    ):
        await configure(wilma, whois="anyone")
        bridge = await stack.enter_async_context(BridgeProcess(tmp_path, settings))
        await bridge.initialize()
        await bridge.joined()
        async with (
            Witness(real_server, real_server.bot, room, "Robot") as robot,
            Witness(real_server, real_server.witness, room, "Fred"),
        ):
            cursor = (await bridge.status())["cursor"]
            robot.say("here I am")
            said = (await bridge.call("xmppWait", since=cursor, contains="here I am"))["entry"]
            told = await bridge.call("xmppOccupants")
            people = {one["nickname"]: one for one in told["occupants"]}
            assert list(people) == ["Fred", "McpDebug", "Robot", "Wilma"]
            assert {name: one.get("sameAccountAs") for name, one in people.items()} == {
                "Fred": ["Wilma"],
                "McpDebug": ["Robot"],
                "Robot": ["McpDebug"],
                "Wilma": ["Fred"],
            }
            assert [name for name, one in people.items() if "since" not in one] == ["Wilma"]
            assert people["McpDebug"]["since"] < people["Robot"]["since"] < said["at"]
            assert [name for name, one in people.items() if "lastMessageAt" in one] == ["Robot"]
            assert people["Robot"]["lastMessageAt"] == said["at"]
            assert {one["voice"] for one in people.values()} == {True}
            assert "left" not in told
            await wilma.kick("Robot", "too loud")
            await robot.left("Robot")
        gone = await _until_left(bridge, told["cursor"], "Robot", "Fred")
        assert (gone["Robot"]["why"], gone["Robot"]["by"]) == ('kicked: "too loud"', "Wilma")
        assert (gone["Fred"]["why"].partition(":")[0], gone["Fred"].get("by")) == ("left", None)
        assert gone["Robot"]["at"] > said["at"]
        asked = await bridge.call("xmppOccupants", nickname="Robot")
        assert (asked["count"], asked["left"]) == (0, [gone["Robot"]])
        (alone,) = (await bridge.call("xmppOccupants", limit=1))["occupants"]
        assert alone["nickname"] == "McpDebug"
        rest = await bridge.call("xmppOccupants", after="McpDebug")
        assert [one["nickname"] for one in rest["occupants"]] == ["Wilma"]
        assert "sameAccountAs" not in rest["occupants"][0]


async def _until_left(
    bridge: BridgeProcess, since: str, *nicknames: str
) -> dict[str, dict[str, str]]:
    for name in nicknames:
        await bridge.call("xmppWait", since=since, kinds=["leave"], **{"from": name})
    left = (await bridge.call("xmppOccupants"))["left"]
    return {one["nickname"]: one for one in left}
