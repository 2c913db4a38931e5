"""A room in which several bridges sit that share a store, without network, threads and time."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from weakref import finalize

from hypothesis import strategies as st

from bridge.store.clock import steady
from bridge.store.database import Happened, Observer
from bridge.store.errors import StoreError
from bridge.store.location import Place, put_aside
from bridge.store.recorder import Recorder
from bridge.store.retention import Retention
from bridge.store.sqlite import SqliteDatabase, open_file
from bridge.store.writer import Entered, Item, Left, Moment, Writer
from bridge.text import iso
from tests.store.recorded import gaps, selected

ROOM = "room@conference.localhost"
EPOCH = 1_700_000_000.0
STEP = 0.5
SETTLED = 20.0
"""Seconds after which everything is decided."""
MOMENT = 0.01
"""Between two deeds: never are two at once."""


def recorder_in_room(
    opened: Callable[[], SqliteDatabase],
    spool: Path,
    run: str = "run",
    retention: Retention | None = None,
    committed: Callable[[], object] = lambda: None,
) -> Recorder:
    recorder = Recorder(opened, partial(put_aside, spool), retention)
    recorder.committed = committed
    recorder.add(Observer("bot@localhost", "McpDebug", run))
    recorder.add(Entered(ROOM, time.time(), steady(), steady()))
    return recorder


def said(mark: int, body: str = "", at: float = 0.0, **more: Any) -> Happened:
    """Something that everybody hears; `mark` tells it from others, in a field that is in no key."""
    body = body or f"number {mark}"
    event = {"kind": "message", "sender": "Wilma", "type": "groupchat", "body": body, "jid": mark}
    return Happened(at, ROOM, event | more, shared=True)


class Troubled:
    """A database with trouble: that is told each call before it comes, and each commit."""

    def __init__(self, database: Any, trouble: Callable[[str], None]) -> None:
        self._database, self._trouble = database, trouble

    def __getattr__(self, name: str) -> Any:
        if name not in {"close", "now", "ahead", "name"}:  # no statements
            self._trouble(name)
        return getattr(self._database, name)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self._trouble("begin")
        with self._database.transaction():
            yield
            self._trouble("commit")
        self._trouble("committed")


def _breaking(database: SqliteDatabase, calls: int) -> Any:
    """A database in which a call fails, the given number of calls from now."""
    left = iter(range(calls))

    def trouble(moment: str) -> None:
        if moment not in {"begin", "committed"} and next(left, None) is None:
            raise StoreError("broken on purpose")

    return Troubled(database, trouble)


@dataclass
class Bridge:
    run: str
    writer: Writer
    waiting: list[Item] = field(default_factory=list)
    inside: bool = False
    stalled: bool = False


class Hall:
    """The room, the bridges, the store, and what time it is."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.database = open_file(place)
        self.database.ahead = EPOCH
        finalize(self, self.database.close)  # Python 3.13 warns of a connection that is left open
        self.now = 1_000.0
        self.jump = 0.0
        self.bridges: list[Bridge] = []
        self.alike = set[int]()
        """The marks of what is like something else, which may stand for it."""
        self.happened: dict[int, float] = {}
        """What happened while a bridge was in the room: the mark, and when."""
        self._runs = 0
        self._marks = 0

    @property
    def at(self) -> float:
        return EPOCH + self.now + self.jump

    def start(self) -> Bridge:
        self._runs += 1
        bridge = Bridge(f"run{self._runs}", Writer())
        bridge.waiting.append(Observer("bot@localhost", bridge.run, bridge.run))
        self.bridges.append(bridge)
        return bridge

    def start_two_inside(self) -> tuple[Bridge, Bridge]:
        first, second = self.start(), self.start()
        for bridge in (first, second):
            self.enter(bridge)
        return first, second

    def enter(self, bridge: Bridge) -> None:
        self.now += MOMENT
        if not bridge.inside:
            bridge.inside = True
            bridge.waiting.append(Entered(ROOM, self.at, self.now, self.now))

    def leave(self, bridge: Bridge) -> None:
        self.now += MOMENT
        if bridge.inside:
            bridge.inside = False
            bridge.waiting.append(Left(ROOM, self.at, self.now))

    def say(self, body: str = "", **more: Any) -> int:
        """Have something said; return its mark."""
        self.now += MOMENT
        self._marks += 1
        happened = said(self._marks, body, self.at, **more)._replace(steady=self.now)
        for bridge in self.bridges:
            if bridge.inside:
                bridge.waiting.append(happened)
                self.happened[self._marks] = self.at
        return self._marks

    def write(
        self,
        bridge: Bridge,
        *,
        closing: bool = False,
        breaking: int | None = None,
    ) -> None:
        """Have a bridge write what waits; the call of this number breaks."""
        database = self.database
        if breaking is not None:
            database = _breaking(self.database, breaking)
        with suppress(StoreError):
            moment = Moment(self.at, self.now, closing=closing)
            bridge.writer.write(database, bridge.waiting, moment)
            bridge.waiting = []

    def kill(self, bridge: Bridge) -> None:
        """End it without a word."""
        self.bridges.remove(bridge)

    def close(self, bridge: Bridge) -> None:
        self.leave(bridge)
        self.write(bridge, closing=True)
        self.bridges.remove(bridge)

    def mend(self) -> None:
        """Let nothing be in anybody's way."""
        for bridge in self.bridges:
            bridge.stalled = False

    def pass_time(self, seconds: float) -> None:
        """Let time pass, in which every bridge that is not stalled writes."""
        for _ in range(round(seconds / STEP)):
            self.now += STEP
            for bridge in self.bridges:
                if not bridge.stalled:
                    self.write(bridge)

    def rows(self) -> list[tuple[dict[str, Any], bool, str]]:
        """What is recorded: each exact form, whether it is everybody's, and who saw it."""
        selection = selected(
            self.place,
            "SELECT event, shared, run FROM entries JOIN runs ON runs.id = observer "
            "ORDER BY entries.id",
        )
        rows = [(json.loads(event), bool(shared), run) for event, shared, run in selection]
        return [row for row in rows if "tenure" not in row[0]]

    def gaps(self) -> list[tuple[str, str]]:
        """When nobody was there."""
        return gaps(self.database, ROOM, "localhost", EPOCH + self.now)


