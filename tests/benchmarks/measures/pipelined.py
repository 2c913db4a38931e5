"""Many `echo` calls without waiting."""

from tests.benchmarks.bench import BRIDGE, FAST, LOOP, SDK, Bench
from tests.benchmarks.figures import Aim, Outcome, Series, alternated
from tests.benchmarks.peer import Peer, called

NAME = "pipelined"
CALLS = 10_000
WARM_CALLS = 500


def measure(bench: Bench) -> Outcome:
    """Write all calls in one go and count the replies."""
    found = alternated(
        bench.pairs,
        {
            BRIDGE: lambda: _poured(bench.bridge({})),
            LOOP: lambda: _poured(bench.loop()),
            SDK: lambda: _poured(bench.sdk()),
            FAST: lambda: _poured(bench.fast()),
        },
    )
    series = {name: Series(name, "rate", "calls/s", tuple(runs)) for name, runs in found.items()}
    ours = series[BRIDGE]
    share = 100 * ours.over(series[LOOP])
    return Outcome(
        NAME,
        "10,000 pipelined `echo` calls",
        tuple(series.values()),
        (
            Aim("of the bare loop", share, "at least", 60.0, "%"),
            Aim("times the SDK server", ours.over(series[SDK]), "at least", 10.0),
        ),
    )


def _poured(peer: Peer) -> float:
    def calls(count: int) -> bytes:
        return b"".join(called(id_, "echo", message=f"hello {id_}") for id_ in range(count))

    with peer:
        peer.shake_hands()
        peer.pour(calls(WARM_CALLS), WARM_CALLS)
        peer.settle()
        return CALLS / peer.pour(calls(CALLS), CALLS)
