"""Several real processes on one store, that are killed while they write."""

import asyncio
import random
import signal
import sqlite3
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from bridge.text import iso
from tests.store.hall import ROOM
from tests.store.recorded import rows

MEMBER = """
import json, sys, time
from functools import partial
from pathlib import Path
from bridge.store.database import Observer
from bridge.store.location import put_aside
from bridge.store.recorder import Recorder
from bridge.store.writer import Entered
from bridge.store.sqlite import SqliteDatabase
from tests.store.hall import ROOM, said

path, run = Path(sys.argv[1]), sys.argv[2]
recorder = Recorder(partial(SqliteDatabase, path), partial(put_aside, path))
recorder.add(Observer("bot@localhost", run, run))
recorder.add(Entered(ROOM, time.time(), time.monotonic()))
print("in", flush=True)
for line in sys.stdin:
    recorder.add(said(int(line), at=time.time()))
recorder.close()
"""
"""Records each number on its stdin as something that was said."""

LATENCY_SECONDS = 0.1
"""How much later than it is said a process may read something, and stamp it."""

ROUNDS = 12
EACH = 40


async def _join(path: Path, run: str) -> Process:
    member = await asyncio.create_subprocess_exec(
        sys.executable, "-c", MEMBER, str(path), run, stdin=PIPE, stdout=PIPE, stderr=DEVNULL
    )
    assert member.stdout is not None
    assert await member.stdout.readline() == b"in\n"
    return member


def _recorder(path: Path) -> str | None:
    """Which run has the lease."""
    if not path.exists():
        return None
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as store:
        found = store.execute("SELECT recorder FROM rooms WHERE jid = ?", [ROOM]).fetchone()
    return str(found[0]) if found and found[0] else None


def _missing(path: Path, said: dict[int, float]) -> set[int]:
    """What is neither in the store nor in one of its gaps."""
    found = rows(path)
    gaps = [(one["from"], one["to"]) for one in found if one["kind"] == "gap"]
    told = {
        mark
        for mark, at in said.items()
        if any(a <= iso(at + LATENCY_SECONDS) and iso(at) <= b for a, b in gaps)
    }
    return said.keys() - told - {one.get("jid") for one in found}


async def _until(satisfied: Callable[[], object], seconds: float = 10.0) -> None:
    async with asyncio.timeout(seconds):
        while not satisfied():  # noqa: ASYNC110 - the store tells nobody
            await asyncio.sleep(0.05)


async def test_whoever_is_killed_whenever_each_event_is_there_once_or_in_a_gap(
    tmp_path: Path,
) -> None:
    path = tmp_path / "rooms.db"
    seed = time.time_ns() % 10**6
    chance = random.Random(seed)  # noqa: S311 - no secret
    said: dict[int, float] = {}
    members = [await _join(path, f"run{number}") for number in range(3)]
    await _until(lambda: _recorder(path))
    for number in range(ROUNDS):
        for _ in range(EACH):
            mark = len(said) + 1
            said[mark] = time.time()
            for one in members:
                assert one.stdin is not None
                one.stdin.write(b"%d\n" % mark)
            await asyncio.sleep(chance.random() * 0.01)
        victim = members.pop(chance.randrange(len(members)))
        victim.send_signal(signal.SIGKILL)
        await victim.wait()
        members.append(await _join(path, f"later{number}"))
    await _until(lambda: not _missing(path, said), 20.0)
    for one in members:
        assert one.stdin is not None
        one.stdin.close()
    for one in members:
        assert await one.wait() == 0
    shared = Counter(one["jid"] for one in rows(path, "shared") if "jid" in one)
    assert [mark for mark, count in shared.items() if count > 1] == [], seed
    assert _missing(path, said) == set(), seed
    assert len(shared) >= EACH, seed
    with closing(sqlite3.connect(path)) as store:
        assert store.execute("PRAGMA integrity_check").fetchone() == ("ok",)


async def test_another_takes_over_within_ten_seconds_of_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "rooms.db"
    first = await _join(path, "first")
    await _until(lambda: _recorder(path) == "first")
    second = await _join(path, "second")
    first.send_signal(signal.SIGKILL)
    await first.wait()
    assert _recorder(path) == "first"
    began = time.monotonic()
    assert second.stdin is not None
    second.stdin.write(b"1\n")
    await _until(lambda: rows(path, "shared AND kind = 'message'"))
    assert time.monotonic() - began < 10
    (row,) = rows(path, "kind = 'message'")
    assert (row["jid"], row["run"], row["room"]) == (1, "second", ROOM)
    second.stdin.close()
    await second.wait()
