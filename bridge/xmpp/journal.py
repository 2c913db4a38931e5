"""The numbered, bounded record of what happened. Pure.

`append` is the one place that numbers and stamps. A cursor is opaque to its holder: it names
this run of the bridge and a number in it, so a restart is told from an eviction.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from bridge.xmpp.events import Event, MessageReceived, MessageSent

DEFAULT_CAPACITY = 10_000
"""Events kept in memory."""

MAX_CHARACTERS = 64_000_000
"""Of the bodies among them: whoever says a lot must not push us out of memory."""


@dataclass(frozen=True)
class Record:
    """One event, with its number and its time."""

    number: int
    at: float
    """Seconds since the epoch."""
    event: Event


class Journal:
    """Keeps the last `capacity` events, as far as `max_characters` of bodies allow."""

    def __init__(
        self,
        epoch: str,
        capacity: int = DEFAULT_CAPACITY,
        *,
        max_characters: int = MAX_CHARACTERS,
    ) -> None:
        self._epoch = epoch
        self._records: deque[Record] = deque()
        self._capacity = capacity
        self._max_characters = max_characters
        self._characters = 0
        self._last = 0

    def append(self, event: Event, at: float) -> Record:
        """Number and stamp `event`; the oldest makes room when the journal is full."""
        self._last += 1
        record = Record(self._last, at, event)
        self._records.append(record)
        self._characters += _size(event)
        while len(self._records) > self._capacity or self._characters > self._max_characters:
            self._characters -= _size(self._records.popleft().event)
        return record

    @property
    def cursor(self) -> str:
        """The position after the newest event."""
        return self.cursor_of(self._last)

    def cursor_of(self, number: int) -> str:
        """The position after the event with this number."""
        return f"{self._epoch}-{number}"

    def __iter__(self) -> Iterator[Record]:
        return iter(self._records)

    def __reversed__(self) -> Iterator[Record]:
        return reversed(self._records)

    def __len__(self) -> int:
        return len(self._records)


def _size(event: Event) -> int:
    return len(event.body) if isinstance(event, MessageReceived | MessageSent) else 0
