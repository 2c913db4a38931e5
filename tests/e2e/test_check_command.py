"""`xmpp-bridge check`: the stages in the terminal, and what a script learns from the exit code."""

import asyncio
import json
import os
from asyncio.subprocess import PIPE
from collections.abc import Mapping
from pathlib import Path

from tests.e2e.bridge_process import COMMAND
from tests.servers.server import XmppServer
from tests.servers.witness import Witness

CHECK_SECONDS = 60.0
"""Above the 50 s that a check may take."""
WAY = ["settings", "resolve", "connect", "tls", "sasl", "bind", "disco", "join", "occupants"]


async def _check(
    home: Path, environment: Mapping[str, str], *arguments: str
) -> tuple[int | None, str, str]:
    """Run the command as a shell would; return exit code, stdout and stderr."""
    process = await asyncio.create_subprocess_exec(
        COMMAND,
        "check",
        *arguments,
        cwd=home,
        env={"PATH": os.environ["PATH"], "HOME": str(home), **environment},
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
    )
    async with asyncio.timeout(CHECK_SECONDS):
        out, err = await process.communicate()
    return process.returncode, out.decode(), err.decode()


async def test_with_send_the_room_hears_a_message_and_it_comes_back(
    xmpp_server: XmppServer, tmp_path: Path
) -> None:
    settings = xmpp_server.environment()
    room = settings["MUC_ROOM"]
    async with Witness(xmpp_server, xmpp_server.witness, room, "Wilma") as wilma:
        code, out, _ = await _check(tmp_path, settings, "--send", "--json")
        heard = await wilma.heard(lambda one: True)
    told = json.loads(out)
    assert (code, told["ok"]) == (0, True)
    assert [one["name"] for one in told["phases"]] == [*WAY, "send", "leave"]
    assert all(one["ok"] and one["ms"] >= 0 for one in told["phases"])
    assert heard.nick.startswith("McpDebug-check-")


async def test_without_send_each_stage_is_a_line_and_nobody_is_spoken_to(
    xmpp_server: XmppServer, tmp_path: Path
) -> None:
    code, out, _ = await _check(tmp_path, xmpp_server.environment())
    assert code == 0
    found, _, _ = out.partition("\n\n")  # what follows draws the times and says what came of it
    stages = [line.split()[0] for line in found.splitlines() if " ms " in line]
    assert stages == [*WAY, "leave"]
    assert "Everything works" in out


async def test_the_stage_that_fails_is_the_last_and_the_exit_code_is_1(
    xmpp_server: XmppServer, tmp_path: Path
) -> None:
    settings = xmpp_server.environment(XMPP_PASSWORD="not-the-password")
    code, out, err = await _check(tmp_path, settings, "--json")
    told = json.loads(out)
    assert (code, told["ok"], told["condition"]) == (1, False, "not-authorized")
    last = told["phases"][-1]
    assert (last["name"], last["ok"]) == ("sasl", False)
    assert "XMPP_PASSWORD" in last["hint"]
    assert "not-the-password" not in out + err
    assert "Traceback" not in err


async def test_settings_that_do_not_do_are_named_and_the_exit_code_is_2(tmp_path: Path) -> None:
    nothing = tmp_path / ".env"
    nothing.touch()
    code, out, err = await _check(tmp_path, {}, "--env-file", str(nothing))
    assert code == 2
    assert "MUC_ROOM" in out + err
    assert "Traceback" not in err
