"""The history of typed lines, kept in a file from one run to the next.

The file is `$XDG_STATE_HOME/xmpp-bridge/history` (XDG Base Directory Specification), readable by
its owner only. Where it cannot be written, only this run's lines are remembered.
"""

import errno
import logging
import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from prompt_toolkit.history import History

from bridge.console.commands import is_room_text
from bridge.text import one_line

MAX_LINES = 1_000
"""Lines that are kept between runs."""

MAX_LINE_CHARACTERS = 10_000
"""Length of a line that is kept; longer ones are pasted, and nobody looks for them again."""

log = logging.getLogger(__name__)


def history_path(environ: Mapping[str, str]) -> Path | None:
    """Return the path of the history; None where there is no home."""
    state = environ.get("XDG_STATE_HOME", "")
    if not state.startswith("/"):  # the specification has relative ones ignored
        home = environ.get("HOME", "")
        if not home.startswith("/"):
            return None
        state = f"{home}/.local/state"
    return Path(state) / "xmpp-bridge" / "history"


class LineHistory(History):
    """The lines of former runs and of this one; without a file, of this one."""

    def __init__(self, file: Path | None) -> None:
        super().__init__()
        self._file = file

    def load_history_strings(self) -> Sequence[str]:
        """Return the lines that are kept, newest first."""
        try:
            kept = [] if self._file is None else _lines(self._file)
        except OSError as error:
            log.debug("no history from %s: %s", self._file, error.strerror)
            return []
        return [one_line(line) for line in reversed(kept)]

    def store_string(self, string: str) -> None:
        """Keep a line, unless it holds what is said in the room, or begins with a space."""
        if self._file is None or string[:1].isspace() or is_room_text(string):
            return
        if len(string) > MAX_LINE_CHARACTERS or len(string.splitlines()) != 1:
            return
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _replace(self._file, [*_lines(self._file), string][-MAX_LINES:])
        except OSError as error:
            log.debug("no history to %s: %s", self._file, error.strerror)
            self._file = None


def _lines(file: Path) -> list[str]:
    """Return the newest lines of a regular file with one name; raises `OSError` for any other."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return []
    with os.fdopen(descriptor, "rb") as opened:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
            raise OSError(errno.EINVAL, "it is no regular file, or has another name too")
        return opened.read().decode("utf-8", "replace").splitlines()[-MAX_LINES:]


def _replace(file: Path, lines: Sequence[str]) -> None:
    fresh = file.with_suffix(f".{os.getpid()}")
    fresh.unlink(missing_ok=True)
    try:
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as opened:
            opened.write("".join(f"{one}\n" for one in lines).encode("utf-8", "replace"))
        fresh.replace(file)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise
