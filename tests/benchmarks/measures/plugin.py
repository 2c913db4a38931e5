"""What the pytest plugin costs who installed the package and tests something else."""

import subprocess
import tempfile
from time import perf_counter

from tests.benchmarks.bench import Bench
from tests.benchmarks.figures import Aim, Outcome, Series, alternated

NAME = "plugin"
WITH, WITHOUT = "pytest", "pytest -p no:xmpp-bridge"

NO_TESTS = 5
"""The exit code of pytest where it collects nothing."""


def measure(bench: Bench) -> Outcome:
    """Run pytest in an empty folder, with the plugin, which is loaded by itself, and without."""
    found = alternated(
        bench.pairs,
        {WITH: lambda: _run(bench), WITHOUT: lambda: _run(bench, "-p", "no:xmpp-bridge")},
    )
    series = {
        name: Series(name, "an empty run", "ms", tuple(1000 * one for one in seconds))
        for name, seconds in found.items()
    }
    ratio = series[WITH].over(series[WITHOUT])
    return Outcome(
        NAME,
        "A run of pytest in an empty folder, where the package is installed",
        tuple(series.values()),
        (Aim("times the run without the plugin", ratio, "at most", 1.05),),
    )


def _run(bench: Bench, *options: str) -> float:
    command = [str(bench.environments.bridge), "-m", "pytest", "-q", *options]
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        started = perf_counter()
        ran = subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=False)
        assert ran.returncode == NO_TESTS
        return perf_counter() - started
