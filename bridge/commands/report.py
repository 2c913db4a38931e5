"""The options `--report` and `--pseudonyms` of a command."""

import argparse
from contextlib import suppress
from pathlib import Path

from bridge.commands.exit import FAILURE, SUCCESS, UsageError
from bridge.logs import complain
from bridge.page.report import ReportError, UnusableReportError, check, write
from bridge.page.timeline import Timeline
from bridge.text import one_line


def report_path(parsed: argparse.Namespace) -> Path | None:
    """Return the file that `--report` names, if any.

    Raises `UsageError` if no report can be there, if it is one of the `files` that are read, or if
    `--pseudonyms` has none to be in.
    """
    if parsed.report is None:
        if parsed.pseudonyms:
            raise UsageError("--pseudonyms is for the page that --report writes; name its file")
        return None
    try:
        check(path := Path(parsed.report))
    except UnusableReportError as error:
        raise UsageError(f"--report: {error}") from error
    for name in getattr(parsed, "files", ()):
        with suppress(OSError, ValueError):  # neither has to exist
            if path.samefile(name):
                raise UsageError(f"--report: {str(path)!r} is the log itself; name another file")
    return path


def write_report(timeline: Timeline, path: Path) -> int:
    """Write the report, and return the exit code."""
    try:
        write(timeline, path)
    except ReportError as error:
        complain(f"xmpp-bridge: --report: {one_line(str(error))}")
        return FAILURE
    return SUCCESS