STEPS = (
    st.tuples(st.just("start")),
    st.tuples(st.just("say"), st.sampled_from(["", "again", "named"])),
    st.tuples(st.sampled_from(["enter", "leave", "kill", "close"]), st.integers(0, 3)),
    st.tuples(st.just("pass"), st.sampled_from([0.5, 1.0, 3.0, 8.0])),
)
"""What may happen in a room."""


def play(hall: Hall, steps: Sequence[tuple[Any, ...]], meet: Callable[..., None]) -> None:
    """Let it happen, and the faults that `meet` knows; then every event is there once, or a gap."""
    hall.start_two_inside()
    hall.pass_time(0.5)
    for step in steps:
        match step:
            case ["start"]:
                hall.start()
            case ["say", body]:
                more = {"stanzaId": f"id{len(hall.happened)}-{hall.now}"} if body == "named" else {}
                mark = hall.say("" if more else body, **more)
                hall.alike |= {mark} if body == "again" else set()
            case ["pass", seconds]:
                hall.pass_time(seconds)
            case ["enter" | "leave" | "kill" | "close" as name, number]:
                if hall.bridges:
                    getattr(hall, name)(hall.bridges[number % len(hall.bridges)])
            case _ if hall.bridges:
                meet(hall, *step)
    hall.mend()
    hall.pass_time(SETTLED)
    for each in [*hall.bridges]:
        hall.close(each)
    hall.enter(hall.start())
    hall.pass_time(2)
    rows = hall.rows()
    told = [(event["jid"], shared) for event, shared, _ in rows if "jid" in event]
    gaps = hall.gaps()
    missing = {
        mark
        for mark, at in hall.happened.items()
        if not any(begin <= iso(at) <= end for begin, end in gaps)
    } - {mark for mark, _ in told}
    assert max(Counter(mark for mark, shared in told if shared).values(), default=1) == 1
    assert missing <= hall.alike
