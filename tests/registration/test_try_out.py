import asyncio
import sys
from pathlib import Path

import pytest

from bridge.registration.errors import RegistrationError
from bridge.registration.register import try_out
from tests.servers.server import XmppServer

BRIDGE = str(Path(sys.executable).parent / "xmpp-bridge")


async def test_the_environment_of_the_entry_is_all_that_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sandbox: XmppServer
) -> None:
    # This shell would withhold the sending tool; the registered file does not.
    monkeypatch.setenv("BRIDGE_READ_ONLY", "1")
    path = tmp_path / "room.env"
    settings = sandbox.environment()
    path.write_text("".join(f"{key}='{value}'\n" for key, value in settings.items()))
    trial = await try_out([BRIDGE, "--env-file", str(path)], {})
    assert "xmppSend" in trial.tools
    assert f"got into {settings['MUC_ROOM']}, as McpDebug" in trial.standing
    rooms = f"MUC_ROOM={settings['MUC_ROOM']},a@nowhere.invalid,b@nowhere.invalid\n"
    path.write_text(f"{path.read_text()}BRIDGE_READ_ONLY=1\n{rooms}")
    trial = await try_out([BRIDGE, "--env-file", str(path)], {})
    assert "xmppSend" not in trial.tools
    assert "not get into a@nowhere.invalid and 1 more of 3, phase failed" in trial.standing
    assert "MUC_ROOM" in trial.standing


def test_the_folder_it_runs_in_is_empty_and_goes_afterwards(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    program = f"import os; open({str(seen)!r}, 'w').write(f'{{os.getcwd()}}\\n{{os.listdir()}}')"
    with pytest.raises(RegistrationError):
        asyncio.run(try_out([sys.executable, "-c", program], {}))
    folder, content = seen.read_text().split("\n")
    assert content == "[]"
    assert not Path(folder).exists()


async def test_a_command_that_is_not_there_is_named() -> None:
    with pytest.raises(
        RegistrationError, match="/nowhere/xmpp-bridge does not start: No such file"
    ):
        await try_out(["/nowhere/xmpp-bridge"], {})


async def test_a_command_that_dies_is_quoted_with_its_last_words_on_one_line() -> None:
    program = "import sys; sys.exit('first\\nlast \\x1b[31m words')"
    with pytest.raises(RegistrationError) as caught:
        await try_out([sys.executable, "-c", program], {})
    assert str(caught.value) == (
        "nothing was changed: the command that is to be registered does not answer: "
        "the server ended without an answer\nIts last words: last \\u{1B}[31m words"
    )
