"""Whether the tests notice when the code changes what it does: 60 mutants, always the same ones.

A mutant is one small change in one function of `bridge/`: a comparison, `and` for `or`, a condition
negated, a `not` dropped, another number, another value returned, a call left out.
`selected.json` names them by function and text rather than by line, so that they are found
again wherever the function has moved. Against each play the tests that reach its line, those that
execute the fewest lines first. Before and after a change, the share that turns red is to be
compared: what must not fall.

    python -m tests.mutants                 about half an hour on two cores
    python -m tests.mutants FUNCTION...     play those of these functions alone
    python -m tests.mutants --folder DIR    keep the copies and the coverage there, or use those

It prints a line for each mutant:

    red      a test failed, twice; it is named
    timeout  the tests took longer than a minute; it counts as red
    green    no test failed, or none reaches the line
    gone     the function or the text is no longer there; it does not count

and then the share of those that are red. It plays on copies of the tree, whose modules are written
by `ast.unparse`, so that the mutation is the only difference from what the coverage was taken of.
Only what runs in the process of the tests is measured. Tests on Prosody and ejabberd and those of
whole processes are left out.
"""

import argparse
import ast
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from coverage import Coverage

from tests.mutants.mutations import Mutant, found

ROOT = Path(__file__).resolve().parents[2]
SELECTION = Path(__file__).with_name("selected.json")
PLUGIN = "tests.mutants.plugin"
COPIES = 2
TIMEOUT = 60
"""Seconds for the tests of one mutant."""
MOST_TESTS = 80
MOST_SECONDS = 20.0
"""What the tests of one mutant took together when coverage was taken."""
LEFT_OUT = (
    "e2e",
    "interop",
    "benchmarks",
    "docs",
    "packaging",
    "packages",
    "faults/test_matrix.py",
    "mutants",
)
NO_COPY = (".git", ".venv*", "build", "dist", "__pycache__", ".*_cache", ".hypothesis", ".env")


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a mutant fared: `red`, `timeout`, `green` or `gone`, and why."""

    mutant: Mutant
    colour: str
    why: str


class Tests:
    """What the tests of a copy of the tree cover, taken once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        coverage = Coverage(data_file=str(root / ".coverage"))
        if not (root / ".coverage").exists():
            words = [f"--ignore=tests/{name}" for name in LEFT_OUT]
            words += ["tests", "--ignore-glob=*_on_servers.py", "-n", str(COPIES)]
            words += ["-m", "not soak", "-k", "not prosody and not ejabberd"]
            if play(root, words, {"MUTANTS_COVERAGE": str(root / ".coverage")}, 3600) not in {0, 1}:
                raise SystemExit(f"the tests could not be played: see {root / 'pytest.log'}")
            coverage.combine()
            coverage.save()
        coverage.load()
        self._data = coverage.get_data()
        self._seconds: dict[str, float] = {}
        failed = set[str]()
        for test, outcome, seconds in read(root / "runs.jsonl"):
            self._seconds[test] = self._seconds.get(test, 0) + seconds
            failed |= {test} if outcome != "passed" else set()
        self._usable = {test for test in self._seconds if test not in failed}
        self._lines = Counter[str]()
        for path in self._data.measured_files():
            for tests in self._data.contexts_by_lineno(path).values():
                self._lines.update(tests)

    def of_line(self, module: str, line: int) -> list[str]:
        """The tests to play for a line, the closest first: one of each function, then the next."""
        lines = self._data.contexts_by_lineno(str(self._root / module))
        tests = self._usable.intersection(lines.get(line, ()))
        turns = Counter[str]()
        ranked = []
        for test in sorted(tests, key=lambda each: (self._lines[each], each)):
            function = test.partition("[")[0]
            ranked.append((turns[function], self._lines[test], test))
            turns[function] += 1
        chosen: list[str] = []
        left = MOST_SECONDS
        for _, _, test in sorted(ranked)[:MOST_TESTS]:
            if self._seconds[test] <= left:
                left -= self._seconds[test]
                chosen.append(test)
        return chosen


def read(runs: Path) -> list[tuple[str, str, float]]:
    """Each phase of each test that was run: its test, how it ended, and the seconds it took."""
    return [json.loads(line) for line in runs.read_text("utf-8").splitlines()]


