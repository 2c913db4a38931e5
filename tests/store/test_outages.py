"""Bridges in one room whose database comes and goes, by values of time, on a real one."""

from contextlib import ExitStack, suppress
from functools import partial
from types import SimpleNamespace
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
from tests.store.hall import STEPS, Bridge, Hall, Troubled, play

QUICK = {"RETRY_SECONDS": 0.0, "LOOK_SECONDS": 0.0, "FOLLOW_SECONDS": 9.0}
FAULTS = (
    st.tuples(st.just("away"), st.booleans()),
    st.tuples(st.just("loses"), st.sampled_from(["commit", "committed"])),
)


class Town(Hall):
    """A hall whose database may be `away`, or lose the answer to a COMMIT that it kept or not."""

    def __init__(self, team: Team, stack: ExitStack) -> None:
        super().__init__(team)
        stack.callback(self.database.close)
        self._team, self._stack = team, stack
        self._stores: dict[str, SpooledDatabase] = {}
        self.mend()

    def mend(self) -> None:
        self.away, self.loses = False, ""

    def _trouble(self, moment: str) -> None:
        if self.away:
            raise AwayStoreError("away on purpose")
        if moment == self.loses:
            self.loses, self.away = "", True
            raise UnsureStoreError("lost on purpose")

    def _connect(self) -> Any:
        self._trouble("connect")
        database = PostgresqlDatabase(self._team.url)
        self._stack.callback(database.close)
        database.now = lambda: self.now
        return Troubled(database, self._trouble)

    def _store(self, run: str) -> Any:
        if run not in self._stores:
            spool = Spool(self._team.spool, 10, self._team.url.name)
            store = self._stores[run] = SpooledDatabase(self._connect, spool)
            self._stack.callback(store.close)
            store.clock = lambda: self.now
        return self._stores[run]

    def write(self, bridge: Bridge, *, closing: bool = False, **_: Any) -> None:
        """Have a bridge write what waits, and try again what is to be repeated."""
        for _attempt in range(3):
            with suppress(StoreError):
                moment = Moment(self.at, self.now, closing=closing)
                bridge.writer.write(self._store(bridge.run), bridge.waiting, moment)
                bridge.waiting = []
                return

    def kill(self, bridge: Bridge) -> None:
        super().kill(bridge)
        if bridge.run in self._stores:
            self._stores[bridge.run].close()


@settings(max_examples=10, deadline=None, suppress_health_check=[*HealthCheck])
@given(steps=st.lists(st.one_of(*STEPS, *FAULTS), max_size=30))
def test_whatever_outages_come_every_event_is_there_once_or_in_a_gap(
    steps: list[tuple[Any, ...]], postgresql: Postgresql, tmp_path_factory: pytest.TempPathFactory
) -> None:
    def now(target: Any, args: Any) -> Any:
        """A thread that has done its work once it is started."""
        return SimpleNamespace(start=partial(target, *args))

    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        for name, value in (QUICK | {"Thread": now}).items():
            patch.setattr(spooled, name, value)
        play(Town(postgresql.team(tmp_path_factory.mktemp("any")), stack), steps, setattr)
