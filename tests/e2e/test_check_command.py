"""What `xmpp-bridge check` finds, against real servers."""

import json
import re
from pathlib import Path

import pytest

from bridge.xmpp.checks.probe import MESSAGE
from tests.e2e import noise
from tests.e2e.checking import IN_THE_ROOM, STAGES, XTERM, run, stages
from tests.faults import scripted_server as scripted
from tests.faults.scripted_server import Script, ScriptedServer, Wire
from tests.servers.certificates import Authority
from tests.servers.ports import free_ports
from tests.servers.server import XmppServer
from tests.servers.witness import Witness


async def test_from_a_pipe_it_is_a_line_a_stage_and_then_the_diagnosis(
    real_server: XmppServer, tmp_path: Path
) -> None:
    environment = real_server.environment(MUC_PASSWORD="room-secret-0815")
    async with Witness(real_server, real_server.witness, environment["MUC_ROOM"], "Wilma"):
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


async def test_with_send_the_room_hears_one_message(
    real_server: XmppServer, tmp_path: Path
) -> None:
    environment = real_server.environment()
    async with Witness(real_server, real_server.witness, environment["MUC_ROOM"], "W") as witness:
        code, checking = await run(tmp_path, environment, "--send")
        await witness.heard(MESSAGE)
    assert code == 0
    names = [name for name, _, _ in stages(checking.out.splitlines())]
    assert names == [*STAGES, *IN_THE_ROOM[:-1], "send", "leave"]


async def test_with_send_nothing_is_said_where_the_settings_forbid_it(tmp_path: Path) -> None:
    async with ScriptedServer(Script()) as server:
        environment = server.environment(BRIDGE_READ_ONLY="1")
        code, checking = await run(tmp_path, environment, "--send")
    assert (code, checking.out) == (2, "")
    assert "BRIDGE_READ_ONLY in the environment forbids that" in checking.err
    assert "Traceback" not in checking.err


async def test_a_refused_password_is_told_with_the_setting_to_change(
    real_server: XmppServer, tmp_path: Path
) -> None:
    environment = real_server.environment(XMPP_PASSWORD="wrong-4711-wrong")
    code, checking = await run(tmp_path, environment)
    assert code == 1
    lines = checking.out.splitlines()
    assert [(name, ok) for name, ok, _ in stages(lines)] == [
        *((name, True) for name in STAGES[:4]),
        ("sasl", False),
    ]
    assert "refused the login of bot@localhost" in lines[-2]
    assert lines[-1].startswith("[not-authorized] ")
    assert "XMPP_PASSWORD" in lines[-1]


async def test_a_refused_password_is_not_tried_again(
    real_server: XmppServer, tmp_path: Path
) -> None:
    environment = real_server.environment(XMPP_PASSWORD="wrong-4711-wrong")
    code, checking = await run(tmp_path, environment, "--repeat", "5")
    assert code == 1
    assert len(re.findall("(?m)^ +[0-9]+  FAILED", checking.out)) == 1
    assert "0 of 1 passed. 5 were asked for" in checking.out
    code, checking = await run(tmp_path, environment, "--repeat", "5", "--json")
    assert code == 1
    told = json.loads(checking.out)
    assert [one["condition"] for one in told["runs"]] == ["not-authorized"]
    assert told["ok"] is False


async def test_a_server_that_is_not_there_is_told(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    environment = {
        "XMPP_SERVICE": f"xmpp://127.0.0.1:{port}",
        "XMPP_USERNAME": "bot@localhost",
        "XMPP_PASSWORD": "bot-passes-4711",
        "MUC_ROOM": "room@conference.localhost",
    }
    code, checking = await run(tmp_path, environment)
    assert code == 1
    lines = checking.out.splitlines()
    assert [name for name, ok, _ in stages(lines) if not ok] == ["connect"]
    assert lines[-2] == f"Nothing listens at xmpp://127.0.0.1:{port}."
    assert "XMPP_SERVICE" in lines[-1]
    code, checking = await run(tmp_path, environment, "--repeat", "2")
    assert code == 1
    assert len(re.findall("(?m)^ +[12]  FAILED .* connect: Nothing listens", checking.out)) == 2
    assert "0 of 2 passed.\n" in checking.out


async def test_a_certificate_that_is_not_trusted_is_shown(
    real_server: XmppServer, tmp_path: Path
) -> None:
    stranger = Authority(tmp_path / "stranger")
    environment = real_server.environment(XMPP_TLS_CA_FILE=str(stranger.ca_file))
    code, checking = await run(tmp_path, environment)
    assert code == 1
    lines = checking.out.splitlines()
    name, ok, detail = stages(lines)[-1]
    assert (name, ok) == ("tls", False)
    assert re.search(
        r"certificate of .*, issued by .*, names: \"localhost\", .*[0-9]+ days left\)", detail
    )
    assert lines[-1].startswith("[certificate-verify-failed] ")
    assert "XMPP_TLS_CA_FILE" in lines[-1]


async def test_json_is_one_object_in_ascii(real_server: XmppServer, tmp_path: Path) -> None:
    environment = real_server.environment()
    async with Witness(real_server, real_server.witness, environment["MUC_ROOM"], "東京"):
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


@pytest.mark.parametrize("arguments", [(), ("--json",), ("--repeat", "2")])
@pytest.mark.parametrize("columns", [None, 80])
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


async def test_a_broken_installation_is_told_in_a_line(sandbox: XmppServer, tmp_path: Path) -> None:
    broken = noise.at_start(tmp_path / "site", noise.BROKEN_SLIXMPP)
    code, checking = await run(tmp_path / "home", sandbox.environment() | broken)
    assert (code, checking.out) == (1, "")
    (line,) = checking.err.splitlines()
    assert line.startswith("xmpp-bridge: the installation is not whole (half an installation)")
