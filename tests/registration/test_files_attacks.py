"""A client's file whose place somebody else takes, and a disk that is full."""

import os
import stat
from pathlib import Path

import pytest

from bridge.registration.errors import RegistrationError
from bridge.registration.files import ConfigFile
from tests.disk import mask, no_file_beyond
from tests.racing import at_the_moment, is_untouched, put, somebodys_file

BEFORE, AFTER = "x" * 1_000, "y" * 1_200
PRECIOUS = "precious\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "client").mkdir()
    path = tmp_path / "client" / "config"
    path.write_text(BEFORE)
    path.chmod(0o640)
    return path


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    return somebodys_file(tmp_path, PRECIOUS)


def untouched(victim: Path) -> bool:
    return is_untouched(victim, PRECIOUS)


def names(path: Path) -> list[str]:
    return sorted(one.name for one in path.parent.iterdir())


@pytest.mark.parametrize("kind", ["FIFO", "directory", "full device"])
def test_what_is_swapped_in_before_reading_is_an_error(kind: str, path: Path, victim: Path) -> None:
    with (
        at_the_moment("open", path, lambda: put(path, kind, victim)),
        pytest.raises(RegistrationError, match=r"regular file|directory"),
    ):
        ConfigFile(path).read()


@pytest.mark.parametrize("size", [0, 500, len(AFTER) - 1, len(AFTER)])
def test_a_full_disk_is_an_error_that_leaves_everything_as_it_was(size: int, path: Path) -> None:
    with no_file_beyond(size):
        if size >= len(AFTER):
            assert ConfigFile(path).replace(BEFORE, AFTER) == path.with_name("config.bak")
        else:
            with pytest.raises(RegistrationError, match="cannot be written: File too large"):
                ConfigFile(path).replace(BEFORE, AFTER)
            assert (path.read_text(), names(path)) == (BEFORE, ["config"])


@pytest.mark.parametrize("kind", ["link", "link to nothing", "hard link", "FIFO", "full device"])
def test_what_has_the_backups_name_is_not_followed(kind: str, path: Path, victim: Path) -> None:
    put(path.with_name("config.bak"), kind, victim)
    backup = ConfigFile(path).replace(BEFORE, AFTER)
    assert backup == path.with_name("config.bak")
    assert not backup.is_symlink()
    assert (backup.read_text(), path.read_text()) == (BEFORE, AFTER)
    assert untouched(victim)


def test_a_folder_with_the_name_of_the_backup_is_an_error(path: Path) -> None:
    path.with_name("config.bak").mkdir()
    with pytest.raises(RegistrationError, match="cannot be written"):
        ConfigFile(path).replace(BEFORE, AFTER)
    assert (path.read_text(), names(path)) == (BEFORE, ["config", "config.bak"])


@pytest.mark.parametrize("kind", ["link", "link to nothing", "hard link", "FIFO", "full device"])
def test_what_is_swapped_in_ahead_of_the_last_step_is_replaced_and_not_followed(
    kind: str, path: Path, victim: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The new file's name is a random one; the sequence is what tempfile takes it from.
    monkeypatch.setattr("tempfile._name_sequence", iter(["known"]))
    fresh = path.with_name(".xmpp-bridge-known")
    with at_the_moment("os.rename", fresh, lambda: put(path, kind, victim)):
        ConfigFile(path).replace(BEFORE, AFTER)
    assert not path.is_symlink()
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == (AFTER, 0o640)
    assert untouched(victim)
    assert names(path) == ["config", "config.bak"]


def test_what_others_write_meanwhile_is_kept(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Claude Code writes its file all the time, and ours takes a while to be safe on the disk."""
    monkeypatch.setattr("tempfile._name_sequence", iter(["known"]))
    fresh = path.with_name(".xmpp-bridge-known")
    with (
        at_the_moment("open", fresh, lambda: path.write_text("theirs")),
        pytest.raises(RegistrationError, match="changed by another program"),
    ):
        ConfigFile(path).replace(BEFORE, AFTER)
    assert (path.read_text(), names(path)) == ("theirs", ["config"])


def test_nothing_that_waits_under_the_name_of_the_new_file_is_written_to(
    path: Path, victim: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile._name_sequence", iter(["guessed", "second"]))
    path.with_name(".xmpp-bridge-guessed").symlink_to(victim)
    ConfigFile(path).replace(BEFORE, AFTER)
    assert path.read_text() == AFTER
    assert untouched(victim)


def test_another_name_of_the_file_keeps_what_it_held(path: Path) -> None:
    other = path.with_name("other")
    other.hardlink_to(path)
    ConfigFile(path).replace(BEFORE, AFTER)
    assert (path.read_text(), other.read_text()) == (AFTER, BEFORE)


@pytest.mark.parametrize("umask", [0, 0o022])
def test_whatever_the_umask_what_is_new_is_its_owners_alone(umask: int, tmp_path: Path) -> None:
    path = tmp_path / "new" / "config"
    with mask(umask):
        ConfigFile(path).replace("", AFTER)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("kind", ["link", "directory"])
def test_a_folder_that_is_a_link_is_followed_and_one_that_is_none_is_an_error(
    kind: str, path: Path, tmp_path: Path
) -> None:
    """People keep their dotfiles elsewhere: the file is written where it really is."""
    folder = tmp_path / "folder"
    if kind == "link":
        folder.symlink_to(path.parent)
        ConfigFile(folder / "config").replace(BEFORE, AFTER)
        assert path.read_text() == AFTER
        assert os.path.islink(folder)  # noqa: PTH114 - as a path, not what it leads to
    else:
        folder.write_text("a file")
        with pytest.raises(RegistrationError, match="cannot be"):
            ConfigFile(folder / "config").replace("", AFTER)
