"""Times the tool `xmppHistory` over full journals, and the turns of the loop beside it.

    python -m tests.benchmarks.lookback RUNS

Prints a list of [what, unit, values].
"""

import asyncio
import gc
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, thread_time

from bridge.text import iso
from bridge.tools.history import xmpp_history
from bridge.xmpp.model.events import MessageReceived
from bridge.xmpp.model.journal import DEFAULT_CAPACITY, Journal
from tests.store.shelf import SETTINGS, Shelf
from tests.tools.played import ROOM, Played, arguments

EVENTS = (DEFAULT_CAPACITY, 100_000)
NICKNAMES = 100
FILTERS: Mapping[str, Mapping[str, object]] = {
    "from one in a hundred": {"from": "nick-7"},
    "contains, one in a thousand": {"contains": "Round 7 "},
    "contains nothing": {"contains": "nowhere to be found"},
    "pattern nothing": {"pattern": "now?here to be f.und"},
    "from nothing": {"from": "nobody"},
    "kinds nothing": {"kinds": ["error"]},
}


def full(events: int) -> Played:
    """A room where so much has happened that the oldest of it is evicted."""
    played = Played(journal=Journal("epoch", events))
    for number in range(events + 10):
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
    """Milliseconds of processor time of the longest turn of the loop during one call.

    What other programs take meanwhile is not counted.
    """
    longest = 0.0

    async def tick() -> None:
        nonlocal longest
        last = thread_time()
        while True:
            await asyncio.sleep(0)  # once a turn
            now = thread_time()
            longest = max(longest, now - last)
            last = now

    ticking = asyncio.create_task(tick())
    await asyncio.sleep(0)  # its first tick
    await look(played, given)
    await asyncio.sleep(0)  # its last
    ticking.cancel()
    return 1000 * longest


def recorded(path: Path, events: int) -> Played:
    """A bridge that came to a room of which so much was recorded."""
    shelf = Shelf(path)
    shelf.put(*(record.event for record in full(events).journal), at=1.0)
    return Played(reader=shelf.reader, settings=SETTINGS)


async def main(runs: int) -> None:
    """Measure and print."""
    found: list[tuple[str, str, list[float]]] = []
    with TemporaryDirectory() as folder:
        places: list[tuple[str, Played, dict[str, object]]] = [
            (f"{events:,} events", full(events), {}) for events in EVENTS
        ]
        shelved = recorded(Path(folder) / "rooms.db", EVENTS[-1])
        places.append((f"{EVENTS[-1]:,} recorded", shelved, {"after": iso(0)}))
        for where, played, span in places:
            gc.collect()
            for name, given in FILTERS.items():
                told = f"{name}, {where}"
                asked = {**given, **span}
                for what, measured in ((told, look), (f"{told}, stall", stall)):
                    await measured(played, asked)
                    found.append((what, "ms", [await measured(played, asked) for _ in range(runs)]))
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
