"""How soon the tools are listed, from the start of the process."""

from time import perf_counter

from tests.benchmarks.bench import BRIDGE, FLOOR, SDK, Bench
from tests.benchmarks.figures import Aim, Outcome, Series, alternated
from tests.benchmarks.peer import LIST, Peer

NAME = "first-answer"
AMONG_RIVALS = f"{BRIDGE}, after each SDK server"


def measure(bench: Bench) -> Outcome:
    """Begin each, shake hands where that is asked for, and have the tools listed."""
    settings = bench.prosody.environment()
    # In turns with the floor alone: who follows a rival finds the processor's caches cold.
    beside_floor = alternated(
        bench.pairs,
        {
            BRIDGE: lambda: _listed(bench.bridge(settings)),
            FLOOR: lambda: _answered(bench.answering(FLOOR)),
        },
    )
    beside_rivals = alternated(
        bench.pairs,
        {
            AMONG_RIVALS: lambda: _listed(bench.bridge(settings)),
            SDK: lambda: _listed(bench.answering(SDK)),
        },
    )
    series = {
        name: Series(name, "start to tools/list", "ms", tuple(1000 * each for each in times))
        for name, times in (*beside_floor.items(), *beside_rivals.items())
    }
    over_floor = series[BRIDGE].over(series[FLOOR])
    over_sdk = series[SDK].over(series[AMONG_RIVALS])
    return Outcome(
        NAME,
        "Process start to the `tools/list` answer, configured for a running Prosody",
        tuple(series.values()),
        (
            Aim("times the bare asyncio process", over_floor, "at most", 3.2),
            Aim("times faster than the SDK server", over_sdk, "at least", 3.5),
        ),
        "a thread loads slixmpp meanwhile",
    )


def _listed(peer: Peer) -> float:
    with peer:
        peer.shake_hands()
        assert any(tool["name"] == "echo" for tool in peer.list_tools()["tools"])
        return perf_counter() - peer.started


def _answered(peer: Peer) -> float:
    with peer:
        peer.ask(LIST)
        return perf_counter() - peer.started
