"""Decides what one bridge writes into the store that all bridges of a user share.

Shared events, which everybody in a room sees, are written only by the bridge that holds the room's
lease. The others keep the shared events that they observe in memory (`pending`), read what the
holder has written, and drop what they find there. When the holder is gone, one of them takes the
lease and writes what it still has pending: nothing is lost, and nothing is there twice. Events that
only one bridge sees, each bridge writes itself.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import NamedTuple, TypeAlias

from bridge.store.database import Database, Happened, Lease, Observer, Query, Recorded, TracedXml
from bridge.text import iso, seconds_of

LEASE_SECONDS = 6.0
"""For how long a lease holds that is not renewed: with the pause, another bridge takes over within
10 s."""

HANDOVER_SECONDS = 2.0
"""How long a lease that was given up is left to a bridge that was in the room with its holder."""

PATIENCE_SECONDS = 10.0
"""How long after we observed an event the holder of the lease may take to write it."""

SKEW_SECONDS = 1.0
"""How much later than we the holder may observe an event. When we leave the room, this is used in
place of `PATIENCE_SECONDS`."""

NOBODY = "nobody recorded this room"
"""The `reason` of a gap in which no bridge was in the room."""

SAME_SECONDS = 30.0
"""Two bridges observed the same event if all SAME fields are equal and their times differ by at
most so many seconds."""

MAX_COMPARED = 1_000
"""Recorded events that are compared with what the room sends us when we enter it."""

MAX_WAITING = 20_000
"""Events and stanzas that wait to be written, at some 2 kB each; a long text counts as several."""

# fmt: off
SAME = (
    "kind", "sender", "type", "id", "body", "subject", "role", "affiliation", "show", "status",
    "newNickname", "actor", "reason",
)
# fmt: on
"""The fields of an event that are equal for all who observe it. Of the others, the room shows more
to a moderator."""


class Entered(NamedTuple):
    """We are in a room now."""

    room: str
    """Bare JID."""
    at: float
    """Seconds since the epoch."""
    now: float
    """Since when we have received all that happens there, in seconds of the monotonic clock."""


class Left(NamedTuple):
    """We have left a room, at this time on both clocks."""

    room: str
    at: float
    now: float


Item: TypeAlias = Observer | Entered | Left | Happened | TracedXml
"""What a recorder is given, in order. An `Observer` applies to all items that follow it."""


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


class _Observed(NamedTuple):
    """A shared event that we observed, or that another bridge did and we read in the store."""

    key: tuple[object, ...]
    """Equal for all bridges that observed the event: its stanza id, or its SAME fields."""
    at: float
    """When it happened, in seconds since the epoch; 0 if it has a stanza id, which suffices."""
    noticed: float
    """When we observed or read it, in seconds of the monotonic clock."""
    number: float
    """Its number among all items that the writer was given; 0 if it was read in the store."""
    happened: Happened


@dataclass
class _Room:
    """The state of a room that we are in, or are entering."""

    since: Entered | None = None
    """None while we are entering."""
    began: float = 0
    """A number just below that of the first item of our stay: a gap before it is sorted by this."""
    pending: list[_Observed] = field(default_factory=list)
    """Shared events that are not yet in the store."""
    found: list[_Observed] = field(default_factory=list)
    """Shared events that others have written, and we have not observed yet."""
    read_up_to: int | None = None
    """The id of the last row that was read for `found`; None: none yet."""
    earlier: list[_Observed] = field(default_factory=list)
    """What the room sent us about the time before we came: its history, and who is there."""
    writes_earlier: bool | None = None
    """Whether to write that: nobody recorded the room when we joined; None: not known yet."""

    def copy(self) -> "_Room":
        """Return a copy that shares no list with this one."""
        return replace(self, pending=[*self.pending], found=[*self.found], earlier=[*self.earlier])


class Writer:
    """Decides what one bridge writes into the store. It has no thread, no clock and no file."""

    _database: Database
    _moment: Moment

    def __init__(self) -> None:
        self._observer: Observer | None = None
        self._rooms: dict[str, _Room] = {}
        self._count = 0
        """The number of items that were given so far."""
        self._rows: list[tuple[float, Happened]] = []
        """The events that this transaction is to write, each with its number."""
        self._stanzas: list[TracedXml] = []

    @property
    def pending(self) -> list[int]:
        """The numbers of the events that it was given and has not written, nor found written."""
        rooms = self._rooms.values()
        return [one.happened.number for room in rooms for one in (*room.pending, *room.earlier)]

    def write(self, database: Database, items: Iterable[Item], moment: Moment) -> None:
        """Write `items` in one transaction; if it raises, neither store nor writer has changed."""
        self._database, self._moment = database, moment
        self._rows, self._stanzas = [], []
        before = self._observer, self._rooms, self._count
        self._rooms = {name: room.copy() for name, room in self._rooms.items()}
        try:
            with database.transaction():
                for item in items:
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
                self._rooms.pop(item.room, None)
            case Entered():
                room = self._rooms.setdefault(item.room, _Room())
                room.since = item
                # A gap before our stay is written ahead of what the room sent us while we entered.
                room.began = min([self._count, *(one.number for one in room.earlier)]) - 0.5
            case Happened():
                room = self._rooms.setdefault(item.room, _Room())
                seen = _observed(item, self._moment.now, self._count)
                (room.earlier if item.earlier else room.pending).append(seen)

    def _leave_rooms(self) -> None:
        for name in [*self._rooms]:
            self._take(Left(name, self._moment.at, self._moment.now))

    def _write(self) -> None:
        if self._observer is None:
            return
        held = [room for name, room in self._rooms.items() if self._write_room(name)]
        rows = [row for _, row in sorted(self._rows, key=itemgetter(0))]
        self._database.append(self._observer, rows)
        self._database.append_stanzas(self._observer, self._stanzas)
        self._rows, self._stanzas = [], []
        newest = self._database.newest() if held else 0
        for room in held:
            room.read_up_to = newest

    def _write_room(self, name: str, left: Left | None = None) -> bool:
        """Collect the rows of one room for this transaction; return whether we hold its lease.

        `left` is given if we have just left the room: then the lease is given up.
        """
        me, room, now = self._observer, self._rooms.get(name), self._moment.now
        if me is None or room is None:
            return False
        since, lease = room.since, self._database.lease(name, me.domain)
        held = lease is not None and lease.run == me.run
        if since is not None:
            if room.found or not held:
                self._read_others(me.run, name, me.domain, room, since)
            holds = LEASE_SECONDS if lease is not None and lease.run else HANDOVER_SECONDS
            recent = lease is not None and 0 <= now - lease.beat <= holds
            covered = lease is not None and since.now <= lease.beat <= now
            if lease is not None and lease.run and recent and not held:
                if covered:
                    room.writes_earlier = False
                self._write_overdue(lease, room, SKEW_SECONDS if left else PATIENCE_SECONDS)
            # For 2 s after a lease was given up, only a bridge that was in the room with the former
            # holder (`covered`) may take it: it has missed less than one that came later.
            elif left or covered or not recent:
                if room.writes_earlier is None:
                    room.writes_earlier = not covered
                    if lease is not None and not covered:
                        until = max(lease.seen_until, since.at)
                        event = gap(lease.seen_until, until, reason=NOBODY)
                        missed = Happened(since.at, name, event, shared=True)
                        self._rows.append((room.began, missed))
                self._rows += [(one.number, one.happened) for one in room.pending]
                room.pending = []
                # A renewal says that all until now is written, so it waits for the last batch.
                if left or not (held and self._moment.more):
                    end = left or self._moment
                    lease = Lease("" if left else me.run, end.now, end.at)
                    self._database.take(name, me.domain, lease)
                held = left is None
        self._write_earlier(name, me.domain, room)
        return held

    def _read_others(self, run: str, name: str, domain: str, room: _Room, since: Entered) -> None:
        """Read what others have written since the last time, and drop it from `pending`."""
        newest, now = self._database.newest(), self._moment.now
        after, start = room.read_up_to, 0.0
        if after is None or after > newest:  # we have just joined, or the store is a new one
            after, start = max(0, newest - MAX_COMPARED), since.at - SKEW_SECONDS
        room.found = [one for one in room.found if now - one.noticed <= PATIENCE_SECONDS]
        for one in self._database.shared_after(name, domain, after):
            if one.observer.run != run and one.at >= start:
                room.found.append(_found(one, now))
        room.read_up_to = newest
        room.pending, room.found = _unpaired(room.pending, room.found)

    def _write_overdue(self, lease: Lease, room: _Room, patience: float) -> None:
        """Write with `shared=False` what the lease holder should have written by now.

        It does not see the event, or sees another one; with its observer the row is not lost.
        """
        beyond = len(room.pending) - MAX_WAITING
        pending = []
        for position, one in enumerate(room.pending):
            if position < beyond or one.noticed + patience < lease.beat:
                self._rows.append((one.number, one.happened._replace(shared=False)))
            else:
                pending.append(one)
        room.pending = pending

    def _write_earlier(self, name: str, domain: str, room: _Room) -> None:
        """Write what the room sent us about the time before we came, unless it is recorded."""
        # The store keeps one event of each stanza id, whoever writes it.
        known = [one for one in room.earlier if "stanzaId" in one.happened.event]
        others = [one for one in room.earlier if "stanzaId" not in one.happened.event]
        room.earlier = others if room.writes_earlier is None else []
        if room.writes_earlier and others:
            query = Query((name,), domain, kinds=frozenset({"message"}))
            recorded, _ = self._database.page(
                query, after=0, until=self._database.newest(), limit=MAX_COMPARED, backward=True
            )
            known += _unpaired(others, [_found(one, 0) for one in recorded])[0]
        self._rows += [(one.number, one.happened) for one in known]


def gap(from_: float, to: float, **why: object) -> dict[str, object]:
    """Return the exact form of a gap between two times, in seconds since the epoch."""
    return {"kind": "gap", "from": iso(from_), "to": iso(to), **why}


def _observed(happened: Happened, noticed: float, number: float) -> _Observed:
    event = happened.event
    if "stanzaId" in event:
        return _Observed(("", event["stanzaId"]), 0.0, noticed, number, happened)
    codes = event.get("codes") if event["kind"] == "config" else None
    key = (*map(event.get, SAME), codes and tuple(codes))
    at = seconds_of(event.get("delayedFrom")) or happened.at
    return _Observed(key, at, noticed, number, happened)


def _found(recorded: Recorded, noticed: float) -> _Observed:
    return _observed(Happened(recorded.at, recorded.room, recorded.event), noticed, 0)


def unrecorded(observed: Iterable[Happened], recorded: Iterable[Recorded]) -> set[int]:
    """Return the numbers of those observed events of a room of which no copy is recorded."""
    ours = [_observed(one, 0, 0) for one in observed]
    missing, _ = _unpaired(ours, [_found(one, 0) for one in recorded])
    return {one.happened.number for one in missing}


def _unpaired(
    ours: list[_Observed], theirs: list[_Observed]
) -> tuple[list[_Observed], list[_Observed]]:
    """Return the events that are only in `ours`, and those that are only in `theirs`.

    Each event is paired with one of the other list at most, so two equal messages stay two.
    """
    by_key = defaultdict[tuple[object, ...], list[_Observed]](list)
    for one in theirs:
        by_key[one.key].append(one)
    only_ours = []
    for one in ours:
        alike = by_key.get(one.key, [])
        same = next((it for it in alike if abs(it.at - one.at) <= SAME_SECONDS), None)
        if same is None:
            only_ours.append(one)
        else:
            alike.remove(same)
    return only_ours, [one for alike in by_key.values() for one in alike]
