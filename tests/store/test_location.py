"""What a store is not made of, and what is left as it is."""

import errno
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from bridge.store import location
from bridge.store.database import Happened, Observer
from bridge.store.errors import (
    BrokenStoreError,
    BusyStoreError,
    NotOurStoreError,
    StoreError,
)
from bridge.store.location import Location, identity, put_aside, unusable
from bridge.store.sqlite import SqliteDatabase
from bridge.store.tables import VERSION
from tests.support.disk import mask, no_file_beyond
from tests.support.nobody import NOBODY, without_privileges
from tests.support.racing import put

ME = Observer("bot@localhost", "McpDebug", "run")
BESIDE = ["", "-wal", "-shm", "-journal", "-lock"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store" / "rooms.db"


def _write(database: SqliteDatabase, text: str = "") -> None:
    with database.transaction():
        database.append(ME, [Happened(0.0, "", {"kind": "connection", "text": text})])


def _made(path: Path) -> bytes:
    with closing(SqliteDatabase(path)) as database:
        _write(database)
    return path.read_bytes()


def _refusal(path: Path) -> str:
    with pytest.raises(NotOurStoreError) as refused:
        SqliteDatabase(path)
    return str(refused.value)


def test_a_path_of_any_characters_leads_to_its_store(tmp_path: Path) -> None:
    path = Path(f"/{tmp_path}/%41?mode=ro#'\udcff/rooms.db")
    _made(path)
    with closing(SqliteDatabase(path, writable=False)) as store:
        assert store.newest() == 1
    assert path.exists()


def test_a_store_in_the_middle_of_a_checkpoint_is_one_all_the_same(path: Path) -> None:
    with closing(SqliteDatabase(path)) as database:
        before = path.stat().st_size
        _write(database, "x" * 100_000)
        assert path.stat().st_size == before  # the rest is in the WAL
        with path.open("r+b") as file:  # SQLite writes the first page first
            file.seek(28)
            file.write((1_000).to_bytes(4, "big"))
        with closing(SqliteDatabase(path, writable=False)) as other:
            assert other.newest() == 1


@pytest.mark.parametrize("umask", [0, 0o077])
def test_whatever_the_umask_all_of_it_is_for_its_owner_alone(umask: int, path: Path) -> None:
    with mask(umask), closing(SqliteDatabase(path)) as database:
        _write(database)
        modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()}
    assert modes.keys() == {"rooms.db", "rooms.db-wal", "rooms.db-shm", "rooms.db-lock"}
    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def _other_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE notes (text)")
        other.execute("INSERT INTO notes VALUES ('mine')")
        other.commit()


def _with_header(path: Path, pragma: str) -> None:
    _made(path)
    with closing(sqlite3.connect(path)) as other:
        other.execute(pragma)


FOREIGN: dict[str, Callable[[Path], object]] = {
    "notes": lambda path: path.write_bytes(b"# my notes\n"),
    "nothing": lambda path: path.touch(),
    "zeros": lambda path: path.write_bytes(bytes(200)),
    "the beginning of a database": lambda path: path.write_bytes(b"SQLite format 3\0"),
    "another database": _other_database,
    "another program's": lambda path: _with_header(path, "PRAGMA application_id = 1"),
    "an unknown version": lambda path: _with_header(path, f"PRAGMA user_version = {VERSION + 1}"),
    "a former version": lambda path: _with_header(path, f"PRAGMA user_version = {VERSION - 2}"),
}


@pytest.mark.parametrize("content", FOREIGN)
def test_somebody_elses_file_is_the_same_byte_for_byte_after(content: str, path: Path) -> None:
    path.parent.mkdir()
    FOREIGN[content](path)
    path.chmod(0o644)
    before, fault = path.read_bytes(), path.stat()
    assert ("version" if "version" in content else "not a store of xmpp-bridge") in _refusal(path)
    with pytest.raises(NotOurStoreError):
        SqliteDatabase(path, writable=False)
    after = path.stat()
    assert path.read_bytes() == before
    assert (after.st_mode, after.st_mtime_ns) == (fault.st_mode, fault.st_mtime_ns)
    assert not [each for each in path.parent.iterdir() if each.name[8:] not in ("", "-lock")]


