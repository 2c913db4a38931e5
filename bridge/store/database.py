"""What the recorder asks of a database, and the values that go in and come out. Pure.

Events are kept in their exact form (`bridge.xmpp.events.encode`), without cursor, time and room,
which have columns of their own. SQLite (`bridge.store.sqlite`) is the one database so far.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol


@dataclass(frozen=True)
class Observer:
    """Who saw what is recorded: one run of a bridge, under one account and nickname."""

    account: str
    """Bare JID."""
    nickname: str
    run: str
    """Names the run: the epoch of its journal."""

    def __str__(self) -> str:
        return f"{self.account} as {self.nickname}"

    @property
    def domain(self) -> str:
        """The domain of the account: its accounts share what they recorded."""
        return self.account.rpartition("@")[2]


class Happened(NamedTuple):
    """One event on its way into the store."""

    at: float
    """Seconds since the epoch."""
    room: str
    """Bare JID; empty for what concerns the connection as a whole."""
    event: Mapping[str, Any]
    """Its exact form."""
    text: str = ""
    """Body, subject or status text, as `bridge.text.searchable` has it."""
    shared: bool = False
    """Whether everybody in the room saw it; else it is kept with its observer."""
    earlier: bool = False
    """Whether it was before we came, and the room told us of it: its history, and who was there."""


class TracedXml(NamedTuple):
    """One stanza on its way into the store, and out of it; redacted."""

    at: float
    direction: str
    connection: str
    xml: str


@dataclass(frozen=True)
class Recorded:
    """One event out of the store."""

    id: int
    """Its place in the one order of the store."""
    at: float
    room: str
    event: dict[str, Any]
    observer: Observer
    shared: bool
    echoed: bool = False
    """Whether it is a message on its way out, of which the room's copy is recorded too."""


class Lease(NamedTuple):
    """Who records what everybody in a room sees."""

    run: str
    """The run that has it; empty once it was given up."""
    beat: float
    """When it was renewed, in seconds of the machine's monotonic clock, which all processes share;
    or given up."""
    seen_until: float
    """Until when somebody recorded the room, in seconds since the epoch."""


@dataclass(frozen=True)
class Query:
    """Which events are asked for; a condition that is None is no condition."""

    rooms: tuple[str, ...]
    """Bare JIDs."""
    domain: str
    """That of the accounts whose records count."""
    connection_of: tuple[str, ...] = ()
    """Accounts whose connection counts too: events without a room."""
    start: float | None = None
    """Seconds since the epoch, inclusive."""
    end: float | None = None
    """Seconds since the epoch, inclusive."""
    kinds: frozenset[str] | None = None
    contains: tuple[str, ...] = ()
    """Searchable texts, one of which at least is in the event's text; empty: no condition."""
    mentions: str = ""
    """A text that is in the exact form, wherever and in any case; empty: no condition."""
    stanzas: bool = False
    """Stanzas are asked for, as events of the kind `stanza`, and not what they meant."""


class Span(NamedTuple):
    """Between which places of a store the events of a time are."""

    store: str
    """Names the store: a new one in its place has another name."""
    evicted: int
    """The highest place of an event that was deleted; 0: none was."""
    oldest: float
    """The time of the oldest event that is kept, of any room; infinite where none is."""
    first: int
    """The place ahead of the first of them."""
    last: int
    """The place of the last of them."""


class Database(Protocol):
    """A store that is open, used by one thread.

    Every method may raise `bridge.store.errors.StoreError`.
    Writing happens inside `transaction`, which keeps all of it or nothing.
    """

    def transaction(self) -> AbstractContextManager[None]:
        """Begin to write: nobody else writes until the block ends."""

    def append(self, observer: Observer, happened: Iterable[Happened]) -> None:
        """Add events, in this order; one whose stanza id the room's records have is left out."""

    def append_stanzas(self, observer: Observer, stanzas: Iterable[TracedXml]) -> None:
        """Add stanzas, in this order."""

    def lease(self, room: str, domain: str) -> Lease | None:
        """Return who records the room for accounts of this domain; None: nobody ever did."""

    def take(self, room: str, domain: str, lease: Lease) -> None:
        """Write who records the room."""

    def shared_after(self, room: str, domain: str, id_: int) -> Sequence[Recorded]:
        """Return what everybody in the room saw and was recorded after this place."""

    def newest(self) -> int:
        """Return the place of the newest event; 0 in an empty store."""

    def span(self, query: Query) -> Span:
        """Return where the events of the query's rooms and time are."""

    def page(
        self, query: Query, *, after: int, until: int, limit: int, backward: bool = False
    ) -> tuple[list[Recorded], int]:
        """Return the first events behind `after` that match, up to `until`, and how far was looked.

        That is a bounded way: behind the place that is returned there may be more. With `backward`
        it comes from `until`: the last event first, and there may be more ahead of the place.
        """

    def expire(self, before: float, max_bytes: int, most: int) -> int:
        """Delete at most so many of the oldest events and stanzas; return how many went.

        Those from before this time go, and any while the store is larger than `max_bytes`.
        """

    def stands(self) -> bool:
        """Whether the store is still what is at its path."""

    def close(self) -> None:
        """Let go of it."""
