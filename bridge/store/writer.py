"""Prepares what one bridge writes into the file that all bridges of a user share.

All in a room see shared events, and each bridge writes them into the file at once. Before it writes
an event it looks in the file, which is locked then, whether another bridge has written it. So no
event is lost, whichever bridge is killed, and none is there twice.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from operator import itemgetter
from typing import NamedTuple, TypeAlias

from bridge.store.database import Happened, Observer, Tenure, TracedXml, weight
from bridge.store.decision import ROUNDED, with_asked, writes_earlier
from bridge.store.pairing import SAME_SECONDS, Wanted, key_of, paired, told_at
from bridge.store.sqlite import SqliteDatabase
from bridge.text import iso

OUTSIDE = "the room had not let the bridge in"
"""The `reason` of a gap that counts events that a room sent to a bridge outside of it."""

MAX_WAITING = 20_000
"""The highest weight of the items that wait to be written: 40 MB. The events that rooms sent before
they let us in may have the same weight again."""

MAX_TAKEN = 20_000
"""How many rows of other bridges we remember for each room, as events that we saw, too."""


class Entered(NamedTuple):
    """We are in a room now."""

    room: str
    """Bare JID."""
    at: float
    """Seconds since the epoch."""
    now: float
    """We have received all events of the room since this time, by `bridge.store.clock.steady`."""
    asked: float
    """When we asked the room to let us in, by the same clock. Whatever is no history, the room sent
    after this."""


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
    """The same moment by `bridge.store.clock.steady`."""
    more: bool = False
    """Whether another transaction follows at once, with items from before this moment."""
    closing: bool = False
    """Whether it is the last transaction of this process."""


class Observed(NamedTuple):
    """A shared event that we observed."""

    happened: Happened
    number: float
    """The number of the event among all items that the writer got."""
    weight: int
    """See `weight` of `database`."""


@dataclass
class _Room:
    """The state of a room that we are in, or are entering."""

    name: str
    """Bare JID."""
    since: Entered | None = None
    """When we entered it; None while we are entering."""
    began: float = 0
    """The number by which a gap before our stay is sorted: just below the number of the stay's
    first item."""
    tenure: int | None = None
    """The id of our tenure in the store; None if it is not there yet."""
    pending: list[Observed] = field(default_factory=list)
    """Shared events of our stay; this transaction writes the ones that the store lacks."""
    taken: dict[int, float] = field(default_factory=dict)
    """Rows of the store that are events we saw, too, and until when another equal event of ours may
    be compared with them."""
    earlier: list[Observed] = field(default_factory=list)
    """What the room sent us about the time before we came: its history, and its occupants."""
    writes_earlier: bool | None = None
    """Whether to write the occupants in `earlier`, since no bridge saw them come; None if not known
    yet."""
    missed: tuple[int, float, float] = (0, inf, 0.0)
    """How many lost events of `earlier` are in no gap yet, and the times of the first and the last
    of them, in seconds since the epoch."""

    def lose(self, events: Iterable[Observed]) -> None:
        """Count events that are not kept."""
        for event in events:
            (count, first, last), at = self.missed, event.happened.at
            self.missed = count + 1, min(first, at), max(last, at)

    def copy(self) -> "_Room":
        """Return a copy that shares no collection with this one."""
        pending, earlier, taken = [*self.pending], [*self.earlier], {**self.taken}
        return replace(self, pending=pending, earlier=earlier, taken=taken)


class Writer:
    """Prepares and writes each transaction of one bridge. It has no thread and no file."""

    _file: SqliteDatabase

    def __init__(self) -> None:
        self._moment = Moment(0.0, 0.0)
        self._name = ""
        """The name of the file that was written last."""
        self._observer = Observer("", "", "")
        """Who we are; it has no run before the first item."""
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
        return [event.happened.number for room in rooms for event in room.earlier]

    @property
    def waits(self) -> bool:
        """Whether events are to be decided on soon."""
        return any(room.since and room.earlier for room in self._rooms.values())

    def write(self, file: SqliteDatabase, items: Iterable[Item], moment: Moment) -> None:
        """Write `items` in one transaction. If it raises, neither store nor writer has changed."""
        self._file, self._moment = file, moment
        self._rows, self._stanzas = [], []
        before = self._observer, self._rooms, self._count
        self._rooms = {name: room.copy() for name, room in self._rooms.items()}
        if file.name != self._name and self._name not in file.formers():
            self._begin_anew()
        try:
            with file.transaction():
                for item in items:
                    self._take(item)
                if moment.closing:
                    self._leave_rooms()
                self._write()
        except BaseException:
            self._observer, self._rooms, self._count = before
            raise
        self._name = file.name

    def _begin_anew(self) -> None:
        """Note that another file has taken the place of the one that we wrote into."""
        now = self._moment
        for room in self._rooms.values():
            if room.tenure is not None:
                room.since = room.since and room.since._replace(at=now.at, now=now.now)
                room.tenure, room.taken, room.began = None, {}, 0

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
                self._rows.append((self._count, self._timed(item)))
            case Left():
                if (room := self._rooms.pop(item.room, None)) is not None:
                    self._write_room(room, item)
                    if room.since is None:
                        room.lose(room.earlier)
                        self._rooms[item.room] = replace(room, earlier=[], began=self._count)
            case Entered():
                room = self._rooms.setdefault(item.room, _Room(item.room))
                room.since = item
                # A gap before our stay is written ahead of the events that the room sent while we
                # entered.
                room.began = min([self._count, *(event.number for event in room.earlier)]) - 0.5
            case Happened():
                room = self._rooms.setdefault(item.room, _Room(item.room))
                timed = self._timed(item)._replace(key=key_of(item.event))
                event = Observed(timed, self._count, weight(item))
                known = room.since is not None and not item.earlier
                (room.pending if known else room.earlier).append(event)

    def _by_file(self, steady: float) -> float:
        return steady + self._file.ahead

    def _timed(self, item: Happened) -> Happened:
        """Return the event with its time by the clock of the file."""
        return item._replace(seen=item.at if item.steady is None else self._by_file(item.steady))

    def _leave_rooms(self) -> None:
        for name in [*self._rooms]:
            self._take(Left(name, self._moment.at, self._moment.now))
            if (room := self._rooms.pop(name, None)) is not None:
                self._write_missed(room)

    def _write(self) -> None:
        if not self._observer.run:
            return
        for each in self._rooms.values():
            self._write_room(each)
        self._trim()
        rows = [row for _, row in sorted(self._rows, key=itemgetter(0))]
        before = self._file.newest() if rows else 0
        self._file.append(self._observer, rows)
        for id_, row in enumerate(rows, before + 1):
            if row.earlier and (room := self._rooms.get(row.room)) is not None:
                room.taken[id_] = inf  # an equal message of this history is another
        self._file.append_stanzas(self._observer, self._stanzas)
        self._rows, self._stanzas = [], []

    def _write_room(self, room: _Room, left: Left | None = None) -> None:
        """Collect the events to write of one room; `left` is given if we have just left it."""
        me = self._observer
        if not me.run or room.since is None:
            return
        self._write_missed(room)
        end, since = left or self._moment, self._by_file(room.since.now)
        at, asked = room.since.at, self._by_file(room.since.asked)
        until = self._by_file(end.now)
        others = [
            tenure
            for tenure in self._file.tenures(room.name, me.domain, since - SAME_SECONDS)
            if tenure.run != me.run
        ]
        if room.tenure is None:
            entered = Tenure(0, me.run, since, since, at, at, ended=False, asked=asked)
            room.tenure = self._file.enter(room.name, me.domain, entered)
            # It names its run: the stays of two files may have the same number.
            event = {"kind": "gap", "tenure": room.tenure, "run": me.run}
            anchor = Happened(at, room.name, event, shared=True, seen=since)
            self._rows.append((room.began, anchor))
        lacking = self._lacking(room, others, asked)
        self._rows += [(event.number, event.happened) for event in lacking]
        room.pending = []
        if left is not None or not self._moment.more:  # else more from before `until` is to come
            self._file.extend(room.tenure, until, end.at, ended=left is not None)
        if room.writes_earlier is None:
            room.writes_earlier = writes_earlier(others, since, until)
            if left is not None:
                room.writes_earlier = bool(room.writes_earlier)
        self._write_earlier(room, asked)

    def _lacking(self, room: _Room, others: list[Tenure], asked: float) -> list[Observed]:
        """Return the pending events that the store does not have from other bridges."""
        wanted = [_wanted(event, asked) for event in room.pending]
        first = min((each.seen for each in wanted), default=inf) - SAME_SECONDS
        if all(tenure.until < first for tenure in others):
            return room.pending
        room.taken = {id_: until for id_, until in room.taken.items() if until > first}
        return self._unstored(room, room.pending, wanted, others)

    def _unstored(
        self,
        room: _Room,
        events: list[Observed],
        wanted: list[Wanted],
        others: Sequence[Tenure] = (),
    ) -> list[Observed]:
        """Return the events that the store lacks, and note the rows of the others as taken."""
        me = self._observer
        alike = self._file.alike(room.name, me.domain, wanted, me.run)
        looked = [
            with_asked(rows, event.happened.event["kind"], others)
            for event, rows in zip(events, alike, strict=True)
        ]
        rows = paired(wanted, looked, {*room.taken})
        until = self._by_file(self._moment.now) + 2 * SAME_SECONDS
        room.taken |= {row.id: until for row in rows if row is not None}
        while len(room.taken) > MAX_TAKEN:
            del room.taken[next(iter(room.taken))]
        return [event for event, row in zip(events, rows, strict=True) if row is None]

    def _write_earlier(self, room: _Room, asked: float) -> None:
        """Write what the room sent us about the time before we came, unless it is recorded."""
        # Messages are the room's history; anything else tells how the room is now.
        messages = [it for it in room.earlier if it.happened.event["kind"] == "message"]
        others = [it for it in room.earlier if it.happened.event["kind"] != "message"]
        room.earlier = others if room.writes_earlier is None else []
        wanted = [_wanted(event, -inf)._replace(ours=True) for event in messages]
        written = self._unstored(room, messages, wanted) if messages else []
        if others and room.writes_earlier:
            # A bridge that came after us may have written before us.
            written += self._unstored(room, others, [_wanted(event, asked) for event in others])
        for event in written:
            seen = told_at(event.happened.event, event.happened.seen)
            self._rows.append((event.number, event.happened._replace(seen=seen)))

    def _write_missed(self, room: _Room) -> None:
        """Write a gap that counts the lost events of the room, if there are any."""
        count, first, last = room.missed
        if count:
            event = gap(first, last, events=count, reason=OUTSIDE)
            self._rows.append((room.began, Happened(last, room.name, event)))
            room.missed = 0, inf, 0.0

    def _trim(self) -> None:
        """Keep a weight of at most `MAX_WAITING`; the room that has most loses its newest."""
        weights = {
            name: sum(event.weight for event in room.earlier) for name, room in self._rooms.items()
        }
        while sum(weights.values()) > MAX_WAITING:
            fullest = max(weights, key=lambda name: weights[name])
            event = self._rooms[fullest].earlier.pop()
            self._rooms[fullest].lose([event])
            weights[fullest] -= event.weight


def _wanted(event: Observed, since: float) -> Wanted:
    assert event.happened.key is not None  # `_take` sets both
    seen = told_at(event.happened.event, event.happened.seen)
    return Wanted(event.happened.key, seen or 0.0, since - ROUNDED)


def gap(from_: float, to: float, **why: object) -> dict[str, object]:
    """Return the exact form of a gap between two times, in seconds since the epoch."""
    return {"kind": "gap", "from": iso(from_), "to": iso(to), **why}
