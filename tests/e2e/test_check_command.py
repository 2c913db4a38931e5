"""`xmpp-bridge check` as a person runs it, on a terminal and from a pipe, against real servers."""

import asyncio
import json
import re
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bridge.xmpp.probe import MESSAGE
from tests.console.screen import Screen
from tests.e2e import noise
from tests.e2e.bridge_process import COMMAND
from tests.e2e.watching import SECONDS, Watching
from tests.faults import scripted_server as scripted
from tests.faults.scripted_server import Script, ScriptedServer, Wire
from tests.servers.certificates import Authority
from tests.servers.ports import free_ports
from tests.servers.server import XmppServer
from tests.servers.witness import Witness

STAGES = ["settings", "resolve", "connect", "tls", "sasl", "bind"]
IN_THE_ROOM = ["disco", "join", "occupants", "leave"]
STAGE = re.compile(r"([a-z]+) +(ok|FAILED) +([0-9]+\.[0-9]) ms(?:  (.*))?")
XTERM = {"TERM": "xterm"}
SGR = re.compile("\x1b\\[[0-9;]*m")


@pytest.fixture(params=["prosody", "ejabberd"])
def real_server(request: pytest.FixtureRequest) -> XmppServer:
    """Each server that does all of XEP-0045, and TLS."""
    server: XmppServer = request.getfixturevalue(request.param)
    return server


async def run(
    home: Path, environment: Mapping[str, str], *arguments: str, columns: int | None = None
) -> tuple[int, Watching]:
    """Check once; no secret is ever seen."""
    async with Watching(
        home, environment, *arguments, command="check", columns=columns
    ) as checking:
        code = await checking.ended()
    for name in ("XMPP_PASSWORD", "MUC_PASSWORD"):
        if secret := environment.get(name):
            assert secret not in checking.out + checking.err
    return code, checking


def stages(lines: list[str]) -> list[tuple[str, bool, str]]:
    """What was found, as (name, passed, detail), up to the bars."""
    found = [STAGE.fullmatch(line) for line in lines[: lines.index("")]]
    return [(one[1], one[2] == "ok", one[4] or "") for one in found if one is not None]


def on_screen(checking: Watching, columns: int) -> list[str]:
    """What stands on the terminal at the end."""
    screen = Screen(columns)
    screen.feed(checking.out.replace("\n", "\r\n"))
    return screen.lines


