"""How soon many rooms are joined, and what each costs while nobody talks in it."""

from collections.abc import Mapping
from statistics import median
from time import perf_counter, sleep

from tests.benchmarks.bench import BRIDGE, Bench
from tests.benchmarks.figures import Aim, Outcome, Series, alternated
from tests.benchmarks.peer import PATIENCE_SECONDS, Peer, called, result_of

NAME = "rooms"
ROOMS = 50
"""As many as `MUC_ROOM` may name."""
MANY = f"{BRIDGE}, {ROOMS} rooms"
PAUSE_SECONDS = 0.01
"""Between two questions for the status; by so much a time may be too long."""
BEYOND_SECONDS = 2.0
KIB = 1024


def measure(bench: Bench) -> Outcome:
    """Join one room, and fifty; look at the memory when that is done."""

    def run(count: int) -> tuple[float, float]:
        rooms = ",".join(bench.prosody.room() for _ in range(count))
        with bench.bridge(bench.prosody.environment(MUC_ROOM=rooms)) as peer:
            peer.shake_hands()
            seconds = joined(peer, count) - peer.started
            peer.settle()
            return seconds, peer.memory_bytes()

    found = alternated(bench.pairs, {BRIDGE: lambda: run(1), MANY: lambda: run(ROOMS)})
    series = [
        Series(name, what, unit, tuple(run[place] / size for run in runs))
        for place, (what, unit, size) in enumerate(
            (("start to joined", "ms", 1e-3), ("idle", "MiB", KIB * KIB))
        )
        for name, runs in found.items()
    ]
    pairs = list(zip(found[BRIDGE], found[MANY], strict=True))
    further = tuple((many[1] - one[1]) / (ROOMS - 1) / KIB for one, many in pairs)
    beyond = median(many[0] - 2 * one[0] for one, many in pairs)
    return Outcome(
        NAME,
        f"Process start to being in {ROOMS} rooms (Prosody), and the memory of each",
        (*series, Series(MANY, "idle, a further room", "KiB", further)),
        (Aim("beyond twice the time of one room", beyond, "at most", BEYOND_SECONDS, "s"),),
        f"joined is what `xmppStatus` says, which is asked every {1000 * PAUSE_SECONDS:g} ms",
    )


def joined(peer: Peer, count: int) -> float:
    """Ask until the peer is in all its rooms, `count` of them; the moment of that answer."""
    end = perf_counter() + PATIENCE_SECONDS
    while True:
        peer.write(called("status", "xmppStatus"))
        status = result_of(peer.answer_to("status"))["structuredContent"]
        now = perf_counter()
        # With one room there is no list of them: the status itself tells of it.
        rooms: list[Mapping[str, object]] = status.get("rooms", [status])
        assert len(rooms) == count, f"{len(rooms)} rooms for {count}"
        if all(one["phase"] == "joined" for one in rooms):
            return now
        assert now < end, rooms
        sleep(PAUSE_SECONDS)
