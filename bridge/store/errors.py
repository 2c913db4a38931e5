"""The exceptions of the store. Pure."""

from bridge.text import counted

REMEDY = "set BRIDGE_STORE to another path, or move that away"
"""The advice to a user if the path of the store leads to something else."""


def left_out(rows: int) -> str:
    """Return the warning about so many rows that cannot be read."""
    return f"{counted(rows, 'row')} of the store cannot be read: damaged, and left out"


class StoreError(Exception):
    """The root of every exception that `bridge.store` raises: a sentence on what is wrong.

    It is raised itself if the disk is full or read-only, or if writing fails for another reason
    that may pass.
    """


class NotOurStoreError(StoreError):
    """The path leads to something that is no store, or must not be used. We do not change it."""


class ForbiddenStoreError(NotOurStoreError):
    """We may only read this store."""


class BrokenStoreError(StoreError):
    """The store is corrupt, and may be put aside."""

    def __init__(self, message: str, file: tuple[int, int] | None) -> None:
        super().__init__(message)
        self.file = file
        """The device and inode of the broken file. Another bridge may have made a new file
        since."""


class BusyStoreError(StoreError):
    """Another process holds the lock: trying again may succeed."""


class AwayStoreError(StoreError):
    """The database cannot be reached, or cannot be written to for now."""


class RefusedStoreError(AwayStoreError):
    """The database refused us: a person has to correct a wrong password, role or name."""


def may_pass(error: StoreError) -> bool:
    """Return whether the same may succeed later, without a person's help."""
    return not isinstance(error, NotOurStoreError | BrokenStoreError | RefusedStoreError)
