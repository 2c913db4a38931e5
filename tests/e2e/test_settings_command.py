"""`xmpp-bridge settings`: what is in effect, from where, and what is wrong."""

import json
from pathlib import Path

import pytest

from bridge.settings.table import VARIABLES
from tests.e2e.bridge_process import NOWHERE, BridgeProcess
from tests.e2e.checking import XTERM, on_screen
from tests.e2e.here import run_here
from tests.e2e.watching import Watching, run
from tests.settings.folders import written

SECRET = NOWHERE["XMPP_PASSWORD"]


def test_every_setting_is_there_with_its_value_source_and_meaning(tmp_path: Path) -> None:
    file = tmp_path / "bridge.env"
    file.write_text(written({**NOWHERE, "BOT_NICKNAME": "Zed", "BRIDGE_SEND_RATE": "5"}))
    file.chmod(0o600)
    ran = run_here(tmp_path, "settings", "--json", "--env-file", file, LOG_LEVEL="ERROR")
    told = json.loads(ran.stdout)
    assert (ran.returncode, ran.stdout.isascii(), SECRET in str(ran)) == (0, True, False)
    rows = {row["variable"]: row for row in told["settings"]}
    assert [*rows] == [*VARIABLES]
    assert all(row["meaning"] for row in rows.values())
    values = {name: (row["value"], row["source"]) for name, row in rows.items()}
    assert values["XMPP_PASSWORD"] == ("***", repr(str(file)))
    assert values["MCP_BOT_NICKNAME"] == ("Zed", repr(str(file)))
    assert values["LOG_LEVEL"] == ("ERROR", "the environment")
    assert values["BRIDGE_HISTORY"] == ("10000", "default")
    assert values["MUC_PASSWORD"] == (None, "default")
    (warning,) = told["warnings"]
    assert "BRIDGE_SEND_RATE" in warning
    assert (told["problems"], warning in ran.stderr) == ([], True)


async def test_a_doubtful_value_is_a_warning_wherever_settings_are_told_of(tmp_path: Path) -> None:
    file = tmp_path / "bridge.env"
    file.write_text(written(NOWHERE | {"MUC_PASSWORD": f"${{{SECRET}}}"}))
    file.chmod(0o644)
    named = ("--env-file", str(file))
    settings, checked = [
        await run(tmp_path, {}, command, "--json", *named) for command in ("settings", "check")
    ]
    async with BridgeProcess(tmp_path, arguments=("serve", *named)) as bridge:
        status = await bridge.status()
    where = f"in {str(file)!r}"
    for warnings in (
        json.loads(settings[1])["warnings"],
        [*settings[2].splitlines()],
        [json.loads(checked[1].splitlines()[0])["phases"][0]["detail"]],
        status["warnings"],
        bridge.stderr.splitlines(),
    ):
        told = "\n".join(warnings)
        assert f"MUC_PASSWORD {where} looks like a placeholder" in told
        assert f"XMPP_PASSWORD and MUC_PASSWORD {where} can be read by other users" in told
        assert SECRET not in told


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_it_works_with_bad_settings_and_says_what_of_a_strangers_file_is_ignored(
    form: tuple[str, ...], tmp_path: Path
) -> None:
    ours = {"XMPP_SERVICE": "nonsense", "MUC_ROOM": "", "BRIDGE_STORE": "x.db"}
    (tmp_path / ".env").write_text(written(NOWHERE | ours))
    ran = run_here(tmp_path, "settings", *form)
    assert (ran.returncode, SECRET in str(ran)) == (2, False)
    assert "xmpp-bridge: XMPP_SERVICE holds 'nonsense'" in ran.stderr
    assert "xmpp-bridge: MUC_ROOM is not set" in ran.stderr
    assert "WARNING: BRIDGE_STORE in " in ran.stderr
    assert "lying in the current directory" in ran.stderr
    if form:
        assert len(json.loads(ran.stdout)["problems"]) == 2
    else:
        assert "\nXMPP_PASSWORD=*** (" in ran.stdout
        assert "\nMUC_ROOM is not set\n" in ran.stdout


async def test_on_a_narrow_terminal_no_line_is_broken_by_it(tmp_path: Path) -> None:
    async with Watching(tmp_path, NOWHERE | XTERM, command="settings", columns=40) as showing:
        assert await showing.ended() == 0
    shown = on_screen(showing, 40)
    assert max(map(len, shown)) <= 40
    heads = [line for line in shown if line and not line.startswith("    ")]
    assert [head for head in heads if not head.startswith(tuple(VARIABLES))] == []
