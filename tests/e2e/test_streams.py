"""Commands that show something once, where stdout or stderr is closed or full."""

from pathlib import Path

import pytest

from tests.e2e.watching import shell


@pytest.mark.parametrize(
    "command", [("check",), ("send", "hello"), ("diagnose", "Nobody"), ("settings",)]
)
@pytest.mark.parametrize(
    ("redirection", "complaint"),
    [
        (">&-", "xmpp-bridge: stdout is closed, so that nothing could be shown\n"),
        ("> /dev/full", "xmpp-bridge: stdout cannot be written: No space left on device\n"),
    ],
)
def test_what_cannot_be_shown_did_not_pass(
    redirection: str, complaint: str, command: tuple[str, ...], tmp_path: Path
) -> None:
    ran = shell(f'"$@" {redirection}', tmp_path, *command, "--sandbox")
    assert (ran.returncode, ran.stderr) == (1, complaint)


@pytest.mark.parametrize("redirection", [">&-", "2>&-"])
def test_with_bad_settings_it_is_2_wherever_that_can_be_said(
    redirection: str, tmp_path: Path
) -> None:
    (tmp_path / "empty.env").touch()
    ran = shell(f'"$@" {redirection}', tmp_path, "check", "--json", "--env-file", "empty.env")
    assert ran.returncode == (1 if redirection == ">&-" else 2)
    assert "Traceback" not in ran.stderr
