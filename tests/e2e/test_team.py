"""Bridges on several machines that share one database, as processes on a real server."""

import asyncio
import json
import platform
import signal
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from bridge.text import one_line
from tests.e2e.bridge_process import BridgeProcess
from tests.e2e.here import run_here
from tests.e2e.watching import Watching, run
from tests.servers.postgresql import PASSWORD, Postgresql
from tests.servers.server import XmppServer
from tests.servers.witness import Witness
from tests.store.recorded import until

ALL = "2001-01-01T00:00:00Z"


@pytest.fixture
def settings(sandbox: XmppServer, postgresql: Postgresql) -> Iterator[dict[str, str]]:
    """What all bridges of the team have in common; the database is up again after the test."""
    yield sandbox.environment(BRIDGE_STORE=postgresql.new())
    postgresql.start()


async def _said(bridge: BridgeProcess, count: int) -> list[str]:
    """What is in the history, once so much is."""
    bodies: list[str] = []
    async with asyncio.timeout(40):
        while len(bodies) < count:
            page = await bridge.bare("xmppHistory", after=ALL, kinds=["message"], limit=500)
            bodies = [each["body"] for each in page["entries"]]
            await asyncio.sleep(0.5)  # the database tells nobody
    return bodies


async def _logged(home: Path, settings: dict[str, str], count: int) -> list[str]:
    """What `log` shows of what was said, once it is so much, in the order of the times."""
    bodies: list[str] = []
    async with asyncio.timeout(40):
        while len(bodies) < count:
            code, out, err = await run(home, settings, "log", "--json", "--kind", "message")
            assert (code, err) == (0, "")
            bodies = [json.loads(line)["body"] for line in out.splitlines()]
    return bodies


async def test_recorders_on_two_machines_and_an_agent_on_a_third_see_one_history(
    sandbox: XmppServer, postgresql: Postgresql, settings: dict[str, str], tmp_path: Path
) -> None:
    homes = {
        name: tmp_path / name for name in ("one", "two", "agent", "reader", "later", "newcomer")
    }
    said: list[str] = []
    async with AsyncExitStack() as stack:
        wilma = await stack.enter_async_context(
            Witness(sandbox, sandbox.witness, settings["MUC_ROOM"], "Wilma")
        )

        async def says(*bodies: str) -> None:
            for body in bodies:
                wilma.say(body)
                await wilma.heard(body)
                said.append(body)

        recorders = []
        for name in ("one", "two"):
            mine = settings | {"MCP_BOT_NICKNAME": name}
            recording = Watching(homes[name], mine, command="record")
            recorders.append(await stack.enter_async_context(recording))
            await wilma.joined(f"{name}-record")
        agent = await stack.enter_async_context(BridgeProcess(homes["agent"], settings))
        await agent.joined()
        follow = ("--follow", "--json", "--since", "1 hour ago")
        following = Watching(homes["reader"], settings, *follow, command="log")
        follower = await stack.enter_async_context(following)
        await says("before")
        assert await _said(agent, 1) == said
        await follower.shows("before")
        for round_ in ("first", "second"):
            postgresql.kill()
            await says(f"{round_} outage, 1", f"{round_} outage, 2")
            for recording in recorders:
                await recording.says("events and stanzas wait in")
            await follower.says("nothing is shown until it can be read")
            if round_ == "second":  # another reader begins, and has no file
                following = Watching(homes["newcomer"], settings, *follow, command="log")
                newcomer = await stack.enter_async_context(following)
                await newcomer.says("nothing is shown until it can be read")
            await says(f"{round_} outage, 3")
            await asyncio.to_thread(postgresql.start)
            await says(f"after the {round_}")
            assert await _said(agent, len(said)) == said
            if round_ == "first":  # its machine goes down, and comes back later
                recorders.pop(0).signal(signal.SIGKILL)
        await says("the last word")
        assert await _said(agent, len(said)) == said
        for reader in (follower, newcomer):
            await reader.shows("the last word")
            told = [json.loads(line) for line in reader.out.splitlines()]
            assert sorted(each["body"] for each in told if "body" in each) == sorted(said)
            reader.signal(signal.SIGINT)
            assert await reader.ended() == 0
        page = await agent.bare("xmppHistory", after=ALL, limit=500)
        assert [each for each in page["entries"] if each["kind"] == "gap"] == []
        assert PASSWORD not in agent.stderr
        assert all(PASSWORD not in each.err for each in recorders)
        assert await _logged(homes["later"], settings, len(said)) == said


