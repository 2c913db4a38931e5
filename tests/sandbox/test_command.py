import asyncio
import subprocess
import sys

import pytest

from bridge.sandbox.server import Sandbox
from tests.sandbox.wire import LIMIT, logged_in

COMMAND = [sys.executable, "-m", "bridge", "sandbox"]


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
def test_a_mistake_is_one_line_and_tells_no_password(arguments: list[str], complaint: str) -> None:
    ran = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert complaint in ran.stderr
    assert ran.stderr.count("\n") == 1
    assert "s3cret" not in ran.stderr


async def test_accounts_log_in_and_faults_are_on_from_the_start() -> None:
    given = "--account robot:s3:cret --account alice:x"
    given += " --fault lost-reflection:room=lobby,nickname=Robot"
    process = await asyncio.create_subprocess_exec(
        *COMMAND, *given.split(), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        lines = [await asyncio.wait_for(process.stdout.readline(), LIMIT) for _ in range(6)]
        printed = dict(line.decode().strip().split("=", 1) for line in lines)
        address = Sandbox({"robot": "s3:cret", "alice": "x"})
        address.port = int(printed["XMPP_SERVICE"].rpartition(":")[2])
        room = printed["MUC_ROOM"]
        async with (
            logged_in(address, "robot", room) as robot,
            logged_in(address, "alice", room) as alice,
        ):
            robot.say("hello", room)
            await alice.until("hello")
            assert "<body>hello" not in await robot.until("You said: hello")
    finally:
        process.terminate()
        _, log = await process.communicate()
    assert process.returncode == 0
    assert b"s3:cret" not in log
