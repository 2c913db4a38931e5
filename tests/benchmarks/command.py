"""The command `tests/benchmarks/run`: every measure, and what came of it."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.benchmarks.bench import Bench, Environments
from tests.benchmarks.figures import Outcome
from tests.benchmarks.machine import described
from tests.benchmarks.measures import (
    echo,
    explaining,
    first_answer,
    intake,
    page,
    store,
    tap,
    waits,
)
from tests.benchmarks.report import Report, written

PAIRS = 9
MEASURES: dict[str, Callable[[Bench], Outcome]] = {
    each.NAME: each.measure
    for each in (first_answer, echo, waits, intake, store, page, explaining, tap)
}
"""In the order in which they are told."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and keep what was found where that is asked for."""
    parser = argparse.ArgumentParser(
        prog="tests/benchmarks/run",
        description="Measures the bridge beside the alternatives, in turns, on this machine.",
        epilog="A quick look: tests/benchmarks/run --pairs 3 --only echo",
    )
    parser.add_argument("bridge", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("rivals", type=Path, help=argparse.SUPPRESS)
    parser.add_argument(
        "--only", action="append", choices=MEASURES, metavar="NAME", help=", ".join(MEASURES)
    )
    parser.add_argument(
        "--pairs", type=int, default=PAIRS, help="runs of each contender (%(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON only")
    parser.add_argument(
        "--write", action="store_true", help="put it into README.md and results.json"
    )
    chosen = parser.parse_args(arguments)
    environments = Environments(chosen.bridge, chosen.rivals)
    machine = described(environments)
    outcomes = []
    with Bench(environments, chosen.pairs) as bench:
        for name, measure in MEASURES.items():
            if not chosen.only or name in chosen.only:
                sys.stderr.write(f"{name} ...\n")
                outcomes.append(measure(bench))
    report = Report(machine, outcomes)
    sys.stdout.write(f"{report.as_json()}\n" if chosen.json else f"{report.as_text()}\n")
    if not chosen.json:
        sys.stdout.write(f"\n{report.as_json()}\n")
    if chosen.write:
        written(report, tuple(MEASURES))


if __name__ == "__main__":
    main()
