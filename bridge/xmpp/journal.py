"""The journal: the newest events, numbered, bounded, and read from a cursor on. Pure.

`Records` is what reads the journal, one room of it, and the trace. They take their numbers from one
`Numbering`, so that a cursor is a place among the events of all rooms and stanzas alike.
"""

import re
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Generic, Literal, Protocol, TypeVar

from bridge.text import iso
from bridge.xmpp.errors import XmppError
from bridge.xmpp.events import Event, encode

DEFAULT_CAPACITY = 10_000
"""Events kept in memory."""

MAX_CHARACTERS = 64_000_000
"""Characters of text in the kept events: much text must not exhaust the memory."""

ITEM_CHARACTERS = 64
"""Characters that each reaction and each status code counts beside its text: a server may send very
many of them."""

BATCH = 256
"""Records copied at a time while they are read, since records come and go meanwhile."""

REBUILT_ABOVE = 256
"""Records evicted at once above which what is left is copied: taking that many out of the middle
takes as long, however many there are."""

_number: Callable[["Numbered"], int] = attrgetter("number")

_CURSOR = re.compile("([0-9a-z]{1,32})-(0|[1-9][0-9]{0,17})")


class CursorError(XmppError, ValueError):
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
    """Records after a cursor that are not kept any more; others between them may be."""

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
    """A record with a number."""

    @property
    def number(self) -> int:
        """Its place in the numbering, from 1."""


Kept = TypeVar("Kept", bound=Numbered)


class Records(Generic[Kept]):
    """Reads the records that are kept, in the order of their numbers.

    Iterators over them stay valid while records are added and evicted.
    """

    def __init__(self, numbering: Numbering) -> None:
        self.numbering = numbering
        self.forgotten = 0
        """The highest number of a record that was evicted; 0 if none was."""
        self._records: deque[Kept] = deque()

    @property
    def cursor(self) -> str:
        """The place after everything that has happened."""
        return self.cursor_of(self.numbering.last)

    @property
    def oldest(self) -> str:
        """The place before the oldest record that is kept."""
        return self.cursor_of(self._start)

    def cursor_of(self, number: int) -> str:
        """Return the place right after this number."""
        return str(Cursor(self.numbering.epoch, number))

    def place(self, cursor: str) -> tuple[int, Loss | None]:
        """Return the number after which the kept records from `cursor` on begin, and what is lost.

        Raises `CursorError`.
        """
        place = Cursor.parse(cursor)
        if place.epoch != self.numbering.epoch:
            return self._start, Loss(place.number + 1, self.forgotten, "restarted")
        if place.number > self.numbering.last:
            raise CursorError("it lies ahead of everything that has happened")
        if place.number < self.forgotten:
            loss = Loss(place.number + 1, self.forgotten, "evicted")
            return max(place.number, self._start), loss
        return place.number, None

    def after(self, number: int) -> Iterator[Kept]:
        """Yield the records with a higher number, oldest first.

        What was evicted before this call, up to `forgotten`, is for `place` to say. Stops where
        a record was evicted since, before it could be yielded: `forgotten` is higher then than it
        was, and than the number of the last one yielded.
        """
        return self._after(number, self.forgotten)

    def newest_first(self, missed: Callable[[int], object]) -> Iterator[Kept]:
        """Yield the records, newest first.

        Calls `missed` when some were evicted since the first, before they could be yielded, with
        a number that none of them exceeds.
        """
        number, due = self.numbering.last + 1, len(self._records)
        while due:
            end = bisect_left(self._records, number, key=_number)
            if end < due:
                missed(min(self.forgotten, number - 1))
            if not (batch := self._batch(max(end - BATCH, 0), end)):
                return
            yield from reversed(batch)
            number, due = batch[0].number, end - len(batch)

    def __iter__(self) -> Iterator[Kept]:
        return self.after(0)

    def __reversed__(self) -> Iterator[Kept]:
        return self.newest_first(lambda _: None)

    def __len__(self) -> int:
        return len(self._records)

    @property
    def _start(self) -> int:
        """The number after which the oldest record comes."""
        return min(self.forgotten, self._records[0].number - 1) if self._records else self.forgotten

    def _after(self, number: int, told: int) -> Iterator[Kept]:
        while True:
            first = bisect_right(self._records, number, key=_number)
            batch = self._batch(first, first + BATCH)
            if self.forgotten > max(number, told):
                # What was evicted since lies above `told`: up to there nothing else is lost.
                batch = [record for record in batch if record.number <= told]
            if not batch:
                return
            yield from batch
            number = batch[-1].number

    def _batch(self, first: int, end: int) -> list[Kept]:
        return [self._records[index] for index in range(first, min(end, len(self._records)))]