def shell(script: str, home: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run `check` in a shell, where `"$@"` stands for it."""
    return subprocess.run(
        ["/bin/bash", "-c", script, "bash", COMMAND, "check", *arguments],
        capture_output=True,
        text=True,
        cwd=home,
        env={"PATH": "/usr/bin:/bin", "HOME": str(home)},
        timeout=SECONDS,
        check=False,
    )


async def test_from_a_pipe_it_is_a_line_a_stage_then_the_bars_and_the_diagnosis(
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
    assert "1 besides us: Wilma" in details["occupants"]
    bars = lines[lines.index("") + 1 :]
    assert [line.split()[0] for line in bars[:10]] == STAGES + IN_THE_ROOM
    assert all(re.search("[▏▎▍▌▋▊▉█]$", line) for line in bars[:10])
    assert re.fullmatch(r" {30}0 +[0-9.]+ ms", bars[10])
    assert bars[11] == ""
    assert bars[12].startswith(f"Everything works: in the room {environment['MUC_ROOM']} with 1 ")
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
        r"certificate of .*, issued by .*, names: localhost, .*[0-9]+ days left\)", detail
    )
    assert lines[-1].startswith("[certificate-verify-failed] ")
    assert "XMPP_TLS_CA_FILE" in lines[-1]


WRONG = "XMPP_SERVICE=http://example.org\nXMPP_USERNAME=bot@example.org\nMUC_ROOM=nonsense\n"
PROBLEMS = {"XMPP_SERVICE", "XMPP_PASSWORD", "MUC_ROOM"}


async def test_settings_that_do_not_do_are_all_named_with_where_they_were_looked_for(
    tmp_path: Path,
) -> None:
    (tmp_path / "wrong.env").write_text(WRONG, encoding="utf-8")
    code, checking = await run(tmp_path, {"TIA_ENV_PATH": "wrong.env"})
    assert code == 2
    assert checking.out == ""
    lines = checking.err.splitlines()
    for name in PROBLEMS:
        assert len([one for one in lines if one.startswith(f"xmpp-bridge: {name} ")]) == 1
    assert f"xmpp-bridge: looked at {tmp_path}/.env: missing" in lines
    assert f"xmpp-bridge: looked at {tmp_path}/wrong.env: used" in lines
    assert all(line.startswith("xmpp-bridge: ") for line in lines)


async def test_settings_that_do_not_do_are_an_object_as_any_other_check(
    sandbox: XmppServer, tmp_path: Path
) -> None:
    (tmp_path / "wrong.env").write_text(WRONG, encoding="utf-8")
    code, checking = await run(tmp_path, {}, "--json", "--env-file", "wrong.env")
    assert code == 2
    told = json.loads(checking.out)
    assert (told["ok"], told["condition"]) == (False, "unconfigured")
    assert {one.split()[0] for one in told["problems"]} == PROBLEMS
    (phase,) = told["phases"]
    assert (phase["name"], phase["ok"]) == ("settings", False)
    assert f"{tmp_path}/wrong.env: used" in phase["detail"]
    for name in PROBLEMS:
        assert name in told["diagnosis"]
        assert f"xmpp-bridge: {name} " in checking.err
    _, passed = await run(tmp_path, sandbox.environment(), "--json")
    assert json.loads(passed.out).keys() == told.keys()


async def test_a_warning_is_part_of_what_the_settings_say(
    prosody: XmppServer, tmp_path: Path
) -> None:
    environment = prosody.environment(NODE_TLS_REJECT_UNAUTHORIZED="0", XMPP_TLS_CA_FILE=None)
    code, checking = await run(tmp_path, environment)
    assert code == 0
    found = {name: detail for name, _, detail in stages(checking.out.splitlines())}
    assert "warning: " in found["settings"]
    assert checking.out.splitlines()[-1].startswith("tls: The certificate was not checked")
    assert checking.err == ""


async def test_a_file_can_be_named(sandbox: XmppServer, tmp_path: Path) -> None:
    text = "".join(f"{name}='{value}'\n" for name, value in sandbox.environment().items())
    (tmp_path / "its own\u202e.env").write_text(text, encoding="utf-8")
    code, checking = await run(tmp_path, {}, "--env-file", "its own\u202e.env")
    assert code == 0
    assert f"{tmp_path}/its own\\u{{202E}}.env: used" in checking.out


async def test_json_is_one_object_in_ascii(real_server: XmppServer, tmp_path: Path) -> None:
    environment = real_server.environment()
    async with Witness(real_server, real_server.witness, environment["MUC_ROOM"], "東京"):
        code, checking = await run(tmp_path, environment, "--json")
    assert code == 0
    (line,) = checking.out.splitlines()
    assert line.isascii()
    told = json.loads(line)
    assert (told["ok"], told["condition"], told["problems"]) == (True, None, [])
    assert [one["name"] for one in told["phases"]] == STAGES + IN_THE_ROOM
    for phase in told["phases"]:
        assert phase.keys() == {"name", "ok", "ms", "detail", "hint"}
        assert 0 <= phase["ms"] <= told["ms"] or phase["name"] == "settings"
    assert "東京" in told["phases"][-2]["detail"]


async def test_repeated_it_tells_the_median_and_the_worst(
    real_server: XmppServer, tmp_path: Path
) -> None:
    environment = real_server.environment()
    code, checking = await run(tmp_path, environment, "--repeat", "3")
    assert code == 0
    assert [name for name, _, _ in stages(checking.out.splitlines())] == ["settings"]
    assert len(re.findall("(?m)^   [123]  ok +[0-9.]+ ms$", checking.out)) == 3
    row = r"(?m)^([a-z]+) +3/3 +([0-9.]+) ms +([0-9.]+) ms  +[▏▎▍▌▋▊▉█]+$"
    rows = re.findall(row, checking.out)
    assert [name for name, _, _ in rows] == STAGES[1:] + IN_THE_ROOM
    assert all(float(median) <= float(worst) for _, median, worst in rows)
    assert "3 of 3 passed." in checking.out


async def test_repeated_as_json_it_has_every_run(sandbox: XmppServer, tmp_path: Path) -> None:
    code, checking = await run(tmp_path, sandbox.environment(), "--json", "--repeat", "2")
    assert code == 0
    told: dict[str, Any] = json.loads(checking.out)
    assert told["ok"] is True
    assert [one["ok"] for one in told["runs"]] == [True, True]
    names = STAGES[1:] + IN_THE_ROOM
    assert list(told["medianMs"]) == list(told["worstMs"]) == names
    for name in names:
        taken = [one["ms"] for run in told["runs"] for one in run["phases"] if one["name"] == name]
        assert told["worstMs"][name] == max(taken)
        assert told["medianMs"][name] == pytest.approx(sum(taken) / 2, abs=0.001)


@pytest.mark.parametrize("times", ["0", "1001", "-1", "two", "\uff11", ""])
async def test_a_number_of_times_that_is_none_is_refused(times: str, tmp_path: Path) -> None:
    code, checking = await run(tmp_path, {}, f"--repeat={times}")
    assert code == 2
    assert "is no number from 1 to 1000" in checking.err


async def test_on_a_terminal_the_bars_follow_the_stages_and_nothing_is_left_behind(
    real_server: XmppServer, tmp_path: Path
) -> None:
    environment = real_server.environment()
    code, checking = await run(tmp_path, environment | XTERM, columns=80)
    assert code == 0
    assert "\x1b[32m" in checking.out
    shown = on_screen(checking, 80)
    assert max(map(len, shown)) <= 80
    piped_code, piped = await run(tmp_path, environment)
    assert piped_code == 0
    # The same stages in the same places, once: what was drawn on the way is gone.
    for lines in (shown, piped.out.splitlines()):
        heads = [one[1] for line in lines if (one := STAGE.fullmatch(line))]
        assert heads == (STAGES + IN_THE_ROOM) * 2
    assert not [line for line in shown if line.endswith("...")]
    # On the way there was one more block for each stage, with the next one under way.
    plain = SGR.sub("", checking.out)
    assert re.findall(r"(?m)^([a-z]+) +\.\.\.$", plain) == [*STAGES[1:], *IN_THE_ROOM]
    assert plain.count("\x1b[J") == len(STAGES + IN_THE_ROOM)


@pytest.mark.parametrize("no", [{"NO_COLOR": "1", **XTERM}, {"TERM": "dumb"}, {}])
async def test_on_a_terminal_there_is_no_colour_where_nobody_wants_it(
    no: dict[str, str], sandbox: XmppServer, tmp_path: Path
) -> None:
    code, checking = await run(tmp_path, sandbox.environment() | no, columns=80)
    assert code == 0
    assert not SGR.search(checking.out)
    assert ("\x1b" in checking.out) is ("NO_COLOR" in no)  # moving the cursor is no colour
    heads = [one[1] for line in on_screen(checking, 80) if (one := STAGE.fullmatch(line))]
    assert heads == (STAGES + IN_THE_ROOM) * 2


@pytest.mark.parametrize("columns", [1, 35])
async def test_on_a_terminal_too_narrow_for_bars_nothing_is_drawn_anew(
    columns: int, sandbox: XmppServer, tmp_path: Path
) -> None:
    code, checking = await run(tmp_path, sandbox.environment() | XTERM, columns=columns)
    assert code == 0
    assert "\x1b[J" not in checking.out


async def test_a_nickname_cannot_pass_for_a_stage(prosody: XmppServer, tmp_path: Path) -> None:
    environment = prosody.environment() | XTERM
    nickname = "y" * 30 + " leave      ok         0.1 ms"
    async with Witness(prosody, prosody.witness, environment["MUC_ROOM"], nickname):
        for columns in (60, 50, 45):
            code, checking = await run(tmp_path, environment, columns=columns)
            assert code == 0
            lines = on_screen(checking, columns)
            assert len([one for one in lines if one.startswith("leave ")]) == 2
            assert "0.1 ms" in "".join(line[columns // 2 :] for line in lines)


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


async def test_ctrl_c_in_the_middle_hangs_up(tmp_path: Path) -> None:
    reached = asyncio.Event()
    left = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        reached.set()
        await reader.read()
        left.set()
        writer.close()

    silent = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    environment = {
        "XMPP_SERVICE": f"xmpp://127.0.0.1:{port}",
        "XMPP_USERNAME": "bot@localhost",
        "XMPP_PASSWORD": "bot-passes-4711",
        "MUC_ROOM": "room@conference.localhost",
        **XTERM,
    }
    async with (
        silent,
        Watching(tmp_path, environment, command="check", columns=80) as checking,
        asyncio.timeout(SECONDS),
    ):
        await reached.wait()
        await checking.shows("tls")
        assert on_screen(checking, 80)[-3] == "tls        ..."
        checking.press(b"\x03")
        await left.wait()
        assert await checking.ended() == 130


async def test_an_impatient_ctrl_c_after_the_first_changes_nothing(
    sandbox: XmppServer, tmp_path: Path
) -> None:
    environment = sandbox.environment()
    async with Watching(tmp_path, environment, "--repeat", "1000", command="check") as checking:
        await checking.shows("   2  ok")
        while checking.running:
            checking.signal(signal.SIGINT)
            await asyncio.sleep(0.001)
        assert await checking.ended() == 130


async def test_when_nobody_reads_on_no_further_run_is_begun(
    sandbox: XmppServer, tmp_path: Path
) -> None:
    environment = sandbox.environment()
    async with Watching(tmp_path, environment, "--repeat", "1000", command="check") as checking:
        await checking.shows("   2  ok")
        checking.close_stdout()
        assert await checking.ended() == 0
    assert checking.err == ""


def test_head_ends_it_quietly(tmp_path: Path) -> None:
    ran = shell('set -o pipefail; "$@" | head -n 1', tmp_path, "--sandbox")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("Checking the way into ")


@pytest.mark.parametrize("arguments", [(), ("--json",), ("--repeat", "2")])
@pytest.mark.parametrize(
    ("redirection", "complaint"),
    [
        (">&-", "xmpp-bridge: stdout is closed, so that nothing could be shown\n"),
        ("> /dev/full", "xmpp-bridge: stdout cannot be written: No space left on device\n"),
    ],
)
def test_what_cannot_be_shown_did_not_pass(
    redirection: str, complaint: str, arguments: tuple[str, ...], tmp_path: Path
) -> None:
    ran = shell(f'"$@" {redirection}', tmp_path, "--sandbox", *arguments)
    assert (ran.returncode, ran.stderr) == (1, complaint)


@pytest.mark.parametrize("redirection", [">&-", "> /dev/full", "2>&-", "2> /dev/full"])
def test_with_bad_settings_it_is_2_wherever_that_can_be_said(
    redirection: str, tmp_path: Path
) -> None:
    (tmp_path / "empty.env").touch()
    ran = shell(f'"$@" {redirection}', tmp_path, "--json", "--env-file", "empty.env")
    assert ran.returncode == (1 if redirection == ">&-" else 2)
    assert "Traceback" not in ran.stderr


def test_with_stderr_closed_it_checks_all_the_same(tmp_path: Path) -> None:
    ran = shell('"$@" 2>&-', tmp_path, "--sandbox")
    assert ran.returncode == 0
    assert "Everything works" in ran.stdout


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
async def test_where_blocks_cannot_be_written_bars_are_ascii(
    encoding: str, sandbox: XmppServer, tmp_path: Path
) -> None:
    environment = sandbox.environment() | {"PYTHONIOENCODING": encoding}
    code, checking = await run(tmp_path, environment)
    assert code == 0
    assert checking.out.isascii()
    assert re.search("(?m)^tls .* ms +#+$", checking.out)


async def test_a_broken_installation_is_told_in_a_line(sandbox: XmppServer, tmp_path: Path) -> None:
    broken = noise.at_start(tmp_path / "site", noise.BROKEN_SLIXMPP)
    code, checking = await run(tmp_path / "home", sandbox.environment() | broken)
    assert (code, checking.out) == (1, "")
    (line,) = checking.err.splitlines()
    assert line.startswith("xmpp-bridge: the installation is not whole (half an installation)")
