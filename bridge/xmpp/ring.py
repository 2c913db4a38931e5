"""Numbered things, the newest of them kept. Pure.

One numbering serves them all, so that one cursor is a place among events and stanzas alike.
"""

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Generic, Literal, Protocol, TypeVar

from bridge.frozen import dataclass

_CURSOR = re.compile("([0-9a-z]{1,32})-(0|[1-9][0-9]{0,17})")


class CursorError(ValueError):
    """The caller's cursor is none of ours; the text says why."""


class Numbered(Protocol):
    """What a ring keeps."""

    @property
    def number(self) -> int:
        """Its place in the numbering, from 1."""


Kept = TypeVar("Kept", bound=Numbered)


@dataclass(frozen=True)
class Loss:
    """What stood between a cursor and what is still kept."""

    first: int
    """The number after the cursor's; where `reason` is `restarted`, in the former run."""
    last: int
    """The newest number, in this run, that is not kept any more; 0 if all of them are."""
    reason: Literal["evicted", "restarted"]


class Numbering:
    """Gives out the numbers of one run of the bridge, from 1, and reads cursors over them.

    A cursor is opaque to its holder. It names the run, so a restart is told from an eviction.
    """

    def __init__(self, epoch: str) -> None:
        self._epoch = epoch
        self.last = 0
        """The newest number given out."""

    def next(self) -> int:
        """Give out a number."""
        self.last += 1
        return self.last

    def cursor_of(self, number: int) -> str:
        """Return the place right after this number."""
        return f"{self._epoch}-{number}"

    def place(self, cursor: str, forgotten: int) -> tuple[int, Loss | None]:
        """Return the number that `cursor` stands after, and what is lost since, if anything.

        `forgotten` is the newest number not kept any more. Raises `CursorError`.
        """
        found = _CURSOR.fullmatch(cursor)
        if found is None:
            raise CursorError("it does not look like a cursor; take one from a result, unchanged")
        epoch, number = found[1], int(found[2])
        if epoch != self._epoch:
            return 0, Loss(number + 1, forgotten, "restarted")
        if number > self.last:
            raise CursorError("it lies ahead of everything that has happened")
        return number, Loss(number + 1, forgotten, "evicted") if number < forgotten else None


class Ring(Generic[Kept]):
    """Keeps the newest things, as many as `capacity` and `max_weight` allow."""

    def __init__(self, capacity: int, max_weight: int) -> None:
        self._kept: deque[Kept] = deque()
        self._weights: deque[int] = deque()
        self._capacity = capacity
        self._max_weight = max_weight
        self._weight = 0
        self.forgotten = 0
        """The number of the newest thing that had to make room; 0 if none had."""

    def append(self, thing: Kept, weight: int) -> None:
        """Keep `thing`; the oldest make room for it, and itself if it is too heavy."""
        self._kept.append(thing)
        self._weights.append(weight)
        self._weight += weight
        while len(self._kept) > self._capacity or self._weight > self._max_weight:
            self.forgotten = self._kept.popleft().number
            self._weight -= self._weights.popleft()

    def after(self, number: int) -> list[Kept]:
        """Return what is kept and has a higher number, oldest first."""
        return list(islice(self._kept, bisect_right(self._kept, number, key=_number), None))

    def __iter__(self) -> Iterator[Kept]:
        return iter(self._kept)

    def __reversed__(self) -> Iterator[Kept]:
        return reversed(self._kept)

    def __len__(self) -> int:
        return len(self._kept)


def _number(thing: Numbered) -> int:
    return thing.number
