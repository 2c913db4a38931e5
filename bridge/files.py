"""Makes folders and files for their owner alone, and replaces files as a whole."""

import fcntl
import os
import re
import secrets
import signal
import stat
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

_TEMPORARY = re.compile(r"\.xmpp-bridge-([1-9][0-9]*)-[0-9a-f]{8}\.tmp")
"""Matches the name of a temporary file; the number is the process that made it."""


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for their owner alone."""
    for missing in reversed([each for each in (folder, *folder.parents) if not each.exists()]):
        missing.mkdir(0o700, exist_ok=True)  # another process may just have made it


def state_folder(environ: Mapping[str, str]) -> Path:
    """Return the folder of what we keep for this user (XDG Base Directory Specification).

    On some systems the path to the home directory has a symbolic link. We follow such a link.
    """
    given = environ.get("XDG_STATE_HOME", "")
    home = environ.get("HOME") or os.path.expanduser("~")  # noqa: PTH111 - it never raises
    states = given if given.startswith("/") else f"{home}/.local/state"
    return Path(os.path.realpath(states)) / "xmpp-bridge"


def open_private(path: Path, flags: int) -> int:
    """Open a file for its owner alone, made if it is missing; return its descriptor.

    Raises `OSError` if the path is a link, or not a regular file with this name alone.
    """
    flags |= os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NOCTTY, 0o600)
    held = os.fstat(descriptor)
    try:
        # A file with several names may be another user's: a hard link leads to it.
        if not stat.S_ISREG(held.st_mode) or held.st_nlink != 1:
            raise OSError("it is no file of its own")
        os.fchmod(descriptor, 0o600)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def lock_private(path: Path) -> int:
    """Open a file for its owner alone, as `open_private` does, and lock it; return its descriptor.

    The lock is held until the descriptor is closed. Raises `BlockingIOError` if another process
    holds it, and other `OSError`.
    """
    descriptor = open_private(path, os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a new file for its owner alone, which takes the place of `path` after the block.

    If the block raises, `path` is as it was before.
    """
    with temporary_file(path.parent) as new:
        yield new
        new.replace(path)


@contextmanager
def temporary_file(folder: Path) -> Iterator[Path]:
    """Yield a new file for its owner alone, which is gone after the block.

    Files that earlier processes left in the folder when they were killed are removed first.
    """
    with suppress(OSError):  # a folder that cannot be read may be written to
        for left in folder.iterdir():
            if (named := _TEMPORARY.fullmatch(left.name)) and not _is_running(int(named[1])):
                left.unlink()
    new = folder / f".xmpp-bridge-{os.getpid()}-{secrets.token_hex(4)}.tmp"
    try:
        new.touch(0o600, exist_ok=False)
        yield new
    finally:  # Ctrl-C, too, must leave no part of a file
        new.unlink(missing_ok=True)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass  # it is another user's
    return True


@contextmanager
def signals_held() -> Iterator[None]:
    """Have signals that end the process wait until the block has ended."""
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        came.append(number)

    former = {}
    if threading.current_thread() is threading.main_thread():  # only this thread gets signals
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        former = {number: signal.signal(number, note) for number in numbers}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
        for each in came:
            signal.raise_signal(each)
