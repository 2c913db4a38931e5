"""One `echo` call at a time."""

from functools import partial
from time import perf_counter

from tests.benchmarks.bench import BRIDGE, LOOP, SDK, TASKS, Bench
from tests.benchmarks.figures import Aim, Outcome, Series, alternated, percentile
from tests.benchmarks.peer import called, result_of

NAME = "echo"
CALLS = 2_000
WARM_CALLS = 200


def measure(bench: Bench) -> Outcome:
    """Ask, wait for the reply, ask again."""
    names = (BRIDGE, LOOP, TASKS, SDK)
    results = alternated(bench.pairs, {name: partial(_asked, bench, name) for name in names})
    middle = {
        name: Series(name, "p50", "µs", tuple(percentile(run, 0.5) for run in runs))
        for name, runs in results.items()
    }
    worst = [
        Series(name, "p99", "µs", tuple(percentile(run, 0.99) for run in runs))
        for name, runs in results.items()
    ]
    return Outcome(
        NAME,
        "One `echo` call at a time",
        (*middle.values(), *worst),
        tuple(
            Aim(f"times the {floor} (p50)", middle[BRIDGE].over(middle[floor]), "at most", 2.0)
            for floor in (LOOP, TASKS)
        ),
    )


def _asked(bench: Bench, name: str) -> list[float]:
    with bench.bridge({}) if name == BRIDGE else bench.answering(name) as peer:
        peer.shake_hands()
        calls = [called(id_, "echo", message=f"hello {id_}") for id_ in range(CALLS + WARM_CALLS)]
        taken: list[float] = []
        for call in calls:
            started = perf_counter()
            reply = peer.ask(call)
            taken.append(1e6 * (perf_counter() - started))
        assert result_of(reply)["content"][0]["text"] == f"Echo: hello {len(calls) - 1}"
        return taken[WARM_CALLS:]
