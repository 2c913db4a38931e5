"""A history whose place somebody else has taken, or takes at the moment of opening."""

import os
import stat
from pathlib import Path

import pytest

from bridge.console.input_history import MAX_LINES, LineHistory
from tests.disk import mask, no_file_beyond
from tests.racing import at_the_moment, is_untouched, put, somebodys_file

PRECIOUS = "precious\n" * (MAX_LINES + 1)
"""Longer than a history that is kept."""
KINDS = ["link", "link to nothing", "hard link", "FIFO", "directory", "endless device"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "state").mkdir()
    return tmp_path / "state" / "history"


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    return somebodys_file(tmp_path, PRECIOUS)


def untouched(victim: Path) -> bool:
    return is_untouched(victim, PRECIOUS)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_file_of_our_own_is_neither_read_nor_written(
    kind: str, file: Path, victim: Path
) -> None:
    put(file, kind, victim)
    before = file.lstat()
    LineHistory(file).store_string("one")
    assert LineHistory(file).load_history_strings() == []
    assert untouched(victim)
    assert os.path.samestat(file.lstat(), before)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_swapped_in_ahead_of_the_opening_is_neither_read_nor_written(
    kind: str, file: Path, victim: Path
) -> None:
    LineHistory(file).store_string("one")
    with at_the_moment("open", file, lambda: put(file, kind, victim)):
        LineHistory(file).store_string("two")
    assert untouched(victim)
    if kind == "directory":
        file.rmdir()
    file.unlink(missing_ok=True)
    LineHistory(file).store_string("one")
    with at_the_moment("open", file, lambda: put(file, kind, victim)):
        assert LineHistory(file).load_history_strings() == []
    assert untouched(victim)


@pytest.mark.parametrize("kind", ["link", "link to nothing", "hard link", "FIFO"])
def test_nothing_that_waits_under_the_name_of_the_new_history_is_written_to(
    kind: str, file: Path, victim: Path
) -> None:
    """A line is kept by writing a new history beside it; whoever knows our id knows its name."""
    file.write_text("line\n" * (MAX_LINES + 1))
    put(file.with_suffix(f".{os.getpid()}"), kind, victim)
    LineHistory(file).store_string("one")
    assert file.read_text() == "line\n" * (MAX_LINES - 1) + "one\n"
    assert not file.is_symlink()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert untouched(victim)


@pytest.mark.parametrize("umask", [0, 0o022])
def test_whatever_the_umask_it_is_for_its_owner_alone(umask: int, tmp_path: Path) -> None:
    file = tmp_path / "new" / "history"
    with mask(umask):
        LineHistory(file).store_string("one")
        file.chmod(0o666)
        LineHistory(file).store_string("two")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_a_full_disk_costs_the_history_and_not_what_is_kept(file: Path) -> None:
    whole = "line\n" * (MAX_LINES + 1)
    file.write_text(whole)
    with no_file_beyond(100):
        LineHistory(file).store_string("one")
    assert file.read_text() == whole
    assert [one.name for one in file.parent.iterdir()] == ["history"]
