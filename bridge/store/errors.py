"""The exceptions of the store."""

REMEDY = "set BRIDGE_STORE to another path, or move that away"
"""What a user can do about something that is no store, and stands where one is to be."""


class StoreError(Exception):
    """The root of every exception that `bridge.store` raises: a sentence on what is wrong."""


class NotOurStoreError(StoreError):
    """What is there is no store of ours, or not to be used; it is left as it is."""


class BrokenStoreError(StoreError):
    """The store can be read no more, and may be put aside."""

    def __init__(self, message: str, file: tuple[int, int] | None) -> None:
        super().__init__(message)
        self.file = file
        """Which file was found broken: another bridge may have begun a new one since."""


class FullStoreError(StoreError):
    """The disk is full, read-only, or cannot be written for another reason of the system's."""


class BusyStoreError(StoreError):
    """Somebody else holds the lock: the same may work in a moment."""
