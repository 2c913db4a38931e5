"""A client's file: what is kept of it, who takes its place meanwhile, and a disk that is full."""

import stat
from pathlib import Path

import pytest

from bridge.registration.errors import RegistrationError
from bridge.registration.files import MAX_BYTES, ConfigFile
from tests.disk import mask, no_file_beyond
from tests.racing import at_the_moment, is_untouched, put, somebodys_file

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
    """The new file, whose random name `tempfile` takes from this sequence."""
    monkeypatch.setattr("tempfile._name_sequence", iter(["known", "second"]))
    return path.with_name(".xmpp-bridge-known")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def names(path: Path) -> list[str]:
    return sorted(one.name for one in path.parent.iterdir())


def test_what_is_replaced_stays_beside_it_and_the_mode_is_kept(path: Path) -> None:
    other = path.with_name("other")
    other.hardlink_to(path)
    backup = ConfigFile(path).replace(BEFORE, AFTER)
    assert (path.read_text(), mode(path)) == (AFTER, 0o640)
    assert backup == path.with_name("config.bak")
    assert (backup.read_bytes(), mode(backup)) == (BEFORE.encode(), 0o640)
    assert other.read_bytes() == BEFORE.encode()
    assert ConfigFile(path).replace(AFTER, "three") == backup
    assert backup.read_text() == AFTER
    assert names(path) == ["config", "config.bak", "other"]


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
    path.with_name("config.bak").mkdir()
    monkeypatch.undo()
    with pytest.raises(RegistrationError, match="cannot be written"):
        ConfigFile(path).replace(BEFORE, AFTER)
    assert (path.read_bytes(), names(path)) == (BEFORE.encode(), ["config", "config.bak"])


@pytest.mark.parametrize("kind", TAKING_ITS_PLACE)
def test_what_has_the_backups_name_is_not_followed(kind: str, path: Path, victim: Path) -> None:
    put(path.with_name("config.bak"), kind, victim)
    backup = ConfigFile(path).replace(BEFORE, AFTER)
    assert backup == path.with_name("config.bak")
    assert not backup.is_symlink()
    assert (backup.read_bytes(), path.read_text()) == (BEFORE.encode(), AFTER)
    assert is_untouched(victim, PRECIOUS)


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
