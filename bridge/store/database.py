"""The interface of a store's database, and the values that go in and come out. Pure.

Events are kept in their exact form (`bridge.xmpp.events.encode`), without cursor, time and room,
which have columns of their own. SQLite (`bridge.store.sqlite`) is the one database so far.

Each event has a row id, and is read in the order of these ids: the order in which it was written.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol


@dataclass(frozen=True)
class Observer:
    """Who observed an event: one run of a bridge, under one account and nickname."""

    account: str
    """Bare JID."""
    nickname: str
    run: str
    """The name of the run: the epoch of its journal."""

    def __str__(self) -> str:
        return f"{self.account} as {self.nickname}"

    @property
    def domain(self) -> str:
        """The domain of the account: all accounts of a domain share what they recorded."""
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
    """Whether everybody in the room saw it; otherwise only its observer did."""
    earlier: bool = False
    """Whether the room sent it to us as we joined: its history, and who was already there."""
    number: int = 0
    """Its number in the journal of the run; 0 if it is in none."""


class TracedXml(NamedTuple):
    """One stanza on its way into the store or out of it; redacted."""

    at: float
    direction: str
    connection: str
    xml: str


@dataclass(frozen=True)
class Recorded:
    """One event out of the store."""

    id: int
    """Its row id."""
    at: float
    room: str
    event: dict[str, Any]
    observer: Observer
    shared: bool
    echoed: bool = False
    """Whether it is a message on its way out, of which the room's copy is recorded too."""


class Lease(NamedTuple):
    """Which run writes the shared events of a room."""

    run: str
    """The run that holds it; empty once it was given up."""
    beat: float
    """When it was last renewed or given up, in seconds of the machine's monotonic clock, which all
    processes share."""
    seen_until: float
    """Until when the room was recorded, in seconds since the epoch."""


@dataclass(frozen=True)
class Query:
    """Which events to read; what is None or empty is no condition."""

    rooms: tuple[str, ...]
    """Bare JIDs."""
    domain: str
    """Of the accounts whose records are read."""
    connection_of: tuple[str, ...] = ()
    """Accounts of which the events without a room are read too: those of the connection."""
    start: float | None = None
    """Seconds since the epoch, inclusive."""
    end: float | None = None
    """Seconds since the epoch, inclusive."""
    kinds: frozenset[str] | None = None
    contains: tuple[str, ...] = ()
    """Searchable texts, at least one of which is in the event's text."""
    mentions: str = ""
    """A text that is anywhere in the exact form, in upper or lower case."""
    stanzas: bool = False
    """Whether to read stanzas in place of events; each comes as an event of the kind `stanza`."""


class Span(NamedTuple):
    """Between which row ids the events of a query's rooms and time are."""

    store: str
    """The name of the store: a new one at the same path has another."""
    evicted: int
    """The highest row id of an event that was deleted; 0 if none was."""
    oldest: float
    """The time of the oldest event of any room, in seconds since the epoch; infinite if there is
    none."""
    first: int
    """The row id of the first of the events, less 1."""
    last: int
    """The row id of the last of the events."""


class Database(Protocol):
    """A store that is open, used by one thread.

    Every method may raise `bridge.store.errors.StoreError`.
    Writing happens inside `transaction`, which keeps all of it or nothing.
    """

    def transaction(self) -> AbstractContextManager[None]:
        """Open a transaction: no other process writes until the block ends."""

    def append(self, observer: Observer, happened: Iterable[Happened]) -> None:
        """Add events, in this order, without shared ones whose stanza id the room already has."""

    def append_stanzas(self, observer: Observer, stanzas: Iterable[TracedXml]) -> None:
        """Add stanzas, in this order."""

    def lease(self, room: str, domain: str) -> Lease | None:
        """Return the lease of the room for accounts of this domain; None if there never was one."""

    def take(self, room: str, domain: str, lease: Lease) -> None:
        """Write the lease of the room, whoever holds it now."""

    def shared_after(self, room: str, domain: str, id_: int) -> Sequence[Recorded]:
        """Return the shared events of the room that have a higher row id."""

    def newest(self) -> int:
        """Return the row id of the newest event; 0 in an empty store."""

    def span(self, query: Query) -> Span:
        """Return between which row ids the events of the query's rooms and time are."""

    def page(
        self, query: Query, *, after: int, until: int, limit: int, backward: bool = False
    ) -> tuple[list[Recorded], int]:
        """Return the first events that match, and the row id up to which all rows were read.

        Only row ids above `after` and up to `until` are read, and a bounded number of them: there
        may be more matches above the id that is returned. With `backward` it starts at `until` with
        the last event, and there may be more up to the id that is returned.
        """

    def expire(self, before: float, max_bytes: int, most: int) -> int:
        """Delete at most `most` of the oldest events and stanzas; return how many were deleted.

        These are those from before this time, and any while the store is larger than `max_bytes`.
        """

    def stands(self) -> bool:
        """Whether the file at the path is still the one that was opened."""

    def close(self) -> None:
        """Close the store."""
