"""Bridges in one room whose database comes and goes, by values of time, on a real one."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bridge.store import spooled
from bridge.store.errors import AwayStoreError, StoreError, UnsureStoreError
from bridge.store.opening import Team
from bridge.store.postgresql import PostgresqlDatabase
from bridge.store.spool import Spool
from bridge.store.spooled import SpooledDatabase
from bridge.store.writer import Moment
from bridge.text import iso
from tests.servers.postgresql import Postgresql
from tests.store.hall import Bridge, Hall

SETTLED = 20.0


class Flaky:
    """A database that is away when the town says so, and loses answers to COMMIT."""

    def __init__(self, town: "Town") -> None:
        self._town = town
        self._database = PostgresqlDatabase(town.team.url)
        self._database.now = lambda: town.now
        town.opened.append(self._database)

    def __getattr__(self, name: str) -> Any:
        if self._town.away and name not in {"close", "now"}:
            raise AwayStoreError("away on purpose")
        return getattr(self._database, name)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        if self._town.away:
            raise AwayStoreError("away on purpose")
        with self._database.transaction():
            yield
            if self._town.loses == "commit":
                self._town.loses, self._town.away = "", True
                raise UnsureStoreError("lost on purpose, and not kept")
        if self._town.loses == "answer":
            self._town.loses, self._town.away = "", True
            raise UnsureStoreError("lost on purpose, and kept")


class Now:
    """A thread that has done its work once it is started."""

    daemon = False

    def __init__(self, target: Callable[..., object], args: Sequence[object]) -> None:
        self.start = lambda: target(*args)


class Town(Hall):
    """A room whose bridges share a database and a spool."""

    def __init__(self, team: Team) -> None:
        super().__init__(team)
        self.team = team
        self.away, self.loses = False, ""
        self.opened: list[PostgresqlDatabase] = []
        self._stores: dict[str, SpooledDatabase] = {}

    def _connect(self) -> Any:
        if self.away:
            raise AwayStoreError("away on purpose")
        return Flaky(self)

    def write(self, bridge: Bridge, *, closing: bool = False, **_: Any) -> None:
        """Have a bridge write what waits, and try again what is to be repeated."""
        for _attempt in range(3):
            try:
                if bridge.run not in self._stores:
                    spool = Spool(self.team.spool, 10, self.team.url.name)
                    store = SpooledDatabase(self._connect, spool)
                    store.clock = lambda: self.now
                    self._stores[bridge.run] = store
                moment = Moment(self.at, self.now, closing=closing)
                bridge.writer.write(self._stores[bridge.run], bridge.waiting, moment)
            except StoreError:
                continue
            bridge.waiting = []
            return

    def kill(self, bridge: Bridge) -> None:
        """End it without a word."""
        super().kill(bridge)
        if (store := self._stores.pop(bridge.run, None)) is not None:
            store.close()

    def end(self) -> None:
        """Close what is open."""
        for store in self._stores.values():
            store.close()
        for database in (self.database, *self.opened):
            database.close()


STEPS = st.one_of(
    st.tuples(st.just("start")),
    st.tuples(st.just("say"), st.sampled_from(["", "again", "named"])),
    st.tuples(st.sampled_from(["enter", "leave", "kill", "close"]), st.integers(0, 3)),
    st.tuples(st.just("away"), st.booleans()),
    st.tuples(st.just("lose"), st.sampled_from(["commit", "answer"])),
    st.tuples(st.just("pass"), st.sampled_from([0.5, 1.0, 8.0])),
)


@settings(max_examples=15, deadline=None, suppress_health_check=[*HealthCheck])
@given(steps=st.lists(STEPS, max_size=30))
def test_whatever_outages_come_every_event_is_there_once_or_in_a_gap(
    steps: list[tuple[Any, ...]], postgresql: Postgresql, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spooled, "RETRY_SECONDS", 0.0)
        patch.setattr(spooled, "LOOK_SECONDS", 0.0)
        patch.setattr(spooled, "FOLLOW_SECONDS", 9.0)
        patch.setattr(spooled, "Thread", Now)
        town = Town(postgresql.team(tmp_path_factory.mktemp("any")))
        try:
            _play(town, steps)
        finally:
            town.end()


def _play(town: Town, steps: list[tuple[Any, ...]]) -> None:
    town.start_two_inside()
    town.pass_time(0.5)
    alike = set[int]()
    for name, *arguments in steps:
        _step(town, name, arguments, alike)
    town.away, town.loses = False, ""
    town.pass_time(SETTLED)
    for one in [*town.bridges]:
        town.close(one)
    town.enter(town.start())
    town.pass_time(2)
    rows = town.rows()
    told = [(event["jid"], shared) for event, shared, _ in rows if "jid" in event]
    shared = Counter(mark for mark, everybody in told if everybody)
    gaps = [(event["from"], event["to"]) for event, _, _ in rows if event["kind"] == "gap"]
    in_gaps = {
        mark
        for mark, at in town.happened.items()
        if any(begin <= iso(at) <= end for begin, end in gaps)
    }
    assert {mark for mark, count in shared.items() if count > 1} == set()
    missing = town.happened.keys() - {mark for mark, _ in told} - in_gaps
    assert missing - alike == set()


def _step(town: Town, name: str, arguments: list[Any], alike: set[int]) -> None:
    match name, arguments:
        case "start", []:
            town.start()
        case "say", [body]:
            more = {"stanzaId": f"id{town.now}"} if body == "named" else {}
            mark = town.say("" if more else body, **more)
            if body == "again":
                alike.add(mark)
        case "pass", [seconds]:
            town.pass_time(seconds)
        case "away", [away]:
            town.away = away
        case "lose", [what]:
            town.loses = what
        case _, [number] if town.bridges:
            getattr(town, name)(town.bridges[number % len(town.bridges)])
