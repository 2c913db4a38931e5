"""Machines, bridges, a database and readers without files, threads and time, for a simulation.

What decides is the program's own: the writer, the decision, the shipping and the reading. Only the
two databases are models.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import dataclass, field, replace
from math import inf
from random import Random
from typing import Any, cast

from bridge.recording.recorded import _with_gaps
from bridge.store import shipping
from bridge.store.database import (
    Former,
    Happened,
    Mark,
    Observer,
    Query,
    Recorded,
    Sent,
    Span,
    Tenure,
)
from bridge.store.decision import SILENCE_SECONDS
from bridge.store.errors import AwayStoreError, BusyStoreError, StoreError
from bridge.store.outbox import Shipment
from bridge.store.pairing import Alike, Wanted, key_of
from bridge.store.postgresql import SILENCE_SECONDS as TEAM_SECONDS
from bridge.store.reading import Reading
from bridge.store.writer import Entered, Left, Moment, Writer
from bridge.text import seconds_of

ROOM, DOMAIN = "room@x", "localhost"
EPOCH = 1_700_000_000.0
QUERY = Query((ROOM,), DOMAIN)
FEW = 3
"""How many rows a page or a shipment has."""
LATE = 5.0
"""How long a bridge waits at most to read that it is in the room."""


@dataclass(frozen=True)
class Row:
    id: int
    observer: Observer
    happened: Happened
    file: str
    number: int

    @property
    def seen(self) -> float:
        return self.happened.at if self.happened.seen is None else self.happened.seen

    def recorded(self) -> Recorded:
        event = dict(self.happened.event)
        return Recorded(
            self.id, self.happened.at, ROOM, event, self.observer, self.happened.shared, False,
            self.seen, self.file, self.number,
        )  # fmt: skip


class Table:
    """What both models have: rows in the order of their ids, and who was there when."""

    def __init__(self, world: "World", name: str, patience: float) -> None:
        self.world, self.name, self.patience = world, name, patience
        self.rows: list[Row] = []
        self.by_content = defaultdict[int, list[Row]](list)
        self.by_stanza = defaultdict[int, list[Row]](list)
        self.known: dict[tuple[str, int], Tenure] = {}

    def state(self) -> Any:
        return len(self.rows), {**self.known}

    def restore(self, state: Any) -> None:
        count, self.known = state
        for row in self.rows[count:]:
            key = row.happened.key
            assert key is not None
            self.by_content[key.content].remove(row)
            if key.stanza is not None:
                self.by_stanza[key.stanza].remove(row)
        del self.rows[count:]

    def add(self, observer: Observer, happened: Happened, file: str, number: int) -> None:
        key = happened.key or key_of(happened.event)
        happened = happened._replace(key=key)
        row = Row(len(self.rows) + 1, observer, happened, file, number or len(self.rows) + 1)
        self.rows.append(row)
        self.by_content[key.content].append(row)
        if key.stanza is not None:
            self.by_stanza[key.stanza].append(row)

    def near(self, wanted: Wanted) -> list[Row]:
        named = self.by_stanza[wanted.key.stanza] if wanted.key.stanza is not None else []
        alike = [
            it for it in self.by_content[wanted.key.content] if abs(it.seen - wanted.seen) <= 30
        ]
        return [*{it.id: it for it in (*named, *alike)}.values()]

    def newest(self) -> int:
        return len(self.rows)

    def span(self, _query: Query) -> Span:
        return Span(self.name, inf, 0, -inf, 0, 0, len(self.rows))

    def page(
        self, _query: Query, *, after: int, until: int, limit: int, backward: bool = False
    ) -> tuple[list[Recorded], int, int]:
        assert not backward
        rows = self.rows[after : min(until, after + FEW)]
        return [row.recorded() for row in rows], rows[-1].id if rows else until, 0

    def tenures(self, _room: str, _domain: str, since: float = -inf) -> list[Tenure]:
        return [it for it in self.known.values() if it.until >= since]


class File(Table):
    """The file of a machine."""

    def __init__(self, world: "World", name: str) -> None:
        super().__init__(world, name, SILENCE_SECONDS)
        self.ahead = EPOCH + world.chance.choice([0.0, 0.0, 5.0, -3600.0])
        self.target, self.host = "a team's", name
        self.names: dict[str, Former] = {}
        self.same: dict[int, int] = {}
        self.sent = self.trying = Sent(0, 0)
        self.base = ("0", 0)
        self.locked = False
        self.fails = False

    def now(self) -> float:
        return self.ahead + self.world.now

    @contextmanager
    def transaction(self) -> Iterator[None]:
        if self.locked:
            raise BusyStoreError("locked")
        before = self.state()
        try:
            yield
            if self.fails:
                self.fails = False
                raise BusyStoreError("fails at COMMIT")
        except BaseException:
            self.restore(before)
            raise

    def append(self, observer: Observer, happened: Sequence[Happened]) -> None:
        for each in happened:
            self.add(observer, each, self.name, 0)

    def append_stanzas(self, observer: Observer, stanzas: Sequence[object]) -> None:
        pass

    def alike(
        self, _room: str, _domain: str, wanted: Sequence[Wanted], run: str = ""
    ) -> list[list[Alike]]:
        return [
            [
                Alike(
                    it.id,
                    it.seen,
                    it.happened.key and it.happened.key.stanza,
                    run=it.observer.run,
                    number=it.number,
                )
                for it in self.near(each)
                if (each.ours if it.observer.run == run else it.happened.shared)
            ]
            for each in wanted
        ]

    def enter(self, _room: str, _domain: str, entered: Tenure) -> int:
        id_ = len(self.known) + 1
        self.known[self.name, id_] = entered._replace(id=id_, file=self.name)
        return id_

    def extend(self, tenure: int, until: float, at: float, *, ended: bool) -> None:
        place = self.name, tenure
        self.known[place] = self.known[place]._replace(until=until, until_at=at, ended=ended)

    def copy(self, host: str) -> "File":
        """Return a copy of the file, which is another machine's from now on."""
        other = File(self.world, self.name)
        kept = {"rows", "by_content", "by_stanza", "known", "same", "names"}
        vars(other).update({name: deepcopy(vars(self)[name]) for name in kept})
        other.ahead, other.sent, other.trying, other.base = (
            self.ahead, self.sent, self.trying, self.base,
        )  # fmt: skip
        other.host = host
        return other

    def rename(self, name: str, sent: Sent) -> None:
        self.names[self.name] = Former(*sent, len(self.rows), 0)
        self.name = name
        self.rows = [replace(row, file=name) for row in self.rows]
        self.known = {(name, id_): it._replace(file=name) for (_, id_), it in self.known.items()}

    def formers(self) -> dict[str, Former]:
        return self.names

    def oldest(self) -> int:
        return 1

    def own(self, reached: int, *, stanzas: bool = False) -> dict[str, int]:
        return {name: it.sent for name, it in self.names.items()} | {self.name: reached}

    def has_row(self, row: int, run: str, *, stanza: bool) -> bool:
        return any(it.id == row and it.observer.run == run for it in self.rows[row - 1 : row])

    def marks(self) -> tuple[Sent, Sent]:
        return self.sent, self.trying

    def reached(self) -> tuple[str, int]:
        return self.base

    def same_as(self, row: int) -> int:
        return self.same.get(row, 0)

    def with_ids(self, ids: Sequence[int]) -> list[Recorded]:
        return [self.rows[id_ - 1].recorded() for id_ in sorted(ids)]

    def taken(self, _since: float, row: int) -> set[int]:
        return {id_ for mine, id_ in self.same.items() if mine <= row}

    def has_same(self, id_: int, row: int) -> bool:
        return any(each == id_ and mine <= row for mine, each in self.same.items())


