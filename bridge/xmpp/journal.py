"""The numbered, bounded record of what happened. Pure.

`append` is the one place that numbers and stamps.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from bridge.xmpp.book import Book
from bridge.xmpp.chapter import Chapter
from bridge.xmpp.events import Event
from bridge.xmpp.ring import Numbering, Ring

DEFAULT_CAPACITY = 10_000
"""Events kept in memory."""

MAX_CHARACTERS = 64_000_000
"""Of the texts in them: whoever says a lot must not push us out of memory."""

ITEM_CHARACTERS = 64
"""What each reaction and each status code counts beside its text: a server may send very many."""


@dataclass(frozen=True, slots=True)
class Record:
    """One event, with its number and its time."""

    number: int
    at: float
    """Seconds since the epoch."""
    event: Event


class Journal(Book[Record]):
    """Keeps the last `capacity` events, as far as `max_characters` of text allow."""

    def __init__(
        self,
        epoch: str,
        capacity: int = DEFAULT_CAPACITY,
        *,
        max_characters: int = MAX_CHARACTERS,
    ) -> None:
        super().__init__(Numbering(epoch), Ring(capacity, max_characters, Chapter.closed))

    def append(self, event: Event, at: float) -> Record:
        """Number and stamp `event`; the oldest makes room when the journal is full."""
        record = Record(self.numbering.next(), at, event)
        self._ring.append(record, _size([getattr(event, name) for name in event.__match_args__]))
        return record


def _size(held: Iterable[object]) -> int:
    size = 0
    for one in held:
        match one:
            case str():
                size += len(one)
            case tuple() | frozenset():
                size += _size(one) + ITEM_CHARACTERS * len(one)
    return size
