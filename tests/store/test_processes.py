"""Several real processes on one store, that are killed while they write."""

import asyncio
import random
import time
from collections import Counter
from pathlib import Path

import pytest

from bridge.store.opening import Place, open_store
from bridge.text import iso
from tests.store.member import Member
from tests.store.recorded import rows, selected

LATENCY_SECONDS = 0.1
"""How much later than it is said a process may read something, and stamp it."""

ROUNDS = 4
"""How often a process is killed."""
MORE_ROUNDS = 60
EACH = 40


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


@pytest.mark.parametrize("rounds", [ROUNDS, pytest.param(MORE_ROUNDS, marks=pytest.mark.long)])
async def test_whoever_is_killed_whenever_each_event_is_there_once_or_in_a_gap(
    place: Place, rounds: int
) -> None:
    open_store(place).close()
    seed = time.time_ns() % 10**6
    chance = random.Random(seed)  # noqa: S311 - no secret
    said: dict[int, float] = {}
    members = [Member(place, f"run{number}") for number in range(3)]
    assert all(member.is_in() for member in members)
    for number in range(rounds):
        for _ in range(EACH):
            mark = len(said) + 1
            said[mark] = time.time()
            for member in members:
                member.hears(mark)
            await asyncio.sleep(chance.random() * 0.01)
        async with asyncio.timeout(20.0):
            while not rows(place, "shared"):  # noqa: ASYNC110 - the store tells nobody
                await asyncio.sleep(0.05)
        members.pop(chance.randrange(len(members))).kill()
        members.append(Member(place, f"later{number}"))
        assert members[-1].is_in()
    async with asyncio.timeout(20.0):
        while _missing(place, said):  # noqa: ASYNC110 - the store tells nobody
            await asyncio.sleep(0.05)
    for member in members:
        member.end()
    shared = Counter(one["jid"] for one in rows(place, "shared") if "jid" in one)
    assert [mark for mark, count in shared.items() if count > 1] == [], seed
    assert _missing(place, said) == set(), seed
    if isinstance(place, Path):
        assert selected(place, "PRAGMA integrity_check") == [("ok",)]
