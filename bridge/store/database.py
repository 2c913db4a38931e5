"""The values that go into a store's database and out of it. Pure.

A store keeps events in their exact form (`bridge.xmpp.model.events.encode`), and cursor, time and
room apart from it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from sys import getsizeof
from typing import Any, NamedTuple

from bridge.store.pairing import Key
from bridge.text import memory_of

UNIT_BYTES = 2_000
"""The unit of `weight`, in bytes of memory; most events take less."""

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
        """The domain of the account. All accounts of a domain share their records."""
        return self.account.rpartition("@")[2]


class Happened(NamedTuple):
    """One event on its way into the store."""

    at: float
    """Seconds since the epoch."""
    room: str
    """Bare JID; empty for an event of the connection as a whole."""
    event: Mapping[str, Any]
    """The event in its exact form."""
    shared: bool = False
    """Whether all in the room saw the event; otherwise only its observer did."""
    earlier: bool = False
    """Whether the room sent it to us as we joined: its history, and the occupants already there."""
    number: int = 0
    """The number of the event in the journal of the run; 0 if it is in no journal."""
    steady: float | None = None
    """When it was observed, by `bridge.store.clock.steady`; None if `at` is all that is known."""
    seen: float | None = None
    """When it happened, by the clock that all observers share; None as long as it is not known."""
    key: Key | None = None
    """What all its observers have in common; None as long as it is not computed."""
    observer: Observer = Observer("", "", "")
    """Who observed it; the store fills this in when it writes the event."""
    row: int = 0
    """The id of the event in the file from which it is shipped to a database; else 0."""

    @property
    def when(self) -> float:
        """When it happened, by the clock that all observers share as soon as that is known."""
        return self.at if self.seen is None else self.seen


class Sent(NamedTuple):
    """How far a file was shipped: ids of the last event and of the last stanza."""

    event: int
    stanza: int


class Former(NamedTuple):
    """How far a file was shipped when it gave a name up, which a copy of the file goes on using."""

    sent: int
    sent_stanza: int
    """Up to these rows, the database's rows of the name are the file's own."""
    last: int
    last_stanza: int
    """The file's last rows then; a cursor with the name may be the copy's beyond them."""


class Mark(NamedTuple):
    """What the database knows about a file."""

    id: int
    host: str
    now: float
    """The time by the clock of the database, in seconds since the epoch."""
    sent: Sent
    """How far the file was shipped, according to the database."""


class TracedXml(NamedTuple):
    """One stanza on its way into the store or out of it; redacted."""

    at: float
    direction: str
    connection: str
    xml: str


def weight(item: object) -> int:
    """Return how much memory an item takes, in `UNIT_BYTES`; 1 if it is no event or stanza."""
    size = 0
    if isinstance(item, Happened):
        values = item.event.values()
        lists = chain.from_iterable(value for value in values if type(value) is list)
        size = ITEM_BYTES + sum(map(_memory_of, (item.event, *values, *lists)))
    elif isinstance(item, TracedXml):
        size = ITEM_BYTES + _memory_of(item.xml)
    return 1 + size // UNIT_BYTES


def _memory_of(value: object) -> int:
    return getsizeof("") + memory_of(value) if isinstance(value, str) else getsizeof(value)


@dataclass(frozen=True)
class Recorded:
    """One event that was read from the store."""

    id: int
    at: float
    room: str
    event: dict[str, Any]
    observer: Observer
    shared: bool
    echoed: bool = False
    """Whether it is a message that a bridge sent, and the room's copy of it is recorded too."""
    seen: float = 0.0
    """When it happened, by the clock that all observers share."""
    file: str = ""
    """The name of the file into which its observer wrote it."""
    row: int = 0
    """The id of the event in that file."""


class Tenure(NamedTuple):
    """A run's stay in a room. Everything that the run saw there up to `until` is in the store."""

    id: int
    run: str
    since: float
    until: float
    since_at: float
    """The same moment as `since` by the wall clock of the run, in seconds since the epoch."""
    until_at: float
    """The same for `until`."""
    ended: bool
    """Whether the run left the room; else it may be there still, or was killed."""
    file: str = ""
    """The name of the file in which the tenure has this id."""
    asked: float = 0.0
    """When the run asked the room to let it in, by the clock of `since`."""


@dataclass(frozen=True)
class Query:
    """The events to read; a field that is None or empty is no condition."""

    rooms: tuple[str, ...]
    """Bare JIDs."""
    domain: str
    """The domain of the accounts whose records are read."""
    connection_of: tuple[str, ...] = ()
    """Accounts. The events of their connections, which have no room, are read too."""
    start: float | None = None
    """Seconds since the epoch, inclusive."""
    end: float | None = None
    """Seconds since the epoch, inclusive."""
    kinds: frozenset[str] | None = None
    contains: tuple[str, ...] = ()
    """Searchable texts. The event's text contains at least one of them."""
    mentions: str = ""
    """A text that the exact form contains anywhere, in upper or lower case."""
    stanzas: bool = False
    """Whether to read stanzas in place of events; each comes as an event of the kind `stanza`."""


class Holding(NamedTuple):
    """The store's rows of one room, of connections to one domain, or of all stanzas."""

    id: int
    """A number that names the room; 0 for the stanzas."""
    name: str
    """The room's bare JID; empty for connections and stanzas."""
    bytes: int
    """The bytes that its events or stanzas take."""
    oldest: float
    """The earliest time of its events or stanzas, in seconds since the epoch."""


class Amount(NamedTuple):
    """How much to delete, or how much was deleted."""

    rows: int
    """Events or stanzas."""
    bytes: float


class Ageing(NamedTuple):
    """Two pauses in the deletion of old rows, which go on in the next run of the process."""

    put_off: float = 0.0
    """Running seconds until rows may be deleted for their age again, after a clock jumped."""
    day_left: float = 0.0
    """Running seconds until the next tenth of the store may be deleted of old rows: rows that were
    already too old when this process, or a former one, started. See `bridge.store.retention`."""


class Span(NamedTuple):
    """The range of the ids of the events in a query's rooms and time."""

    store: str
    """The name of the store; a new store at the same place has another name."""
    oldest: float
    """The time of the oldest event of any room, in seconds since the epoch; infinite if there is
    none."""
    evicted: int
    """The highest id of a deleted event of the query's rooms; 0 if none was deleted."""
    whole_from: float
    """Since this time, in seconds since the epoch, no event of these rooms was deleted. Minus
    infinity if none was, infinite if all were."""
    begin: int
    """The id of the oldest event in these rooms, less 1."""
    first: int
    """The id of the first of the events, less 1."""
    last: int
    """The id of the last of the events."""
