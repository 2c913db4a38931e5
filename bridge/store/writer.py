"""Prepares what one bridge writes into the store that all bridges of a user share.

All in a room see shared events. Only the bridge that holds the room's lease writes them. The others
keep the shared events that they observe in memory (`pending`), read the holder's events, and drop
the events that they find there. When the holder is gone, one of them takes the lease and writes the
events that it still has pending. So no event is lost, and none is there twice. Each bridge itself
writes the events that only it sees. `bridge.store.decision` says who writes what.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from math import inf
from operator import itemgetter
from typing import NamedTuple, TypeAlias

from bridge.store.database import (
    Happened,
    Observer,
    Query,
    Recorded,
    RecorderDatabase,
    TracedXml,
    weight,
)
from bridge.store.decision import PATIENCE_SECONDS, SKEW_SECONDS, Stay, decide
from bridge.store.errors import BusyStoreError
from bridge.store.pairing import SAME_SECONDS, Mark, Observed, mark_of, unpaired
from bridge.text import iso

NOBODY = "nobody recorded this room"
"""The `reason` of a gap in which no bridge was in the room."""

OUTSIDE = "the room had not let us in"
"""The `reason` of a gap that counts events that a room sent to a bridge outside of it."""

MAX_COMPARED = 1_000
"""We compare at most so many recorded events with the events that the room sends when we enter."""

COMPARED_IDS = 50_000
"""We look for these events among at most so many ids, since other bridges wait meanwhile."""

SLICE = 50
"""How many events are read at a time, so that no more whole events are in memory at once."""

MAX_UNREAD = 10_000
"""We read at most so many events of other bridges while the store is locked, which takes a tenth of
a second."""

MAX_FOUND = 20_000
"""If others have written events that we have not observed yet, we keep at most so many marks of
them, at 250 bytes each. Each room has an equal share of them."""

MAX_WAITING = 20_000
"""The highest weight of the items that wait to be written: 40 MB. The events that the writer keeps
may have the same weight again: events that other bridges have to write, and events that rooms sent
before they let us in."""


class Entered(NamedTuple):
    """We are in a room now."""

    room: str
    """Bare JID."""
    at: float
    """Seconds since the epoch."""
    now: float
    """We have received all events of the room since this time, in seconds of the monotonic
    clock."""


class Left(NamedTuple):
    """We have left a room, at this time on both clocks."""

    room: str
    at: float
    now: float


Item: TypeAlias = Observer | Entered | Left | Happened | TracedXml
"""An item for a recorder. Items are in order, and an `Observer` applies to all items after it."""


class Moment(NamedTuple):
    """The time of a transaction, and whether it is the last one."""

    at: float
    """Seconds since the epoch."""
    now: float
    """Seconds of the monotonic clock."""
    more: bool = False
    """Whether another transaction follows at once, with items from before this moment."""
    closing: bool = False
    """Whether it is the last transaction of this process."""


@dataclass
class _Room:
    """The state of a room that we are in, or are entering."""

    since: Entered | None = None
    """When we entered it; None while we are entering."""
    began: float = 0
    """The number by which a gap before our stay is sorted: just below the number of the stay's
    first item."""
    pending: list[Observed] = field(default_factory=list)
    """Shared events that are not yet in the store."""
    foreign: list[Mark] = field(default_factory=list)
    """Marks of shared events that others have written, and that we have not observed yet."""
    read_up_to: int | None = None
    """The id of the last event that was read for `foreign`; None if none was."""
    earlier: list[Observed] = field(default_factory=list)
    """What the room sent us about the time before we came: its history, and its occupants."""
    writes_earlier: bool | None = None
    """Whether to write `earlier`, since no bridge recorded the room when we joined; None if not
    known yet."""
    missed: tuple[int, float, float] = (0, inf, 0.0)
    """How many lost events of `earlier` are in no gap yet, and the times of the first and the last
    of them, in seconds since the epoch."""

    @property
    def weight(self) -> int:
        """The weight of all events of which we do not know yet whether to write them."""
        return sum(event.weight for event in self.pending + self.earlier)

    def lose(self, events: Iterable[Observed]) -> None:
        """Count events that are not kept."""
        for event in events:
            (count, first, last), at = self.missed, event.happened.at
            self.missed = count + 1, min(first, at), max(last, at)

    def copy(self) -> "_Room":
        """Return a copy that shares no list with this one."""
        pending, foreign, earlier = [*self.pending], [*self.foreign], [*self.earlier]
        return replace(self, pending=pending, foreign=foreign, earlier=earlier)


class Writer:
    """Prepares and writes each transaction of one bridge. It has no thread and no file."""

    _database: RecorderDatabase

    def __init__(self) -> None:
        self._now = 0.0
        """When the transaction began."""
        self._moment = Moment(0.0, 0.0)
        self._recent = 0.0
        """If others observed an event since this time, we may still be about to observe it."""
        self._observer: Observer | None = None
        self._rooms: dict[str, _Room] = {}
        self._count = 0
        """The number of items so far."""
        self._rows: list[tuple[float, Happened]] = []
        """The events that this transaction is to write, each with its number."""
        self._stanzas: list[TracedXml] = []

    @property
    def pending(self) -> list[int]:
        """The numbers of the events that the writer has not written, and not found in the store."""
        rooms = self._rooms.values()
        return [event.happened.number for room in rooms for event in room.pending + room.earlier]

    def write(self, database: RecorderDatabase, items: Iterable[Item], moment: Moment) -> None:
        """Write `items` in one transaction. If it raises, neither store nor writer has changed."""
        # If the wall clock jumped forward, `steady` is the time without the jump.
        steady = self._moment.at + moment.now - self._moment.now
        self._recent = min(moment.at, steady) - SAME_SECONDS
        self._database, self._moment = database, moment
        self._rows, self._stanzas = [], []
        before = self._observer, self._rooms, self._count
        self._rooms = {name: room.copy() for name, room in self._rooms.items()}
        waiting = deque(items)
        try:
            while waiting and not isinstance(waiting[0], Observer | Left):
                self._take(waiting.popleft())
            self._catch_up()
            with database.transaction():
                self._now = database.now()
                if self._unread() > MAX_UNREAD:
                    raise BusyStoreError("other bridges write too much at once")
                for item in waiting:
                    self._take(item)
                if moment.closing:
                    self._leave_rooms()
                self._write()
        except BaseException:
            self._observer, self._rooms, self._count = before
            raise

    def _take(self, item: Item) -> None:
        self._count += 1
        match item:
            case Observer():
                self._leave_rooms()
                self._write()
                self._observer = item
            case TracedXml():
                self._stanzas.append(item)
            case Happened(shared=False):
                self._rows.append((self._count, item))
            case Left():
                self._write_room(item.room, item)
                room = self._rooms.pop(item.room, None)
                if room is not None and room.since is None:
                    room.lose(room.earlier)
                    self._rooms[item.room] = replace(room, earlier=[], began=self._count)
            case Entered():
                room = self._rooms.setdefault(item.room, _Room())
                room.since = item
                # A gap before our stay is written ahead of the events that the room sent while we
                # entered.
                room.began = min([self._count, *(event.number for event in room.earlier)]) - 0.5
            case Happened():
                room = self._rooms.setdefault(item.room, _Room())
                mark = mark_of(item.event, item.at, self._moment.now)
                event = Observed(mark, item, self._count, weight(item))
                known = room.since is not None and not item.earlier
                (room.pending if known else room.earlier).append(event)

    def _leave_rooms(self) -> None:
        for name in [*self._rooms]:
            self._take(Left(name, self._moment.at, self._moment.now))
            if (room := self._rooms.pop(name, None)) is not None:
                self._write_missed(name, room)

    def _write(self) -> None:
        if self._observer is None:
            return
        held = [room for name, room in self._rooms.items() if self._write_room(name)]
        self._trim()
        rows = [row for _, row in sorted(self._rows, key=itemgetter(0))]
        self._database.append(self._observer, rows)
        self._database.append_stanzas(self._observer, self._stanzas)
        self._rows, self._stanzas = [], []
        newest = self._database.newest() if held else 0
        for room in held:
            room.read_up_to = newest

    def _write_room(self, name: str, left: Left | None = None) -> bool:
        """Collect the events to write of one room; return whether we hold its lease and stay.

        `left` is given if we have just left the room.
        """
        me, room = self._observer, self._rooms.get(name)
        if me is None or room is None:
            return False
        held = False
        if room.since is not None:
            self._write_missed(name, room)
            lease = self._database.lease(name, me.domain)
            if room.foreign or lease is None or lease.run != me.run:
                self._read_others(me, name, room, room.since)
            end, more = left or self._moment, self._moment.more and left is None
            stay = Stay(me.run, room.since.now, end.now, end.at, more, left is not None)
            decision = decide(lease, stay, self._now, room.pending, room.writes_earlier)
            if (since := decision.unseen_from) is not None:
                event = gap(since, max(since, room.since.at), reason=NOBODY)
                unseen = Happened(room.since.at, name, event, shared=True)
                self._rows.append((room.began, unseen))
            self._rows += [(event.number, event.happened) for event in decision.shared]
            for own in decision.own:
                self._write_own(name, own)
            if decision.lease is not None:
                self._database.take(name, me.domain, decision.lease)
                held = left is None
            room.pending, room.writes_earlier = [*decision.kept], decision.earlier
        self._write_earlier(name, me.domain, room)
        return held

    def _catch_up(self) -> None:
        """Read others' events before we lock the store, so that no other bridge has to wait."""
        while self._observer is not None and (unread := self._unread()) > 0:
            for name, room in self._rooms.items():
                if room.since is not None and room.read_up_to is not None:
                    self._read_others(self._observer, name, room, room.since)
            if unread <= MAX_UNREAD:  # the rest is read under the lock
                return

    def _unread(self) -> int:
        """Return how many ids we have not read yet."""
        ids = [room.read_up_to for room in self._rooms.values() if room.read_up_to is not None]
        return self._database.newest() - min(ids) if ids else 0

    def _read_others(self, me: Observer, name: str, room: _Room, since: Entered) -> None:
        """Read what others have written since the last time, and drop it from `pending`."""
        newest, now, recent = self._database.newest(), self._moment.now, self._recent
        start = min([recent, *(event.happened.at - SAME_SECONDS for event in room.pending)])
        if room.read_up_to is None or room.read_up_to > newest:
            # We have just joined, or the store is a new one.
            room.read_up_to = max(0, newest - MAX_COMPARED)
            start = recent = since.at - SKEW_SECONDS
        ours = {event.mark.key for event in room.pending}
        foreign = [mark for mark in room.foreign if now - mark.noticed <= PATIENCE_SECONDS]
        query = Query((name,), me.domain, start=start, shared=True)
        while room.read_up_to < newest:
            events, room.read_up_to = self._database.page(
                query, after=room.read_up_to, until=newest, limit=SLICE
            )
            for event in events:
                mark = mark_of(event.event, event.at, now)
                if event.observer.run != me.run and (mark.key in ours or event.at >= recent):
                    foreign.append(mark)
            del foreign[: -MAX_FOUND // len(self._rooms)]
        room.pending, room.foreign = unpaired(room.pending, foreign)

    def _write_own(self, name: str, event: Observed) -> None:
        """Write a shared event as seen by us alone, unless the store now has its stanza id."""
        assert self._observer is not None  # rooms are written only with an observer
        id_ = event.happened.event.get("stanzaId")
        if id_ is None or not self._database.has(name, self._observer.domain, id_):
            self._rows.append((event.number, event.happened._replace(shared=False)))

    def _write_earlier(self, name: str, domain: str, room: _Room) -> None:
        """Write what the room sent us about the time before we came, unless it is recorded."""
        # The store keeps one event of each stanza id, whichever bridge writes it.
        known = [event for event in room.earlier if "stanzaId" in event.happened.event]
        others = [event for event in room.earlier if "stanzaId" not in event.happened.event]
        room.earlier = others if room.writes_earlier is None else []
        if room.writes_earlier and others:
            query = Query((name,), domain, kinds=frozenset({"message"}))
            messages = newest(self._database, query, self._database.newest(), MAX_COMPARED)
            known += unpaired(others, [mark_of(event.event, event.at) for event in messages])[0]
        self._rows += [(event.number, event.happened) for event in known]

    def _write_missed(self, name: str, room: _Room) -> None:
        """Write a gap that counts the lost events of the room, if there are any."""
        count, first, last = room.missed
        if count:
            event = gap(first, last, events=count, reason=OUTSIDE)
            self._rows.append((room.began, Happened(last, name, event)))
            room.missed = 0, inf, 0.0

    def _trim(self) -> None:
        """Keep a weight of at most `MAX_WAITING`; rooms with more than their share keep less."""
        weights = {name: room.weight for name, room in self._rooms.items()}
        excess = sum(weights.values()) - MAX_WAITING
        for name, room in self._rooms.items():
            over = min(excess, weights[name] - MAX_WAITING // len(self._rooms))
            excess -= max(0, over)
            while over > 0 and room.earlier:
                over -= room.earlier[-1].weight
                room.lose([room.earlier.pop()])
            while over > 0 and room.pending:
                over -= room.pending[0].weight
                self._write_own(name, room.pending.pop(0))


def newest(database: RecorderDatabase, query: Query, last: int, most: int) -> Iterator[Recorded]:
    """Yield about `most` events of a query up to the id `last`, newest first, read in slices."""
    first = max(0, last - COMPARED_IDS)
    while first < last and most > 0:
        events, last = database.page(query, after=first, until=last, limit=SLICE, backward=True)
        yield from events
        most -= len(events)


def gap(from_: float, to: float, **why: object) -> dict[str, object]:
    """Return the exact form of a gap between two times, in seconds since the epoch."""
    return {"kind": "gap", "from": iso(from_), "to": iso(to), **why}
