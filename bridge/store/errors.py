"""The exceptions of the store."""

REMEDY = "set BRIDGE_STORE to another path, or move that away"
"""What a user can do about something that is no store, and is where one is to be."""

LEFT_OUT = "of the store cannot be read, being damaged, and what stood there is left out"
"""How a warning of rows that cannot be read ends."""


def left_out(rows: int) -> str:
    """Return the warning of rows that cannot be read."""
    return f"{'1 row' if rows == 1 else f'{rows} rows'} {LEFT_OUT}"


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
    """The disk is full or read-only, or the system cannot write for another reason that passes."""


class BusyStoreError(StoreError):
    """Another process holds the lock: trying again may succeed."""
