"""Collects what the tests of a run did, from all its processes, and writes the page of it."""

import json
import time
from pathlib import Path

import pytest

from bridge.page.chronicle import Chronicle
from bridge.page.played import Played, PlayedPage
from bridge.page.pseudonyms import Pseudonyms
from bridge.page.report import ReportError, UnusableReportError, check, write

ATTRIBUTE = "xmpp_played"
"""The attribute of pytest's report that has the JSON of a `Played`; `-n` hands it on."""


class PageReport:
    """A plugin of the process that starts the tests."""

    def __init__(self, path: Path, *, pseudonyms: bool) -> None:
        """Raise `pytest.UsageError` if no report can be written to `path`."""
        try:
            check(path)
        except UnusableReportError as error:
            raise pytest.UsageError(f"--report: {error}") from None
        self._path = path
        self._page = PlayedPage(Chronicle(Pseudonyms(on=pseudonyms)))
        self._has_tests = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take what a test did."""
        if played := getattr(report, ATTRIBUTE, ""):
            crash = getattr(report.longrepr, "reprcrash", None)
            failure = str(crash.message if crash else report.longrepr) if report.failed else ""
            failure = failure.removeprefix("Failed: ")
            title = report.nodeid.rpartition("/")[2]
            if ".room.toml::" in title:
                title = title.partition("::")[0]
            self._page.take(title, failure, Played(*json.loads(played)))
            self._has_tests = True

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the page if a test was in a room. If it cannot be written, the run has failed."""
        trouble = "no page is written: no test was in a room"
        if self._has_tests:
            try:
                write(self._page.timeline(time.time()), self._path)
                return
            except ReportError as error:
                trouble = str(error)
                session.exitstatus = pytest.ExitCode.TESTS_FAILED
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.write_line(f"\nxmpp-bridge: --report: {trouble}", red=True)
