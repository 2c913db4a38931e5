"""The thread that writes, and what it does when the store fails: with real files and processes."""

# ruff: noqa: ASYNC221, ASYNC240 - nothing else runs in these loops

import asyncio
import os
import sqlite3
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bridge.store import recorder as module
from bridge.store.database import Happened, Observer, TracedXml, weight
from bridge.store.recorder import Recorder
from bridge.store.retention import Retention
from bridge.store.sqlite import SqliteDatabase
from tests.store.hall import ROOM, recorder_in_room, said
from tests.store.recorded import bodies, rows, until
from tests.store.shelf import Shelf
from tests.support.disk import no_file_beyond, small_disk

ME = Observer("bot@localhost", "McpDebug", "run")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rooms.db"


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.1)
    monkeypatch.setattr(module, "BUSY_SECONDS", 0.1)
    monkeypatch.setattr(module, "RENEW_SECONDS", 0.2)


def _begun(
    path: Path,
    retention: Retention | None = None,
    opened: Callable[[], SqliteDatabase] | None = None,
) -> Recorder:
    return recorder_in_room(opened or partial(SqliteDatabase, path), path, retention=retention)


@pytest.fixture
async def recorder(path: Path) -> AsyncIterator[Recorder]:
    begun = _begun(path)
    yield begun
    begun.close()


def _say(recorder: Recorder, *bodies: str) -> None:
    for body in bodies:
        recorder.add(said(0, body, time.time()))


def _gaps(path: Path) -> list[dict[str, Any]]:
    return rows(path, "kind = 'gap'")


