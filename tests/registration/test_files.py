"""A client's file: what is kept of it, who takes its place meanwhile, and a disk that is full."""

import os
import signal
import stat
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from bridge.registration.errors import RegistrationError
from bridge.registration.files import MAX_BYTES, ConfigFile
from tests.support.disk import mask, no_file_beyond
from tests.support.racing import at_the_moment, is_untouched, put, somebodys_file

BEFORE, AFTER = "x" * 998 + "\r\n", "y" * 1_200
PRECIOUS = "precious\n"
TAKING_ITS_PLACE = ["link", "link to nothing", "hard link", "FIFO", "full device"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of somebody else, with a mode of its own."""
    (tmp_path / "client").mkdir()
    path = tmp_path / "client" / "config"
    path.write_bytes(BEFORE.encode())
    path.chmod(0o640)
    return path


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    return somebodys_file(tmp_path, PRECIOUS)


@pytest.fixture
def fresh(path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The new file, whose name is random otherwise."""
    monkeypatch.setattr("secrets.token_hex", lambda length: "0" * 2 * length)
    return path.with_name(f".xmpp-bridge-{os.getpid()}-00000000.tmp")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def names(path: Path) -> list[str]:
    return sorted(each.name for each in path.parent.iterdir())


def test_what_is_replaced_stays_beside_it_and_the_mode_is_kept(path: Path) -> None:
    other = path.with_name("other")
    other.hardlink_to(path)
    backup = ConfigFile(path).replace(BEFORE, AFTER)
    assert (path.read_text(), mode(path)) == (AFTER, 0o640)
    assert backup == path.with_name("config.bak")
    assert (backup.read_bytes(), mode(backup)) == (BEFORE.encode(), 0o640)
    assert other.read_bytes() == BEFORE.encode()
    second = ConfigFile(path).replace(AFTER, "three")
    assert second == path.with_name("config.bak.2")
    assert (backup.read_bytes(), second.read_text()) == (BEFORE.encode(), AFTER)
    # What a backup has is not copied again.
    assert ConfigFile(path).replace("three", BEFORE) == path.with_name("config.bak.3")
    assert ConfigFile(path).replace(BEFORE, "four") == backup
    assert ConfigFile(path).originals() == [BEFORE, AFTER, "three"]


def test_every_bit_of_the_mode_is_kept(path: Path) -> None:
    path.chmod(0o4751)
    ConfigFile(path).replace(BEFORE, AFTER)
    assert mode(path) == 0o4751


@pytest.mark.parametrize("umask", [0, 0o022])
def test_a_file_that_is_not_there_is_made_for_its_owner_alone(umask: int, tmp_path: Path) -> None:
    path = tmp_path / "some" / "where" / "config"
    assert ConfigFile(path).read() is None
    with mask(umask):
        assert ConfigFile(path).replace("", AFTER) is None
    assert (path.read_text(), mode(path)) == (AFTER, 0o600)
    assert (mode(path.parent), names(path)) == (0o700, ["config"])


def test_a_link_stays_and_its_target_is_written_also_below_a_folder_that_is_a_link(
    path: Path, tmp_path: Path
) -> None:
    """People keep their dotfiles elsewhere: the file is written where it really is."""
    link, folder = tmp_path / "link", tmp_path / "folder"
    link.symlink_to("client/config")
    folder.symlink_to(path.parent)
    assert ConfigFile(link).replace(BEFORE, AFTER) == path.with_name("config.bak")
    ConfigFile(folder / "config").replace(AFTER, "three")
    assert (link.is_symlink(), folder.is_symlink(), path.read_text()) == (True, True, "three")
    path.unlink()
    assert ConfigFile(link).read() is None
    ConfigFile(link).replace("", "new")
    assert (link.is_symlink(), path.read_text()) == (True, "new")


def test_what_cannot_be_read_or_is_too_large_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RegistrationError, match="cannot be read: a directory"):
        ConfigFile(tmp_path).read()
    path = tmp_path / "config"
    with path.open("wb") as file:
        file.truncate(MAX_BYTES)
    assert len(ConfigFile(path).read() or "") == MAX_BYTES
    with path.open("ab") as file:
        file.write(b"x")
    with pytest.raises(RegistrationError, match="more than 67,108,864 bytes"):
        ConfigFile(path).read()


@pytest.mark.parametrize("size", [0, 500, len(AFTER) - 1, len(AFTER)])
def test_a_full_disk_is_an_error_that_leaves_everything_as_it_was(size: int, path: Path) -> None:
    with no_file_beyond(size):
        if size >= len(AFTER):
            assert ConfigFile(path).replace(BEFORE, AFTER) == path.with_name("config.bak")
        else:
            with pytest.raises(RegistrationError, match="cannot be written: File too large"):
                ConfigFile(path).replace(BEFORE, AFTER)
            assert (path.read_bytes(), names(path)) == (BEFORE.encode(), ["config"])


def test_a_copy_that_fails_in_any_way_is_removed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "full")

    with pytest.raises(UnicodeEncodeError):
        ConfigFile(path).replace(BEFORE, "\ud800")
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(RegistrationError, match="cannot be written: full"):
        ConfigFile(path).replace(BEFORE, AFTER)
    assert names(path) == ["config"]
    with pytest.raises(RegistrationError, match="cannot be"):
        ConfigFile(path / "below").replace("", AFTER)