def play(root: Path, words: list[str], environment: dict[str, str], timeout: float) -> int:
    """Run pytest on a copy; returns how it ended. `TimeoutExpired` when it does not in time."""
    (root / "runs.jsonl").write_text("")
    shutil.rmtree(root / ".hypothesis", ignore_errors=True)
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-q", "-p", PLUGIN, "-p", "no:cacheprovider", *words],
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(root)} | environment,
        stdin=subprocess.DEVNULL,
        stdout=(root / "pytest.log").open("wb"),
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        return process.wait(timeout)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def judged(mutant: Mutant, root: Path, tests: Tests) -> Verdict:
    """Play the tests of a mutant's line against it."""
    if (site := found(mutant, root)) is None:
        return Verdict(mutant, "gone", "")
    module, line, mutated = site
    path = root / module
    source = path.read_text("utf-8")
    compiled = Path(importlib.util.cache_from_source(str(path)))
    compiled.unlink(missing_ok=True)
    path.write_text(mutated, "utf-8")
    try:
        return Verdict(mutant, *_colour(root, tests.of_line(module, line)))
    except subprocess.TimeoutExpired:
        return Verdict(mutant, "timeout", f"{TIMEOUT} s")
    finally:
        path.write_text(source, "utf-8")
        compiled.unlink(missing_ok=True)


def _colour(root: Path, tests: list[str]) -> tuple[str, str]:
    """Play the tests until one fails twice: what fails once only may have failed by itself."""
    left = tests
    while left:
        status, failed = _failed(root, left)
        if not status:
            break
        if failed is None or _failed(root, [failed])[0]:
            return "red", failed or f"pytest ended with {status}"
        left = left[left.index(failed) + 1 :]
    return "green", f"{len(tests)} tests"


def _failed(root: Path, tests: list[str]) -> tuple[int, str | None]:
    chosen = root / "chosen.json"
    chosen.write_text(json.dumps(tests))
    files = dict.fromkeys(test.partition("::")[0] for test in tests)
    environment = {"MUTANTS_CHOSEN": str(chosen)}
    status = play(root, ["-x", "--hypothesis-seed=27", *files], environment, TIMEOUT)
    if status in {5, 9}:
        raise SystemExit(f"the tests were not played on the copy: see {root / 'pytest.log'}")
    runs = read(root / "runs.jsonl")
    return status, next((test for test, outcome, _ in runs if outcome == "failed"), None)


def selection() -> list[Mutant]:
    """The mutants that are played, in the order of the file."""
    return [Mutant(**fields) for fields in json.loads(SELECTION.read_text("utf-8"))]


def copied(root: Path) -> Path:
    """Make a copy of the tree whose modules read as the mutated ones will."""
    if not root.exists():
        shutil.copytree(ROOT, root, ignore=shutil.ignore_patterns(*NO_COPY))
        for path in (root / "bridge").rglob("*.py"):
            path.write_text(ast.unparse(ast.parse(path.read_text("utf-8"))) + "\n", "utf-8")
    return root


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, help="keep copies and coverage there, or use those")
    parser.add_argument("functions", nargs="*", help="play the mutants of these functions alone")
    arguments = parser.parse_args()
    mutants = [
        each
        for each in selection()
        if not arguments.functions or each.function in arguments.functions
    ]
    with tempfile.TemporaryDirectory() as temporary:
        folder: Path = (arguments.folder or Path(temporary)).resolve()
        tests = Tests(copied(folder / "covered"))
        free = SimpleQueue[Path]()
        for number in range(COPIES):
            free.put(copied(folder / str(number)))

        def next_one(mutant: Mutant) -> Verdict:
            root = free.get()
            try:
                return judged(mutant, root, tests)
            finally:
                free.put(root)

        counts = Counter[str]()
        with ThreadPoolExecutor(COPIES) as pool:
            for verdict in pool.map(next_one, mutants):
                counts[verdict.colour] += 1
                each = verdict.mutant
                change = f"{each.kind}: {each.before} -> {each.after}"
                say(f"{verdict.colour:8}{each.function}  {change}  ({verdict.why})")
    red, counted = counts["red"] + counts["timeout"], len(mutants) - counts["gone"]
    say(f"{red} of {counted} are red ({red / max(counted, 1):.0%}): {dict(counts)}")


def say(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - what it is for


if __name__ == "__main__":
    main()
