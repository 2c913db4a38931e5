"""`xmppHistory` with a filter over full journals, in a process of its own."""

import json
import re
import subprocess
from pathlib import Path

from tests.benchmarks.bench import BRIDGE, Bench
from tests.benchmarks.figures import Aim, Outcome, Series

NAME = "history"
SCRIPT = "tests.benchmarks.lookback"
ROOT = Path(__file__).parents[3]
STALL_MS = 5.0
SEARCH_MS = 150.0


def measure(bench: Bench) -> Outcome:
    """Look back with each filter, alone and beside a task that wants every turn of the loop."""
    ran = subprocess.run(
        [str(bench.environments.bridge), "-m", SCRIPT, str(bench.pairs)],
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
    )
    series = tuple(
        Series(BRIDGE, what, unit, tuple(values)) for what, unit, values in json.loads(ran.stdout)
    )
    searches = [
        one.median for one in series if re.fullmatch("contains nothing, .* recorded", one.what)
    ]
    stalls = [one.median for one in series if one.what.endswith("stall")]
    return Outcome(
        NAME,
        "`xmppHistory` with a filter over a full journal of 10,000 or 100,000 events, and over "
        "100,000 recorded ones",
        series,
        (
            Aim("for the longest turn of the loop", max(stalls), "at most", STALL_MS, "ms"),
            Aim("for a text in what was recorded", max(searches), "at most", SEARCH_MS, "ms"),
        ),
        "in process, without a pipe; `nothing` finds nothing and has to look at everything; a "
        "stall is processor time of the longest turn",
    )
