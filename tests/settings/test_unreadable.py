import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bridge.settings import sources
from bridge.settings.sources import MAX_BLANKS, MAX_FILE_BYTES, MAX_STRANGERS_BYTES
from tests.settings.folders import (
    ACCOUNT,
    UNREADABLE,
    USED,
    Folders,
    reasons,
    settled,
    write,
    written,
)
from tests.support.nobody import without_privileges
from tests.support.racing import at_the_moment, put

PATIENCE = 20.0
"""Seconds for what takes none; what waits for a FIFO or reads a device to its end takes more."""

TEXT = written(ACCOUNT).encode()
KINDS: dict[str, Callable[[Path], object]] = {
    "nothing": lambda path: None,
    "directory": Path.mkdir,
    "FIFO": os.mkfifo,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "loop": lambda path: path.symlink_to(path),
    "Latin-1": lambda path: path.write_bytes(TEXT + b"# \xe9\n"),
    "UTF-16": lambda path: path.write_bytes(TEXT.decode().encode("utf-16-le")),
    "large": lambda path: path.write_bytes(TEXT.ljust(MAX_FILE_BYTES + 1, b"#")),
    "blanks": lambda path: path.write_bytes(TEXT + b"A=x" + b" " * (MAX_BLANKS + 1) + b"y\n"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_plain_utf8_file_is_passed_over_at_once_and_told_if_it_was_named(
    folders: Folders, kind: str
) -> None:
    write(folders.package, ACCOUNT)
    KINDS[kind](folders.here / ".env")
    named = folders.elsewhere / "named"
    KINDS[kind](named)
    began = time.monotonic()
    configuration = folders.load({"TIA_ENV_PATH": str(named)})
    assert time.monotonic() - began < PATIENCE
    *passed_over, used = reasons(configuration)
    # Two links to one device are one file.
    assert len(passed_over) == (1 if kind == "device" else 2)
    why = "missing" if kind == "nothing" else f"{UNREADABLE}: "
    assert all(reason.startswith(why) for reason in passed_over)
    assert used == USED
    (warning,) = configuration.warnings
    assert warning.startswith(f"TIA_ENV_PATH names {str(named)!r}, which cannot be used (")
    outright = folders.load({}, env_file=named)
    (problem,) = outright.problems
    assert (problem.variable, outright.env_file) == ("--env-file", None)
    assert repr(str(named)) in problem.message
    assert folders.load(ACCOUNT, env_file=named).settings is None


def test_a_file_without_permission_is_passed_over(folders: Folders) -> None:
    write(folders.here, ACCOUNT).chmod(0)
    with without_privileges():
        assert folders.reasons({})[0] == f"{UNREADABLE}: Permission denied"


def test_a_file_may_be_as_large_and_as_blank_as_its_limits(folders: Folders) -> None:
    text = written(ACCOUNT) + "A=x" + " " * MAX_BLANKS + "y\n"
    write(folders.package, text + "#" * (MAX_FILE_BYTES - len(text)))
    assert folders.reasons({})[-1] == USED


def test_a_strangers_file_is_read_up_to_its_own_smaller_limit(folders: Folders) -> None:
    text = written(ACCOUNT)
    text += "#" * (MAX_STRANGERS_BYTES - len(text))
    path = write(folders.here, text)
    assert folders.reasons({})[0] == USED
    write(folders.here, f"{text}#")
    (reason, _) = folders.reasons({})
    assert reason.startswith(f"{UNREADABLE}: more than {MAX_STRANGERS_BYTES:,} bytes")
    assert "--env-file or TIA_ENV_PATH" in reason
    assert folders.reasons({"TIA_ENV_PATH": str(path)})[0] == USED
    assert folders.load({}, env_file=path).env_file == str(path)


@pytest.mark.parametrize("path", ["a\0b", "\ud800", "x" * 5000, ".env/below"])
def test_a_name_that_no_file_can_have_is_no_accident(folders: Folders, path: str) -> None:
    write(folders.here, ACCOUNT)
    write(folders.package, "")
    configuration = folders.load({"TIA_ENV_PATH": path})
    assert settled(configuration).username == "bot"
    assert folders.load({}, env_file=folders.here / path).settings is None


def test_a_file_that_is_silent_is_empty(folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    """/proc/kmsg is a regular file in the kernel's eyes, and to read it takes lines from syslog."""
    path = folders.here / ".env"
    os.mkfifo(path)
    with path.open("r+b", buffering=0):
        monkeypatch.setattr(sources, "_expect_regular", lambda status: None)
        assert folders.reasons({})[0] == "sets none of our variables"


# --- What becomes something else at the moment of opening ---------------------------------------


@pytest.mark.parametrize("kind", ["FIFO", "directory", "endless device", "link to nothing"])
@pytest.mark.parametrize("outright", [False, True], ids=["found", "named"])
def test_what_is_swapped_in_is_passed_over(kind: str, outright: bool, folders: Folders) -> None:
    path = write(folders.here, ACCOUNT)
    began = time.monotonic()
    with at_the_moment("open", path, lambda: put(path, kind, folders.elsewhere / "x")):
        loaded = folders.load({}, env_file=path if outright else None)
    assert time.monotonic() - began < PATIENCE
    assert loaded.settings is None
    reason = loaded.candidates[0].reason
    assert reason == "missing" or reason.startswith(f"{UNREADABLE}: ")


def test_a_file_that_grows_ahead_of_the_reading_is_read_up_to_its_bound(folders: Folders) -> None:
    path = write(folders.here, ACCOUNT)

    def grow() -> None:
        with path.open("ab") as file:
            file.truncate(1 << 40)

    with at_the_moment("open", path, grow):
        (reason, *_) = folders.reasons({})
    assert reason.startswith(f"{UNREADABLE}: more than ")


def test_a_link_to_a_trusted_file_lends_its_trust_to_nothing_else(folders: Folders) -> None:
    own = write(folders.elsewhere, ACCOUNT | {"MCP_BOT_NICKNAME": "Own"})
    strangers = write(folders.elsewhere, ACCOUNT | {"MCP_BOT_NICKNAME": "Evil"}, "evil")
    here = folders.here / ".env"
    here.symlink_to(own)

    def turn() -> None:
        here.unlink()
        here.symlink_to(strangers)

    with at_the_moment("open", own, turn):
        loaded = folders.load({"TIA_ENV_PATH": str(own)})
    assert [each.reason for each in loaded.candidates][:1] == [USED]
    assert loaded.env_file == str(own)
    assert settled(loaded).nickname == "Own"


def test_a_strangers_link_to_a_file_of_ours_makes_it_no_less_a_strangers(folders: Folders) -> None:
    secret = write(folders.elsewhere, "-----BEGIN KEY-----\ntop secret\n", "id_rsa")
    (folders.here / ".env").symlink_to(secret)
    loaded = folders.load({})
    assert loaded.settings is None
    assert "top secret" not in repr(loaded)
