"""What docs/waking.md tells to paste does what it says, with a stand-in for Codex."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, blocks, section
from tests.servers.server import XmppServer, write_settings
from tests.servers.witness import Witness

SECONDS = 60.0
"""Limit for a command to end."""
CODEX, LEFT, LOOP = (each.text for each in blocks(PAGES["docs/waking.md"], "sh"))
(WORDS,) = blocks(section("docs/waking.md", "## Claude Code"), "text")
(PLUGIN,) = blocks(section("docs/waking.md", "## Claude Code"), "json")
(MONITOR,) = (each for each in WORDS.lines if each.startswith("xmpp-bridge "))
HOSTILE = "$(touch forged); `touch forged`\n'; touch forged #"
STAND_IN = """\
#!/bin/sh
printf '%s\\n' "$@" > codex-was-told
cat >> codex-was-told
"""


@pytest.fixture
def home(tmp_path: Path, sandbox: XmppServer) -> Path:
    """The home of somebody whose settings lead to the sandbox, with Codex installed."""
    settings = tmp_path / ".config" / "xmpp-bridge.env"
    write_settings(settings, sandbox.environment())
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "xmpp-bridge").symlink_to(Path(sys.executable).parent / "xmpp-bridge")
    codex = tmp_path / "bin" / "codex"
    codex.write_text(STAND_IN)
    codex.chmod(0o700)
    return tmp_path


def _room(home: Path) -> str:
    lines = (home / ".config" / "xmpp-bridge.env").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines)["MUC_ROOM"].strip("'")


@asynccontextmanager
async def _pasted(command: str, home: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *("bash", "-c", command),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        cwd=home,
        env={"PATH": f"{home}/bin:{os.environ['PATH']}", "HOME": str(home)},
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            os.killpg(process.pid, 9)
        await process.wait()


async def _lines(process: asyncio.subprocess.Process, count: int) -> Sequence[str]:
    assert process.stdout is not None
    async with asyncio.timeout(SECONDS):
        return [(await process.stdout.readline()).decode() for _ in range(count)]


async def test_each_error_of_the_bot_is_one_line_for_the_monitor(
    home: Path, sandbox: XmppServer
) -> None:
    async with (
        Witness(sandbox, sandbox.witness, _room(home), "Robot") as robot,
        Witness(sandbox, sandbox.bot, _room(home), "Alice") as alice,
        _pasted(MONITOR, home) as monitor,
    ):
        await robot.joined("McpDebug-watch")
        alice.say("an error of Alice's is none of Robot's")
        await robot.heard("an error of Alice's is none of Robot's")
        robot.say("all is well")
        robot.say("Traceback:\n  File")
        robot.say("ERROR 17")
        first, second = await _lines(monitor, 2)
    assert first.endswith("<Robot>             Traceback:\\u{A}  File\n")
    assert second.endswith("<Robot>             ERROR 17\n")
    assert [each["command"] for each in json.loads(PLUGIN.text)] == [MONITOR]


async def test_what_was_said_never_reaches_the_command_line_of_codex(
    home: Path, sandbox: XmppServer
) -> None:
    async with (
        Witness(sandbox, sandbox.witness, _room(home), "Robot") as robot,
        _pasted(CODEX, home) as pasted,
    ):
        await robot.joined("McpDebug-watch")
        robot.say(f"error {HOSTILE}")
        async with asyncio.timeout(SECONDS):
            assert await pasted.wait() == 0
    told = (home / "codex-was-told").read_text().splitlines()
    assert told[:3] == ["exec", "resume", "--last"]
    assert "xmppHistory" in told[3]
    assert len(told) == 4
    assert not (home / "forged").exists()


async def test_a_script_goes_on_once_the_bot_has_left(home: Path, sandbox: XmppServer) -> None:
    async with _pasted(LEFT, home) as pasted:
        async with Witness(sandbox, sandbox.witness, _room(home), "Robot") as robot:
            await robot.joined("McpDebug-watch")
        assert await _lines(pasted, 1) == ["Robot has left the room\n"]
        async with asyncio.timeout(SECONDS):
            assert await pasted.wait() == 0


async def test_a_loop_gets_the_exact_text_a_line_each(home: Path, sandbox: XmppServer) -> None:
    async with (
        Witness(sandbox, sandbox.witness, _room(home), "Robot") as robot,
        _pasted(LOOP, home) as pasted,
    ):
        await robot.joined("McpDebug-watch")
        robot.say(HOSTILE)
        (line,) = await _lines(pasted, 1)
    assert json.loads(line.removeprefix("somebody said: "))["body"] == HOSTILE
    assert not (home / "forged").exists()
