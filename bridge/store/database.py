"""The interface of a store's database, and the values that go in and come out. Pure.

Events are kept in their exact form (`bridge.xmpp.model.events.encode`), without cursor, time and
room, which have columns of their own. SQLite (`bridge.store.sqlite`) is the one database so far.

Each event has a row id, and is read in the order of these ids: the order in which it was written.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from sys import getsizeof
from typing import Any, NamedTuple, Protocol

UNIT_BYTES = 2_000
"""Of memory, that count as one in the weight of what waits; most events take less."""

ITEM_BYTES = 400
"""Of memory that each event and stanza takes beside its texts."""


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


def weight(item: Happened | TracedXml) -> int:
    """Return how much memory an item takes, in `UNIT_BYTES`."""
    if isinstance(item, TracedXml):
        return 1 + (ITEM_BYTES + getsizeof(item.xml)) // UNIT_BYTES
    size = ITEM_BYTES + getsizeof(item.event)
    for one in item.event.values():
        size += getsizeof(one)
        if type(one) is list:
            size += sum(map(getsizeof, one))
    return 1 + size // UNIT_BYTES


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
    shared: bool = False
    """Whether to read shared events alone."""


class Holding(NamedTuple):
    """What the store has of one room, of connections to one domain, or of all stanzas."""

    id: int
    """The row id of the room; 0 for the stanzas."""
    name: str
    """The room's bare JID; empty for connections and stanzas."""
    bytes: int
    """Of its rows."""
    oldest: float
    """The earliest time of a row, in seconds since the epoch."""


class Amount(NamedTuple):
    """How much to delete, or how much was deleted."""

    rows: int
    bytes: float


class Ageing(NamedTuple):
    """What deletion for age has to know of former runs. Times are of running."""

    put_off: float = 0.0
    """Seconds until something may be deleted for its age."""
    doubted: int = 0
    """The row id of the newest event when that was last put off."""
    day_left: float = 0.0
    """Seconds until the day ends for which `spare` holds; 0 if nothing was deleted in it."""
    spare: float = 0.0
    """Bytes of rows that may be deleted for their age in the rest of this day."""


class Span(NamedTuple):
    """Between which row ids the events of a query's rooms and time are."""

    store: str
    """The name of the store: a new one at the same path has another."""
    oldest: float
    """The time of the oldest event of any room, in seconds since the epoch; infinite if there is
    none."""
    evicted: int
    """The highest row id of an event of the query's rooms that was deleted; 0 if none was."""
    whole_from: float
    """From when on nothing of these rooms was deleted, in seconds since the epoch; minus infinity
    if nothing was, infinite if all was."""
    begin: int
    """The row id of the oldest event of these rooms, less 1."""
    first: int
    """The row id of the first of the events, less 1."""
    last: int
    """The row id of the last of the events."""


class Database(Protocol):
    """A store that is open, used by one thread.

    Every method may raise `bridge.store.errors.StoreError`.
    Writing happens inside `transaction`, which keeps all of it or nothing.
    """

    warnings: dict[str, str]
    """What was found wrong with it: a sentence for each kind of trouble."""

    def transaction(self) -> AbstractContextManager[None]:
        """Open a transaction: no other process writes until the block ends."""

    def append(self, observer: Observer, happened: Iterable[Happened]) -> None:
        """Add events, in this order, without shared ones whose stanza id the room already has."""

    def append_stanzas(self, observer: Observer, stanzas: Iterable[TracedXml]) -> None:
        """Add stanzas, in this order."""

    def lease(self, room: str, domain: str) -> Lease | None:
        """Return the lease of the room for accounts of this domain; None if none can be read."""

    def take(self, room: str, domain: str, lease: Lease) -> None:
        """Write the lease of the room, whoever holds it now."""

    def has(self, room: str, domain: str, stanza_id: str) -> bool:
        """Whether there is a shared event of the room with this stanza id."""

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

    def latest(self) -> tuple[int, float]:
        """Return row id and time of the newest event; without one (0, minus infinity)."""

    def holdings(self) -> Sequence[Holding]:
        """Return what there is to delete from."""

    def size(self) -> int:
        """Return how many bytes of the disk are in use, free pages not counted."""

    def delete(self, holding: Holding, most: Amount, span: tuple[float, float] | None) -> Amount:
        """Delete rows, no more than `most`; return how much was deleted.

        Those are deleted first that were written first; with `span`, a time inclusive and one
        exclusive, those from within it, the earliest time first.
        """

    def shrink(self) -> None:
        """Give back to the disk some of what is free."""

    def ageing(self) -> Ageing:
        """Return what was written last by `set_ageing`."""

    def set_ageing(self, ageing: Ageing) -> None:
        """Keep it for this process and later ones."""

    def stands(self) -> bool:
        """Whether the file at the path is still the one that was opened."""

    def close(self) -> None:
        """Close the store."""
