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
        """Return the lines that are kept, newest first; cut a file of more than `MAX_LINES`."""
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
        return [one_line(line) for line in reversed(lines)]

    def store_string(self, string: str) -> None:
        """Keep a line, unless it holds what is said in the room, or begins with a space."""
        if self._file is None or string[:1].isspace() or is_room_text(string):
            return
        if len(string) > MAX_LINE_CHARACTERS or len(string.splitlines()) != 1:
            return
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _append(self._file, f"{string}\n")
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
        os.fchmod(opened.fileno(), 0o600)  # another program may have made it readable for others
        opened.write(text.encode("utf-8", "replace"))


def _opened(file: Path, flags: int) -> int:
    """Open a regular file with one name, without waiting; raises `OSError` for anything else."""
    descriptor = os.open(file, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    found = os.fstat(descriptor)
    if stat.S_ISREG(found.st_mode) and found.st_nlink == 1:
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "it is no regular file, or has another name too")
