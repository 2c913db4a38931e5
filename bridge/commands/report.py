"""The options `--report` and `--pseudonyms` of a command."""

import argparse
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from time import time

from bridge.capture.capture import Capture
from bridge.capture.examined import Examined
from bridge.capture.stream import Stream
from bridge.commands.exit import FAILURE, SUCCESS, UsageError
from bridge.logs import complain
from bridge.page.captured import CapturedPage
from bridge.page.chronicle import Chronicle
from bridge.page.pseudonyms import Pseudonyms
from bridge.page.report import ReportError, UnusableReportError, check, write
from bridge.page.timeline import Timeline
from bridge.text import one_line


def report_path(parsed: argparse.Namespace, sources: Iterable[str | Path]) -> Path | None:
    """Return the file that `--report` names, if any.

    Raises `UsageError` if the file cannot be a report, if it is one of the `sources` that the
    command reads, or if `--pseudonyms` is given without a report.
    """
    if parsed.report is None:
        if parsed.pseudonyms and getattr(parsed, "as_scenario", None) is None:
            raise UsageError("--pseudonyms is for the page that --report writes; name its file")
        return None
    try:
        check(path := Path(parsed.report), sources)
    except UnusableReportError as error:
        raise UsageError(f"--report: {error}") from error
    return path


def write_report(timeline: Timeline, path: Path) -> int:
    """Write the report, and return the exit code."""
    try:
        write(timeline, path)
    except ReportError as error:
        complain(f"xmpp-bridge: --report: {one_line(str(error))}")
        return FAILURE
    return SUCCESS


def captured_page(
    parsed: argparse.Namespace, is_wanted: Callable[[Stream], bool] = lambda stream: True
) -> CapturedPage:
    """Return the page of a capture; only streams for which `is_wanted` is true get on it."""
    return CapturedPage(Chronicle(Pseudonyms(on=parsed.pseudonyms)), is_wanted)


def write_captured(
    page: CapturedPage, capture: Capture, streams: Sequence[Examined], path: Path | None
) -> int:
    """Write the page of a capture's `streams`, if a report is wanted; return the exit code."""
    if path is None:
        return SUCCESS
    return write_report(page.timeline(streams, time(), capture.holes), path)
