"""A mapping that keeps the newest keys only. Pure."""

from collections import OrderedDict
from typing import TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class Newest(OrderedDict[Key, Value]):
    """The `capacity` keys that were added last, each with its value, the newest last.

    It is an `OrderedDict`, since a `dict` of thousands of keys takes long to find its oldest one.
    """

    __slots__ = ("capacity",)

    def __init__(self, capacity: int) -> None:
        super().__init__()
        self.capacity = capacity

    def add(self, key: Key, value: Value) -> None:
        """Add a key as the newest one, and forget the oldest if there are too many."""
        self[key] = value
        self.move_to_end(key)
        if len(self) > self.capacity:
            self.popitem(last=False)