async def _silent(bridge: BridgeProcess) -> list[str]:
    """The warnings about machines that went silent."""
    warnings = (await bridge.status()).get("warnings", [])
    return [warning for warning in warnings if "last heard of" in warning]


async def test_what_no_reader_can_see_is_said_and_without_the_database_the_file_is_shown(
    sandbox: XmppServer, postgresql: Postgresql, settings: dict[str, str], tmp_path: Path
) -> None:
    schema = settings["BRIDGE_STORE"].rpartition("%3D")[2]
    witness = Witness(sandbox, sandbox.witness, settings["MUC_ROOM"], "Wilma")
    first = settings | {"MCP_BOT_NICKNAME": "one"}
    recording = Watching(tmp_path / "one", first, command="record")
    agent = BridgeProcess(tmp_path / "agent", settings)
    async with witness as wilma, recording as recorder, agent as bridge:
        await bridge.joined()
        await wilma.joined("one-record")
        wilma.say("before")
        assert await _said(bridge, 1) == ["before"]
        known = f"SELECT count(DISTINCT file) FROM {schema}.tenures"  # noqa: S608 - of the test
        await until(lambda: postgresql.query(known) == [(2,)])
        assert await _silent(bridge) == []
        recorder.signal(signal.SIGKILL)
        # The other machine was last heard of a while ago; the agent's own goes on.
        aged = f"UPDATE {schema}.files SET beat = beat - 20"  # noqa: S608 - of the test
        async with asyncio.timeout(30):
            while not (silent := await _silent(bridge)):
                postgresql.query(aged)
                await asyncio.sleep(0.5)
        (warning,) = silent
        assert warning.startswith(f"{one_line(platform.node())} was last heard of at 20")
        assert warning.endswith("; what it recorded since is not shown")
        postgresql.kill()
        wilma.say("meanwhile")
        await wilma.heard("meanwhile")
        bodies = list[str]()
        async with asyncio.timeout(30):
            while len(bodies) < 2:
                code, out, err = await run(tmp_path / "agent", settings, "log", "--json")
                assert code == 0
                assert "; only what this machine recorded is shown" in err
                assert len(err.splitlines()) == 1
                shown = [json.loads(line) for line in out.splitlines()]
                bodies = [entry["body"] for entry in shown if entry["kind"] == "message"]
        assert bodies == ["before", "meanwhile"]


def test_a_store_is_made_by_who_may_and_refused_with_what_to_do(
    postgresql: Postgresql, settings: dict[str, str], tmp_path: Path
) -> None:
    ran = run_here(tmp_path, "log", **settings)
    assert (ran.returncode, "record --prepare-store" in ran.stderr) == (1, True), ran
    for _ in range(2):
        ran = run_here(tmp_path, "record", "--prepare-store", **settings)
        assert (ran.returncode, ran.stderr) == (0, "")
        assert ran.stdout.endswith(" is ready\n")
    schema = settings["BRIDGE_STORE"].rpartition("%3D")[2]
    postgresql.query(f"UPDATE {schema}.store SET version = 99")  # noqa: S608 - of the test
    wrong = settings | {"BRIDGE_STORE": settings["BRIDGE_STORE"].replace(PASSWORD, "wrong-4711")}
    for changed, told in ((settings, "version 99"), (wrong, "password authentication failed")):
        ran = run_here(tmp_path, "record", **changed)
        assert (ran.returncode, ran.stdout, told in ran.stderr) == (2, "", True), ran
        assert "4711" not in ran.stderr
