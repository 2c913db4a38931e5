"""Writes a page, or its JSON form, to the file that the user names."""

import json
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from bridge.files import replacing
from bridge.page.page import pieces
from bridge.page.timeline import Timeline, encode

TESTS = (".py", ".room.toml")
"""How the names of tests and bots end. A report must not replace such a file."""


class ReportError(Exception):
    """The file cannot be written; the text says which, and why."""


class UnusableReportError(ReportError):
    """A report cannot be written to the path that the user named."""


def check(path: Path, sources: Iterable[str | Path] = ()) -> None:
    """Raise `UnusableReportError` unless a report can be written to `path`.

    A command checks this before its work. The path must not be one of the `sources`: the report is
    made from them.
    """
    if str(path) == "-":
        raise UnusableReportError("'-' is no file, and stdout has the answer; name a file")
    if path.name.endswith(TESTS):
        raise UnusableReportError(f"{str(path)!r} is the name of a test; name another file")
    for source in sources:
        with suppress(OSError, ValueError):  # either file may be missing
            if path.samefile(source):
                raise UnusableReportError(f"{str(path)!r} is read for a report; name another file")
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        mode = 0
    except (OSError, ValueError) as error:  # a name with a null byte
        raise UnusableReportError(f"{str(path)!r} is no name of a file: {error}") from error
    if mode and not stat.S_ISREG(mode):
        raise UnusableReportError(
            f"{str(path)!r} is a folder, a link or a device; name a file for the report"
        )
    if not path.parent.is_dir():
        raise UnusableReportError(f"{str(path.parent)!r} is no folder; make it first")


def write(timeline: Timeline, path: Path) -> None:
    """Replace the file as a whole: by JSON if it ends with `.json`, or else by the page.

    Only its owner may read it. Raises `ReportError`.
    """
    check(path)
    encoded = encode(timeline)
    is_json = path.suffix.lower() == ".json"
    try:
        with replacing(path) as new, new.open("w", encoding="utf-8") as file:
            file.writelines([json.dumps(encoded)] if is_json else pieces(encoded))
    except OSError as error:
        raise ReportError(f"{str(path)!r} cannot be written: {error.strerror}") from error
