import asyncio
import json
from asyncio import Future
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic

import pytest

from bridge.mcp.session import CHANGES_SECONDS
from bridge.mcp.stdio import MAX_UNSENT_BYTES, READ_BYTES
from tests.e2e.bridge_process import COMMAND, BridgeProcess, reading, unread
from tests.faults.relay import Relay, Way
from tests.servers.server import XmppServer
from tests.servers.witness import Witness

LEAVE_SECONDS = 0.05
"""The contract's limit from a signal to the leave on the wire: Codex allows no more before
SIGKILL."""
GONE_SECONDS = 1.5
"""The contract's limit after the end of input, with nothing in flight."""
SLACK = 10
"""The contract's limits are for a machine with something to spare; this one runs other tests,
so they are asserted with this factor."""
CLAUDE_CODE_SECONDS = 0.1
"""Between the SIGINT and the SIGTERM with which Claude Code ends a server."""

PIPE_BYTES = 1024 * 1024
"""More than a pipe holds by itself (64 KiB on Linux)."""
UNREAD_REPLIES = 24_000
"""Their replies are 24 MB: six times what the bridge keeps for a client that does not read."""
UNREAD_GROWTH_KIB = 20 * 1024
"""What it may need for them: 4 MiB kept, one read's worth of replies, what the room said."""
CHANGES = 6
"""Changes of the room while nobody reads, each far enough from the last to be told by itself."""
TALK = UNREAD_REPLIES * 1100 // READ_BYTES
"""Messages said in the room while nobody reads, one after the other. Between two of them the
bridge can read that many bytes: in all of them, every request there is."""

BODY = "x" * 1000


@asynccontextmanager
async def tapped(server: XmppServer) -> AsyncIterator[tuple[dict[str, str], Future[float]]]:
    """Settings that lead to this server by a relay, and when the bridge's leave passed it."""
    left_at: Future[float] = asyncio.get_running_loop().create_future()
    async with Relay(server.host, server.port("plaintext")) as relay:
        leave = rb"""type=["']unavailable"""
        relay.once(Way.TO_SERVER, leave, lambda: left_at.set_result(monotonic()))
        yield server.environment(XMPP_SERVICE=f"xmpp://127.0.0.1:{relay.port}"), left_at


def echo(id_: object) -> dict[str, object]:
    """A request whose reply is as long as itself."""
    return {"jsonrpc": "2.0", "id": id_, "method": "echo", "params": {"message": BODY}}


async def talk_goes_on(witness: Witness, bridge: BridgeProcess, messages: int) -> None:
    """Say something so many times, each when the log tells that the last was taken up."""
    for number in range(messages):
        witness.say(f"number {number}.")
        await bridge.stderr_says(f"<Wilma> number {number}.")


def most_resident_kib(bridge: BridgeProcess) -> int:
    """The most memory that the bridge has held so far."""
    status = Path(f"/proc/{bridge.process.pid}/status").read_text(encoding="utf-8")
    return int(status.partition("VmHWM:")[2].split()[0])


async def test_a_client_that_stops_reading_stalls_neither_the_room_nor_fills_the_memory(
    sandbox: XmppServer, tmp_path: Path
) -> None:
    settings = sandbox.environment()
    async with (
        Witness(sandbox, sandbox.witness, settings["MUC_ROOM"], "Wilma") as witness,
        unread(tmp_path, settings) as (bridge, client),
    ):
        await witness.joined("McpDebug")
        await bridge.stderr_says("joined")
        before = most_resident_kib(bridge)
        for number in range(UNREAD_REPLIES):
            bridge.send(echo(number))
        await talk_goes_on(witness, bridge, TALK)
        assert "McpDebug" in witness.occupants
        assert most_resident_kib(bridge) - before < UNREAD_GROWTH_KIB
        bridge.send({"jsonrpc": "2.0", "id": "fresh", "method": "xmppStatus"})
        async with reading(client) as replies:
            for number in range(UNREAD_REPLIES):
                assert json.loads(await replies.readline())["id"] == number
            fresh = json.loads(await replies.readline())
        assert fresh["id"] == "fresh"
        assert fresh["result"]["connected"] is True
        assert fresh["result"]["lastIncoming"]["body"] == f"number {TALK - 1}."