@pytest.mark.parametrize("suffix", BESIDE)
@pytest.mark.parametrize(
    "kind", ["link", "link to nothing", "hard link", "FIFO", "directory", "full device"]
)
def test_what_stands_in_the_place_of_one_of_its_files_is_not_written_to(
    kind: str, suffix: str, path: Path, tmp_path: Path
) -> None:
    precious = _made(path)
    victim = tmp_path / "victim"
    shutil.copy(path, victim)
    Path(f"{path}-lock").unlink()
    put(Path(f"{path}{suffix}"), kind, victim)
    assert ("symbolic link" if not suffix else "set BRIDGE_STORE") in _refusal(
        path
    ) or kind != "link"
    assert victim.read_bytes() == precious
    assert not (tmp_path / "nothing").exists()


def test_a_folder_on_the_way_is_no_link(path: Path, tmp_path: Path) -> None:
    _made(path)
    link = tmp_path / "link"
    link.symlink_to(path.parent)
    told = _refusal(link / "rooms.db")
    assert f"{str(link)!r} is a symbolic link" in told
    assert f"{str(path)!r} would be right" in told
    link.unlink()
    link.symlink_to(tmp_path / "nothing")
    assert "symbolic link" in _refusal(link / "rooms.db")
    assert not (tmp_path / "nothing").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="takes two users: run it as root")
def test_somebody_elses_store_is_refused() -> None:
    with TemporaryDirectory() as name:
        Path(name).chmod(0o1777)
        path = Path(name) / "rooms.db"
        _made(path)
        for each in path.parent.iterdir():
            os.chown(each, NOBODY, NOBODY)
        assert "belongs to another user" in _refusal(path)


