"""Keeps the newest events, numbered and bounded. Callers read them from a cursor on. Pure.

`Records` reads the journal, the part of one room, and the trace (`bridge.xmpp.link.trace`). All of
them take their numbers from one `Numbering`, so that a cursor is a position both among the events
of all rooms and among the stanzas.
"""

import re
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from heapq import merge
from itertools import islice
from operator import attrgetter
from typing import Generic, Literal, NamedTuple, Protocol, TypeVar

from bridge.text import iso, memory_of
from bridge.xmpp.errors import XmppError
from bridge.xmpp.model.events import Event, Source, encode

DEFAULT_CAPACITY = 10_000
"""How many events are kept in memory by default."""

MAX_WEIGHT = 64_000_000
"""Most bytes of memory of the texts in the kept events, so that long texts do not exhaust it."""

ITEM_WEIGHT = 64
"""The weight, in bytes, of each reaction and each status code in addition to its text, since a
server may send very many of them."""

_number: Callable[["Numbered"], int] = attrgetter("number")

RECORDED = "recorded:"
"""Cursors of the recorder's store begin with this; cursors of the journal never do."""

_CURSOR = re.compile("([0-9a-z]{1,32})-(0|[1-9][0-9]{0,17})")
"""Matches a cursor. The groups are the epoch, which changes with a restart, and the number of the
last record before the cursor."""


class CursorError(XmppError, ValueError):
    """The caller's cursor is invalid; the text says why."""


@dataclass(frozen=True)
class Loss:
    """The range of the evicted records after a cursor. Some records within it may be kept."""

    first: int
    """The cursor's number plus 1. If `reason` is `restarted`, it is a number of the former run, or
    of the former store."""
    last: int
    """The highest number of a record evicted in this run, or from this store; 0 if none was."""
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
        """The position of the record in the numbering, from 1."""


Kept = TypeVar("Kept", bound=Numbered)


class Records(ABC, Generic[Kept]):
    """Reads the records that are kept, in the order of their numbers.

    Records may be added and evicted during the reading.
    """

    def __init__(self, numbering: Numbering) -> None:
        self.numbering = numbering
        self.forgotten = 0
        """The highest number of a record that was evicted; 0 if none was."""

    @abstractmethod
    def parts(self, number: int) -> list[list[Kept]]:
        """Return copies of the records with a higher number, in lists that are each in order."""

    @property
    def cursor(self) -> str:
        """The cursor after everything that has happened."""
        return self.cursor_of(self.numbering.last)

    @property
    def oldest(self) -> str:
        """The cursor before the oldest record that is kept."""
        return self.cursor_of(self._start)

    def cursor_of(self, number: int) -> str:
        """Return the cursor right after this number."""
        return f"{self.numbering.epoch}-{number}"

    def position(self, cursor: str) -> tuple[int, Loss | None]:
        """Return the number after which `cursor` reads on, and which records are lost, if any.

        Raises `CursorError`.
        """
        match = _CURSOR.fullmatch(cursor)
        if cursor.startswith(RECORDED):
            raise CursorError("it is a place in the store, which xmppHistory alone reads")
        if match is None:
            raise CursorError("it does not look like a cursor; take one from a result, unchanged")
        number = int(match[2])
        if match[1] != self.numbering.epoch:
            return self._start, Loss(number + 1, self.forgotten, "restarted")
        if number > self.numbering.last:
            raise CursorError("it lies ahead of everything that has happened")
        if number < self.forgotten:
            return max(number, self._start), Loss(number + 1, self.forgotten, "evicted")
        return number, None

    def after(self, number: int) -> Iterator[Kept]:
        """Yield the records with a higher number, oldest first; also records added meanwhile.

        `position` reports the records that were evicted before the first one; this method does not.
        It stops if a newly added record was evicted before it was yielded. Then `forgotten` is
        higher than the last number.
        """
        while parts := [part for part in self.parts(number) if part]:
            for record in merge(*parts, key=_number):
                yield record
                number = record.number
            if self.forgotten > number:
                return

    def __iter__(self) -> Iterator[Kept]:
        return self.after(0)

    def __reversed__(self) -> Iterator[Kept]:
        return merge(*map(reversed, self.parts(0)), key=_number, reverse=True)

    @property
    def _start(self) -> int:
        """The number before the number of the oldest record."""
        return min([self.forgotten, *(part[0].number - 1 for part in self.parts(0) if part)])


class Ring(Records[Kept]):
    """Records of one kind. The oldest can be evicted."""

    def __init__(self, numbering: Numbering) -> None:
        super().__init__(numbering)
        self.weight = 0
        """The weight of all that is kept."""
        self._records: deque[Kept] = deque()
        self._weights: deque[int] = deque()

    def __len__(self) -> int:
        return len(self._records)

    def parts(self, number: int) -> list[list[Kept]]:
        """Return a copy of the records with a higher number."""
        first = bisect_right(self._records, number, key=_number)
        return [list(islice(self._records, first, None))]

    @property
    def first(self) -> int:
        """The number of the oldest record. There must be a record."""
        return self._records[0].number

    def add(self, record: Kept, weight: int) -> None:
        """Keep `record`."""
        self._records.append(record)
        self._weights.append(weight)
        self.weight += weight

    def evict(self) -> int:
        """Evict the oldest record; return its weight."""
        self.forgotten = self._records.popleft().number
        weight = self._weights.popleft()
        self.weight -= weight
        return weight

    def evict_beyond(self, capacity: int, max_weight: int) -> None:
        """Evict the oldest records until both bounds hold; the newest too if it is too heavy."""
        while len(self._records) > capacity or self.weight > max_weight:
            self.evict()