async def test_what_is_added_is_written_soon_and_by_flush_at_once(
    recorder: Recorder, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FLUSH_SECONDS", 20.0)
    _say(recorder, "one", "two")
    began = time.monotonic()
    await recorder.flush()
    assert bodies(path) == ["one", "two"]
    assert time.monotonic() - began < module.FLUSH_SECONDS
    _say(recorder, "three")
    await until(lambda: bodies(path) == ["one", "two", "three"])
    assert recorder.problem is None


async def test_half_a_character_of_a_server_that_lies_is_written_somehow(
    recorder: Recorder, path: Path
) -> None:
    event = {"kind": "message", "body": "\ud800", "stanzaId": "\udc00"}
    recorder.add(Happened(0.0, ROOM, event, shared=True))
    recorder.add(TracedXml(0.0, "in", "1", "<\ud800/>"))
    _say(recorder, "after")
    await recorder.flush()
    (odd, _) = rows(path)
    assert (odd["body"], odd["stanzaId"]) == ("?", "?")
    assert bodies(path) == ["?", "after"]


async def test_a_store_that_was_deleted_is_made_anew_and_the_log_says_so(
    recorder: Recorder, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _say(recorder, "lost with it")
    await recorder.flush()
    for each in path.parent.iterdir():
        each.unlink()
    _say(recorder, "after")
    await until(lambda: bodies(path) == ["after"])
    assert "the file of the store was deleted or replaced" in caplog.text


async def test_another_store_put_in_its_place_stays_what_it_is_whoever_has_the_former_open(
    recorder: Recorder, path: Path
) -> None:
    other = Shelf(path.with_name("other.db"))
    other.say("restored", room=ROOM)
    second = _begun(path)
    for each in (recorder, second):
        _say(each, "before")
        await each.flush()
    other.path.rename(path)
    await asyncio.gather(recorder.flush(), second.flush())
    _say(recorder, "after")
    await until(lambda: bodies(path) == ["restored", "after"])
    second.close()
    assert bodies(path) == ["restored", "after"]


async def test_a_mode_that_somebody_widens_meanwhile_is_set_right_and_said(
    recorder: Recorder, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "GUARD_SECONDS", 0.0)
    await recorder.flush()
    path.chmod(0o644)
    await until(lambda: path.stat().st_mode & 0o777 == 0o600)
    await until(lambda: any("0644" in each for each in recorder.warnings))


async def test_nothing_waits_for_a_store_that_is_locked_and_nothing_is_lost(
    recorder: Recorder, path: Path
) -> None:
    await recorder.flush()
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        began = time.monotonic()
        _say(recorder, *map(str, range(2_000)))
        assert time.monotonic() - began < 0.5
        await recorder.flush()
        assert time.monotonic() - began < module.FLUSH_SECONDS + 0.5
        await until(lambda: recorder.problem)
        assert "locked" in str(recorder.problem)
    await until(lambda: recorder.problem is None)
    assert bodies(path) == [*map(str, range(2_000))]
    assert _gaps(path) == []


async def test_of_a_full_disk_what_was_lost_is_counted_once_there_is_room(
    recorder: Recorder, path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    monkeypatch.setattr(module, "MAX_WAITING", 100)
    _say(recorder, "before")
    await recorder.flush()
    wal = Path(f"{path}-wal")
    with no_file_beyond(wal.stat().st_size):
        began = time.time()
        _say(recorder, *map(str, range(150)))
        await until(lambda: recorder.problem)
        assert "Nothing is being recorded" in str(recorder.problem)
        _say(recorder, "lost too")
        await recorder.flush()
    await until(lambda: recorder.problem is None)
    _say(recorder, "after")
    await recorder.flush()
    told = bodies(path)
    assert told[0] == "before"
    assert told[-1] == "after"
    (gap,) = _gaps(path)
    assert gap["events"] == 153 - len(told)
    assert gap["reason"].startswith("Nothing is being recorded")
    assert began - 0.01 <= gap["time"] / 1000 <= time.time()
    first, *_, last = caplog.messages
    assert first.startswith("Nothing is being recorded")
    assert "".join(caplog.messages).count("Nothing is being recorded") == 1
    assert last == "what happens is recorded again"


async def test_what_waits_is_bounded_by_its_weight_and_the_rest_is_counted(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_WAITING", 100)
    path.write_bytes(b"my notes\n")
    recorder = _begun(path)
    count, large = 100, "x" * 40_000
    for number in range(count):
        heavy = said(number, large, time.time()), TracedXml(0.0, "in", "1", large)
        recorder.add(heavy[number % 2])
    await until(lambda: recorder.problem)
    assert path.read_bytes() == b"my notes\n"
    path.unlink()
    await until(lambda: recorder.problem is None)
    recorder.close()
    (gap,) = _gaps(path)
    with closing(sqlite3.connect(path)) as store:
        ((stanzas,),) = store.execute("SELECT count(*) FROM traffic").fetchall()
    kept = stanzas + len(bodies(path))
    assert 1 < kept <= 100 // weight(said(0, large)) + 1
    assert gap["events"] == count - kept


async def test_a_transaction_holds_no_more_of_large_events_than_of_small_ones(path: Path) -> None:
    go, taken = threading.Event(), list[int]()

    class Weighing(SqliteDatabase):
        def append(self, observer: Observer, happened: Sequence[Happened]) -> None:
            taken.append(sum(map(weight, happened)))
            super().append(observer, happened)

    def opened() -> SqliteDatabase:
        go.wait(15.0)
        return Weighing(path)

    recorder = _begun(path, opened=opened)
    large = "x" * 200_000
    _say(recorder, *[large] * 50)
    go.set()
    await until(lambda: sum(taken) >= 50 * 100)
    recorder.close()
    assert len(bodies(path)) == 50
    assert max(taken) <= module.BATCH + weight(said(0, large))


async def test_a_disk_that_goes_read_only(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        path = disk / "rooms.db"
        recorder = _begun(path)
        _say(recorder, "before")
        recorder.close()  # what is open for writing keeps a disk so
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        recorder = _begun(path)
        _say(recorder, "meanwhile")
        await until(lambda: recorder.problem)
        assert "Read-only file system" in str(recorder.problem)
        subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
        await until(lambda: recorder.problem is None)
        recorder.close()
        assert bodies(path) == ["before", "meanwhile"]


async def test_a_broken_store_is_put_aside_once_nobody_else_has_it_open(
    recorder: Recorder, path: Path
) -> None:
    _say(recorder, *(f"{number} {'long ' * 100}" for number in range(200)))
    await recorder.flush()
    with closing(sqlite3.connect(path)) as store:
        store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with closing(SqliteDatabase(path)):  # another bridge
        with path.open("r+b") as file:
            file.seek(8192)
            file.write(os.urandom(path.stat().st_size - 8192))
        _say(recorder, "while it is broken")
        await until(lambda: recorder.problem)
        assert "another bridge" in str(recorder.problem) or "malformed" in str(recorder.problem)
        assert not [*path.parent.glob("*broken*")]
    await until(lambda: recorder.problem is None and bodies(path) == ["while it is broken"])
    (aside,) = path.parent.glob("rooms.db.broken-*")
    await until(lambda: recorder.warnings)
    (warning,) = recorder.warnings
    assert repr(str(aside)) in warning
    aside.unlink()
    _say(recorder, "later")
    await until(lambda: bodies(path) == ["while it is broken", "later"])
    assert recorder.warnings == [warning]


async def test_the_clock_is_judged_by_what_was_recorded_before_this_run(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    now = time.time()
    with closing(SqliteDatabase(path)) as database, database.transaction():
        times = (now - 60 * 86_400, now + 86_400)
        database.append(ME, [said(number, at=at) for number, at in enumerate(times)])
    recorder = _begun(path, Retention(30, 1_024))
    _say(recorder, "of this run")
    await recorder.flush()
    await until(lambda: "the clock jumped" in caplog.text)
    recorder.close()
    assert bodies(path) == ["number 0", "number 1", "of this run"]


async def test_a_broken_store_that_lies_aside_is_said_by_who_starts_later_too(path: Path) -> None:
    early, late = (f"rooms.db.broken-{at * 10**9:x}" for at in (1_600_000_000, 1_700_000_000))
    for name in (early, late, f"{late}-wal", "rooms.db.broken-notes", "other.db.broken-ffff"):
        (path.parent / name).touch()
    recorder = _begun(path)
    await until(lambda: recorder.warnings)
    recorder.close()
    (warning,) = recorder.warnings
    assert f"{late}'; what it recorded before 2023-11-14T22:13:20.000Z" in warning


async def test_an_end_that_cannot_write_says_how_much_is_lost(path: Path, caplog: Any) -> None:
    path.write_bytes(b"my notes\n")
    recorder = _begun(path)
    _say(recorder, "one", "two")
    recorder.close()
    assert "were lost" in caplog.records[-1].getMessage()
