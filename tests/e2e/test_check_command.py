"""`xmpp-bridge check` as it is run: from a pipe, again and again, on a terminal."""

import asyncio
import json
import re
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bridge.xmpp.checks.probe import MESSAGE
from tests.e2e.checking import IN_THE_ROOM, SGR, STAGE, STAGES, XTERM, on_screen, run, stages
from tests.e2e.watching import SECONDS, Watching
from tests.faults.scripted_server import HONEST, ScriptedServer, Wire
from tests.servers.server import XmppServer
from tests.servers.witness import Witness


async def test_from_a_pipe_it_is_a_line_a_stage_and_then_the_diagnosis(
    prosody: XmppServer, tmp_path: Path
) -> None:
    environment = prosody.environment(MUC_PASSWORD="room-secret-0815")
    async with Witness(prosody, prosody.witness, environment["MUC_ROOM"], "Wilma") as witness:
        code, checking = await run(tmp_path, environment, "--send")
        await witness.heard(MESSAGE)
    assert code == 0
    lines = checking.out.splitlines()
    assert lines[0] == f"Checking the way into {environment['MUC_ROOM']}"
    assert [(name, ok) for name, ok, _ in stages(lines)] == [
        (name, True) for name in [*STAGES, *IN_THE_ROOM[:-1], "send", "leave"]
    ]
    details = {name: detail for name, _, detail in stages(lines)}
    assert details["settings"].endswith("/.config/xmpp-bridge.env: missing")
    assert f"{tmp_path}/.env: missing; " in details["settings"]
    assert "SCRAM" in details["sasl"]
    assert '1 besides us: "Wilma"' in details["occupants"]
    verdict = lines[lines.index("") + 1]
    assert verdict.startswith(f"Everything works: in the room {environment['MUC_ROOM']} with 1 ")
    assert "\x1b" not in checking.out
    assert checking.err == ""


async def test_repeated_as_json_it_has_every_run(prosody: XmppServer, tmp_path: Path) -> None:
    environment = prosody.environment()
    async with Witness(prosody, prosody.witness, environment["MUC_ROOM"], "東京"):
        code, checking = await run(tmp_path, environment, "--json", "--repeat", "2")
    assert code == 0
    (line,) = checking.out.splitlines()
    assert line.isascii()
    told: dict[str, Any] = json.loads(line)
    assert told["ok"] is True
    assert [it["ok"] for it in told["runs"]] == [True, True]
    names = STAGES[1:] + IN_THE_ROOM
    assert list(told["medianMs"]) == list(told["worstMs"]) == names
    for name in names:
        phases = [each for run in told["runs"] for each in run["phases"] if each["name"] == name]
        taken = [phase["ms"] for phase in phases]
        assert told["worstMs"][name] == max(taken)
        assert told["medianMs"][name] == pytest.approx(sum(taken) / 2, abs=0.001)
    assert "東京" in told["runs"][0]["phases"][-2]["detail"]


WRONG = "XMPP_SERVICE=http://example.org\nXMPP_USERNAME=bot@example.org\nMUC_ROOM=nonsense\n"
PROBLEMS = {"XMPP_SERVICE", "XMPP_PASSWORD", "MUC_ROOM"}


