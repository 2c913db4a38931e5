import asyncio
import os
from asyncio.subprocess import PIPE
from pathlib import Path
from signal import SIGHUP, SIGINT, SIGTERM, Signals

import pytest

from bridge.sandbox.server import Sandbox
from tests.e2e.bridge_process import COMMAND, run_in
from tests.e2e.here import run_here
from tests.e2e.watching import Watching
from tests.sandbox.wire import logged_in


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--account", "robot-and-its-s3cret"], "--account takes NAME:PASSWORD"),
        (["--account", "debug:s3cret"], "an account that is there already"),
        (["--fault", "silence:room=lobby,seconds"], "seconds has no value"),
        (["--fault", "silence:seconds=soon"], "seconds must be a number above 0"),
        (["--fault", "silence:nick=Robot"], "unknown key nick; keys are room, nickname, seconds"),
        (["--fault", "drop:nickname=Robot"], "drop needs seconds=N"),
        (["--fault", "\x1b[2J"], "--fault \\u{1B}[2J: there is no such fault"),
    ],
)
def test_a_mistake_is_one_line_and_tells_no_password(
    arguments: list[str], complaint: str, tmp_path: Path
) -> None:
    done = run_here(tmp_path, "sandbox", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert complaint in done.stderr
    assert done.stderr.count("\n") == 1
    assert "s3cret" not in done.stderr


async def test_accounts_log_in_and_faults_are_on_from_the_start(tmp_path: Path) -> None:
    given = "--account robot:s3:cret --account alice:x"
    given += " --fault lost-reflection:room=lobby,nickname=Robot"
    async with Watching(tmp_path, {}, *given.split(), command="sandbox") as sandbox:
        await sandbox.shows("XMPP_ALLOW_PLAINTEXT=1")
        printed = dict(line.split("=", 1) for line in sandbox.out.splitlines())
        address = Sandbox()
        address.add_account("robot", "s3:cret")
        address.add_account("alice", "x")
        address.port = int(printed["XMPP_SERVICE"].rpartition(":")[2])
        room = printed["MUC_ROOM"]
        async with (
            logged_in(address, "robot", room) as robot,
            logged_in(address, "alice", room) as alice,
        ):
            robot.say("hello", room)
            await alice.until("hello")
            assert "<body>hello" not in await robot.until("You said: hello")
        sandbox.signal(SIGTERM)
        assert await sandbox.ended() == 0
    assert "s3:cret" not in sandbox.err


@pytest.mark.parametrize(
    ("flags", "before", "mode"), [(os.O_TRUNC, "gone", 0o600), (os.O_APPEND, "theirs\n", 0o644)]
)
async def test_the_file_that_a_shell_makes_of_its_settings_is_for_its_owner_alone(
    flags: int, before: str, mode: int, tmp_path: Path
) -> None:
    settings = tmp_path / ".env"
    settings.write_text(before)
    settings.chmod(0o644)
    stdout = os.open(settings, os.O_WRONLY | flags)
    process = await asyncio.create_subprocess_exec(
        COMMAND, "sandbox", stdout=stdout, stderr=PIPE, cwd=tmp_path
    )
    os.close(stdout)
    assert process.stderr is not None
    assert b"Ctrl-C ends it" in await process.stderr.readline()
    assert settings.stat().st_mode & 0o777 == mode
    checked = await asyncio.to_thread(run_in, tmp_path, COMMAND, "settings")
    assert ("can be read by other users" in checked.stderr + checked.stdout) is (mode != 0o600)
    process.terminate()
    assert await process.wait() == 0


def certificates(folder: Path) -> list[Path]:
    return list(folder.glob("*.pem"))


@pytest.mark.parametrize("number", [SIGINT, SIGTERM, SIGHUP])
async def test_each_signal_that_ends_it_takes_its_certificate_away(
    number: Signals, tmp_path: Path
) -> None:
    environment = {"TMPDIR": str(tmp_path)}
    async with Watching(tmp_path, environment, "--tls", command="sandbox") as sandbox:
        await sandbox.shows("XMPP_TLS_CA_FILE")
        await sandbox.says("Ctrl-C ends it")
        assert certificates(tmp_path)
        sandbox.signal(number)
        assert await sandbox.ended() == 0
    assert not certificates(tmp_path)