class Ring(Records[Kept]):
    """Keeps the newest records, as many as `capacity` and `max_weight` allow."""

    def __init__(self, numbering: Numbering, capacity: int, max_weight: int) -> None:
        super().__init__(numbering)
        self.weight = 0
        """Of all that is kept."""
        self._weights: deque[int] = deque()
        self._capacity = capacity
        self._max_weight = max_weight

    def add(self, record: Kept, weight: int) -> None:
        """Add `record`, whatever the bounds are."""
        self._records.append(record)
        self._weights.append(weight)
        self.weight += weight

    def evict(self) -> int:
        """Evict the oldest record, and return its number."""
        self.forgotten = self._records.popleft().number
        self.weight -= self._weights.popleft()
        return self.forgotten

    def _keep(self, record: Kept, weight: int) -> None:
        """Add `record` and evict the oldest beyond the bounds, itself if it is too heavy."""
        self.add(record, weight)
        while len(self._records) > self._capacity or self.weight > self._max_weight:
            self.evict()


@dataclass(frozen=True, slots=True)
class Record:
    """One event, with its number, its time and its room."""

    number: int
    at: float
    """Seconds since the epoch."""
    event: Event
    room: str = ""
    """The room's bare JID; empty for what concerns the connection as a whole."""


class Journal(Records[Record]):
    """Keeps the last `capacity` events of all rooms, as far as `max_characters` of text allow.

    Where there are several rooms, these bounds are shared: none goes of a room that holds no more
    than its share, the bound divided by the number of rooms. What goes is the oldest event of the
    connection or of a room beyond its share, whichever holds most. A room that is left out of the
    settings has no share: its events go first. With one room the oldest event of all goes.
    """

    def __init__(
        self,
        epoch: str,
        capacity: int = DEFAULT_CAPACITY,
        *,
        max_characters: int = MAX_CHARACTERS,
    ) -> None:
        super().__init__(Numbering(epoch))
        self._capacity = capacity
        self._max_characters = max_characters
        self._characters = 0
        self._sharing: frozenset[str] = frozenset()
        """The rooms of the settings."""
        self._rooms: dict[str, Ring[Record]] = {}
        """As many as the settings have named while the bridge ran, and the connection."""

    def share_among(self, rooms: Iterable[str]) -> None:
        """Share the bounds among these rooms from the next event on; until then there are none."""
        self._sharing = frozenset(rooms)

    def of(self, room: str | None) -> Records[Record]:
        """Return what reads the events of one room, given by its bare JID, or of all with None."""
        return self if room is None else self._ring(room)

    def append(self, event: Event, at: float, room: str = "") -> Record:
        """Number and stamp `event`, and keep it."""
        record = Record(self.numbering.next(), at, event, room)
        characters = _characters([getattr(event, name) for name in event.__match_args__])
        self._records.append(record)
        self._characters += characters
        self._ring(room).add(record, characters)
        self._evict()
        return record

    def encode(self, record: Record) -> dict[str, object]:
        """Return the exact form of one of its events, after its cursor and its time.

        With several rooms it names the event's room.
        """
        place: dict[str, object] = {"cursor": self.cursor_of(record.number), "at": iso(record.at)}
        if record.room and len(self._sharing) > 1:
            place["room"] = record.room
        return place | encode(record.event)

    def _ring(self, room: str) -> Ring[Record]:
        if room not in self._rooms:
            self._rooms[room] = Ring(self.numbering, self._capacity, self._max_characters)
        return self._rooms[room]

    def _evict(self) -> None:
        """Evict what is beyond the bounds, the newest event too if it is too long."""
        gone: set[int] = set()
        while True:
            crowded = len(self._records) - len(gone) > self._capacity
            if not crowded and self._characters <= self._max_characters:
                break
            ring = self._fullest(len(gone), crowded=crowded)
            self._characters -= ring.weight
            gone.add(ring.evict())
            self._characters += ring.weight
        if gone:
            self.forgotten = max(self.forgotten, max(gone))
        if len(gone) > REBUILT_ABOVE:
            self._records = deque(one for one in self._records if one.number not in gone)
        else:
            for number in gone:
                del self._records[bisect_left(self._records, number, key=_number)]

    def _fullest(self, gone: int, *, crowded: bool) -> Ring[Record]:
        """Return the room whose oldest event goes next, after so many others."""
        if len(self._sharing) <= 1:
            return self._rooms[self._records[gone].room]
        size: Callable[[Ring[Record]], int] = len if crowded else _weight
        share = (self._capacity if crowded else self._max_characters) // len(self._sharing)
        beyond = []
        for name, ring in self._rooms.items():
            if name and name not in self._sharing and len(ring):
                return ring
            if len(ring) and (not name or size(ring) > share):
                beyond.append(ring)
        return max(beyond, key=size)


def _weight(ring: Ring[Record]) -> int:
    return ring.weight


def _characters(held: Iterable[object]) -> int:
    size = 0
    for one in held:
        match one:
            case str() if type(one) is str:  # the words of an enumeration are kept once
                size += len(one)
            case tuple() | frozenset():
                size += _characters(one) + ITEM_CHARACTERS * len(one)
    return size
