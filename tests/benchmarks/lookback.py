"""Times the tool `xmppHistory` over a full journal, and the turns of the loop beside it.

    python -m tests.benchmarks.lookback RUNS

Prints a list of [what, unit, values].
"""

import asyncio
import gc
import json
import sys
from collections.abc import Mapping
from time import perf_counter

from bridge.tools.history import xmpp_history
from bridge.xmpp.events import MessageReceived
from bridge.xmpp.journal import Journal
from tests.tools.played import ROOM, Played, arguments

EVENTS = 100_000
NICKNAMES = 100
FILTERS: Mapping[str, Mapping[str, object]] = {
    "from one in a hundred": {"from": "nick-7"},
    "contains, one in a thousand": {"contains": "Round 7 "},
    "contains nothing": {"contains": "nowhere to be found"},
    "pattern nothing": {"pattern": "now?here to be f.und"},
    "from nothing": {"from": "nobody"},
    "kinds nothing": {"kinds": ["error"]},
}

FIRST = ("contains nothing", "pattern nothing", "from nothing")
"""Those that are measured over a journal that nobody has searched yet, too."""


def full() -> Played:
    """A room that has heard ten thousand people's worth of talk, and remembers all of it."""
    played = Played(journal=Journal("epoch", EVENTS))
    for number in range(EVENTS + 10):
        nickname = f"nick-{number % NICKNAMES}"
        body = f"number {number}: what somebody says, round {number % 1000} of many"
        stanza_id = f"archived-{number}"
        event = MessageReceived(
            f"{ROOM}/{nickname}", nickname, body, id=f"m{number}", stanza_id=stanza_id
        )
        played.publish(event)
    return played


async def look(played: Played, given: Mapping[str, object]) -> float:
    """Milliseconds of one call."""
    started = perf_counter()
    await xmpp_history(played.link, **arguments(xmpp_history, given))
    return 1000 * (perf_counter() - started)


async def stall(played: Played, given: Mapping[str, object]) -> float:
    """Milliseconds of the longest turn of the loop during one call."""
    longest = 0.0

    async def tick() -> None:
        nonlocal longest
        last = perf_counter()
        while True:
            await asyncio.sleep(0)  # once a turn
            now = perf_counter()
            longest = max(longest, now - last)
            last = now

    ticking = asyncio.create_task(tick())
    await asyncio.sleep(0)  # its first tick
    await look(played, given)
    await asyncio.sleep(0)  # its last
    ticking.cancel()
    return 1000 * longest


async def first(given: Mapping[str, object]) -> tuple[float, float]:
    """Milliseconds of one call over events that were never searched before, and of its stall."""
    played = full()
    gc.collect()
    taken = await look(played, given)
    return taken, await stall(full(), given)


async def main(runs: int) -> None:
    """Measure and print."""
    played = full()
    gc.collect()
    found: list[tuple[str, str, list[float]]] = []
    for name, given in FILTERS.items():
        for what, measured in ((name, look), (f"{name}, stall", stall)):
            await measured(played, given)
            found.append((what, "ms", [await measured(played, given) for _ in range(runs)]))
    for name in FIRST:
        taken, stalled = zip(*[await first(FILTERS[name]) for _ in range(runs)], strict=True)
        found += [
            (f"{name}, first search", "ms", [*taken]),
            (f"{name}, first search, stall", "ms", [*stalled]),
        ]
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
