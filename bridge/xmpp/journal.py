"""The journal: the newest events, numbered, bounded, and read from a cursor on. Pure.

`Ring` is the bounded buffer that the journal and the trace share. Both take their numbers from one
`Numbering`, so that a cursor is a place among events and stanzas alike.
"""

import re
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, Literal, Protocol, TypeVar

from bridge.xmpp.events import Event

DEFAULT_CAPACITY = 10_000
"""Events kept in memory."""

MAX_CHARACTERS = 64_000_000
"""Characters of text in the kept events: much text must not exhaust the memory."""

ITEM_CHARACTERS = 64
"""Characters that each reaction and each status code counts beside its text: a server may send very
many of them."""

BATCH = 256
"""Records copied at a time while a ring is read, since records come and go meanwhile."""

_CURSOR = re.compile("([0-9a-z]{1,32})-(0|[1-9][0-9]{0,17})")


class CursorError(ValueError):
    """The caller's cursor is invalid; the text says why."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """A place right after a number; it names the run of the bridge, to tell a restart."""

    epoch: str
    number: int

    @classmethod
    def parse(cls, text: str) -> "Cursor":
        """Read a cursor as `str` writes it; raises `CursorError`."""
        found = _CURSOR.fullmatch(text)
        if found is None:
            raise CursorError("it does not look like a cursor; take one from a result, unchanged")
        return cls(found[1], int(found[2]))

    def __str__(self) -> str:
        return f"{self.epoch}-{self.number}"


@dataclass(frozen=True)
class Loss:
    """The records after a cursor that are not kept any more."""

    first: int
    """The number after the cursor's; where `reason` is `restarted`, in the former run."""
    last: int
    """The newest number, in this run, that is not kept any more; 0 if all of them are."""
    reason: Literal["evicted", "restarted"]


class Numbering:
    """The numbers of one run of the bridge, from 1; `epoch` names the run."""

    def __init__(self, epoch: str) -> None:
        self.epoch = epoch
        self.last = 0
        """The newest number given out."""

    def next(self) -> int:
        """Give out a number."""
        self.last += 1
        return self.last


class Numbered(Protocol):
    """A record with a number, as a ring keeps it."""

    @property
    def number(self) -> int:
        """Its place in the numbering, from 1."""


Kept = TypeVar("Kept", bound=Numbered)


class Ring(Generic[Kept]):
    """Keeps the newest records, as many as `capacity` and `max_weight` allow.

    Iterators over it stay valid while records are added and evicted.
    """

    def __init__(self, numbering: Numbering, capacity: int, max_weight: int) -> None:
        self.numbering = numbering
        self.forgotten = 0
        """The number of the newest record that was evicted; 0 if none was."""
        self._records: deque[Kept] = deque()
        self._weights: deque[int] = deque()
        self._capacity = capacity
        self._max_weight = max_weight
        self._weight = 0

    @property
    def cursor(self) -> str:
        """The place after everything that has happened."""
        return self.cursor_of(self.numbering.last)

    @property
    def oldest(self) -> str:
        """The place before the oldest record that is kept."""
        return self.cursor_of(self.forgotten)

    def cursor_of(self, number: int) -> str:
        """Return the place right after this number."""
        return str(Cursor(self.numbering.epoch, number))

    def place(self, cursor: str) -> tuple[int, Loss | None]:
        """Return the number after which the kept records from `cursor` on begin, and what is lost.

        Raises `CursorError`.
        """
        place = Cursor.parse(cursor)
        if place.epoch != self.numbering.epoch:
            return self.forgotten, Loss(place.number + 1, self.forgotten, "restarted")
        if place.number > self.numbering.last:
            raise CursorError("it lies ahead of everything that has happened")
        if place.number < self.forgotten:
            return self.forgotten, Loss(place.number + 1, self.forgotten, "evicted")
        return place.number, None

    def after(self, number: int) -> Iterator[Kept]:
        """Yield the records with a higher number, oldest first.

        Stops where a record was evicted before it could be yielded: `forgotten` is higher then
        than the number of the last one yielded.
        """
        while number >= self.forgotten:
            first = bisect_right(self._records, number, key=_number)
            batch = self._batch(first, first + BATCH)
            if not batch:
                return
            yield from batch
            number = batch[-1].number

    def __iter__(self) -> Iterator[Kept]:
        return self.after(self.forgotten)

    def __reversed__(self) -> Iterator[Kept]:
        number = self.numbering.last + 1
        while batch := self._batch_before(number):
            yield from reversed(batch)
            number = batch[0].number

    def __len__(self) -> int:
        return len(self._records)

    def _batch_before(self, number: int) -> list[Kept]:
        end = bisect_left(self._records, number, key=_number)
        return self._batch(max(end - BATCH, 0), end)

    def _batch(self, first: int, end: int) -> list[Kept]:
        return [self._records[index] for index in range(first, min(end, len(self._records)))]

    def _keep(self, record: Kept, weight: int) -> None:
        """Add `record` and evict the oldest beyond the bounds, itself if it is too heavy."""
        self._records.append(record)
        self._weights.append(weight)
        self._weight += weight
        while len(self._records) > self._capacity or self._weight > self._max_weight:
            self.forgotten = self._records.popleft().number
            self._weight -= self._weights.popleft()


@dataclass(frozen=True, slots=True)
class Record:
    """One event, with its number and its time."""

    number: int
    at: float
    """Seconds since the epoch."""
    event: Event


class Journal(Ring[Record]):
    """Keeps the last `capacity` events, as far as `max_characters` of text allow."""

    def __init__(
        self,
        epoch: str,
        capacity: int = DEFAULT_CAPACITY,
        *,
        max_characters: int = MAX_CHARACTERS,
    ) -> None:
        super().__init__(Numbering(epoch), capacity, max_characters)

    def append(self, event: Event, at: float) -> Record:
        """Number and stamp `event`, and keep it."""
        record = Record(self.numbering.next(), at, event)
        self._keep(record, _characters([getattr(event, name) for name in event.__match_args__]))
        return record


def _number(record: Numbered) -> int:
    return record.number


def _characters(held: Iterable[object]) -> int:
    size = 0
    for one in held:
        match one:
            case str():
                size += len(one)
            case tuple() | frozenset():
                size += _characters(one) + ITEM_CHARACTERS * len(one)
    return size
