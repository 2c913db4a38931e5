"""What `xmpp-bridge check` finds, against real servers."""

import json
import re
from pathlib import Path

import pytest

from bridge.xmpp.checks.probe import MESSAGE
from tests.e2e.checking import IN_THE_ROOM, STAGES, XTERM, run, stages
from tests.faults import scripted_server as scripted
from tests.faults.scripted_server import Script, ScriptedServer, Wire
from tests.servers.server import XmppServer
from tests.servers.witness import Witness


async def test_from_a_pipe_it_is_a_line_a_stage_and_then_the_diagnosis(
    prosody: XmppServer, tmp_path: Path
) -> None:
    environment = prosody.environment(MUC_PASSWORD="room-secret-0815")
    async with Witness(prosody, prosody.witness, environment["MUC_ROOM"], "Wilma"):
        code, checking = await run(tmp_path, environment)
    assert code == 0
    lines = checking.out.splitlines()
    assert lines[0] == f"Checking the way into {environment['MUC_ROOM']}"
    assert [(name, ok) for name, ok, _ in stages(lines)] == [
        (name, True) for name in STAGES + IN_THE_ROOM
    ]
    details = {name: detail for name, _, detail in stages(lines)}
    assert details["settings"].endswith("/.env: missing")
    assert f"{tmp_path}/.env: missing; " in details["settings"]
    assert "SCRAM" in details["sasl"]
    assert '1 besides us: "Wilma"' in details["occupants"]
    verdict = lines[lines.index("") + 1]
    assert verdict.startswith(f"Everything works: in the room {environment['MUC_ROOM']} with 1 ")
    assert "\x1b" not in checking.out
    assert checking.err == ""


async def test_with_send_the_room_hears_one_message(prosody: XmppServer, tmp_path: Path) -> None:
    environment = prosody.environment()
    async with Witness(prosody, prosody.witness, environment["MUC_ROOM"], "W") as witness:
        code, checking = await run(tmp_path, environment, "--send")
        await witness.heard(MESSAGE)
    assert code == 0
    names = [name for name, _, _ in stages(checking.out.splitlines())]
    assert names == [*STAGES, *IN_THE_ROOM[:-1], "send", "leave"]


WRONG_PASSWORD = {"XMPP_PASSWORD": "wrong-4711-wrong"}
FAILURES = {
    "a wrong password": (
        WRONG_PASSWORD,
        ("sasl", "refused the login of bot@localhost", "[not-authorized]", "XMPP_PASSWORD"),
    ),
    "no server": (
        {"XMPP_SERVICE": "xmpp://127.0.0.1:1"},
        ("connect", "Nothing listens at xmpp://127.0.0.1:1.", "", "XMPP_SERVICE"),
    ),
    "a strange authority": (
        {"XMPP_TLS_CA_FILE": " "},
        ("tls", "cannot be trusted", "[certificate-verify-failed]", "XMPP_TLS_CA_FILE"),
    ),
}
"""What is set otherwise; the stage that fails, what happened, the condition, what to change."""


@pytest.mark.parametrize("failure", FAILURES)
async def test_what_fails_ends_it_with_1_and_the_setting_to_change(
    failure: str, prosody: XmppServer, tmp_path: Path
) -> None:
    changed, (stage, happened, condition, setting) = FAILURES[failure]
    code, checking = await run(tmp_path, prosody.environment() | changed)
    assert code == 1
    *_, told, advice = lines = checking.out.splitlines()
    assert [name for name, ok, _ in stages(lines) if not ok] == [stage]
    assert happened in told
    assert advice.startswith(condition)
    assert setting in advice


async def test_a_refused_password_is_not_tried_again(prosody: XmppServer, tmp_path: Path) -> None:
    environment = prosody.environment() | WRONG_PASSWORD
    code, checking = await run(tmp_path, environment, "--repeat", "5")
    assert code == 1
    assert len(re.findall("(?m)^ +[0-9]+  FAILED", checking.out)) == 1
    assert "0 of 1 passed. 5 were asked for" in checking.out
    code, checking = await run(tmp_path, environment, "--repeat", "5", "--json")
    assert code == 1
    told = json.loads(checking.out)
    assert [one["condition"] for one in told["runs"]] == ["not-authorized"]
    assert told["ok"] is False


async def test_json_is_one_object_in_ascii(prosody: XmppServer, tmp_path: Path) -> None:
    environment = prosody.environment()
    async with Witness(prosody, prosody.witness, environment["MUC_ROOM"], "東京"):
        code, checking = await run(tmp_path, environment, "--json")
    assert code == 0
    (line,) = checking.out.splitlines()
    assert line.isascii()
    told = json.loads(line)
    assert (told["ok"], told["condition"], told["problems"]) == (True, None, [])
    assert "rooms" not in told
    assert [one["name"] for one in told["phases"]] == STAGES + IN_THE_ROOM
    for phase in told["phases"]:
        assert phase.keys() == {"name", "ok", "ms", "detail", "hint"}
        assert 0 <= phase["ms"] <= told["ms"] or phase["name"] == "settings"
    assert "東京" in told["phases"][-2]["detail"]


@pytest.mark.parametrize(
    ("columns", "arguments"),
    [(None, ("--json",)), (80, ()), (None, ("--repeat", "2"))],
    ids=["json", "terminal", "repeat"],
)
async def test_nothing_that_a_server_says_reaches_the_terminal_as_it_is(
    columns: int | None, arguments: tuple[str, ...], tmp_path: Path
) -> None:
    async def refuse(wire: Wire) -> None:
        await wire.open(scripted.mechanisms("SCRAM-SHA-256", "X-\u202e\x9b2J&#10;FORGED"))
        await wire.element("auth")
        text = "<text>no\u202e\x9b2J&#10;leave      ok         0.1 ms</text>"
        wire.send(f"<failure xmlns='{scripted.SASL}'><not-authorized/>{text}</failure>")
        await wire.gone()

    async with ScriptedServer(Script(authenticate=refuse)) as server:
        environment = server.environment() | XTERM
        code, checking = await run(tmp_path, environment, *arguments, columns=columns)
    assert code == 1
    assert not re.search("[\x7f-\x9f\u2028-\u202e]", checking.out)
    assert not re.search("(?m)^leave", checking.out)
    assert not re.search("(?m)^FORGED", checking.out)
    escape = "\\\\u{202E}" if "--json" in arguments else "\\u{202E}"
    assert escape in checking.out
