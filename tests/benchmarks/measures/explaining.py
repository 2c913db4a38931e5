"""How fast `explain` reads logs of each format."""

import json
import subprocess
from pathlib import Path

from tests.benchmarks.bench import Bench
from tests.benchmarks.figures import Aim, Outcome, Series

NAME = "explaining"
SCRIPT = "tests.benchmarks.logs"
ROOT = Path(__file__).parents[3]
LEAST = 8.0


def measure(bench: Bench) -> Outcome:
    """Read a log of a busy room in each format, and once do no more than parse the stanzas."""
    ran = subprocess.run(
        [str(bench.environments.bridge), "-m", SCRIPT, str(bench.pairs)],
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
    )
    series = tuple(
        Series(contender, what, "MB/s", tuple(values))
        for contender, what, values in json.loads(ran.stdout)
    )
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
