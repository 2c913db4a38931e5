"""Bridges in one room whose database comes and goes, by values of time, on a real one."""

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
from tests.servers.postgresql import Postgresql
from tests.store.hall import STEPS, Bridge, Hall, play


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
        super().kill(bridge)
        if (store := self._stores.pop(bridge.run, None)) is not None:
            store.close()

    def mend(self) -> None:
        """Let the database be there."""
        self.away, self.loses = False, ""

    def end(self) -> None:
        for store in self._stores.values():
            store.close()
        for database in (self.database, *self.opened):
            database.close()


FAULTS = (
    st.tuples(st.just("away"), st.booleans()),
    st.tuples(st.just("loses"), st.sampled_from(["commit", "answer"])),
)


@settings(max_examples=10, deadline=None, suppress_health_check=[*HealthCheck])
@given(steps=st.lists(st.one_of(*STEPS, *FAULTS), max_size=30))
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
            play(town, steps, setattr)
        finally:
            town.end()
