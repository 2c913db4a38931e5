import os
import stat
from pathlib import Path

import pytest

from bridge.registration.errors import RegistrationError
from bridge.registration.files import MAX_BYTES, ConfigFile


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of somebody else, with a mode of its own."""
    path = tmp_path / "config"
    path.write_bytes(b"one\r\n")
    path.chmod(0o640)
    return path


def _names(folder: Path) -> set[str]:
    return {one.name for one in folder.iterdir()}


def test_what_is_replaced_stays_beside_it_and_the_mode_is_kept(path: Path) -> None:
    backup = ConfigFile(path).replace("one\r\n", "two\n")
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"two\n", 0o640)
    assert backup == path.with_name("config.bak")
    assert (backup.read_bytes(), stat.S_IMODE(backup.stat().st_mode)) == (b"one\r\n", 0o640)
    assert ConfigFile(path).replace("two\n", "three") == backup
    assert backup.read_bytes() == b"two\n"
    assert _names(path.parent) == {"config", "config.bak"}


def test_a_file_that_is_not_there_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "some" / "where" / "config"
    file = ConfigFile(path)
    assert file.read() is None
    assert file.replace("", "new") is None
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new", 0o600)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert _names(path.parent) == {"config"}


def test_a_link_stays_and_its_target_is_written(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "dotfiles" / "link"
    link.parent.mkdir()
    link.symlink_to("../config")
    backup = ConfigFile(link).replace("one\r\n", "two")
    assert link.is_symlink()
    assert path.read_text() == "two"
    assert backup == path.with_name("config.bak")


def test_a_link_to_nothing_makes_its_target(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("target")
    assert ConfigFile(link).read() is None
    ConfigFile(link).replace("", "new")
    assert (link.is_symlink(), (tmp_path / "target").read_text()) == (True, "new")


def test_a_file_that_changed_meanwhile_is_left_alone(path: Path) -> None:
    with pytest.raises(RegistrationError, match="another program"):
        ConfigFile(path).replace("older", "two")
    assert (path.read_bytes(), _names(path.parent)) == (b"one\r\n", {"config"})


def test_what_is_no_readable_text_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "config"
    os.mkfifo(path)
    with pytest.raises(RegistrationError, match="not a regular file"):
        ConfigFile(path).read()
    with pytest.raises(RegistrationError, match="a directory"):
        ConfigFile(tmp_path).read()
    path.unlink()
    path.symlink_to(path)
    with pytest.raises(RegistrationError, match="cannot be read"):
        ConfigFile(path).read()
    path.unlink()
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(RegistrationError, match="UTF-8"):
        ConfigFile(path).read()


def test_the_size_has_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "config"
    with path.open("wb") as file:
        file.truncate(MAX_BYTES)
    assert len(ConfigFile(path).read() or "") == MAX_BYTES
    with path.open("ab") as file:
        file.write(b"x")
    with pytest.raises(RegistrationError, match="more than 67,108,864 bytes"):
        ConfigFile(path).read()
