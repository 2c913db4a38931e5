"""Where a store lies: its path is checked, and nothing of anybody else's is touched.

A path leads through no symbolic link, since whoever can make one could have the bridge write
elsewhere. Folders that are missing are made for the owner alone.
"""

import fcntl
import os
import stat
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from bridge.store.errors import (
    REMEDY,
    BrokenStoreError,
    BusyStoreError,
    FullStoreError,
    NotOurStoreError,
)

FOLDER_MODE = 0o700
FILE_MODE = 0o600
"""People's words are for whoever runs the bridge."""

BESIDE = ("", "-wal", "-shm", "-journal")
"""What SQLite adds to the name of a database; `-wal` holds events too."""

LOCK = "-lock"
"""Added to the name of a store for the file that says who uses it: SQLite's own locks would be
lost with a file that is put aside."""


def default_path(environ: Mapping[str, str], home: Path) -> Path:
    """Return where `record` keeps what it records (XDG Base Directory Specification).

    What leads to the home directory may be a link, as on some systems; it is followed here.
    """
    given = environ.get("XDG_STATE_HOME", "")
    state = Path(given) if given.startswith("/") else home / ".local" / "state"
    return Path(os.path.realpath(state)) / "xmpp-bridge" / "rooms.db"


class Location:
    """The path of a store, locked against being put aside while it is in use.

    Every bridge that uses a store shares the lock; who makes it, or puts it aside, has it alone.
    """

    def __init__(self, path: Path) -> None:
        """Make its folder and its lock; raises `NotOurStoreError` and `FullStoreError`."""
        self.path = path
        exists(path)
        try:
            for folder in reversed([one for one in path.parents if not one.exists()]):
                folder.mkdir(FOLDER_MODE, exist_ok=True)  # another bridge may just have made it
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            self._descriptor = os.open(f"{path}{LOCK}", flags, FILE_MODE)
        except OSError as error:
            raise _unusable(path, error) from error

    def lock(self, *, alone: bool) -> None:
        """Have the lock, alone or with others; raises `BusyStoreError` if that cannot be now."""
        try:
            how = fcntl.LOCK_EX if alone else fcntl.LOCK_SH
            fcntl.flock(self._descriptor, how | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BusyStoreError(f"{str(self.path)!r} is in use by another bridge") from error

    def close(self) -> None:
        """Give the lock back."""
        os.close(self._descriptor)


def put_aside(path: Path, broken: BrokenStoreError) -> None:
    """Rename a broken store with all that belongs to it, unless another bridge has done so.

    Raises `BusyStoreError` while anybody has it open.
    """
    location = Location(path)
    try:
        location.lock(alone=True)
        aside = f"{path}.broken-{time.time_ns():x}"
        if broken.file == identity(path):
            for suffix in BESIDE:
                with suppress(FileNotFoundError):
                    Path(f"{path}{suffix}").rename(f"{aside}{suffix}")
    except OSError as error:
        raise _unusable(path, error) from error
    finally:
        location.close()


def exists(path: Path) -> bool:
    """Whether a store is there; raises `NotOurStoreError` for what must not be touched."""
    try:
        if link := next((one for one in (*path.parents, path) if one.is_symlink()), None):
            raise NotOurStoreError(
                f"{str(link)!r} is a symbolic link, and a store is reached through none; "
                f"{os.path.realpath(path)!r} would be right if it is yours"
            )
        found = [_is_ours(Path(f"{path}{suffix}")) for suffix in (*BESIDE, LOCK)]
    except OSError as error:
        raise _unusable(path, error) from error
    return found[0]


def identity(path: Path) -> tuple[int, int] | None:
    """Return what tells the file at the path from every other; None if there is none."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _is_ours(path: Path) -> bool:
    """Return whether a file is there; raise `NotOurStoreError` for one that is not ours to use."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(found.st_mode):
        why = "is no regular file"
    elif found.st_uid != os.geteuid():
        why = "belongs to somebody else"
    elif found.st_nlink > 1:
        why = "has another name too (a hard link)"
    else:
        return True
    raise NotOurStoreError(f"{str(path)!r} {why}; {REMEDY}")


def _unusable(path: Path, error: OSError) -> FullStoreError:
    why = error.strerror or type(error).__name__
    return FullStoreError(f"{str(path)!r} cannot be used ({why})")
