"""What the play of mutants adds to pytest: which tests reach which lines, how each ends, which run.

It reads two variables of the environment: `MUTANTS_COVERAGE`, the file to write the coverage to,
and `MUTANTS_CHOSEN`, a file with the tests to run in this order.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from coverage import Coverage

import bridge

ROOT = Path(__file__).resolve().parents[2]
COVERAGE = os.environ.get("MUTANTS_COVERAGE")
CHOSEN = os.environ.get("MUTANTS_CHOSEN")


class Recording:
    """Writes down how each test ends, a line of JSON for each phase."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        with (ROOT / "runs.jsonl").open("a", encoding="utf-8") as file:
            print(json.dumps([report.nodeid, report.outcome, report.duration]), file=file)


class Covering:
    """Takes the coverage of `bridge/` with each test as a context."""

    def __init__(self, file: str) -> None:
        self._coverage = Coverage(data_file=file, data_suffix=True, source=[str(ROOT / "bridge")])
        self._coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._coverage.switch_context(item.nodeid)
        return (yield)

    def pytest_sessionfinish(self) -> None:
        self._coverage.stop()
        self._coverage.save()


def pytest_configure(config: pytest.Config) -> None:
    if not Path(bridge.__file__).is_relative_to(ROOT) or Path.cwd() != ROOT:
        pytest.exit(f"{bridge.__file__} is not the copy in {Path.cwd()}", 9)
    worker = hasattr(config, "workerinput")
    if not worker:
        config.pluginmanager.register(Recording())
    if COVERAGE and (worker or not config.getoption("numprocesses", None)):
        config.pluginmanager.register(Covering(COVERAGE))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if CHOSEN:
        order = {test: place for place, test in enumerate(json.loads(Path(CHOSEN).read_text()))}
        items[:] = sorted(
            (item for item in items if item.nodeid in order), key=lambda item: order[item.nodeid]
        )
