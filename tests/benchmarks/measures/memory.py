"""What is held of the memory, at first and after a long time."""

from collections.abc import Mapping
from itertools import pairwise

from tests.benchmarks.bench import BRIDGE, PARTICIPANT, Bench
from tests.benchmarks.figures import Aim, Outcome, Series
from tests.benchmarks.peer import Peer

NAME = "memory"
FULL = 20_000
"""After so many messages the default history of 10,000 is full, and everything else too."""
LOOKS = 5
MIB = 1024 * 1024
TIMES = 1.2
FLAT = 1.05


def measure(bench: Bench) -> Outcome:
    """Look at each when it is in the room, when its history is full, and after the flood."""
    settings = bench.hall.environment
    ours = _grown(bench, bench.bridge(settings), b"Z joined\n", bench.messages)
    theirs = _grown(bench, bench.participant(settings), b"joined\n", min(bench.messages, FULL))
    series = tuple(
        Series(name, when, "MiB", (memory,))
        for name, looks in ((BRIDGE, ours), (PARTICIPANT, theirs))
        for when, memory in looks.items()
    )
    idle, full, *_, last = ours.values()
    bare_idle, *_, bare_last = theirs.values()
    return Outcome(
        NAME,
        "Memory, idle in the room and after a flood, with the default history",
        series,
        (
            Aim("times bare slixmpp, idle", idle / bare_idle, "at most", TIMES),
            Aim("times bare slixmpp, after the flood", last / bare_last, "at most", TIMES),
            Aim("times itself, flood over full history", last / full, "at most", FLAT),
        ),
        f"one run; a flood of {bench.messages:,} messages from the scripted server; the bare "
        "participant, which keeps nothing, stops at the first look",
    )


def _grown(bench: Bench, peer: Peer, text: bytes, messages: int) -> Mapping[str, float]:
    marks = [min(FULL, messages)]
    marks += [marks[0] + (messages - marks[0]) * look // LOOKS for look in range(1, LOOKS + 1)]
    with peer:
        peer.awaits(text)
        peer.says(text)
        bench.hall.flood(0)
        found = {"idle": peer.memory_bytes() / MIB}
        for before, mark in pairwise((0, *dict.fromkeys(marks))):
            bench.hall.flood(mark - before)
            found[f"after {mark:,}"] = peer.memory_bytes() / MIB
    return found