async def test_changes_that_nobody_reads_of_are_told_once_when_somebody_reads_again(
    sandbox: XmppServer, tmp_path: Path
) -> None:
    settings = sandbox.environment()
    room, uri = settings["MUC_ROOM"], "bridge://room/occupants"
    asked = 2 * MAX_UNSENT_BYTES // len(BODY)
    async with (
        Witness(sandbox, sandbox.witness, room, "Wilma") as witness,
        unread(tmp_path, settings) as (bridge, client),
    ):
        await bridge.stderr_says("joined")
        subscribe = {"jsonrpc": "2.0", "id": "first", "method": "resources/subscribe"}
        bridge.send(subscribe | {"params": {"uri": uri}})
        for number in range(asked):
            bridge.send(echo(number))
        await talk_goes_on(witness, bridge, 2 * asked * len(BODY) // READ_BYTES)
        for number in range(CHANGES):
            async with Witness(sandbox, sandbox.witness, room, f"Fred {number}"):
                await bridge.stderr_says(f"<Fred {number}> is here")
                await asyncio.sleep(CHANGES_SECONDS)  # a client that reads would be told each
        bridge.send({"jsonrpc": "2.0", "id": "last", "method": "ping"})
        told, answered = 0, 0
        async with reading(client) as replies:
            while not told or answered < asked + 2:
                message = json.loads(await replies.readline())
                if "method" in message:
                    assert message["params"] == {"uri": uri}
                    told += 1
                else:
                    answered += 1
        assert told == 1


async def test_a_pipe_that_is_closed_with_replies_in_it_ends_the_bridge(
    sandbox: XmppServer, tmp_path: Path
) -> None:
    settings = sandbox.environment()
    async with (
        Witness(sandbox, sandbox.witness, settings["MUC_ROOM"], "Wilma") as witness,
        unread(tmp_path, settings) as (bridge, client),
    ):
        await witness.joined("McpDebug")
        for number in range(PIPE_BYTES // len(BODY)):
            bridge.send(echo(number))
        witness.say("has anybody read it?")
        await bridge.stderr_says("has anybody read it?")
        client.close()
        assert await bridge.wait() == 0
        await witness.left("McpDebug")


async def test_without_a_stdout_the_bridge_does_not_begin(tmp_path: Path) -> None:
    command = ("/bin/sh", "-c", 'exec "$0" "$@" >&-', COMMAND)
    async with BridgeProcess(tmp_path, command=command) as bridge:
        assert await bridge.wait() == 1
    assert bridge.stderr == "xmpp-bridge: stdout is closed, so no reply could be sent\n"


async def _ended_by_codex(bridge: BridgeProcess) -> None:
    bridge.close_input()
    bridge.terminate()


async def _ended_by_claude_code(bridge: BridgeProcess) -> None:
    bridge.interrupt()
    await asyncio.sleep(CLAUDE_CODE_SECONDS)
    bridge.terminate()


async def _ended_with_its_terminal(bridge: BridgeProcess) -> None:
    bridge.hang_up()


@pytest.mark.parametrize("end", [_ended_by_codex, _ended_by_claude_code, _ended_with_its_terminal])
async def test_a_signal_puts_the_leave_on_the_wire_at_once(
    end: Callable[[BridgeProcess], Awaitable[None]], sandbox: XmppServer, tmp_path: Path
) -> None:
    async with (
        tapped(sandbox) as (settings, left_at),
        Witness(sandbox, sandbox.witness, settings["MUC_ROOM"], "Wilma") as witness,
        BridgeProcess(tmp_path, settings) as bridge,
    ):
        await bridge.joined()
        await witness.joined("McpDebug")
        started = monotonic()
        await end(bridge)
        took = await asyncio.wait_for(left_at, GONE_SECONDS * SLACK) - started
        assert took < LEAVE_SECONDS * SLACK
        await witness.left("McpDebug")
        assert await bridge.wait() == 0
    assert bridge.stderr.count("closed") == 1


async def test_a_hangup_that_was_ignored_from_the_start_ends_nothing(tmp_path: Path) -> None:
    command = ("/bin/sh", "-c", 'trap "" HUP; exec "$0" "$@"', COMMAND)  # as `nohup` does
    async with BridgeProcess(tmp_path, command=command) as bridge:
        await bridge.initialize()
        bridge.hang_up()
        assert (await bridge.call("xmppStatus"))["phase"] == "unconfigured"


async def test_a_signal_puts_the_leave_on_the_wire_at_once_with_replies_that_nobody_reads(
    sandbox: XmppServer, tmp_path: Path
) -> None:
    async with (
        tapped(sandbox) as (settings, left_at),
        Witness(sandbox, sandbox.witness, settings["MUC_ROOM"], "Wilma") as witness,
        unread(tmp_path, settings) as (bridge, _),
    ):
        await witness.joined("McpDebug")
        for number in range(UNREAD_REPLIES):
            bridge.send(echo(number))
        witness.say("still busy?")
        await bridge.stderr_says("still busy?")
        started = monotonic()
        bridge.terminate()
        took = await left_at - started
        assert took < LEAVE_SECONDS * SLACK
        assert await bridge.wait() == 0
        assert monotonic() - started < GONE_SECONDS * SLACK
