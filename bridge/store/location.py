"""Where a store is; checks and locks its path, and touches no file of another user or program.

The path must not lead through a symbolic link: another user who can make such a link could make the
bridge write elsewhere. Missing folders are made for the owner alone.
"""

import errno
import fcntl
import os
import re
import stat
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from socket import gethostname
from typing import TypeAlias

from bridge.files import make_folder, open_private
from bridge.settings.database_url import DatabaseUrl
from bridge.store.errors import (
    REMEDY,
    BrokenStoreError,
    BusyStoreError,
    NotOurStoreError,
    StoreError,
)
from bridge.text import iso

FILE_MODE = 0o600
"""Only the user who runs the bridge may read what people wrote."""

OTHERS = 0o077
"""The bits of a mode that let others use a file."""

BESIDE = ("", "-wal", "-shm", "-journal")
"""The endings of the database file and of the files that SQLite adds; `-wal` has events too."""

LOCK = "-lock"
"""The ending of the file that we lock while a store is in use. When a database file is put aside,
SQLite's own locks would go with it."""

PASSING = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM}
)
"""Errors of the system that may pass by themselves. After any other, a person has to act."""


@dataclass(frozen=True)
class Team:
    """The store of a team, as one of its users has set it."""

    url: DatabaseUrl
    file: Path
    """The file of this user and machine, from which the events are shipped to the database."""
    megabytes: int | None
    """How large that file may get, in MiB. None, while a setting is wrong: nothing is deleted."""

    def __str__(self) -> str:
        return str(self.url)


Place: TypeAlias = Path | Team
"""Where a store is."""


def team_file(folder: Path) -> Path:
    """Return the file of this machine in the folder of a user; homes may be shared (NFS)."""
    host = re.sub("[^A-Za-z0-9.-]", "_", gethostname()) or "localhost"
    return folder / f"team-{host}.db"


class Location:
    """The path of a store, with a lock, so that a store in use is not put aside.

    All bridges that use a store share the lock. A bridge that makes the store or puts it aside
    must hold the lock alone.
    """

    def __init__(self, path: Path) -> None:
        """Make the folder and open the lock file; raises `StoreError`."""
        self.path = path
        exists(path)
        try:
            make_folder(path.parent)
            self._descriptor = open_private(Path(f"{path}{LOCK}"), os.O_RDWR)
        except OSError as error:
            raise unusable(path, error) from error

    def made_safe(self) -> dict[str, str]:
        """Let only the owner use the store's files; return warnings about files.

        A warning says that others could use a file, or that a broken store lies aside. Raises
        `StoreError` if others can still use a file.
        """
        warnings = dict[str, str]()
        for suffix in (*BESIDE, LOCK):
            path = Path(f"{self.path}{suffix}")
            with suppress(FileNotFoundError):
                mode = _mode(path)
                with suppress(OSError):  # the file system may have no modes
                    _restrict(path, mode)
                if _mode(path) & OTHERS:
                    why = "may be used by others, and its mode cannot be changed"
                    raise NotOurStoreError(f"{str(path)!r} {why}; {REMEDY}")
                if mode & OTHERS and suffix != LOCK:
                    what = f"{str(path)!r} had the mode {mode:04o}; now it is {FILE_MODE:04o}"
                    warnings["exposed"] = f"Other users of this machine could use the store: {what}"
        if aside := lying_aside(self.path):
            at, file = aside
            warnings["aside"] = (
                f"A broken store was put aside as {str(file)!r}; what it recorded before {iso(at)} "
                "is not shown"
            )
        return warnings

    def lock(self, *, alone: bool) -> None:
        """Take the lock, alone or shared; raises `BusyStoreError` if another bridge has it."""
        try:
            how = fcntl.LOCK_EX if alone else fcntl.LOCK_SH
            fcntl.flock(self._descriptor, how | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BusyStoreError(f"{str(self.path)!r} is in use by another bridge") from error

    def close(self) -> None:
        """Release the lock."""
        os.close(self._descriptor)


def put_aside(path: Path, broken: BrokenStoreError) -> None:
    """Rename a broken store with all of its files, unless another bridge has done so.

    Raises `BusyStoreError` while any bridge has it open.
    """
    with closing(Location(path)) as location:
        location.lock(alone=True)
        if broken.file == identity(path):
            move_aside(path)


def move_aside(path: Path, suffixes: Sequence[str] = BESIDE) -> None:
    """Rename a store, or the rest of one; the caller must hold its lock alone.

    The database file is renamed last. Otherwise SQLite might read the `-wal` of the old store as
    part of a new one.
    """
    aside = f"{path}.broken-{time.time_ns():x}"
    try:
        for suffix in reversed(suffixes):
            with suppress(FileNotFoundError):
                Path(f"{path}{suffix}").rename(f"{aside}{suffix}")
    except OSError as error:
        raise unusable(path, error) from error


def lying_aside(path: Path) -> tuple[float, Path] | None:
    """Return when the newest of the stores aside was put there, and its path.

    The time is in seconds since the epoch. None if no store lies aside.
    """
    name = re.compile(re.escape(path.name) + r"\.broken-([0-9a-f]{1,16})")
    with suppress(OSError):
        files = [(name.fullmatch(file.name), file) for file in path.parent.iterdir()]
        aside = [(int(match[1], 16) / 1e9, file) for match, file in files if match]
        return max(aside, default=None)
    return None


def exists(path: Path) -> bool:
    """Whether there is a store; raises `NotOurStoreError` if the path must not be touched."""
    try:
        if link := next((way for way in (*path.parents, path) if way.is_symlink()), None):
            raise NotOurStoreError(
                f"{str(link)!r} is a symbolic link, which a store's path may not have; "
                f"{os.path.realpath(path)!r} would be right if it is yours"
            )
        there, *_ = [_is_ours(Path(f"{path}{suffix}")) for suffix in (*BESIDE, LOCK)]
    except OSError as error:
        raise unusable(path, error) from error
    return there


def identity(path: Path) -> tuple[int, int] | None:
    """Return the device and inode, which identify the file; None if there is no file."""
    with suppress(OSError):
        status = path.lstat()
        return status.st_dev, status.st_ino
    return None


def _is_ours(path: Path) -> bool:
    """Return whether there is a file; raise `NotOurStoreError` if the bridge must not use it."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(status.st_mode):
        why = "is no regular file"
    elif status.st_uid != os.geteuid():
        why = "belongs to another user"
    elif status.st_nlink > 1:
        why = "has another name too (a hard link)"
    else:
        return True
    raise NotOurStoreError(f"{str(path)!r} {why}; {REMEDY}")


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def _restrict(path: Path, mode: int) -> None:
    if mode == FILE_MODE:
        return
    if not hasattr(os, "O_PATH"):
        path.lchmod(FILE_MODE)
        return
    # O_PATH does not open the file for reading or writing. If we opened it so, closing it would
    # release all locks that SQLite has on it in this process (fcntl).
    descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        Path(f"/proc/self/fd/{descriptor}").chmod(FILE_MODE)
    finally:
        os.close(descriptor)


def unusable(path: Path, error: OSError) -> StoreError:
    """Return the exception for an error of the system at the path of a store."""
    why = f"{str(path)!r} cannot be used ({error.strerror or type(error).__name__})"
    return StoreError(why) if error.errno in PASSING else NotOurStoreError(f"{why}; {REMEDY}")
