"""What a message in the room costs."""

from tests.benchmarks.bench import BRIDGE, PARTICIPANT, Bench
from tests.benchmarks.figures import Aim, Outcome, Series, alternated
from tests.benchmarks.peer import Peer

NAME = "intake"
MESSAGES = 10_000
WARM_MESSAGES = 1_000
LOGGED = f"{BRIDGE}, with a store"


def measure(bench: Bench) -> Outcome:
    """Flood each, and see how long it takes and how much of the processor it had."""
    settings = bench.hall.environment

    def flooded(peer: Peer, text: bytes) -> tuple[float, float]:
        with peer:
            peer.awaits(text)
            peer.says(text)
            bench.hall.flood(WARM_MESSAGES)
            before = peer.cpu_seconds()
            seconds = bench.hall.flood(MESSAGES)
            return MESSAGES / seconds, 1e6 * (peer.cpu_seconds() - before) / MESSAGES

    def logging() -> tuple[float, float]:
        for path in bench.folder.glob("rooms.db*"):
            path.unlink()
        logged = {**settings, "BRIDGE_STORE": str(bench.folder / "rooms.db")}
        return flooded(bench.bridge(logged), b"Z joined\n")

    results = alternated(
        bench.pairs,
        {
            BRIDGE: lambda: flooded(bench.bridge(settings), b"Z joined\n"),
            PARTICIPANT: lambda: flooded(bench.participant(settings), b"joined\n"),
            LOGGED: logging,
        },
    )
    rates, costs = (
        {
            name: Series(name, what, unit, tuple(run[place] for run in runs))
            for name, runs in results.items()
        }
        for place, (what, unit) in enumerate((("rate", "messages/s"), ("CPU", "µs/message")))
    )
    share = 100 * rates[BRIDGE].over(rates[PARTICIPANT])
    own = costs[LOGGED].median - costs[PARTICIPANT].median
    return Outcome(
        NAME,
        "Room messages taken in, and CPU a message (log on stderr and trace on)",
        (*rates.values(), *costs.values()),
        (
            Aim("of the bare participant's rate", share, "at least", 90.0, "%"),
            Aim("of our own, all logs and trace on", own, "at most", 80.0, "µs/message"),
        ),
        "the room is the scripted server, faster than any contender; of our own is what the bare "
        "participant does not need",
    )
