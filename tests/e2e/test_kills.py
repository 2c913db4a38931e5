"""Bridges that are killed at any time, as real processes: every number said is kept once."""

import asyncio
import random
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from tests.e2e.bridge_process import COMMAND, run_in
from tests.e2e.numbered import RATE, Bridge, Room, account_of, numbered
from tests.faults.relay import Relay, Way
from tests.servers.postgresql import Postgresql
from tests.servers.server import XmppServer

KILLS, MORE_KILLS = 8, 40
SEEDS = [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 6))]
MORE = [KILLS, pytest.param(MORE_KILLS, marks=pytest.mark.long)]

LOCKED_SECONDS = (5, 8)
"""The second is longer than a silent bridge in a file counts as there."""
STOPPED_SECONDS = 18
"""Longer than a silent machine counts as there, which is 10 s."""
LOSSES = 40
"""How many COMMITs are lost at most."""
COMMIT = {
    Way.TO_SERVER: b"(?s)(?=[QP].{4,8}COMMIT\0)",
    Way.TO_CLIENT: b"(?s)(?=C.{4}COMMIT\0)",
}
"""Matches right before a COMMIT in the protocol, and before the answer."""


@pytest.fixture
def file(sandbox: XmppServer, tmp_path: Path) -> dict[str, str]:
    """The settings of bridges that share a file."""
    return sandbox.environment(BRIDGE_STORE=str(tmp_path / "rooms.db"))


@pytest.fixture
def team(sandbox: XmppServer, postgresql: Postgresql, tmp_path: Path) -> dict[str, str]:
    """The settings of bridges that share a database."""
    settings = sandbox.environment(BRIDGE_STORE=postgresql.new())
    made = run_in(tmp_path, COMMAND, "record", "--prepare-store", **settings)
    assert made.returncode == 0, made.stderr
    return settings


@pytest.fixture
def restarting(postgresql: Postgresql) -> Iterator[Postgresql]:
    """A database that is up again after the test."""
    yield postgresql
    postgresql.start()


def _on_two_machines(folder: Path) -> dict[str, Path]:
    north, south = folder / "north", folder / "south"
    return {"one-record": north, "two": north, "three-record": south, "four": south}


def _chance(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311 - no secret


async def _kill(room: Room, chance: random.Random, kills: int) -> None:
    """Kill so many bridges, one at a time or several at once, and start them again at once.

    It begins with all, after which nobody is in the room for a while.
    """
    several = len(room.bridges)
    while kills > 0:
        await room.until(chance.randrange(1, 60))
        killed = chance.sample(room.bridges, min(several, kills))
        await room.restart(*killed)
        kills -= len(killed)
        several = chance.choices((1, 2, 3), (8, 2, 1))[0]


@pytest.mark.parametrize("kills", MORE)
@pytest.mark.parametrize("seed", SEEDS)
async def test_bridges_of_one_machine_that_are_killed_lose_and_double_nothing(
    kills: int, seed: int, sandbox: XmppServer, file: dict[str, str], tmp_path: Path
) -> None:
    names = dict.fromkeys(("one-record", "two", "three"), tmp_path)
    async with numbered(sandbox, file, names) as room:
        await _kill(room, _chance(seed), kills)
        await account_of(room, seed)


@pytest.mark.parametrize("kills", MORE)
@pytest.mark.parametrize("seed", SEEDS)
async def test_bridges_of_two_machines_that_are_killed_lose_and_double_nothing(
    kills: int,
    seed: int,
    sandbox: XmppServer,
    team: dict[str, str],
    restarting: Postgresql,
    tmp_path: Path,
) -> None:
    chance = _chance(seed)
    async with numbered(sandbox, team, _on_two_machines(tmp_path)) as room:
        await _kill(room, chance, kills // 2)
        room.note("the database is killed")
        restarting.kill()
        await _kill(room, chance, kills // 4)
        await asyncio.to_thread(restarting.start)
        room.note("the database is there again")
        await _kill(room, chance, kills - kills // 2 - kills // 4)
        await account_of(room, seed)


class Losses:
    """Loses COMMITs of the bridges behind a relay: some on their way, some only the answer."""

    def __init__(self, relay: Relay, room: Room, chance: random.Random) -> None:
        self._relay, self._room, self._chance = relay, room, chance
        self._pending = False

    def lose(self) -> None:
        """Lose the next COMMIT, unless this is still to come."""
        if not self._pending:
            self._pending = True
            way = self._chance.choice([*Way])
            self._relay.once(way, COMMIT[way], partial(self._cut, way))

    def _cut(self, way: Way) -> None:
        self._pending = False
        self._relay.cut()
        self._room.note(f"a COMMIT is lost {way.value}")


@pytest.mark.parametrize("seed", SEEDS)
async def test_commits_lost_after_a_bridge_was_killed_lose_and_double_nothing(
    seed: int, sandbox: XmppServer, team: dict[str, str], postgresql: Postgresql, tmp_path: Path
) -> None:
    chance = _chance(seed)
    names = {"one-record": tmp_path / "north", "two": tmp_path / "south"}
    async with Relay("127.0.0.1", postgresql.port) as relay:
        url = team["BRIDGE_STORE"]
        behind = {"two": url.replace(f":{postgresql.port}/", f":{relay.port}/")}
        async with numbered(sandbox, team, names, stores=behind) as room:
            losses = Losses(relay, room, chance)
            await room.until(int(RATE * 3))
            holder = room.bridges[0]
            room.note(f"kill {holder.name}")
            await holder.kill()
            for _ in range(LOSSES):
                await room.until(chance.randrange(1, 20))
                losses.lose()
            await relay.heal()
            await holder.start()
            await account_of(room, seed)


@pytest.mark.long
async def test_a_file_that_is_locked_while_a_bridge_comes_makes_no_gap(
    sandbox: XmppServer, file: dict[str, str], tmp_path: Path
) -> None:
    names = dict.fromkeys(("one-record", "two", "three"), tmp_path)
    async with numbered(sandbox, file, names) as room:
        for seconds in LOCKED_SECONDS:
            await room.until(int(RATE * 2))
            with closing(sqlite3.connect(file["BRIDGE_STORE"], isolation_level=None)) as other:
                other.execute("BEGIN EXCLUSIVE")
                room.note("the file is locked")
                await room.restart(*room.bridges[1:])
                await room.until(int(RATE * seconds))
                other.execute("COMMIT")
                room.note("the file is free")
        await account_of(room)


def _stopped(room: Room, name: str) -> Bridge:
    (bridge,) = (bridge for bridge in room.bridges if bridge.name == name)
    bridge.signal(signal.SIGSTOP)
    room.note(f"{name} is stopped")
    return bridge


@pytest.mark.long
@pytest.mark.parametrize("kind", ["file", "team"])
async def test_a_bridge_that_is_stopped_for_long_loses_and_doubles_nothing(
    kind: str, sandbox: XmppServer, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    settings: dict[str, str] = request.getfixturevalue(kind)
    names = {"one-record": tmp_path / "north", "two": tmp_path / "north"}
    async with numbered(sandbox, settings, names) as room:
        await room.until(int(RATE * 2))
        for name in names:
            stopped = _stopped(room, name)
            await room.until(int(RATE * STOPPED_SECONDS))
            stopped.signal(signal.SIGCONT)
            room.note(f"{name} goes on")
            await room.until(int(RATE * 2))
        await account_of(room)
