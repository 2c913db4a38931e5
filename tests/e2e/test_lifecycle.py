import asyncio
import sys
from pathlib import Path
from time import monotonic

from tests.e2e import noise
from tests.e2e.bridge_process import COMMAND, NOWHERE, BridgeProcess
from tests.e2e.company import in_company
from tests.e2e.watching import Watching
from tests.servers.server import XmppServer
from tests.servers.witness import Witness

GONE_SECONDS = 1.5
"""The contract's limit after the end of input, with nothing in flight."""
TOLD_SECONDS = 1.0
"""Within which a person at a terminal is told that nothing happens by itself."""
ORPHAN_SECONDS = 5.0
"""The contract's limit for noticing that the parent died."""
SLACK = 6
"""The contract's limits are for a machine with something to spare; this one runs other tests,
so they are asserted with this factor. What is gone later than that was drained for ten seconds."""
STARTING_SECONDS = 20.0
"""What the start itself may take here."""

PARENT = "import subprocess, sys; subprocess.run(sys.argv[1:])"


async def test_end_of_input_ends_the_bridge_and_it_says_goodbye_to_the_room(
    sandbox: XmppServer, tmp_path: Path
) -> None:
    async with in_company(sandbox, tmp_path) as (bridge, witness):
        started = monotonic()
        bridge.close_input()
        assert await bridge.wait() == 0
        assert monotonic() - started < GONE_SECONDS * SLACK
        await witness.left("McpDebug")
    assert bridge.stderr.rstrip().endswith("closed")
    assert "waited for" not in bridge.stderr  # its stdin is no terminal


async def test_on_a_terminal_it_says_at_once_what_it_waits_for_and_what_people_run(
    tmp_path: Path,
) -> None:
    started = monotonic()
    async with Watching(tmp_path, NOWHERE, command="serve", columns=80) as serving:
        await serving.shows("[Server] Waiting for an MCP client on stdin.")
        assert monotonic() - started < TOLD_SECONDS + STARTING_SECONDS
        serving.press(b"\x04")
        assert await serving.ended() == 0
    assert all(f"xmpp-bridge {name}" in serving.out for name in ("client", "check", "init"))


async def test_what_is_in_flight_at_the_end_of_input_is_answered_before_the_first_join(
    sandbox: XmppServer, tmp_path: Path
) -> None:
    settings = sandbox.environment()
    async with (
        Witness(sandbox, sandbox.witness, settings["MUC_ROOM"], "Wilma") as witness,
        BridgeProcess(tmp_path, settings) as bridge,
    ):
        # Not in the room yet: the call has to wait for the first join.
        sent = bridge.expect("last")
        call = {"jsonrpc": "2.0", "id": "last", "method": "xmppSend"}
        bridge.send(call | {"params": {"message": "my last words"}})
        bridge.close_input()
        assert await bridge.wait() == 0
        assert (await bridge.answer(sent))["result"]["sent"] is True
        await witness.heard("my last words")
        await witness.left("McpDebug")


async def test_a_resolver_that_never_answers_does_not_hold_up_the_end(tmp_path: Path) -> None:
    slow = noise.at_start(tmp_path / "site", noise.SLOW_RESOLVER)
    settings = NOWHERE | slow | {"XMPP_SERVICE": "xmpp://chat.example"}
    async with BridgeProcess(tmp_path / "home", settings) as bridge:
        await bridge.status()
        await bridge.stderr_says("SEEN a question to the resolver")
        assert (await bridge.status())["phase"] == "resolving"
        started = monotonic()
        bridge.close_input()
        assert await bridge.wait() == 0
        assert monotonic() - started < GONE_SECONDS * SLACK


async def test_the_death_of_the_process_that_started_it_is_noticed(
    sandbox: XmppServer, tmp_path: Path
) -> None:
    settings = sandbox.environment()
    async with (
        Witness(sandbox, sandbox.witness, settings["MUC_ROOM"], "Wilma") as witness,
        BridgeProcess(
            tmp_path, settings, command=(sys.executable, "-c", PARENT, COMMAND)
        ) as bridge,
    ):
        await bridge.joined()
        await witness.joined("McpDebug")
        bridge.process.kill()
        # Its stdin stays open: we hold the other end.
        await witness.left("McpDebug", ORPHAN_SECONDS * SLACK)
        await bridge.output_ended(ORPHAN_SECONDS * SLACK)
        await bridge.stderr_says("the client that started this server is gone")


async def test_while_slixmpp_is_loaded_only_what_needs_a_room_waits(
    sandbox: XmppServer, tmp_path: Path
) -> None:
    may_load = tmp_path / "may load"
    slow = noise.at_start(tmp_path / "site", noise.SLOW_SLIXMPP)
    settings = sandbox.environment(SLIXMPP_MAY_LOAD=str(may_load)) | slow
    async with BridgeProcess(tmp_path / "home", settings) as bridge:
        await bridge.initialize()
        status = asyncio.create_task(bridge.status())
        await bridge.call("echo", message="hello")
        await bridge.call("echo", message="hello again")
        assert not status.done()
        may_load.touch()
        assert (await status)["phase"] != "unconfigured"
        await bridge.joined()
