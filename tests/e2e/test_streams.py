"""Commands that show something, where stdout or stderr is closed or full."""

from pathlib import Path

import pytest

from tests.e2e.bridge_process import NOWHERE
from tests.e2e.watching import shell
from tests.servers.server import write_settings
from tests.store.shelf import ACCOUNT, ROOM, Shelf

CLOSED = ">&-", "xmpp-bridge: stdout is closed, so that nothing could be shown\n"
FULL = "> /dev/full", "xmpp-bridge: stdout cannot be written: No space left on device\n"
PRINTING = ("sandbox",), ("completion", "bash"), ("help", "agent"), ("--help",), ("--version",)


@pytest.mark.parametrize(
    ("redirection", "complaint", "command"),
    [
        (*CLOSED, ("check", "--sandbox")),
        (*FULL, ("diagnose", "--sandbox")),
        (*FULL, ("watch", "--sandbox")),
        (*CLOSED, ("log", "--env-file", "my.env")),
        (*FULL, ("record", "--print-unit", "--env-file", "my.env")),
        (*CLOSED, ("record", "--print-unit", "--env-file", "my.env")),
        (*CLOSED, ("expect", "my.room.toml")),
        (*CLOSED, ("register", "codex", "--print", "--env-file", "my.env")),
        *((*where, words) for where in (FULL, CLOSED) for words in PRINTING),
    ],
)
def test_what_cannot_be_shown_did_not_pass(
    redirection: str, complaint: str, command: tuple[str, ...], tmp_path: Path
) -> None:
    Shelf(tmp_path / ".local/state/xmpp-bridge/rooms.db").say("hello", at=1)
    write_settings(tmp_path / "my.env", NOWHERE | {"XMPP_USERNAME": ACCOUNT, "MUC_ROOM": ROOM})
    (tmp_path / "my.env").chmod(0o600)
    ran = shell(f'"$@" {redirection}', tmp_path, *command)
    assert ran.returncode == 1
    told = ran.stderr.splitlines(keepends=True)
    assert told[-1:] == [complaint]
    # What `watch` says of the connection comes before.
    assert len(told) == 1 or command[0] == "watch"
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize("command", [*PRINTING[1:], ("settings", "--sandbox")])
def test_that_the_reader_of_a_page_has_left_is_no_failure(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    ran = shell('exec 3> >(true); wait $!; "$@" >&3', tmp_path, *command)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize("redirection", [">&-", "2>&-"])
def test_with_bad_settings_it_is_2_wherever_that_can_be_said(
    redirection: str, tmp_path: Path
) -> None:
    (tmp_path / "empty.env").touch()
    ran = shell(f'"$@" {redirection}', tmp_path, "check", "--json", "--env-file", "empty.env")
    assert ran.returncode == (1 if redirection == ">&-" else 2)
    assert "Traceback" not in ran.stderr
