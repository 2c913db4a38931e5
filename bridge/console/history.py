"""What was typed, kept from one run to the next.

`$XDG_STATE_HOME/xmpp-bridge/history` (XDG Base Directory Specification), readable by its owner
only. A home that cannot be written to costs the memory of this run and nothing else.
"""

import errno
import logging
import os
import stat
from collections.abc import Mapping
from pathlib import Path

from bridge.console.commands import is_room_text

MAX_LINES = 1_000
"""Kept between runs."""

MAX_LINE_CHARACTERS = 10_000
"""Of one line; longer ones are pasted, and nobody looks for them again."""

log = logging.getLogger(__name__)


def path(environ: Mapping[str, str]) -> Path | None:
    """Return where the history lies; None where there is no home."""
    state = environ.get("XDG_STATE_HOME", "")
    if not state.startswith("/"):  # the specification has relative ones ignored
        home = environ.get("HOME", "")
        if not home.startswith("/"):
            return None
        state = f"{home}/.local/state"
    return Path(state) / "xmpp-bridge" / "history"


class Memory:
    """The lines of former runs and of this one."""

    def __init__(self, file: Path | None) -> None:
        self._file = file

    def recall(self) -> list[str]:
        """Return what is kept, oldest first; more than `MAX_LINES` are cut down to the newest."""
        if self._file is None:
            return []
        try:
            with os.fdopen(_opened(self._file, os.O_RDONLY), "rb") as file:
                lines = file.read().decode("utf-8", "replace").splitlines()
            if len(lines) > MAX_LINES:
                lines = lines[-MAX_LINES:]
                _replace(self._file, lines)
        except OSError as error:
            log.debug("no history from %s: %s", self._file, error.strerror)
            return []
        return lines

    def keep(self, line: str) -> None:
        """Add `line`, unless it holds what is said in the room, or begins with a space."""
        if (
            self._file is None
            or not line
            or line[0].isspace()
            or len(line) > MAX_LINE_CHARACTERS
            or len(line.splitlines()) > 1
            or is_room_text(line)
        ):
            return
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _append(self._file, f"{line}\n")
        except OSError as error:
            log.debug("no history to %s: %s", self._file, error.strerror)
            self._file = None


def _replace(file: Path, lines: list[str]) -> None:
    fresh = file.with_suffix(f".{os.getpid()}")
    fresh.unlink(missing_ok=True)
    try:
        _append(fresh, "".join(f"{one}\n" for one in lines))
        fresh.replace(file)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise


def _append(file: Path, text: str) -> None:
    with os.fdopen(_opened(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT), "ab") as opened:
        os.fchmod(opened.fileno(), 0o600)  # it may have been made by something less careful
        opened.write(text.encode("utf-8", "replace"))


def _opened(file: Path, flags: int) -> int:
    """Open a file of nobody else, without waiting; raises `OSError` for whatever else is there."""
    descriptor = os.open(file, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    found = os.fstat(descriptor)
    if stat.S_ISREG(found.st_mode) and found.st_nlink == 1:
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "it is no regular file, or has another name too")
