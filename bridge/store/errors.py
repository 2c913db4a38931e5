"""The exceptions of the store."""

REMEDY = "set BRIDGE_STORE to another path, or move that away"
"""What a user can do about something that is no store, and stands where one is to be."""


def left_out(rows: int) -> str:
    """Return the warning of rows that cannot be read."""
    many = "1 row" if rows == 1 else f"{rows} rows"
    return f"{many} of the store cannot be read, being damaged, and what stood there is left out"


class StoreError(Exception):
    """The root of every exception that `bridge.store` raises: a sentence on what is wrong."""


class NotOurStoreError(StoreError):
    """At the path is something that is no store, or none that may be used; it is not changed."""


class BrokenStoreError(StoreError):
    """The store is corrupt, and may be put aside."""

    def __init__(self, message: str, file: tuple[int, int] | None) -> None:
        super().__init__(message)
        self.file = file
        """Which file was found broken: another bridge may have begun a new one since."""


class FullStoreError(StoreError):
    """The disk is full or read-only, or the system refuses to write for another reason."""


class BusyStoreError(StoreError):
    """Another process holds the lock: trying again may succeed."""
