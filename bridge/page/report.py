"""Writes a page, or its JSON form, to the file that the user names.

The page is one HTML text that asks the network for nothing. Texts of strangers are data in it: JSON
in which every `<` is escaped. Its policy allows only its own script and style, by their hashes.
"""

import json
import stat
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from bridge.files import replacing
from bridge.page.timeline import Timeline, encode

TESTS = (".py", ".room.toml")
"""How the names of tests and bots end. A report must not replace such a file."""

CHUNK = 1 << 20
"""Characters of the data that are escaped at a time: a page may have many millions."""

_FOLDER = Path(__file__).parent


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


def pieces(encoded: Mapping[str, Any]) -> Iterator[str]:
    """Yield the page that shows the JSON form of a timeline, piece by piece.

    So it is never in memory as a whole.
    """
    template, style, script = (
        (_FOLDER / f"page.{suffix}").read_text("utf-8") for suffix in ("html", "css", "js")
    )
    before, after = (
        Template(part).substitute(
            style=style,
            script=script,
            policy=(
                f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
                "base-uri 'none'; form-action 'none'"
            ),
            title=escape(encoded["title"]),
            notice=escape(encoded["notice"]),
        )
        for part in template.split("${data}")
    )
    yield before
    data = json.dumps(encoded)
    for place in range(0, len(data), CHUNK):
        yield data[place : place + CHUNK].replace("<", "\\u003c")
    yield after


def _hash(text: str) -> str:
    """Return the hash of a script or style (Content Security Policy Level 3, section 2.3.1)."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
