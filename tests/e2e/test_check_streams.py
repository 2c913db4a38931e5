"""`xmpp-bridge check` where stdout or stderr is closed, full or of few characters."""

from pathlib import Path

import pytest

from tests.e2e.checking import run
from tests.e2e.watching import shell
from tests.servers.server import XmppServer


def test_head_ends_it_quietly(tmp_path: Path) -> None:
    ran = shell('set -o pipefail; "$@" | head -n 1', tmp_path, "check", "--sandbox")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("Checking the way into ")


@pytest.mark.parametrize(
    ("redirection", "complaint"),
    [
        (">&-", "xmpp-bridge: stdout is closed, so that nothing could be shown\n"),
        ("> /dev/full", "xmpp-bridge: stdout cannot be written: No space left on device\n"),
    ],
)
def test_what_cannot_be_shown_did_not_pass(
    redirection: str, complaint: str, tmp_path: Path
) -> None:
    ran = shell(f'"$@" {redirection}', tmp_path, "check", "--sandbox")
    assert (ran.returncode, ran.stderr) == (1, complaint)


@pytest.mark.parametrize("redirection", [">&-", "2>&-"])
def test_with_bad_settings_it_is_2_wherever_that_can_be_said(
    redirection: str, tmp_path: Path
) -> None:
    (tmp_path / "empty.env").touch()
    ran = shell(f'"$@" {redirection}', tmp_path, "check", "--json", "--env-file", "empty.env")
    assert ran.returncode == (1 if redirection == ">&-" else 2)
    assert "Traceback" not in ran.stderr


def test_with_stderr_closed_it_checks_all_the_same(tmp_path: Path) -> None:
    ran = shell('"$@" 2>&-', tmp_path, "check", "--sandbox")
    assert ran.returncode == 0
    assert "Everything works" in ran.stdout


async def test_where_stdout_is_ascii_so_is_all_that_is_shown(
    sandbox: XmppServer, tmp_path: Path
) -> None:
    environment = sandbox.environment() | {"PYTHONIOENCODING": "ascii"}
    code, checking = await run(tmp_path, environment)
    assert code == 0
    assert checking.out.isascii()
