"""`xmppCheck` of the real command, beside the connection that stands."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from bridge.xmpp.link.connection import DEADLINES
from bridge.xmpp.model.faults import Stage
from tests.e2e import noise
from tests.e2e.bridge_process import CHANGE_SECONDS, BridgeProcess, RpcFailedError
from tests.servers.endpoint import Endpoint
from tests.servers.process import ServerProcess
from tests.servers.server import XmppServer
from tests.servers.witness import Witness

CHECK_STAGES = ["settings", "resolve", "connect", "tls", "sasl", "bind"]
IN_THE_ROOM = ["disco", "join", "occupants", "leave"]


def write(file: Path, environment: Mapping[str, str]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(f"{name}='{value}'\n" for name, value in environment.items())
    file.write_text(text, encoding="utf-8")


def reading(file: Path, home: Path, *further: str) -> BridgeProcess:
    """A bridge that has its settings from this file, and nothing from elsewhere."""
    return BridgeProcess(home, arguments=("--env-file", str(file), *further))


def names(result: dict[str, Any]) -> list[str]:
    return [one["name"] for one in result["phases"]]


async def test_the_standing_connection_is_not_disturbed(endpoint: Endpoint, tmp_path: Path) -> None:
    server = endpoint.server
    environment = endpoint.environment(MCP_BOT_NICKNAME="Beetle")
    room = environment["MUC_ROOM"]
    async with (
        Witness(server, server.witness, room, "Wilma", endpoint.transport) as wilma,
        BridgeProcess(tmp_path, environment) as bridge,
    ):
        before = await bridge.joined()
        await bridge.initialize()
        result = await bridge.call("xmppCheck")
        assert result["ok"] is True
        assert names(result) == CHECK_STAGES + IN_THE_ROOM
        assert all(one["ok"] for one in result["phases"])
        assert result["standing"] == "It is in the room and was left alone."
        assert "settingsChanged" not in result
        assert "with 2 other occupants, " in result["diagnosis"]
        (seen,) = (one["detail"] for one in result["phases"] if one["name"] == "occupants")
        assert "Wilma" in seen
        assert "Beetle" in seen
        # The room has seen one of the two go, and the other is still heard.
        (entered,) = (one["detail"] for one in result["phases"] if one["name"] == "join")
        await wilma.left(json.loads(entered.removeprefix("entered as ")))
        # ejabberd's room has a presence of its own, without a nickname.
        assert wilma.occupants - {""} == {"Wilma", "Beetle"}
        with pytest.raises(TimeoutError):
            await wilma.left("Beetle", seconds=0.1)
        await bridge.bare("xmppSend", message="still here")
        await wilma.heard("still here")
        after = await bridge.status()
        assert [after[one] for one in ("jid", "since", "occupants")] == [
            before[one] for one in ("jid", "since", "occupants")
        ]


async def test_the_result_keeps_to_its_schema_and_shows_no_password(
    real_server: XmppServer, tmp_path: Path
) -> None:
    environment = real_server.environment(MUC_PASSWORD="room-secret-0815")
    for title, overrides in {
        "works": {},
        "refused": {"XMPP_PASSWORD": "not-the-password"},
        "untrusted": {"XMPP_TLS_CA_FILE": str(tmp_path)},
    }.items():
        settings = environment | overrides
        async with BridgeProcess(tmp_path / title, settings) as bridge:
            await bridge.initialize()
            tools = {one["name"]: one for one in (await bridge.request("tools/list"))["tools"]}
            tool = tools["xmppCheck"]
            assert tool["annotations"]["readOnlyHint"] is True
            assert tool["inputSchema"]["properties"] == {}
            result = await bridge.call("xmppCheck")
            Draft202012Validator(tool["outputSchema"]).validate(result)
            assert result["ok"] is (title == "works")
            assert ("notice" in result) is (title != "untrusted")
    for secret in (settings["XMPP_PASSWORD"], settings["MUC_PASSWORD"]):
        assert secret not in bridge.stdout.decode()
        assert secret not in bridge.stderr


async def test_a_password_that_was_corrected_in_the_file_takes_effect(
    real_server: XmppServer, tmp_path: Path
) -> None:
    file = tmp_path / "settings.env"
    environment = real_server.environment()
    write(file, environment | {"XMPP_PASSWORD": "not-the-password"})
    async with reading(file, tmp_path / "home") as bridge:
        status = await bridge.until(lambda it: it["phase"] == "failed")
        assert "nextAttemptAt" not in status
        result = await bridge.bare("xmppCheck")
        assert (result["ok"], result["condition"]) == (False, "not-authorized")
        assert result["phases"][-1]["name"] == "sasl"
        assert "XMPP_PASSWORD" in result["phases"][-1]["hint"]
        assert result["standing"] == "It was left alone; its phase is failed."

        write(file, environment)
        result = await bridge.bare("xmppCheck")
        assert (result["ok"], result["settingsChanged"]) == (True, True)
        assert "starts anew" in result["standing"]
        status = await bridge.joined()
        assert status["room"] == environment["MUC_ROOM"]
        assert (await bridge.bare("xmppSend", message="here I am"))["sent"] is True
    assert "not-the-password" not in bridge.stderr


async def test_settings_that_were_missing_take_effect(
    real_server: XmppServer, tmp_path: Path
) -> None:
    file = tmp_path / "settings.env"
    environment = real_server.environment(MCP_BOT_NICKNAME="Beetle")
    write(file, environment | {"MUC_ROOM": ""})
    async with reading(file, tmp_path / "home") as bridge:
        assert (await bridge.status())["phase"] == "unconfigured"
        result = await bridge.bare("xmppCheck")
        assert (result["ok"], result["condition"]) == (False, "unconfigured")
        assert names(result) == ["settings"]
        assert "MUC_ROOM" in result["diagnosis"]

        write(file, environment)
        assert (await bridge.bare("xmppCheck"))["ok"] is True
        status = await bridge.joined()
        assert status["nickname"] == "Beetle"
        assert "problems" not in status


async def test_another_room_is_moved_to_and_the_old_one_left(
    real_server: XmppServer, tmp_path: Path
) -> None:
    file = tmp_path / "settings.env"
    old = real_server.environment(MCP_BOT_NICKNAME="Beetle")
    new = old | {"MUC_ROOM": real_server.room()}
    write(file, old)
    async with (
        Witness(real_server, real_server.witness, old["MUC_ROOM"], "Wilma") as wilma,
        reading(file, tmp_path / "home") as bridge,
    ):
        await bridge.joined()
        write(file, new)
        result = await bridge.bare("xmppCheck")
        assert (result["ok"], result["roomCreated"]) == (True, True)
        assert "did not exist before" in result["diagnosis"]
        await wilma.left("Beetle")
        await bridge.until(lambda it: it["connected"] and "roomCreated" in it)
        assert (await bridge.status())["room"] == new["MUC_ROOM"]


async def test_a_file_that_no_longer_does_keeps_what_stands_and_shows_the_problem(
    sandbox: XmppServer, tmp_path: Path
) -> None:
    file = tmp_path / "settings.env"
    environment = sandbox.environment()
    write(file, environment)
    async with reading(file, tmp_path / "home") as bridge:
        await bridge.joined()
        write(file, environment | {"XMPP_PASSWORD": ""})
        result = await bridge.bare("xmppCheck")
        assert result["condition"] == "unconfigured"
        assert result["standing"] == "It is in the room and was left alone."
        status = await bridge.status()
        assert (status["connected"], status["nickname"]) == (True, "McpDebug")
        assert any("XMPP_PASSWORD" in one for one in status["problems"])
        resource = await bridge.request("resources/read", {"uri": "bridge://status"})
        assert json.loads(resource["contents"][0]["text"])["problems"] == status["problems"]


async def test_a_running_bridge_is_not_moved_to_a_file_that_appeared_where_it_was_started(
    sandbox: XmppServer, tmp_path: Path
) -> None:
    ours, home = tmp_path / "settings.env", tmp_path / "home"
    environment = sandbox.environment()
    write(ours, environment)
    async with BridgeProcess(home, {"TIA_ENV_PATH": str(ours)}, arguments=()) as bridge:
        await bridge.joined()
        write(home / ".env", environment | {"MCP_BOT_NICKNAME": "Strangers"})
        result = await bridge.bare("xmppCheck")
        assert result["ok"] is True
        assert "settingsChanged" not in result
        appeared = f"{home / '.env'}: appeared since the start: restart the bridge to use it"
        assert appeared in result["phases"][0]["detail"]
        ours.unlink()
        result = await bridge.bare("xmppCheck")
        assert (result["ok"], result["condition"]) == (False, "unconfigured")
        told = f"the settings come from the environment alone now, and came from {ours} before"
        assert told in result["phases"][0]["detail"]
        status = await bridge.status()
        assert (status["connected"], status["nickname"]) == (True, "McpDebug")
        reasons = [one["reason"].partition(":")[0] for one in status["envCandidates"]]
        assert reasons[:2] == ["appeared since the start", "missing"]
        assert told in status["warnings"]
    assert f"[Server] WARNING: {told}" in bridge.stderr


async def test_a_server_that_came_back_is_found_before_the_next_attempt(
    server_process: ServerProcess, tmp_path: Path
) -> None:
    environment = server_process.server.environment()
    server_process.stop()
    async with BridgeProcess(tmp_path, environment) as bridge:
        await bridge.until(lambda it: it["phase"] == "waiting")
        result = await bridge.bare("xmppCheck")
        assert (result["ok"], result["condition"]) == (False, "connection-refused")
        assert names(result) == ["settings", "resolve", "connect"]
        assert result["standing"].startswith("It was left alone; ")
        server_process.start()
        assert (await bridge.bare("xmppCheck"))["ok"] is True
        # An attempt of its own may have met a server whose room service was not there yet, and
        # then waits for it as long as a join may take.
        await bridge.until(lambda it: it["connected"], CHANGE_SECONDS + DEADLINES[Stage.JOIN])


async def test_it_stays_where_nothing_may_be_written(sandbox: XmppServer, tmp_path: Path) -> None:
    environment = sandbox.environment(BRIDGE_READ_ONLY="1")
    async with BridgeProcess(tmp_path, environment) as bridge:
        await bridge.joined()
        with pytest.raises(RpcFailedError):
            await bridge.bare("xmppSend", message="hello")
        assert (await bridge.bare("xmppCheck"))["ok"] is True


async def test_progress_is_told_to_whoever_asks(sandbox: XmppServer, tmp_path: Path) -> None:
    async with BridgeProcess(tmp_path, sandbox.environment()) as bridge:
        await bridge.initialize()
        params = {"name": "xmppCheck", "arguments": {}, "_meta": {"progressToken": "p"}}
        result = await bridge.request("tools/call", params)
        told = [await bridge.frame() for _ in result["structuredContent"]["phases"]]
        assert [one["params"]["message"] for one in told] == CHECK_STAGES + IN_THE_ROOM
        assert {one["params"]["total"] for one in told} == {len(told)}


async def test_a_check_that_is_cancelled_makes_way_for_the_next(
    real_server: XmppServer, tmp_path: Path
) -> None:
    environment = real_server.environment(MUC_ROOM="room@nowhere.invalid")
    async with BridgeProcess(tmp_path, environment) as bridge:
        await bridge.initialize()
        bridge.send(
            {
                "jsonrpc": "2.0",
                "id": "c",
                "method": "tools/call",
                "params": {"name": "xmppCheck", "arguments": {}},
            }
        )
        bridge.send(
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "c"}}
        )
        assert (await bridge.bare("xmppCheck"))["ok"] is False


async def test_a_broken_installation_is_told(sandbox: XmppServer, tmp_path: Path) -> None:
    broken = noise.at_start(tmp_path / "site", noise.BROKEN_SLIXMPP)
    async with BridgeProcess(tmp_path / "home", sandbox.environment() | broken) as bridge:
        with pytest.raises(RpcFailedError) as refusal:
            await bridge.bare("xmppCheck")
        assert refusal.value.data["condition"] == "internal-server-error"
        assert "half an installation" in refusal.value.message
