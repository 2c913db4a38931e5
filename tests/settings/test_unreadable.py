import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bridge.settings import sources
from bridge.settings.sources import MAX_BLANKS, MAX_FILE_BYTES, MAX_STRANGERS_BYTES
from tests.nobody import without_privileges
from tests.settings.folders import ACCOUNT, UNREADABLE, USED, Folders, settled, write, written


def unreadable(path: Path, kind: str) -> None:
    text = written(ACCOUNT).encode()
    match kind:
        case "directory":
            path.mkdir()
        case "FIFO":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case "loop":
            path.symlink_to(path)
        case "Latin-1":
            path.write_bytes(text + b"# \xe9\n")
        case "UTF-16":
            path.write_bytes(written(ACCOUNT).encode("utf-16-le"))
        case "large":
            path.write_bytes(text + b"#" * (MAX_FILE_BYTES + 1 - len(text)))
        case "blanks":
            path.write_bytes(text + b"A=x" + b" " * (MAX_BLANKS + 1) + b"y\n")


KINDS = ["directory", "FIFO", "device", "loop", "Latin-1", "UTF-16", "large", "blanks"]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_plain_utf8_file_is_passed_over_at_once(folders: Folders, kind: str) -> None:
    write(folders.package, ACCOUNT)
    unreadable(folders.here / ".env", kind)
    unreadable(folders.elsewhere / "named", kind)
    began = time.monotonic()
    reasons = folders.reasons({"TIA_ENV_PATH": str(folders.elsewhere / "named")})
    assert time.monotonic() - began < 2
    # Two links to one device are one file.
    assert len(reasons) == (2 if kind == "device" else 3)
    assert all(reason.startswith(f"{UNREADABLE}: ") for reason in reasons[:-1])
    assert reasons[-1] == USED


@pytest.fixture
def unprivileged() -> Iterator[None]:
    with without_privileges():
        yield


@pytest.fixture
def locked(folders: Folders) -> Path:
    path = write(folders.here, ACCOUNT)
    path.chmod(0)
    return path


@pytest.mark.usefixtures("locked", "unprivileged")
def test_a_file_without_permission_is_passed_over(folders: Folders) -> None:
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


@pytest.mark.parametrize("kind", ["nothing", *KINDS])
def test_an_unusable_env_file_is_the_one_problem(folders: Folders, kind: str) -> None:
    write(folders.here, ACCOUNT)
    path = folders.elsewhere / "named"
    unreadable(path, kind)
    configuration = folders.load({}, env_file=path)
    assert [problem.variable for problem in configuration.problems] == ["--env-file"]
    assert repr(str(path)) in str(configuration.problems[0])
    assert configuration.settings is None
    assert configuration.env_file is None
    assert folders.load(ACCOUNT, env_file=path).settings is None


def test_a_file_that_is_silent_is_empty(folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    """/proc/kmsg is a regular file in the kernel's eyes, and to read it takes lines from syslog."""
    path = folders.here / ".env"
    os.mkfifo(path)
    with path.open("r+b", buffering=0):
        monkeypatch.setattr(sources, "_expect_regular", lambda status: None)
        assert folders.reasons({})[0] == "sets none of our variables"