def test_what_may_not_be_written_is_named_as_the_cause(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(0o500)
    with without_privileges(), pytest.raises(NotOurStoreError, match="Permission denied"):
        SqliteDatabase(closed / "rooms.db")
    (tmp_path / "file").touch()
    with pytest.raises(NotOurStoreError, match="Not a directory"):
        SqliteDatabase(tmp_path / "file" / "rooms.db")


@pytest.mark.parametrize(
    ("number", "raised"), [(errno.ENOSPC, StoreError), (errno.EACCES, NotOurStoreError)]
)
def test_only_what_may_pass_is_worth_another_try(
    number: int, raised: type[Exception], path: Path
) -> None:
    fault = unusable(path, OSError(number, os.strerror(number)))
    assert type(fault) is raised
    assert os.strerror(number) in str(fault)


@pytest.mark.parametrize("mode", [0o644, 0o660, 0o602, 0o400])
@pytest.mark.parametrize("suffix", ["", "-wal", "-shm", "-lock"])
def test_wrong_modes_are_set_right_and_said_if_others_could_use_the_file(
    suffix: str, mode: int, path: Path
) -> None:
    with closing(SqliteDatabase(path)) as database:
        _write(database)
        Path(f"{path}{suffix}").chmod(mode)
        with closing(SqliteDatabase(path)) as other:
            told = other.warnings.get("exposed", "")
        modes = {stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()}
    assert modes == {0o600}
    assert bool(told) == (bool(mode & 0o077) and suffix != "-lock")
    assert not told or (f"{path}{suffix}" in told and f"{mode:04o}" in told)


def test_setting_a_mode_right_leaves_the_locks_of_a_store_that_is_open(path: Path) -> None:
    alone = (
        f"import sqlite3 as s; s.connect({str(path)!r}, 0).execute('PRAGMA journal_mode = DELETE')"
    )
    with closing(SqliteDatabase(path)) as database:
        assert database.newest() == 0
        path.chmod(0o644)
        SqliteDatabase(path).close()
        ran = subprocess.run([sys.executable, "-c", alone], stderr=subprocess.PIPE, check=False)
    assert b"database is locked" in ran.stderr  # no other process may while one has it open


def test_a_store_whose_mode_cannot_be_set_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _made(path)
    path.chmod(0o644)
    monkeypatch.setattr(location, "_restrict", lambda path, mode: None)  # as on FAT
    assert "its mode cannot be changed; set BRIDGE_STORE to another path" in _refusal(path)


def test_a_link_put_in_the_place_of_a_file_gives_no_other_file_its_mode(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _made(path)
    path.chmod(0o644)
    victim = tmp_path / "victim"
    shutil.copy(path, victim)
    victim.chmod(0o755)
    restrict = location._restrict  # noqa: SLF001 - the moment at which the link comes

    def late(file: Path, mode: int) -> None:
        file.unlink()
        file.symlink_to(victim)
        restrict(file, mode)

    monkeypatch.setattr(location, "_restrict", late)
    with suppress(StoreError):
        SqliteDatabase(path).close()
    assert stat.S_IMODE(victim.stat().st_mode) == 0o755


def test_reading_changes_no_mode(path: Path) -> None:
    _made(path)
    path.chmod(0o644)
    SqliteDatabase(path, writable=False).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


@pytest.fixture
def broken(path: Path) -> BrokenStoreError:
    """What a store raises of which a page is rubbish."""
    with closing(SqliteDatabase(path)) as database:
        for number in range(50):
            _write(database, f"{number} " * 100)
    with path.open("r+b") as file:
        file.seek(8192)
        file.write(os.urandom(path.stat().st_size - 8192))
    with pytest.raises(BrokenStoreError) as raised:
        _made(path)
    return raised.value


def test_a_broken_store_that_nobody_has_open_is_put_aside_once_with_all_that_belongs_to_it(
    broken: BrokenStoreError, path: Path
) -> None:
    with closing(Location(path)) as other:
        other.lock(alone=False)
        with pytest.raises(BusyStoreError, match="another bridge"):
            put_aside(path, broken)
    assert identity(path) == broken.file
    content = path.read_bytes()
    Path(f"{path}-wal").write_bytes(b"events")
    put_aside(path, broken)
    lock, aside, wal = sorted(each.name for each in path.parent.iterdir())
    assert lock == "rooms.db-lock"
    assert aside.startswith("rooms.db.broken-")
    assert (path.parent / aside).read_bytes() == content
    assert (wal, (path.parent / wal).read_bytes()) == (f"{aside}-wal", b"events")
    new = _made(path)  # by another bridge, meanwhile
    put_aside(path, broken)
    assert path.read_bytes() == new


def test_what_is_left_of_a_store_that_was_deleted_is_no_part_of_the_next(path: Path) -> None:
    with closing(SqliteDatabase(path)) as database:
        _write(database)
        wal = Path(f"{path}-wal").read_bytes()
    path.unlink()
    Path(f"{path}-wal").write_bytes(wal)  # as a bridge that was killed leaves it
    with closing(SqliteDatabase(path)) as database:
        assert database.newest() == 0
    (left,) = path.parent.glob("*.broken-*-wal")
    assert left.read_bytes() == wal


def test_who_is_killed_while_putting_aside_leaves_no_events_to_the_next_store(
    broken: BrokenStoreError, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path(f"{path}-wal").write_bytes(b"events")
    moved, rename = list[str](), Path.rename

    def once(self: Path, target: Path) -> Path:
        if moved:
            raise KeyboardInterrupt
        done = rename(self, target)
        moved.append(self.name)
        return done

    monkeypatch.setattr(Path, "rename", once)
    with pytest.raises(KeyboardInterrupt):
        put_aside(path, broken)
    assert moved == ["rooms.db-wal"]


@pytest.mark.parametrize("size", range(0, 131_072, 49_152))
def test_a_store_that_a_full_disk_kept_from_being_made_is_made_later(size: int, path: Path) -> None:
    with no_file_beyond(size), suppress(StoreError):
        _made(path)
    _made(path)
    assert {each.name for each in path.parent.iterdir()} == {path.name, f"{path.name}-lock"}
    with closing(SqliteDatabase(path)) as database:
        assert database.newest() in {1, 2}
