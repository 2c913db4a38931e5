"""`xmpp-bridge record`, and bridges that share its store, as processes on a real server."""

import os
import re
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from bridge.commands.exit import MISTAKE
from bridge.commands.record import UNIT
from bridge.xmpp.model.room import TEMPORARY
from tests.e2e.bridge_process import COMMAND, BridgeProcess, run_in
from tests.e2e.here import run_here
from tests.e2e.watching import Watching
from tests.servers.server import XmppServer, write_settings
from tests.servers.witness import Witness
from tests.store.recorded import bodies, recorded, rows
from tests.store.shelf import Shelf

RECORDER = "McpDebug-record"
ODD = 'hidden: \u202egnp.exe\u202c \u200b and "quoted" \\u0041 \x7f <&>\nsecond line'


def _usual(home: Path) -> Path:
    return home / ".local" / "state" / "xmpp-bridge" / "rooms.db"


async def test_record_makes_the_usual_store_and_ends_cleanly(
    sandbox: XmppServer, tmp_path: Path
) -> None:
    # What is wrong with a setting is said, though the others are enough to record.
    settings = sandbox.environment(BRIDGE_HISTORY="9O")
    path = _usual(tmp_path)
    async with (
        Witness(sandbox, sandbox.witness, settings["MUC_ROOM"], "Wilma") as wilma,
        Watching(tmp_path, settings, command="record") as recording,
    ):
        await recording.says("xmpp-bridge: BRIDGE_HISTORY holds '9O'")
        await recording.says(f"[Server] recording to {path}, kept 30 days or 1024 MiB")
        await wilma.joined(RECORDER)
        wilma.say(ODD)
        await recorded(path, ODD)
        wilma.say("the last word")
        await wilma.heard("the last word")
        await recording.says("the last word")
        present = recording.err.index("Z --- here the present begins\n")
        assert present < recording.err.index("the last word")
        recording.signal(signal.SIGTERM)
        assert await recording.ended() == 0
        await wilma.left(RECORDER)
    assert bodies(path) == [ODD, "the last word"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    (said,) = rows(path, "event LIKE '%the last word%'")
    assert (said["room"], said["shared"], said["observer"]) == (settings["MUC_ROOM"], 1, RECORDER)


async def test_bridges_beside_it_use_its_store_and_each_event_is_there_once(
    sandbox: XmppServer, tmp_path: Path
) -> None:
    settings = sandbox.environment()
    path = _usual(tmp_path)
    async with Watching(tmp_path, settings, command="record") as recording:
        await recording.says("joined")
        async with BridgeProcess(tmp_path, settings) as bridge:
            await bridge.joined()
            sent = await bridge.bare("xmppSend", message="from the bridge")
            assert sent["sent"] is True
            (warning,) = (await bridge.status())["warnings"]
            assert warning.startswith(TEMPORARY)  # the sandbox's rooms are
        await recording.says("* <McpDebug> left")
        recording.signal(signal.SIGHUP)  # its terminal was closed
        assert await recording.ended() == 0
    shared = [each for each in rows(path, "shared") if each["kind"] != "subject"]
    names = [RECORDER, "McpDebug", "McpDebug", "McpDebug"]
    assert [each["kind"] for each in shared] == ["join", "join", "message", "leave"]
    assert [each["sender"] for each in shared] == names
    (ours,) = rows(path, "kind = 'message' AND NOT shared")
    assert (ours["direction"], ours["observer"]) == ("out", "McpDebug")


async def test_a_strangers_settings_open_no_store(sandbox: XmppServer, tmp_path: Path) -> None:
    settings = sandbox.environment()
    path = _usual(tmp_path)
    async with BridgeProcess(tmp_path, settings) as bridge:
        await bridge.joined()
    assert not path.exists()  # without a recorder nothing is recorded
    Shelf(path).say("before", at=1)
    before = rows(path)
    write_settings(tmp_path / ".env", settings)
    async with BridgeProcess(tmp_path, arguments=(), command=(COMMAND,)) as bridge:
        await bridge.joined()
        await bridge.bare("xmppSend", message="hello")
    assert rows(path) == before
    async with Watching(tmp_path, {"BRIDGE_STORE": str(path)}, command="record") as recording:
        assert await recording.ended() == 2
        assert "it is not trusted to record rooms" in recording.err
    assert rows(path) == before


@pytest.mark.parametrize(
    ("changed", "code", "told"),
    [
        ({"XMPP_PASSWORD": "wrong"}, 1, "not-authorized"),
        ({"BRIDGE_STORE": "/dev/null"}, 2, "'/dev/null' is no regular file; set BRIDGE_STORE"),
        ({"BRIDGE_STORE_DAYS": "365d"}, 2, "BRIDGE_STORE_DAYS holds '365d'"),
        ({"BRIDGE_STORE_MB": "1G"}, 2, "BRIDGE_STORE_MB holds '1G'"),
    ],
)
def test_record_ends_where_trying_again_would_not_help(
    changed: dict[str, str], code: int, told: str, sandbox: XmppServer, tmp_path: Path
) -> None:
    path = tmp_path / "rooms.db"
    Shelf(path).say("of long ago", at=1)
    settings = sandbox.environment(BRIDGE_STORE=str(path)) | changed
    ran = run_here(tmp_path, "record", **settings)
    assert (ran.returncode, told in ran.stderr) == (code, True), ran
    # Nothing is deleted while it is not known what to keep.
    assert code == 1 or bodies(path) == ["of long ago"]


SETTINGS = "XMPP_USERNAME=bot@example.org\nXMPP_PASSWORD=secret\nMUC_ROOM=r@x.example\n"


@pytest.mark.parametrize("odd", [b"a\rb", b"a\xffb"])
def test_a_unit_that_systemd_would_misread_is_refused(odd: bytes, tmp_path: Path) -> None:
    file = tmp_path / os.fsdecode(odd)
    file.write_text(SETTINGS)
    file.chmod(0o600)
    ran = run_here(tmp_path, "record", "--print-unit", "--env-file", file)
    assert (ran.returncode, ran.stdout) == (2, "")
    (line,) = ran.stderr.split("\n")[:-1]
    assert "a unit can name no path with a CR or that is not UTF-8: " in line
    assert line.isprintable()


BREAKING = """
import sys
from bridge import cli
from bridge.commands import record
async def _stay(*_):
    raise ValueError("never shown")
record._stay = _stay
sys.exit(cli.main(sys.argv[1:]))
"""


def test_a_mistake_of_ours_is_a_line_and_systemd_starts_it_again(tmp_path: Path) -> None:
    (tmp_path / "my.env").write_text(SETTINGS)
    for level in ("INFO", "DEBUG"):
        command = (sys.executable, "-c", BREAKING, "record", "--env-file", "my.env")
        ran = run_in(tmp_path, *command, LOG_LEVEL=level)
        assert ran.returncode == MISTAKE
        assert ran.stderr.splitlines()[-1].startswith("xmpp-bridge: a mistake in the bridge ended")
        assert ("Traceback" in ran.stderr) is (level == "DEBUG")
    (prevented,) = re.findall("RestartPreventExitStatus=(.*)", UNIT)
    assert str(MISTAKE) not in prevented.split()


def test_the_unit_names_all_that_systemd_needs(tmp_path: Path) -> None:
    folder = tmp_path / 'a "folder" of 100% $HOME'
    folder.mkdir()
    file = folder / "my.env"
    file.write_text(SETTINGS)
    file.chmod(0o600)

    def printed(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        return run_here(folder, "record", "--print-unit", *arguments, **more)

    ran = printed("--env-file", "my.env")
    assert (ran.returncode, ran.stderr) == (0, "")
    escaped = str(file).replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    assert f'ExecStart="{COMMAND}" "record" "--env-file" "{escaped}"\n' in ran.stdout
    assert "secret" not in ran.stdout
    if shutil.which("systemd-analyze"):
        unit = tmp_path / "xmpp-record.service"
        unit.write_text(ran.stdout)
        verify = ("systemd-analyze", "verify", "--user", unit)
        verified = run_in(tmp_path, *verify, XDG_RUNTIME_DIR=str(tmp_path))
        assert str(unit.name) not in verified.stderr
    ran = printed("--env-file", "my.env", BRIDGE_STORE="/a/store.db")
    assert ran.stderr.startswith("WARNING: BRIDGE_STORE is set in the environment, ")
    (folder / "half.env").write_text(f"{SETTINGS}XMPP_PASSWORD=\n")
    for arguments, why in (
        ((), "xmpp-bridge: --print-unit needs --env-file PATH"),
        (("--prepare-store",), "--prepare-store: not allowed with argument --print-unit"),
        (("--env-file", "none.env"), f"xmpp-bridge: --env-file names {str(folder / 'none.env')!r}"),
        (("--env-file", "half.env"), "xmpp-bridge: XMPP_PASSWORD is not set"),
    ):
        ran = printed(*arguments)
        assert (ran.returncode, ran.stdout) == (2, "")
        assert why in ran.stderr