async def test_settings_that_do_not_do_are_named_in_lines_and_as_an_object(
    sandbox: XmppServer, tmp_path: Path
) -> None:
    odd = {"TIA_ENV_PATH": "nowhere", "BRIDGE_HISTORY": "some"}
    (tmp_path / "wrong.env").write_text(WRONG, encoding="utf-8")
    code, checking = await run(tmp_path, {"TIA_ENV_PATH": "wrong.env"})
    assert (code, checking.out) == (2, "")
    lines = checking.err.splitlines()
    assert f"xmpp-bridge: looked at {tmp_path}/.env: missing" in lines
    assert f"xmpp-bridge: looked at {tmp_path}/wrong.env: used" in lines
    assert "init" not in checking.err
    assert all(line.startswith("xmpp-bridge: ") for line in lines)
    code, checking = await run(tmp_path, {}, "--json", "--env-file", "wrong.env")
    assert code == 2
    told = json.loads(checking.out)
    assert (told["ok"], told["condition"]) == (False, "unconfigured")
    assert {each.split()[0] for each in told["problems"]} == PROBLEMS
    (phase,) = told["phases"]
    assert (phase["name"], phase["ok"]) == ("settings", False)
    assert f"{tmp_path}/wrong.env: used" in phase["detail"]
    for name in PROBLEMS:
        assert name in told["diagnosis"]
        assert f"xmpp-bridge: {name} " in checking.err
    code, passed = await run(tmp_path, sandbox.environment() | odd, "--json")
    well = json.loads(passed.out)
    assert well.keys() == told.keys()
    assert (code, well["ok"], well["condition"]) == (2, False, None)
    assert "xmpp-bridge: BRIDGE_HISTORY holds 'some'" in passed.err
    assert [each.split()[0] for each in well["problems"]] == ["BRIDGE_HISTORY"]
    warning = f"warning: TIA_ENV_PATH names '{tmp_path}/nowhere', which cannot be used"
    assert warning in well["phases"][0]["detail"]
    listed = {each["variable"]: each["value"] for each in well["settings"]}
    assert listed["XMPP_PASSWORD"] == "***"


@pytest.mark.parametrize(
    ("options", "code", "outcome"),
    [
        ([], 2, "But a setting beside the connection is wrong."),
        (["--repeat", "2"], 2, "2 of 2 passed."),
        (["--format", "nagios"], 1, "XMPP WARNING - "),
    ],
)
async def test_a_wrong_setting_beside_the_connection_fails_the_check_and_not_the_way(
    options: list[str], code: int, outcome: str, sandbox: XmppServer, tmp_path: Path
) -> None:
    environment = sandbox.environment(BRIDGE_HISTORY="some")
    ended, checking = await run(tmp_path, environment, *options)
    assert (ended, outcome in checking.out) == (code, True)
    assert checking.err == ""
    if "nagios" not in options:
        first, *others = stages(checking.out.splitlines())
        assert first[:2] == ("settings", False)
        assert all(ok for _, ok, _ in others)


async def test_on_a_terminal_the_stage_under_way_is_named_and_nothing_is_left_behind(
    prosody: XmppServer, tmp_path: Path
) -> None:
    environment = prosody.environment()
    code, checking = await run(tmp_path, environment | XTERM, columns=80)
    assert code == 0
    assert "\x1b[32m" in checking.out
    shown = on_screen(checking, 80)
    assert max(map(len, shown)) <= 80
    # Each stage once: what was drawn on the way is gone.
    assert [stage[1] for line in shown if (stage := STAGE.fullmatch(line))] == STAGES + IN_THE_ROOM
    assert not [line for line in shown if line.endswith("...")]
    # On the way the next stage was named under each.
    plain = SGR.sub("", checking.out)
    assert re.findall(r"(?m)^([a-z]+) +\.\.\.$", plain) == [*STAGES[1:], *IN_THE_ROOM]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_in_the_middle_hangs_up(number: signal.Signals, tmp_path: Path) -> None:
    left = asyncio.Event()

    async def keep_silent(wire: Wire) -> None:
        try:
            await wire.gone()
        finally:
            left.set()

    async with (
        ScriptedServer(replace(HONEST, authenticate=keep_silent)) as server,
        Watching(tmp_path, server.environment() | XTERM, command="check", columns=80) as checking,
        asyncio.timeout(SECONDS),
    ):
        await checking.shows("tls")
        assert on_screen(checking, 80)[-2] == "tls        ..."
        checking.signal(number)
        await left.wait()
        assert await checking.ended() == 128 + number