class Box:
    """The rows of a file that wait, as `Outbox` has them."""

    def __init__(self, file: File) -> None:
        self.file, self.name, self.now = file, file.name, file.now
        self.own, self.taken, self.oldest = file.own, file.taken, file.oldest
        self.has_row = file.has_row

    def batch(self) -> Shipment:
        file = self.file
        rows = file.rows[file.sent.event : file.sent.event + FEW]
        return Shipment(
            file.sent, file.trying,
            [it.happened._replace(room=ROOM, observer=it.observer, row=it.id) for it in rows], [],
            Sent(rows[-1].id if rows else file.sent.event, 0), 0,
            inf if len(rows) < FEW else max(it.seen for it in rows), len(rows) < FEW,
            [(ROOM, DOMAIN, it) for it in file.known.values()],
        )  # fmt: skip

    def attempt(self, reached: Sent, last: Sent, same: dict[int, int]) -> None:
        if self.file.locked:
            raise BusyStoreError("locked")
        self.file.sent, self.file.trying = reached, last
        self.file.same |= same

    def confirm(self, batch: Shipment, store: str, newest: int) -> None:
        if self.file.locked:
            raise BusyStoreError("locked")
        self.file.sent = self.file.trying = batch.last
        self.file.base = (store, newest)

    def rename(self, sent: Sent) -> None:
        assert self.file.world.copies, "the database knows another mark"
        self.file.world.copies += 1
        self.file.rename(f"{self.file.world.copies:x}", sent)


