import asyncio
import sys
from pathlib import Path

import pytest

from bridge.registration.errors import RegistrationError
from bridge.registration.register import try_out
from tests.e2e.bridge_process import COMMAND
from tests.servers.server import XmppServer, write_settings
from tests.servers.witness import Witness


async def test_the_environment_of_the_entry_is_all_that_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sandbox: XmppServer
) -> None:
    # This shell would withhold the sending tool; the registered file does not.
    monkeypatch.setenv("BRIDGE_READ_ONLY", "1")
    path = tmp_path / "room.env"
    settings = sandbox.environment()
    write_settings(path, settings)
    standing, tools, _ = await try_out([COMMAND, "--env-file", str(path)], {})
    assert "xmppSend" in tools
    assert standing == f"It is in the room {settings['MUC_ROOM']}, as McpDebug"
    rooms = f"MUC_ROOM={settings['MUC_ROOM']},a@nowhere.invalid,b@nowhere.invalid\n"
    path.write_text(f"{path.read_text()}BRIDGE_READ_ONLY=1\n{rooms}")
    standing, tools, _ = await try_out([COMMAND, "--env-file", str(path)], {})
    assert "xmppSend" not in tools
    assert "It is not in a@nowhere.invalid and 1 more of 3, phase failed" in standing
    assert "MUC_ROOM" in standing


async def test_it_warns_of_a_nickname_that_another_occupant_has(
    tmp_path: Path, sandbox: XmppServer
) -> None:
    path, settings = tmp_path / "room.env", sandbox.environment()
    write_settings(path, settings)
    async with Witness(sandbox, sandbox.witness, settings["MUC_ROOM"], "McpDebug"):
        trial = await try_out([COMMAND, "--env-file", str(path)], {})
    assert "as McpDebug-2" in trial.standing
    assert any('"McpDebug" was taken' in warning for warning in trial.warnings)


async def test_a_command_that_is_not_there_is_named() -> None:
    with pytest.raises(
        RegistrationError, match="/nowhere/xmpp-bridge does not start: No such file"
    ):
        await try_out(["/nowhere/xmpp-bridge"], {})


def test_a_command_that_does_not_serve_is_quoted_and_was_in_nobodys_project(
    tmp_path: Path,
) -> None:
    program = tmp_path / "program"
    program.write_text(
        "import json, os, pathlib, sys\n"
        f"pathlib.Path({str(tmp_path / 'seen')!r}).write_text(os.getcwd())\n"
        "print('first', '[] \\x1b' + 'x' * 300, sep='\\n', file=sys.stderr)\n"
        "for line in sys.stdin:\n"
        "    error = {'message': '\\x1b' * 60}\n"
        "    answer = {'jsonrpc': '2.0', 'id': json.loads(line)['id'], 'error': error}\n"
        "    print(json.dumps(answer), flush=True)\n"
    )
    with pytest.raises(RegistrationError) as caught:
        asyncio.run(try_out([sys.executable, str(program)], {}))
    assert (tmp_path / "seen").read_text() == "/"
    answer, words = str(caught.value).splitlines()
    said = "\\u{1B}" * 60
    cause = f"the server refused the handshake: {said}"
    assert answer.endswith(f"does not answer: {cause[:300]}... ({len(cause)} characters)")
    assert words == f"Its last log line: [] \\u{{1B}}{'x' * 296}... (304 characters)"
