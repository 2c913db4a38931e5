"""`xmppCheck` of the real command, beside the connection that stands."""

import json
from pathlib import Path

import pytest

from tests.e2e.bridge_process import BridgeProcess
from tests.e2e.checking import IN_THE_ROOM, STAGES
from tests.servers.server import XmppServer, write_settings
from tests.servers.witness import Witness


async def test_the_standing_connection_is_not_disturbed(
    prosody: XmppServer, tmp_path: Path
) -> None:
    environment = prosody.environment(MCP_BOT_NICKNAME="Beetle")
    room = environment["MUC_ROOM"]
    async with (
        Witness(prosody, prosody.witness, room, "Wilma") as wilma,
        BridgeProcess(tmp_path, environment) as bridge,
    ):
        before = await bridge.joined()
        await bridge.initialize()
        result = await bridge.call("xmppCheck")
        assert result["ok"] is True
        assert [each["name"] for each in result["phases"]] == STAGES + IN_THE_ROOM
        assert all(each["ok"] for each in result["phases"])
        standing = "The bridge is in the room and was left alone. The room is temporary: "
        assert result["standing"].startswith(standing)
        assert "settingsChanged" not in result
        # The room has seen one of the two go, and the other is still heard.
        (entered,) = (each["detail"] for each in result["phases"] if each["name"] == "join")
        await wilma.left(json.loads(entered.removeprefix("entered as ").partition("; ")[0]))
        assert wilma.occupants == {"Wilma", "Beetle"}
        with pytest.raises(TimeoutError):
            await wilma.left("Beetle", seconds=0.1)
        await bridge.bare("xmppSend", message="still here")
        await wilma.heard("still here")
        after = await bridge.status()
        assert [after[each] for each in ("jid", "since", "occupants")] == [
            before[each] for each in ("jid", "since", "occupants")
        ]


async def test_settings_that_were_corrected_in_the_file_take_effect(
    prosody: XmppServer, tmp_path: Path
) -> None:
    file = tmp_path / "settings.env"
    environment = prosody.environment(MCP_BOT_NICKNAME="Beetle")
    write_settings(file, environment | {"MUC_ROOM": ""})
    arguments = ("--env-file", str(file))
    async with BridgeProcess(tmp_path / "home", arguments=arguments) as bridge:
        assert (await bridge.status())["phase"] == "unconfigured"
        result = await bridge.bare("xmppCheck")
        assert (result["ok"], result["condition"]) == (False, "unconfigured")

        write_settings(file, environment | {"XMPP_PASSWORD": "not-the-password"})
        result = await bridge.bare("xmppCheck")
        assert (result["ok"], result["condition"]) == (False, "not-authorized")
        status = await bridge.until(lambda it: it["phase"] == "failed")
        assert "nextAttemptAt" not in status

        write_settings(file, environment)
        result = await bridge.bare("xmppCheck")
        assert (result["ok"], result["settingsChanged"]) == (True, True)
        status = await bridge.joined()
        assert (status["room"], status["nickname"]) == (environment["MUC_ROOM"], "Beetle")
        assert "problems" not in status

        write_settings(file, environment | {"XMPP_PASSWORD": ""})
        result = await bridge.bare("xmppCheck")
        assert result["condition"] == "unconfigured"
        assert result["standing"] == "The bridge is in the room and was left alone."
        status = await bridge.status()
        assert status["connected"] is True
        assert any("XMPP_PASSWORD" in each for each in status["problems"])
    assert "not-the-password" not in bridge.stderr