@pytest.mark.parametrize("kind", [*TAKING_ITS_PLACE, "directory"])
def test_what_has_the_backups_name_is_neither_followed_nor_replaced(
    kind: str, path: Path, victim: Path
) -> None:
    put(path.with_name("config.bak"), kind, victim)
    before = path.with_name("config.bak").lstat()
    backup = ConfigFile(path).replace(BEFORE, AFTER)
    assert backup == path.with_name("config.bak.2")
    assert (backup.read_bytes(), path.read_text()) == (BEFORE.encode(), AFTER)
    assert path.with_name("config.bak").lstat() == before
    assert is_untouched(victim, PRECIOUS)


def test_a_backup_of_the_users_own_is_never_touched(path: Path) -> None:
    mine = {path.with_name(f"config.bak{end}"): f"mine{end}" for end in ("", ".2", ".old", "2")}
    for name, text in mine.items():
        name.write_text(text)
    for before, after in pairwise((BEFORE, AFTER, BEFORE, AFTER, "end")):
        ConfigFile(path).replace(before, after)
    assert {name: name.read_text() for name in mine} == mine
    assert path.with_name("config.bak.3").read_bytes() == BEFORE.encode()


MOMENTS = ["open", "os.chmod", "os.link", "os.rename", "os.remove"]
"""What a command is doing to files when a signal comes."""

TIMES = range(1, 9)
"""Which time of the moment the signal comes."""

ENDED = """
import os, sys
from pathlib import Path
from bridge.registration.files import ConfigFile
folder, event, number = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
for time in map(int, sys.argv[6:]):
    if not (child := os.fork()):
        break
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
    sys.exit()
path = folder / str(time) / "config"
def hook(name, arguments):
    global time
    if name == event and arguments and str(path.parent) in str(arguments[0]):
        time -= 1
        if time == 0:
            os.kill(os.getpid(), number)
sys.addaudithook(hook)
ConfigFile(path).replace(sys.argv[4], sys.argv[5])
"""
"""Replaces the file of each folder in a process of its own, and tells how that process ended."""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_signal_at_any_moment_leaves_a_whole_file_and_nothing_beside_it(
    moment: str, number: signal.Signals, tmp_path: Path
) -> None:
    paths = [tmp_path / str(time) / "config" for time in TIMES]
    for path in paths:
        path.parent.mkdir()
        path.write_bytes(BEFORE.encode())
    words = [sys.executable, "-c", ENDED, str(tmp_path), moment, str(int(number)), BEFORE, AFTER]
    ran = subprocess.run([*words, *map(str, TIMES)], capture_output=True)
    codes = [int(line) for line in ran.stdout.split()]
    assert len(codes) == len(TIMES), ran.stderr
    assert {-number, 1} & {*codes}
    for path in paths:
        assert path.read_bytes().decode() in (BEFORE, AFTER)
        if number == signal.SIGKILL:
            ConfigFile(path.with_name("config.bak.9")).replace("", "the next run")
            path.with_name("config.bak.9").unlink()
        backup = path.with_name("config.bak")
        assert number == signal.SIGKILL or backup.exists()
        assert {*names(path)} <= {"config", "config.bak"}
        assert not backup.exists() or backup.read_bytes() == BEFORE.encode()


def test_what_an_earlier_run_left_goes_and_what_is_in_use_or_somebodys_stays(path: Path) -> None:
    other = subprocess.Popen(["sleep", "60"])
    gone = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True
    )
    left = path.with_name(f".xmpp-bridge-{int(gone.stdout)}-0123abcd.tmp")
    stays = [
        path.with_name(name)
        for name in (
            f".xmpp-bridge-{other.pid}-0123abcd.tmp",
            ".xmpp-bridge-notes.tmp",
            ".xmpp-bridge-1-0123abcd.tmp",
            ".xmpp-bridge-abcdefgh",
        )
    ]
    for name in (left, *stays):
        name.write_text("x")
    try:
        ConfigFile(path).replace(BEFORE, AFTER)
    finally:
        other.kill()
        other.wait()
    assert names(path) == sorted(["config", "config.bak", *(name.name for name in stays)])


@pytest.mark.parametrize("kind", TAKING_ITS_PLACE)
def test_what_is_swapped_in_ahead_of_the_last_step_is_replaced_and_not_followed(
    kind: str, path: Path, victim: Path, fresh: Path
) -> None:
    with at_the_moment("os.rename", fresh, lambda: put(path, kind, victim)):
        ConfigFile(path).replace(BEFORE, AFTER)
    assert not path.is_symlink()
    assert (path.read_text(), mode(path), names(path)) == (AFTER, 0o640, ["config", "config.bak"])
    assert is_untouched(victim, PRECIOUS)


def test_what_others_write_meanwhile_is_kept(path: Path, fresh: Path) -> None:
    """Claude Code writes its file all the time, and ours takes a while to be safe on the disk."""
    with (
        at_the_moment("open", fresh, lambda: path.write_text("theirs")),
        pytest.raises(RegistrationError, match="changed by another program"),
    ):
        ConfigFile(path).replace(BEFORE, AFTER)
    assert (path.read_text(), names(path)) == ("theirs", ["config"])
