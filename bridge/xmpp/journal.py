"""The numbered, bounded record of what happened. Pure.

`append` is the one place that numbers and stamps.
"""

from collections.abc import Iterable, Iterator, Sequence

from bridge.frozen import dataclass
from bridge.xmpp.chapter import Chapter
from bridge.xmpp.events import Event
from bridge.xmpp.ring import Loss, Numbering, Ring

DEFAULT_CAPACITY = 10_000
"""Events kept in memory."""

MAX_CHARACTERS = 64_000_000
"""Of the texts in them: whoever says a lot must not push us out of memory."""

ITEM_CHARACTERS = 64
"""What each reaction and each status code counts beside its text: a server may send very many."""


@dataclass(frozen=True)
class Record:
    """One event, with its number and its time."""

    number: int
    at: float
    """Seconds since the epoch."""
    event: Event


class Journal:
    """Keeps the last `capacity` events, as far as `max_characters` of text allow."""

    def __init__(
        self,
        epoch: str,
        capacity: int = DEFAULT_CAPACITY,
        *,
        max_characters: int = MAX_CHARACTERS,
    ) -> None:
        self.numbering = Numbering(epoch)
        """Shared with the trace, so that a cursor is a place in both."""
        self._ring: Ring[Record] = Ring(capacity, max_characters, Chapter)

    def append(self, event: Event, at: float) -> Record:
        """Number and stamp `event`; the oldest makes room when the journal is full."""
        record = Record(self.numbering.next(), at, event)
        self._ring.append(record, _size(vars(event).values()))
        return record

    @property
    def cursor(self) -> str:
        """The place after everything that has happened."""
        return self.cursor_of(self.numbering.last)

    @property
    def oldest(self) -> str:
        """The place before the oldest event that is kept."""
        return self.cursor_of(self._ring.forgotten)

    @property
    def evicted(self) -> Loss | None:
        """What is not kept of this run; None if all of it is."""
        forgotten = self._ring.forgotten
        return Loss(1, forgotten, "evicted") if forgotten else None

    def cursor_of(self, number: int) -> str:
        """The place after the event with this number."""
        return self.numbering.cursor_of(number)

    def since(self, cursor: str) -> tuple[list[Record], Loss | None]:
        """Return what came after `cursor`, oldest first, and what of it is lost.

        Raises `CursorError` where it is no cursor.
        """
        number, loss = self.numbering.place(cursor, self._ring.forgotten)
        return self._ring.after(number), loss

    def parts(self, since: str | None) -> tuple[Sequence[Sequence[Record]], Loss | None]:
        """Return the same as `since`, or all that is kept, in parts; most are a `Chapter`."""
        if since is None:
            return self._ring.stretches(), self.evicted
        number, loss = self.numbering.place(since, self._ring.forgotten)
        return self._ring.stretches(number), loss

    def __iter__(self) -> Iterator[Record]:
        return iter(self._ring)

    def __reversed__(self) -> Iterator[Record]:
        return reversed(self._ring)

    def __len__(self) -> int:
        return len(self._ring)


def _size(values: Iterable[object]) -> int:
    size = 0
    for one in values:
        match one:
            case str():
                size += len(one)
            case tuple() | frozenset():
                size += _size(one) + ITEM_CHARACTERS * len(one)
    return size