class Base(Table):
    """The database of the team."""

    def __init__(self, world: "World") -> None:
        super().__init__(world, "aa", TEAM_SECONDS)
        self.marks_: dict[str, Mark] = {}
        self.runs = list[str]()
        self.away = False
        self.loses = ""

    def now(self) -> float:
        self._there()
        return EPOCH + self.world.now

    def _there(self) -> None:
        if self.away:
            raise AwayStoreError("away")

    def state(self) -> Any:
        return super().state(), {**self.marks_}

    def restore(self, state: Any) -> None:
        table, self.marks_ = state
        super().restore(table)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self._there()
        before, loses = self.state(), self.loses
        self.loses = ""
        try:
            yield
            if loses == "undone":
                raise AwayStoreError("lost")
        except BaseException:
            self.restore(before)
            raise
        if loses:
            self.away = True
            raise AwayStoreError("lost")

    def mark(self, file: str, host: str, sent: Sent) -> Mark:
        known = self.marks_.setdefault(file, Mark(len(self.marks_) + 1, host, 0.0, sent))
        return known._replace(now=self.now())

    def hear(self, mark: Mark) -> None:
        (name,) = (name for name, it in self.marks_.items() if it.id == mark.id)
        self.marks_[name] = mark

    def observer(self, observer: Observer, *, make: bool = True) -> int:
        if make and observer.run not in self.runs:
            self.runs.append(observer.run)
        return self.runs.index(observer.run) + 1 if observer.run in self.runs else 0

    def _name(self, file: int) -> str:
        return next(name for name, it in self.marks_.items() if it.id == file)

    def ship_stanzas(self, stanzas: Sequence[object], file: int) -> None:
        pass

    def ship(self, happened: Sequence[Happened], file: int) -> None:
        for each in happened:
            self.observer(each.observer)
            self.add(each.observer, each, self._name(file), each.row)

    def attend(self, file: int, tenures: Sequence[tuple[str, str, Tenure]]) -> None:
        for _, _, it in tenures:
            self.known[it.file, it.id] = it

    def span(self, query: Query) -> Span:
        self._there()
        return super().span(query)

    def reached(self, file: str, *, stanzas: bool) -> tuple[int, int | None]:
        self._there()
        mark = self.marks_.get(file)
        return len(self.rows), mark and mark.sent.event

    def run_of(self, file: str, row: int, after: int, *, stanzas: bool) -> str | None:
        rows = [it for it in self.rows[after:] if (it.file, it.number) == (file, row)]
        return rows[0].observer.run if rows else None

    def alike(
        self, _room: str, _domain: str, wanted: Sequence[Wanted], own: str = "{}",
        _kept_from: int = 0, until: int = 10**9,
    ) -> list[list[Alike]]:  # fmt: skip
        ours: dict[str, int] = json.loads(own)

        def is_other(row: Row, each: Wanted) -> bool:
            if self.observer(row.observer, make=False) == each.by:
                return row.number == each.row
            return row.happened.shared and row.number > ours.get(row.file, 0)

        return [
            [
                Alike(
                    it.id, it.seen, it.happened.key and it.happened.key.stanza,
                    self.observer(it.observer, make=False) == each.by, run=it.observer.run,
                    number=it.number,
                )
                for it in self.near(each)
                if it.id <= until and is_other(it, each)
            ]
            for each in wanted
        ]  # fmt: skip


