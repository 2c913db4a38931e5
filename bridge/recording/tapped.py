"""The files in which `tap` keeps what it saw, one for each account: where they are.

A line is a JSON object, as `xmppTrace` shows stanzas: `at`, `direction`, `connection`, `xml`.
"""

import fcntl
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from bridge.files import lock_private, make_folder, state_folder
from bridge.wire.names import lower_bare

SUFFIX = ".jsonl"
LOCK_SUFFIX = ".lock"

MAX_BYTES = 16 << 20
"""At this size `tap` begins a new file."""

_NO_NAME = re.compile(r"[^\w.@+-]")
"""What a file's name cannot have, or should not."""


def folder_of(environ: Mapping[str, str]) -> Path:
    """Return the folder of the files."""
    return state_folder(environ) / "tap"


def file_of(folder: Path, account: str, number: int = 1) -> Path:
    """Return the file of an account, or of a component's domain.

    If several taps of one account run at once, the second writes the file with the `number` 2.
    """
    name = _NO_NAME.sub("_", lower_bare(account))[:200].lstrip(".") or "unknown"
    return folder / f"{name}{f'-{number}' if number > 1 else ''}{SUFFIX}"


def lock_file(folder: Path, account: str) -> tuple[Path, int]:
    """Return the account's first file that no other `tap` writes, and the descriptor of its lock.

    The lock is held until the descriptor is closed. Raises `OSError`.
    """
    make_folder(folder)
    number = 1
    while True:
        path = file_of(folder, account, number)
        try:
            return path, lock_private(path.with_suffix(LOCK_SUFFIX))
        except BlockingIOError:
            number += 1


def is_written(path: Path) -> bool:
    """Whether a running `tap` writes this file: then it holds the lock file beside it."""
    try:
        with path.with_suffix(LOCK_SUFFIX).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False


def files_about(folder: Path, room: str, nickname: str) -> Iterator[Path]:
    """Yield the files in which an occupant of a room may have spoken or been named, newest first.

    To search for the name is a hundred times faster than to read the stanzas. A nickname that may
    be escaped in a file is left out of the search. Call this in a thread: it blocks.
    """
    name = nickname if nickname.isascii() and nickname.isalnum() else ""
    yield from _files_with(folder, json.dumps(f"{lower_bare(room)}/{name.lower()}")[1:-1])


def files_for(folder: Path, room: str) -> Iterator[Path]:
    """Yield the files of clients that are for a room by the settings of `tap`, newest first."""
    yield from _files_with(folder, json.dumps(lower_bare(room)))  # within XML, quotes are escaped


def _files_with(folder: Path, text: str) -> Iterator[Path]:
    for path in _newest_first(folder):
        with suppress(OSError), path.open("rb") as file:  # it was replaced, or is another user's
            if any(text.encode() in line.lower() for line in file):
                yield path


def _newest_first(folder: Path) -> list[Path]:
    files = list[tuple[float, Path]]()
    for path in folder.glob(f"*{SUFFIX}"):
        with suppress(OSError):  # it was replaced just now
            files.append((path.stat().st_mtime, path))
    return [path for _, path in sorted(files, reverse=True)]
