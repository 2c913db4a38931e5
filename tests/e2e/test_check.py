"""`xmppCheck` of the real command, beside the connection that stands."""

import json
from pathlib import Path
from typing import Any

import pytest

from bridge.xmpp.link.connection import DEADLINES
from bridge.xmpp.model.faults import Stage
from tests.e2e.bridge_process import CHANGE_SECONDS, BridgeProcess
from tests.servers.process import ServerProcess
from tests.servers.server import XmppServer, write_settings
from tests.servers.witness import Witness

CHECK_STAGES = ["settings", "resolve", "connect", "tls", "sasl", "bind"]
IN_THE_ROOM = ["disco", "join", "occupants", "leave"]


def reading(file: Path, home: Path, *further: str) -> BridgeProcess:
    """A bridge that has its settings from this file, and nothing from elsewhere."""
    return BridgeProcess(home, arguments=("--env-file", str(file), *further))


def names(result: dict[str, Any]) -> list[str]:
    return [one["name"] for one in result["phases"]]


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
        assert names(result) == CHECK_STAGES + IN_THE_ROOM
        assert all(one["ok"] for one in result["phases"])
        standing = "The bridge is in the room and was left alone. The room is temporary: "
        assert result["standing"].startswith(standing)
        assert "settingsChanged" not in result
        assert "with 2 other occupants, " in result["diagnosis"]
        (seen,) = (one["detail"] for one in result["phases"] if one["name"] == "occupants")
        assert "Wilma" in seen
        assert "Beetle" in seen
        # The room has seen one of the two go, and the other is still heard.
        (entered,) = (one["detail"] for one in result["phases"] if one["name"] == "join")
        await wilma.left(json.loads(entered.removeprefix("entered as ").partition("; ")[0]))
        assert wilma.occupants == {"Wilma", "Beetle"}
        with pytest.raises(TimeoutError):
            await wilma.left("Beetle", seconds=0.1)
        await bridge.bare("xmppSend", message="still here")
        await wilma.heard("still here")
        after = await bridge.status()
        assert [after[one] for one in ("jid", "since", "occupants")] == [
            before[one] for one in ("jid", "since", "occupants")
        ]


async def test_settings_that_were_corrected_in_the_file_take_effect(
    prosody: XmppServer, tmp_path: Path
) -> None:
    file = tmp_path / "settings.env"
    environment = prosody.environment(MCP_BOT_NICKNAME="Beetle")
    write_settings(file, environment | {"MUC_ROOM": ""})
    async with reading(file, tmp_path / "home") as bridge:
        assert (await bridge.status())["phase"] == "unconfigured"
        result = await bridge.bare("xmppCheck")
        assert (result["ok"], result["condition"]) == (False, "unconfigured")
        assert names(result) == ["settings"]
        assert "MUC_ROOM" in result["diagnosis"]

        write_settings(file, environment | {"XMPP_PASSWORD": "not-the-password"})
        result = await bridge.bare("xmppCheck")
        assert (result["ok"], result["condition"]) == (False, "not-authorized")
        assert result["phases"][-1]["name"] == "sasl"
        assert "XMPP_PASSWORD" in result["phases"][-1]["hint"]
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
        assert any("XMPP_PASSWORD" in one for one in status["problems"])
    assert "not-the-password" not in bridge.stderr


async def test_a_server_that_came_back_is_found_before_the_next_attempt(
    prosody_process: ServerProcess, tmp_path: Path
) -> None:
    environment = prosody_process.server.environment()
    prosody_process.stop()
    async with BridgeProcess(tmp_path, environment) as bridge:
        await bridge.until(lambda it: it["phase"] == "waiting")
        result = await bridge.bare("xmppCheck")
        assert (result["ok"], result["condition"]) == (False, "connection-refused")
        assert names(result) == ["settings", "resolve", "connect"]
        assert result["standing"].startswith("The bridge was left alone; ")
        prosody_process.start()
        assert (await bridge.bare("xmppCheck"))["ok"] is True
        # An attempt of its own may have met a server whose room service was not there yet, and
        # then waits for it as long as a join may take.
        await bridge.until(lambda it: it["connected"], CHANGE_SECONDS + DEADLINES[Stage.JOIN])