@dataclass
class Bridge:
    run: str
    file: File
    writer: Writer = field(default_factory=Writer)
    waiting: list[Any] = field(default_factory=list)
    inside: bool = False
    asked: float | None = None
    """When it asked the room to let it in, if it has not read yet that it is in."""
    unread: list[tuple[float, dict[str, Any]]] = field(default_factory=list)
    """What the room said since, and when."""


@dataclass
class Person:
    """Somebody who reads on and on, on one machine."""

    file: File
    cursor: tuple[str, ...] = ()
    marks: list[int] = field(default_factory=list)
    early: list[tuple[int, int, int]] = field(default_factory=list)
    """What was shown while the database was away: the mark, the row of the file, and the id up to
    which the person was shown the database."""
    begins: int = 0
    """What others wrote up to this id of the database was not there when the person began."""


class World:
    """All of it. `heard` has what some bridge heard, and when; `alike` what may stand for it."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)  # noqa: S311 - no secret
        self.late = Random(seed)  # noqa: S311 - apart, so that a seed goes on meaning the same
        self.copies = 0
        self.now = 1_000.0
        self.base = Base(self) if self.chance.random() < 0.7 else None
        self.files = [File(self, name) for name in (("f1", "f2") if self.base else ("f1",))]
        self.bridges: list[Bridge] = []
        self.people = [Person(file) for file in self.files]
        self.heard: dict[int, float] = {}
        self.repeated = set[int]()
        self.asked = list[float]()
        self.read_late = list[tuple[float, float]]()
        """When an equal message was said, and when a bridge read it that had asked to be let in."""
        self.jump = 0.0
        self._marks = self._runs = 0

    def at(self, file: File) -> float:
        return file.ahead + self.now + self.jump

    def start(self) -> None:
        self._runs += 1
        bridge = Bridge(f"r{self._runs}", self.chance.choice(self.files))
        bridge.waiting.append(Observer(f"bot@{DOMAIN}", bridge.run, bridge.run))
        self.bridges.append(bridge)
        if self.chance.random() < 0.9:
            self.enter(bridge)

    def enter(self, bridge: Bridge) -> None:
        if not bridge.inside:
            bridge.inside, bridge.asked = True, self.now
            self.asked.append(self.now)
            if self.late.random() < 0.7:
                self.hear(bridge)

    def hear(self, bridge: Bridge) -> None:
        """Let a bridge read that it is in the room, and what the room said since it asked."""
        if bridge.asked is not None:
            bridge.waiting.append(Entered(ROOM, self.at(bridge.file), self.now, bridge.asked))
            for said, event in bridge.unread:
                self.hears(bridge, said, event)
                if event["jid"] in self.repeated:
                    self.read_late.append((said, self.now))
            bridge.asked, bridge.unread = None, []

    def hears(self, bridge: Bridge, said: float, event: dict[str, Any]) -> None:
        self.heard[event["jid"]] = said
        lag = self.chance.random() * 0.005
        at, steady = self.at(bridge.file) + lag, self.now + lag
        bridge.waiting.append(Happened(at, ROOM, event, True, steady=steady))

    def leave(self, bridge: Bridge) -> None:
        self.hear(bridge)
        if bridge.inside:
            bridge.inside = False
            bridge.waiting.append(Left(ROOM, self.at(bridge.file), self.now))

    def say(self) -> None:
        self._marks += 1
        how = self.chance.random()
        event = {"kind": "message", "sender": "W", "type": "groupchat", "jid": self._marks}
        event["body"] = "again" if how < 0.2 else f"number {self._marks}"
        if how > 0.6:
            event["stanzaId"] = f"s{self._marks}"
        if how < 0.2:
            self.repeated.add(self._marks)
        inside = [bridge for bridge in self.bridges if bridge.inside]
        if inside and 0.2 < how < 0.3:  # one bridge hears it alone
            bridge = self.chance.choice(inside)
            self.hear(bridge)
            at = self.at(bridge.file)
            bridge.waiting.append(Happened(at, ROOM, event, steady=self.now))
            return
        for bridge in self.bridges:
            if bridge.asked is not None:
                bridge.unread.append((self.now, event))
            elif bridge.inside:
                self.hears(bridge, self.now, event)

    def write(self, bridge: Bridge, *, closing: bool = False) -> None:
        moment = Moment(self.at(bridge.file), self.now, closing=closing)
        with suppress(StoreError):
            bridge.writer.write(cast("Any", bridge.file), bridge.waiting, moment)
            bridge.waiting = []

    def ship(self, file: File) -> None:
        if self.base is not None:
            with suppress(StoreError):
                while shipping.ship(cast("Any", Box(file)), cast("Any", self.base), file.host):
                    pass

    def read(self, person: Person) -> None:
        """Read on from the cursor; the marks of what is shown are added to the person's."""
        base, file = self.base, person.file
        if base is None:
            after = int(person.cursor[1]) if person.cursor else 0
            rows = [row.recorded() for row in file.rows[after:]]
            shown = _with_gaps(cast("Any", file), DOMAIN, rows)
            if shown is None:
                return
            cursor: tuple[str, ...] = (file.name, str(file.newest()))
        else:
            away = base.away
            reading = Reading(None if away else cast("Any", base), cast("Any", file), None)
            span, extent = reading.begin(QUERY, person.cursor)
            reading = Reading(None if away else cast("Any", base), cast("Any", file), extent)
            first = int(person.cursor[1]) if person.cursor else span.first
            shown = []
            while first < span.last:
                for _ in range(2):  # a page with a gap that is not known yet is read again
                    page, end, _ = reading.page(QUERY, after=first, until=span.last, limit=FEW)
                first = end
                part = _with_gaps(reading, DOMAIN, page)
                if part is None:
                    return
                shown += part
            row = span.last - extent.base + extent.sent
            if away and not person.cursor:
                person.begins = extent.base
            cursor = (span.store, str(extent.base), extent.file, str(row))
        person.cursor = cursor
        told = [row for row in shown if "jid" in row.event]
        person.marks += [row.event["jid"] for row in told]
        if base is not None and base.away:
            person.early += [(row.event["jid"], row.row, extent.base) for row in told]

    def pass_time(self, seconds: float, tick: float = 0.25) -> None:
        for _ in range(round(seconds / tick)):
            self.now += tick
            for bridge in self.bridges:
                if bridge.asked is not None and self.now >= bridge.asked + LATE:
                    self.hear(bridge)
                self.write(bridge)
            for file in self.files:
                self.ship(file)

    def step(self) -> None:
        chance = self.chance
        self.now += 0.01
        bridge = chance.choice(self.bridges) if self.bridges else None
        deed = chance.choice(
            ["say"] * 6 + ["pass"] * 4 + ["read"] * 3
            + ["start", "kill", "enter", "leave", "close", "lock", "fail", "away", "lose", "jump",
               "write", "ship", "restart", "copy"]
        )  # fmt: skip
        file = chance.choice(self.files)
        match deed:
            case "say":
                self.say()
            case "pass":
                self.pass_time(chance.choice([0.25, 0.5, 1.0, 3.0, 6.0]))
            case "read":
                self.read(chance.choice(self.people))
            case "start":
                self.start()
            case "ship":
                self.ship(file)
            case "kill" | "restart" if bridge is not None:
                self.bridges.remove(bridge)
                if deed == "restart":
                    self.start()
            case "close" if bridge is not None:
                self.leave(bridge)
                self.write(bridge, closing=True)
                self.bridges.remove(bridge)
            case "enter" | "leave" | "write" if bridge is not None:
                getattr(self, deed)(bridge)
            case _:
                self.fail(deed, file)

    def fail(self, deed: str, file: File) -> None:
        """Begin or end a fault."""
        match deed:
            case "lock":
                file.locked = not file.locked
            case "fail":
                file.fails = True
            case "jump":
                self.jump += self.chance.choice([-90.0, 40.0, 86_400.0])
            case "copy" if self.base is not None and len(self.files) < 4:
                self.copy(file)
            case "away" if self.base is not None:
                self.base.away = not self.base.away
            case "lose" if self.base is not None:
                self.base.loses = self.chance.choice(["kept", "undone"])

    def copy(self, file: File) -> None:
        """Let a copy of a machine begin to live, with the people who read there."""
        self.copies = self.copies or 16
        other = file.copy(self.chance.choice([file.host, f"host{len(self.files)}"]))
        self.files.append(other)
        for person in [it for it in self.people if it.file is file]:
            marks, early = [*person.marks], [*person.early]
            self.people.append(replace(person, file=other, marks=marks, early=early))

    def settle(self) -> None:
        """End every fault, let everybody write and ship, and have a bridge come last."""
        for file in self.files:
            file.locked = file.fails = False
        if self.base is not None:
            self.base.away, self.base.loses = False, ""
        self.pass_time(2)
        self.pass_time(15, tick=3.0)
        self.start()
        self.enter(self.bridges[-1])
        self.pass_time(15, tick=3.0)

    def in_doubt(self) -> bool:
        """Whether an equal message was said so soon before a bridge asked that it may stand for
        one that came after: the clocks of two machines cannot be compared more exactly."""
        said = [self.heard[mark] for mark in self.repeated & self.heard.keys()]
        return any(0 <= at - it <= shipping.SKEW_SECONDS for at in self.asked for it in said)

    def in_disorder(self) -> bool:
        """Whether a bridge read an equal message so late that it may stand for a later one."""
        said = [self.heard[mark] for mark in self.repeated & self.heard.keys()]
        return any(at < it <= read + LATE for at, read in self.read_late for it in said)

    def check(self) -> None:
        """What was heard is shown once to everybody, or lies in a gap; and no gap is false."""
        fresh = Person(self.files[0])
        table: Table = self.base or self.files[0]
        for person in (fresh, *self.people):
            self.read(person)
            told = Counter(person.marks)
            # What another machine shipped, and this file not yet, may come again: docs/store.md.
            told.subtract(
                mark
                for mark, row, shown in person.early
                if 0 < person.file.same.get(row, 0) <= shown
            )
            # Equal messages may stand for each other.
            told = Counter(0 if mark in self.repeated else mark for mark in told.elements())
            many = told.pop(0, 0)
            assert max(told.values(), default=1) == 1, f"shown twice: {told}"
            twice = many > len(self.repeated & self.heard.keys())
            assert not twice or self.in_disorder(), "an equal message shown twice"
            kept = [it.happened.event.get("jid") for it in table.rows[person.begins :]]
            shown_all = many == sum(mark in self.repeated for mark in kept)
            assert shown_all or person.early or self.in_doubt(), "a reader missed an equal message"
        ahead = EPOCH if self.base else self.files[0].ahead
        rows = _with_gaps(cast("Any", table), DOMAIN, [row.recorded() for row in table.rows])
        assert rows is not None
        gaps = [row.event for row in rows if row.event["kind"] == "gap"]
        tenures = table.tenures(ROOM, DOMAIN)
        first = min(it.since for it in tenures)  # a kill may have come before the first word
        if not self.jump:
            spans = [(seconds_of(it["from"]) or 0, seconds_of(it["to"]) or 0) for it in gaps]
            shift = {0.0} | {file.ahead - ahead for file in self.files}
            lost = {
                mark
                for mark, at in self.heard.items()
                if mark not in {*fresh.marks} | self.repeated and ahead + at > first
                and not any(
                    start - 0.1 <= ahead + at + off <= end + 0.1
                    for start, end in spans for off in shift
                )
            }  # fmt: skip
            assert not lost, f"lost {lost}"
        for person in self.people:
            before = {row.happened.event.get("jid", 0) for row in table.rows[: person.begins]}
            missed = {*fresh.marks} - {*person.marks} - before
            assert missed <= self.repeated, f"a reader missed {missed}"
        for row in table.rows:
            if "tenure" in row.happened.event:
                continue
            covered = any(it.since - 0.1 <= row.seen <= it.until + 0.1 for it in tenures)
            assert covered, f"a gap has what is stored: {row}"


def play(seed: int, steps: int = 30) -> None:
    """Play one schedule; raises `AssertionError` if a promise is broken."""
    world = World(seed)
    world.start()
    world.start()
    world.pass_time(0.5)
    for _ in range(steps):
        world.step()
    world.settle()
    world.check()