class Record(NamedTuple):
    """One event, with its number, its time and its room."""

    number: int
    at: float
    """Seconds since the epoch."""
    event: Event
    room: str = ""
    """The room's bare JID; empty for an event of the connection as a whole."""
    stanza: int = 0
    """The number in the trace of the stanza that brought the event; 0 if none did."""
    earlier: bool = False
    """Whether the room sent the event because we entered: its occupants, history and subject."""

    @property
    def sender(self) -> str:
        """The nickname of the occupant who did it; empty if no occupant did."""
        return str(getattr(self.event, "sender", None) or "")

    @property
    def body(self) -> str:
        """The body of a message; empty if the event has none."""
        return str(getattr(self.event, "body", ""))

    @property
    def is_own(self) -> bool:
        """Whether the event is a message that the bridge said, as the room sent it back."""
        return bool(getattr(self.event, "own", False))

    @property
    def is_public(self) -> bool:
        """Whether the event is a message to all in the room."""
        return getattr(self.event, "type", None) == "groupchat"

    @property
    def is_live(self) -> bool:
        """Whether the event is a message that was said while we were in the room."""
        return getattr(self.event, "source", None) is Source.LIVE


class Journal(Records[Record]):
    """Keeps the last `capacity` events of all rooms, as far as `max_weight` allows.

    With one room the oldest event of all is evicted. With several, each has a share: the bound
    divided by the number of rooms. A room within its share loses nothing. Otherwise the largest
    holder loses its oldest event: a room over its share, or the connection, which has no share.
    Events of a room that is no longer in the settings are evicted before all others.
    """

    def __init__(
        self, epoch: str, capacity: int = DEFAULT_CAPACITY, *, max_weight: int = MAX_WEIGHT
    ) -> None:
        super().__init__(Numbering(epoch))
        self._capacity = capacity
        self._max_weight = max_weight
        self._sharing: frozenset[str] = frozenset()
        """The rooms of the settings."""
        self._rooms: dict[str, Ring[Record]] = {}
        """The records of each room that the settings have named while the bridge ran. The
        connection's records are under an empty name."""
        self._length = self._weight = 0
        """The number and the weight of the events of all rooms together."""

    def share_among(self, rooms: Iterable[str]) -> None:
        """Give each of these rooms its share of the bounds, from the next event on."""
        self._sharing = frozenset(rooms)

    def of(self, room: str | None) -> Records[Record]:
        """Return a reader of the events of the room with this bare JID; None means all rooms."""
        return self if room is None else self._ring(room)

    def append(
        self, event: Event, at: float, room: str = "", stanza: int = 0, *, earlier: bool = False
    ) -> Record:
        """Number and stamp `event`, and keep it; see `Record` for the rest."""
        record = Record(self.numbering.next(), at, event, room, stanza, earlier)
        weight = _weight(event)
        self._ring(room).add(record, weight)
        self._length += 1
        self._weight += weight
        self._evict()
        return record

    def __len__(self) -> int:
        return self._length

    def parts(self, number: int) -> list[list[Record]]:
        """Return copies of the records with a higher number, in a list for each room."""
        return [part for ring in self._rooms.values() for part in ring.parts(number)]

    def encode(self, record: Record) -> dict[str, object]:
        """Return the exact form of a record's event, with its cursor and its time in front.

        If there are several rooms, the event's room follows the time.
        """
        stamp: dict[str, object] = {"cursor": self.cursor_of(record.number), "at": iso(record.at)}
        if record.room and len(self._sharing) > 1:
            stamp["room"] = record.room
        return stamp | encode(record.event)

    def _ring(self, room: str) -> Ring[Record]:
        if room not in self._rooms:
            self._rooms[room] = Ring(self.numbering)
        return self._rooms[room]

    def _evict(self) -> None:
        """Evict events until the bounds hold, the newest event too if it is too long."""
        while (crowded := self._length > self._capacity) or self._weight > self._max_weight:
            ring = self._next_to_evict(crowded=crowded)
            self._length -= 1
            self._weight -= ring.evict()
            self.forgotten = max(self.forgotten, ring.forgotten)

    def _next_to_evict(self, *, crowded: bool) -> Ring[Record]:
        """Return the room, or the connection, whose oldest event is evicted next."""
        holding = {name: ring for name, ring in self._rooms.items() if len(ring)}
        if len(self._sharing) <= 1:
            return min(holding.values(), key=lambda ring: ring.first)
        for name, ring in holding.items():
            if name and name not in self._sharing:
                return ring
        size: Callable[[Ring[Record]], int] = len if crowded else attrgetter("weight")
        share = (self._capacity if crowded else self._max_weight) // len(self._sharing)
        beyond = [ring for name, ring in holding.items() if not name or size(ring) > share]
        return max(beyond, key=size)


def _weight(event: Event) -> int:
    """Return how many bytes of memory the texts of an event take."""
    size = 0
    for held in event if isinstance(event, tuple) else vars(event).values():
        if not held:
            continue
        if type(held) is str:  # not a member of an enumeration, which exists once
            size += memory_of(held)
        elif isinstance(held, tuple | frozenset):
            size += ITEM_WEIGHT * len(held)
            size += sum(memory_of(item) for item in held if isinstance(item, str))
    return size
