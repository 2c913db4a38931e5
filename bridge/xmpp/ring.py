"""Numbered things, the newest of them kept. Pure.

One numbering serves them all, so that one cursor is a place among events and stanzas alike.
"""

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Generic, Literal, Protocol, TypeVar

STRETCH = 256
"""Things that are kept together: few enough to look through in no time, and worth an index."""

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
    """Keeps the newest things, as many as `capacity` and `max_weight` allow.

    They are kept in stretches that stay as they are until they are the oldest, so that what was
    once found out about one holds. `bind` makes one out of the things in a list, which it copies.
    """

    def __init__(
        self,
        capacity: int,
        max_weight: int,
        bind: Callable[[list[Kept]], Sequence[Kept]] = list,
    ) -> None:
        self._leaving: deque[Kept] = deque()
        """The oldest, which make room one by one."""
        self._whole: deque[Sequence[Kept]] = deque()
        self._coming: list[Kept] = []
        """The newest, until they are a stretch."""
        self._weights: deque[int] = deque()
        self._capacity = capacity
        self._max_weight = max_weight
        self._bind = bind
        self._weight = 0
        self.forgotten = 0
        """The number of the newest thing that had to make room; 0 if none had."""

    def append(self, thing: Kept, weight: int) -> None:
        """Keep `thing`; the oldest make room for it, and itself if it is too heavy."""
        self._coming.append(thing)
        if len(self._coming) == STRETCH:
            self._whole.append(self._bind(self._coming))
            self._coming.clear()
        self._weights.append(weight)
        self._weight += weight
        while len(self._weights) > self._capacity or self._weight > self._max_weight:
            self._forget()

    def _forget(self) -> None:
        if not self._leaving:
            if self._whole:
                self._leaving.extend(self._whole.popleft())
            else:
                self._leaving.extend(self._coming)
                self._coming.clear()
        self.forgotten = self._leaving.popleft().number
        self._weight -= self._weights.popleft()

    def stretches(self, number: int = 0) -> list[Sequence[Kept]]:
        """Return what is kept and has a higher number, oldest first, in stretches."""
        parts = (tuple(self._leaving), *self._whole, tuple(self._coming))
        kept = [part for part in parts if part]
        kept = kept[bisect_right(kept, number, key=_last_number) :]
        if kept and kept[0][0].number <= number:
            kept[0] = kept[0][bisect_right(kept[0], number, key=_number) :]
        return kept

    def after(self, number: int) -> list[Kept]:
        """Return what is kept and has a higher number, oldest first."""
        return list(chain.from_iterable(self.stretches(number)))

    def __iter__(self) -> Iterator[Kept]:
        return chain(self._leaving, *self._whole, self._coming)

    def __reversed__(self) -> Iterator[Kept]:
        parts = (self._leaving, *self._whole, self._coming)
        return chain.from_iterable(map(reversed, reversed(parts)))

    def __len__(self) -> int:
        return len(self._weights)


def _number(thing: Numbered) -> int:
    return thing.number


def _last_number(things: Sequence[Numbered]) -> int:
    return things[-1].number
