"""How fast `explain` reads logs of each format."""

from tests.benchmarks.bench import Bench
from tests.benchmarks.figures import Aim, Outcome

NAME = "explaining"
LEAST = 8.0


def measure(bench: Bench) -> Outcome:
    """Read a log of a busy room in each format, and once do no more than parse the stanzas."""
    series = bench.series("tests.benchmarks.logs")
    slowest = min(series, key=lambda each: each.median)
    return Outcome(
        NAME,
        "`explain` on the log of a bot in a busy room",
        series,
        (
            Aim(
                f"in the slowest format ({slowest.what})", slowest.median, "at least", LEAST, "MB/s"
            ),
        ),
        "processor time, in process; stanzas have 500 bytes; bare expat does no more than parse "
        "them",
    )
