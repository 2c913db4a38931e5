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

from bridge.store.errors import BusyStoreError, FullStoreError, NotOurStoreError

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
        """Lock what is there; raises `NotOurStoreError`, `FullStoreError`, `BusyStoreError`."""
        self.path = path
        _refuse_links_to(path)
        self._descriptor = -1
        try:
            _make_folders(path.parent)
            for suffix in BESIDE:
                _check(_beside(path, suffix))
            lock = _beside(path, LOCK)
            _check(lock)
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            self._descriptor = os.open(lock, flags, FILE_MODE)
            _check(lock)
        except OSError as error:
            self.close()
            raise FullStoreError(
                f"{str(path)!r} cannot be written ({error.strerror or type(error).__name__})"
            ) from error
        self.share()

    def share(self) -> None:
        """Have the lock together with everybody who uses the store; raises `BusyStoreError`."""
        self._lock(fcntl.LOCK_SH)

    def claim(self) -> None:
        """Have the lock alone; raises `BusyStoreError` while anybody else uses the store."""
        self._lock(fcntl.LOCK_EX)

    def _lock(self, how: int) -> None:
        try:
            fcntl.flock(self._descriptor, how | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BusyStoreError(f"{str(self.path)!r} is in use by another bridge") from error

    def put_aside(self) -> Path:
        """Rename a broken store with all that belongs to it; the lock must be held alone.

        Return where it is now.
        """
        aside = self.path.with_name(f"{self.path.name}.broken-{time.time_ns():x}")
        for suffix in BESIDE:
            with suppress(FileNotFoundError):
                _beside(self.path, suffix).rename(_beside(aside, suffix))
        return aside

    def close(self) -> None:
        """Give the lock back."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def exists(path: Path) -> bool:
    """Whether there is a file to read; raises `NotOurStoreError` for what must not be touched."""
    _refuse_links_to(path)
    try:
        return _check(path)
    except OSError as error:
        raise NotOurStoreError(
            f"{str(path)!r} cannot be looked at ({error.strerror or type(error).__name__})"
        ) from error


def identity(path: Path) -> tuple[int, int] | None:
    """Return what tells the file at the path from every other; None if there is none."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _refuse_links_to(path: Path) -> None:
    for one in (*reversed(path.parents), path):
        if one.is_symlink():
            raise NotOurStoreError(
                f"{str(one)!r} is a symbolic link, and a store is reached through none; "
                f"{os.path.realpath(path)!r} would be right if it is yours"
            )


def _make_folders(folder: Path) -> None:
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    for one in reversed(missing):
        with suppress(FileExistsError):  # another bridge has just made it
            one.mkdir(FOLDER_MODE)


def _check(path: Path) -> bool:
    """Return whether a file is there; raise for one that is not ours to use."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(found.st_mode):
        raise NotOurStoreError(f"{str(path)!r} is no regular file; a path of a new file is needed")
    if found.st_uid != os.geteuid():
        raise NotOurStoreError(f"{str(path)!r} belongs to somebody else")
    if found.st_nlink > 1:
        raise NotOurStoreError(f"{str(path)!r} has another name too (a hard link)")
    return True
