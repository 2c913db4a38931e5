import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

import bridge
from tests.e2e.bridge_process import NOWHERE, TOOLS, BridgeProcess, RpcFailedError
from tests.servers.server import XmppServer, write_settings


@dataclass(frozen=True)
class Places:
    """The three places for a `.env`, none of them written yet."""

    here: Path
    """In the current directory of the bridge."""
    elsewhere: Path
    """What `TIA_ENV_PATH` names."""
    package: Path
    """Beside the imported `bridge/` folder."""

    def run(self) -> BridgeProcess:
        """The installed command, importing the copy of the package."""
        places = {"PYTHONPATH": str(self.package.parent), "TIA_ENV_PATH": str(self.elsewhere)}
        return BridgeProcess(self.here.parent, places, arguments=())


@pytest.fixture
def places(tmp_path: Path) -> Places:
    """Each place in a folder of its own, with a copy of the package in the last."""
    for name in ("here", "elsewhere", "package"):
        (tmp_path / name).mkdir()
    # With what was compiled of it, which takes seconds at each start otherwise.
    shutil.copytree(Path(bridge.__file__).parent, tmp_path / "package" / "bridge")
    return Places(*(tmp_path / name / ".env" for name in ("here", "elsewhere", "package")))


async def test_without_any_settings_mcp_answers_and_the_status_lists_what_is_missing(
    places: Places,
) -> None:
    async with places.run() as run:
        await run.initialize()
        status = await run.call("xmppStatus")
        assert (status["phase"], status["connected"]) == ("unconfigured", False)
        assert (status["room"], status["nickname"], status["service"]) == (None, None, None)
        assert "envFile" not in status
        users = places.here.parent / ".config/xmpp-bridge.env"
        paths = (places.here, places.elsewhere, places.package, users)
        missing = [{"path": str(path), "reason": "missing"} for path in paths]
        assert status["envCandidates"] == missing
        named = [problem.partition(" ")[0] for problem in status["problems"]]
        assert {"XMPP_USERNAME", "XMPP_PASSWORD", "MUC_ROOM"} <= set(named)
        with pytest.raises(RpcFailedError) as refusal:
            await run.bare("xmppSend", message="hello")
        assert refusal.value.data["condition"] == "unconfigured"
        assert "xmppStatus" in refusal.value.data["hint"]
    for problem in status["problems"]:
        assert f"[Server] ERROR: {problem}" in run.stderr
    assert f"[Server] settings: {places.here}: missing" in run.stderr
    assert f"[Server] xmpp-bridge init asks for the settings and writes {users}" in run.stderr
    assert f"[Server] WARNING: TIA_ENV_PATH names '{places.elsewhere}'" in run.stderr


async def test_a_file_beside_the_package_leads_into_the_room(
    sandbox: XmppServer, places: Places
) -> None:
    settings = sandbox.environment()
    write_settings(places.package, settings)
    async with places.run() as run:
        status = await run.joined()
        assert status["room"] == settings["MUC_ROOM"]
        assert status["envFile"] == str(places.package)
    assert f"[Server] settings: {places.package}: used" in run.stderr


async def test_restrictions_that_are_set_while_it_runs_hold_after_the_next_check(
    sandbox: XmppServer, places: Places
) -> None:
    settings = sandbox.environment(BRIDGE_SEND_RATE="2")  # no token comes back within the test
    write_settings(places.elsewhere, settings)
    async with places.run() as run:
        await run.joined()
        await run.bare("xmppSend", message="first")
        for restriction, condition in (
            ({"BRIDGE_SEND_RATE": "1"}, "policy-violation"),
            ({"BRIDGE_CONFIRM_SEND": "1"}, "not-allowed"),
            ({"BRIDGE_READ_ONLY": "1"}, "not-allowed"),
        ):
            (variable,) = restriction
            write_settings(places.elsewhere, settings | restriction)
            check = await run.call("xmppCheck")
            assert "restarted" not in check["phases"][0].get("hint", "")
            for _ in ("with the file", "with the file gone, which lifts nothing"):
                with pytest.raises(RpcFailedError) as refusal:
                    await run.bare("xmppSend", message="one too many")
                assert refusal.value.data["condition"] == condition
                assert f"{variable} in '{places.elsewhere}'" in refusal.value.data["hint"]
                places.elsewhere.unlink(missing_ok=True)
                await run.call("xmppCheck")
        write_settings(places.elsewhere, settings)
        check = await run.call("xmppCheck")
        assert "restarted" not in check["phases"][0].get("hint", "")
        assert (await run.call("xmppSend", message="second"))["sent"] is True


async def test_a_bridge_that_only_reads_has_no_tool_that_writes(tmp_path: Path) -> None:
    async with BridgeProcess(tmp_path, NOWHERE, arguments=["serve", "--read-only"]) as run:
        names = [tool["name"] for tool in (await run.request("tools/list"))["tools"]]
        assert names == [name for name in TOOLS if name != "xmppSend"]
        for call, code in ((run.bare, -32601), (run.call, -32602)):
            with pytest.raises(RpcFailedError) as refusal:
                await call("xmppSend", message="hello")
            assert refusal.value.code == code
            assert "is withheld by --read-only" in refusal.value.data


async def test_a_sandbox_is_not_led_astray_by_settings_for_another_server(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".env").write_text(
        "XMPP_SERVICE=xmpps://elsewhere.example\nXMPP_TLS_CA_FILE=/missing.pem\n"
        "MUC_PASSWORD=wrong\n",
        encoding="utf-8",
    )
    settings = {"XMPP_DOMAIN": "elsewhere.example", "XMPP_TLS_CA_FILE": "/missing.pem"}
    async with BridgeProcess(home, settings, arguments=("--sandbox",)) as bridge:
        status = await bridge.joined()
        assert "problems" not in status
        assert "envCandidates" not in status
