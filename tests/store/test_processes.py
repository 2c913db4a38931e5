"""Several real processes on one store, that are killed while they write."""

import asyncio
import random
import signal
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from bridge.settings.database_url import database_url
from bridge.store.opening import Place, Team, open_store
from bridge.text import iso
from tests.store.hall import ROOM
from tests.store.recorded import rows, selected

MEMBER = """
import sys, time
from functools import partial
from pathlib import Path
from bridge.settings.database_url import store
from bridge.store.database import Observer
from bridge.store.location import put_aside
from bridge.store.opening import Team, open_recorder_store
from bridge.store.recorder import Recorder
from bridge.store.writer import Entered
from tests.store.hall import ROOM, said

run, spool = sys.argv[1], Path(sys.argv[2])
place = store(sys.stdin.readline().strip())
place = place if isinstance(place, Path) else Team(place, spool, 10)
recorder = Recorder(partial(open_recorder_store, place, making=False), partial(put_aside, spool))
recorder.add(Observer("bot@localhost", run, run))
recorder.add(Entered(ROOM, time.time(), time.monotonic()))
print("in", flush=True)
for line in sys.stdin:
    recorder.add(said(int(line), at=time.time()))
recorder.close()
"""
"""Records each number on its stdin as something that was said; first comes where."""

LATENCY_SECONDS = 0.1
"""How much later than it is said a process may read something, and stamp it."""

ROUNDS = 12
EACH = 40


class Shared:
    """A store that several processes share."""

    def __init__(self, place: Place, text: str, spool: Path) -> None:
        self.place, self._text, self._spool = place, text, spool

    async def join(self, run: str) -> Process:
        """Start a process that records."""
        member = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", MEMBER, run, self._spool),
            stdin=PIPE, stdout=PIPE, stderr=DEVNULL,
        )  # fmt: skip
        assert member.stdin is not None
        assert member.stdout is not None
        member.stdin.write(f"{self._text}\n".encode())  # a password is not among the arguments
        assert await member.stdout.readline() == b"in\n"
        return member

    def recorder(self) -> str | None:
        """Which run has the lease."""
        if isinstance(self.place, Path) and not self.place.exists():
            return None
        found = selected(self.place, f"SELECT recorder FROM rooms WHERE jid = '{ROOM}'")  # noqa: S608
        return str(found[0][0]) if found and found[0][0] else None


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Shared:
    """An empty store of each kind."""
    path, spool = tmp_path / "rooms.db", tmp_path / "spool.db"
    if request.param == "sqlite":
        return Shared(path, str(path), path)
    url = request.getfixturevalue("postgresql").new()
    place = Team(database_url(url), spool, 10)
    open_store(place).close()
    return Shared(place, url, spool)


def _missing(place: Place, said: dict[int, float]) -> set[int]:
    """What is neither in the store nor in one of its gaps."""
    found = rows(place)
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
    store: Shared,
) -> None:
    place = store.place
    seed = time.time_ns() % 10**6
    chance = random.Random(seed)  # noqa: S311 - no secret
    said: dict[int, float] = {}
    members = [await store.join(f"run{number}") for number in range(3)]
    await _until(store.recorder)
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
        members.append(await store.join(f"later{number}"))
    await _until(lambda: not _missing(place, said), 20.0)
    for one in members:
        assert one.stdin is not None
        one.stdin.close()
    for one in members:
        assert await one.wait() == 0
    shared = Counter(one["jid"] for one in rows(place, "shared") if "jid" in one)
    assert [mark for mark, count in shared.items() if count > 1] == [], seed
    assert _missing(place, said) == set(), seed
    assert len(shared) >= EACH, seed
    if isinstance(place, Path):
        assert selected(place, "PRAGMA integrity_check") == [("ok",)]


async def test_another_takes_over_within_ten_seconds_of_a_kill(store: Shared) -> None:
    first = await store.join("first")
    await _until(lambda: store.recorder() == "first")
    second = await store.join("second")
    first.send_signal(signal.SIGKILL)
    await first.wait()
    assert store.recorder() == "first"
    began = time.monotonic()
    assert second.stdin is not None
    second.stdin.write(b"1\n")
    await _until(lambda: rows(store.place, "shared AND kind = 'message'"))
    assert time.monotonic() - began < 10
    (row,) = rows(store.place, "kind = 'message'")
    assert (row["jid"], row["run"], row["room"]) == (1, "second", ROOM)
    second.stdin.close()
    await second.wait()
