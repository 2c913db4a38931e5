"""The files in which `tap` keeps what it saw, one for each account: where they are, and read back.

A line is a JSON object, as `xmppTrace` shows stanzas: `at`, `direction`, `connection`, `xml`.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from bridge.capture.capture import Capture
from bridge.capture.examined import Examined
from bridge.capture.reader import MAX_LINE_BYTES, LogReader
from bridge.wire.names import lower_bare

SUFFIX = ".jsonl"

MAX_READ_BYTES = 16 * 1024 * 1024
"""We read at most so many of the newest bytes of a file; `tap` begins a new one at this size."""

_NO_NAME = re.compile(r"[^\w.@+-]")
"""What a file's name cannot have, or should not."""


def folder_of(environ: Mapping[str, str], home: Path) -> Path:
    """Return the folder of the files (XDG Base Directory Specification)."""
    given = environ.get("XDG_STATE_HOME", "")
    state = Path(given) if given.startswith("/") else home / ".local" / "state"
    return state / "xmpp-bridge" / "tap"


def file_of(folder: Path, account: str, number: int = 1) -> Path:
    """Return the file of an account, or of a component's domain; of a second tap the number 2."""
    name = _NO_NAME.sub("_", lower_bare(account))[:200].lstrip(".") or "unknown"
    return folder / f"{name}{f'-{number}' if number > 1 else ''}{SUFFIX}"


def streams_of(folder: Path, room: str, nickname: str) -> list[Examined]:
    """Return the streams on which a client had this nickname in a room, in the order they began.

    The files are read, the newest first, until one has such a stream; the result is empty if none
    has. Reading 16 MiB takes two seconds: call this in a thread.
    """
    for path in _newest_first(folder):
        capture = Capture()
        reader = LogReader(str(path))
        try:
            for line in _newest_lines(path):
                for stanza in reader.feed(line):
                    capture.take(stanza)
        except OSError:  # it was replaced just now, or is another user's
            continue
        for stanza in reader.end():
            capture.take(stanza)
        capture.finish()
        if streams := [each for each in capture.streams if _is_in(each, room, nickname)]:
            return streams
    return []


def _is_in(examined: Examined, room: str, nickname: str) -> bool:
    seat = examined.stream.rooms.at(room)
    return seat is not None and nickname in {seat.nickname, seat.former_nickname}


def _newest_first(folder: Path) -> list[Path]:
    try:
        files = [(path.stat().st_mtime, path) for path in folder.glob(f"*{SUFFIX}")]
    except OSError:
        return []
    return [path for _, path in sorted(files, reverse=True)]


def _newest_lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > MAX_READ_BYTES:
            file.seek(size - MAX_READ_BYTES)
            file.readline(MAX_LINE_BYTES)
        while line := file.readline(MAX_LINE_BYTES):
            yield line
