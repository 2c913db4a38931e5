"""The interface of a store's database, and the values that go in and come out. Pure.

Events are kept in their exact form (`bridge.xmpp.model.events.encode`), without cursor, time and
room, which are kept apart from it.

What every database promises, whatever it is made of:

*Order.* Each event has an id, and so has each stanza, in a sequence apart. Ids are whole numbers
above 0. A transaction gives its events ids in the order in which they were added, each higher than
every id that any process could read before. So who has read all up to an id misses nothing by going
on from there. No id is given twice, not even that of an event which was deleted; ids may be left
out.

*Time.* When something happened is what the wall clock of its observer said, to the millisecond.
It says nothing of the order: clocks differ, and are set. Leases count on the monotonic clock of the
process that asks, and never on a wall clock. A database that is shared by several machines has to
translate what one process wrote into the time of another.

*Transactions.* All of one is kept, or nothing. Writing transactions come one after the other: from
its beginning on, nothing that it reads is changed by another process before it ends. Who only reads
waits for nobody.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import chain
from sys import getsizeof
from typing import Any, NamedTuple, Protocol

UNIT_BYTES = 2_000
"""Bytes of memory that count as 1 in the weight of what waits; most events take less."""

ITEM_BYTES = 400
"""Bytes of memory that each event and stanza takes in addition to its texts."""


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
    """The event in its exact form."""
    shared: bool = False
    """Whether everybody in the room saw it; otherwise only its observer did."""
    earlier: bool = False
    """Whether the room sent it to us as we joined: its history, and who was already there."""
    number: int = 0
    """The number of the event in the journal of the run; 0 if it is in none."""


class TracedXml(NamedTuple):
    """One stanza on its way into the store or out of it; redacted."""

    at: float
    direction: str
    connection: str
    xml: str


def weight(item: object) -> int:
    """Return how much memory an item takes, in `UNIT_BYTES`; 1 for what is no event or stanza."""
    size = 0
    if isinstance(item, Happened):
        values = item.event.values()
        lists = chain.from_iterable(value for value in values if type(value) is list)
        size = ITEM_BYTES + sum(map(getsizeof, (item.event, *values, *lists)))
    elif isinstance(item, TracedXml):
        size = ITEM_BYTES + getsizeof(item.xml)
    return 1 + size // UNIT_BYTES


@dataclass(frozen=True)
class Recorded:
    """One event out of the store."""

    id: int
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
    """When it was last renewed or given up, in seconds of our monotonic clock."""
    seen_until: float
    """Until when the room was recorded, in seconds since the epoch."""


@dataclass(frozen=True)
class Query:
    """Which events to read; what is None or empty is no condition."""

    rooms: tuple[str, ...]
    """Bare JIDs."""
    domain: str
    """The domain of the accounts whose records are read."""
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
    """A number that names the room; 0 for the stanzas."""
    name: str
    """The room's bare JID; empty for connections and stanzas."""
    bytes: int
    """How much its events or stanzas take."""
    oldest: float
    """The earliest time of one of these, in seconds since the epoch."""


class Amount(NamedTuple):
    """How much to delete, or how much was deleted."""

    rows: int
    """Events or stanzas."""
    bytes: float


class Ageing(NamedTuple):
    """What deletion for age has to know of former runs, in seconds of running."""

    put_off: float = 0.0
    """How long nothing may be deleted for its age, since a clock jumped."""
    day_left: float = 0.0
    """How long the day lasts in which some was deleted that was too old before we ran."""


class Span(NamedTuple):
    """Which ids the events of a query's rooms and time have."""

    store: str
    """The name of the store: a new one at the same place has another."""
    oldest: float
    """The time of the oldest event of any room, in seconds since the epoch; infinite if there is
    none."""
    evicted: int
    """The highest id of an event of the query's rooms that was deleted; 0 if none was."""
    whole_from: float
    """From when on nothing of these rooms was deleted, in seconds since the epoch; minus infinity
    if nothing was, infinite if all was."""
    begin: int
    """The id of the oldest event of these rooms, less 1."""
    first: int
    """The id of the first of the events, less 1."""
    last: int
    """The id of the last of the events."""


class Database(Protocol):
    """A store that is open, used by one thread.

    Every method may raise `bridge.store.errors.StoreError`. `delete`, `take` and the methods that
    begin with `append` and `set` are called inside of `transaction`.
    """

    warnings: dict[str, str]
    """What was found wrong with it: a sentence for each kind of trouble."""
    unreadable: set[int]
    """The ids of what `page` has left out so far, since it is damaged."""

    def transaction(self) -> AbstractContextManager[None]:
        """Open a transaction, which is kept when the block ends, and not if that raises.

        Raises `BusyStoreError` if another process writes for too long.
        """

    def append(self, observer: Observer, happened: Sequence[Happened]) -> None:
        """Add events, in this order, without shared ones whose stanza id the room already has."""

    def append_stanzas(self, observer: Observer, stanzas: Sequence[TracedXml]) -> None:
        """Add stanzas, in this order."""

    def lease(self, room: str, domain: str) -> Lease | None:
        """Return the lease of the room for accounts of this domain; None if none can be read."""

    def take(self, room: str, domain: str, lease: Lease) -> None:
        """Write the lease of the room, whoever holds it now."""

    def has(self, room: str, domain: str, stanza_id: str) -> bool:
        """Whether there is a shared event of the room with this stanza id."""

    def newest(self) -> int:
        """Return the highest id that an event has or had; 0 if there was none."""

    def span(self, query: Query) -> Span:
        """Return which ids the events of the query's rooms and time have."""

    def page(
        self, query: Query, *, after: int, until: int, limit: int, backward: bool = False
    ) -> tuple[list[Recorded], int]:
        """Return the first events that match, and the id up to which all were read.

        Only ids above `after` and up to `until` are read, and a bounded number of them: there may
        be more matches above the id that is returned. With `backward` it starts at `until` with the
        last event, and there may be more up to the id that is returned.
        """

    def latest(self) -> float:
        """Return the time of the newest event; minus infinity if there is none."""

    def holdings(self) -> Sequence[Holding]:
        """Return what there is to delete from."""

    def size(self) -> int:
        """Return how many bytes the store takes, without what deleted events have left free."""

    def delete(self, holding: Holding, most: Amount, span: tuple[float, float] | None) -> Amount:
        """Delete events or stanzas, no more than `most`; return how much was deleted.

        Those are deleted first that were written first; with `span`, a time inclusive and one
        exclusive, those from within it, the earliest time first.
        """

    def shrink(self) -> None:
        """Give back to the system some of what deleted events have left free."""

    def ageing(self) -> Ageing:
        """Return what was written last by `set_ageing`."""

    def set_ageing(self, ageing: Ageing) -> None:
        """Keep it for this process and later ones."""

    def is_current(self) -> bool:
        """Whether what is at the store's place is still what was opened."""

    def close(self) -> None:
        """Close the store."""
