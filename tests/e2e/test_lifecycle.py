import asyncio
import json
import os
import sys
from asyncio.subprocess import DEVNULL
from pathlib import Path
from time import monotonic

import pytest

from tests.e2e import noise
from tests.e2e.bridge_process import COMMAND, TOOLS, BridgeProcess
from tests.e2e.company import in_company
from tests.servers.server import XmppServer
from tests.servers.witness import Witness

GONE_SECONDS = 1.5
"""The contract's limit after the end of input, with nothing in flight."""
ORPHAN_SECONDS = 5.0
"""The contract's limit for noticing that the parent died."""
SLACK = 4
"""The contract's limits are for a machine with something to spare; this one runs other tests,
so they are asserted with this factor."""

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "tests", "version": "0"},
    },
}
PARENT = "import subprocess, sys; subprocess.run(sys.argv[1:])"


async def test_end_of_input_ends_the_bridge_and_it_says_goodbye_to_the_room(
    xmpp_server: XmppServer, tmp_path: Path
) -> None:
    async with in_company(xmpp_server, tmp_path) as (bridge, witness):
        started = monotonic()
        bridge.close_input()
        assert await bridge.wait() == 0
        assert monotonic() - started < GONE_SECONDS * SLACK
        await witness.left("McpDebug")
    assert bridge.stderr.rstrip().endswith("closed")


@pytest.mark.parametrize("signal", ["terminate", "interrupt"])
async def test_a_signal_ends_the_bridge_and_it_says_goodbye_to_the_room(
    signal: str, xmpp_server: XmppServer, tmp_path: Path
) -> None:
    async with in_company(xmpp_server, tmp_path) as (bridge, witness):
        getattr(bridge, signal)()
        assert await bridge.wait() == 0
        await witness.left("McpDebug")
    # Nobody plans a next attempt after a goodbye.
    assert "waiting" not in bridge.stderr
    assert bridge.stderr.count("closed") == 1


async def test_what_is_in_flight_at_the_end_of_input_is_answered(
    xmpp_server: XmppServer, tmp_path: Path
) -> None:
    settings = xmpp_server.environment()
    async with (
        Witness(xmpp_server, xmpp_server.witness, settings["MUC_ROOM"], "Wilma") as witness,
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


async def test_a_signal_cuts_short_what_is_in_flight(tmp_path: Path) -> None:
    settings = {
        "XMPP_SERVICE": "xmpp://localhost",
        "XMPP_USERNAME": "bot@localhost",
        "XMPP_PASSWORD": "bot-passes-4711",
        "MUC_ROOM": "room@conference.localhost",
    } | noise.at_start(tmp_path / "site", noise.SLOW_RESOLVER)
    async with BridgeProcess(tmp_path / "home", settings) as bridge:
        answer = bridge.expect("last")
        call = {"jsonrpc": "2.0", "id": "last", "method": "xmppSend"}
        bridge.send(call | {"params": {"message": "hello", "timeoutSeconds": 50}})
        await bridge.stderr_says("SEEN a question to the resolver")
        bridge.close_input()
        started = monotonic()
        bridge.terminate()
        assert await bridge.wait() == 0
        assert monotonic() - started < GONE_SECONDS * SLACK
        refused = (await bridge.answer(answer))["error"]
        assert refused["data"]["condition"] == "recipient-unavailable"


async def test_a_resolver_that_never_answers_does_not_hold_up_the_end(tmp_path: Path) -> None:
    settings = {
        "XMPP_SERVICE": "xmpp://chat.example",
        "XMPP_USERNAME": "bot@chat.example",
        "XMPP_PASSWORD": "bot-passes-4711",
        "MUC_ROOM": "room@conference.chat.example",
    } | noise.at_start(tmp_path / "site", noise.SLOW_RESOLVER)
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
            tmp_path,
            settings,
            command=(sys.executable, "-c", PARENT, COMMAND),
        ) as bridge,
    ):
        await bridge.joined()
        await witness.joined("McpDebug")
        bridge.process.kill()
        # Its stdin stays open: we hold the other end.
        await witness.left("McpDebug", ORPHAN_SECONDS * SLACK)
        await bridge.output_ended(ORPHAN_SECONDS * SLACK)
        await bridge.stderr_says("the client that started this server is gone")


async def test_a_client_that_closes_its_end_of_stdout_ends_the_bridge(
    sandbox: XmppServer, tmp_path: Path
) -> None:
    reading, writing = os.pipe()
    settings = sandbox.environment()
    command = (
        sys.executable,
        "-c",
        "import os, sys; os.dup2(int(sys.argv[1]), 1); os.execv(sys.argv[2], sys.argv[2:])",
        str(writing),
        COMMAND,
    )
    async with Witness(sandbox, sandbox.witness, settings["MUC_ROOM"], "Wilma") as witness:
        os.set_inheritable(writing, True)
        async with BridgeProcess(tmp_path, settings, command=command, keep=(writing,)) as bridge:
            os.close(writing)
            await witness.joined("McpDebug")
            os.close(reading)
            bridge.send(INITIALIZE)
            assert await bridge.wait() == 0
            await witness.left("McpDebug")


@pytest.mark.parametrize("ending", [b"\n", b""])
async def test_requests_from_a_file_are_all_answered(
    ending: bytes, sandbox: XmppServer, tmp_path: Path
) -> None:
    requests = tmp_path / "requests"
    send = {"jsonrpc": "2.0", "id": 1, "method": "xmppSend", "params": {"message": "from a file"}}
    requests.write_bytes(
        json.dumps(INITIALIZE).encode() + b"\n" + json.dumps(send).encode() + ending
    )
    with requests.open("rb") as file:
        async with BridgeProcess(
            tmp_path / "home", sandbox.environment(), stdin=file.fileno()
        ) as bridge:
            assert (await bridge.frame())["result"]["serverInfo"]["name"] == "xmpp-debug-bridge"
            assert (await bridge.frame())["result"]["sent"] is True
            assert await bridge.wait() == 0


async def test_an_empty_stdin_ends_the_bridge(tmp_path: Path) -> None:
    async with BridgeProcess(tmp_path, stdin=DEVNULL) as bridge:
        started = monotonic()
        assert await bridge.wait() == 0
        assert monotonic() - started < GONE_SECONDS * SLACK


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


async def test_a_client_that_asks_nothing_does_not_keep_the_bridge_out_of_the_room(
    sandbox: XmppServer, tmp_path: Path
) -> None:
    settings = sandbox.environment()
    async with (
        Witness(sandbox, sandbox.witness, settings["MUC_ROOM"], "Wilma") as witness,
        BridgeProcess(tmp_path, settings),
    ):
        await witness.joined("McpDebug")


async def test_the_bare_dialect_needs_no_handshake(sandbox: XmppServer, tmp_path: Path) -> None:
    async with BridgeProcess(tmp_path, sandbox.environment()) as bridge:
        bridge.send_raw(b'{"jsonrpc":"2.0","id":"1","method":"xmppStatus"}\n')
        status = await bridge.frame()
        assert status["id"] == "1"
        assert {"connected", "room", "nickname", "lastIncoming"} <= set(status["result"])
        assert await bridge.bare("echo", message="hello") == {
            "content": [{"type": "text", "text": "Echo: hello"}]
        }
        sent = await bridge.bare("xmppSend", message="hello")
        assert (sent["sent"], sent["message"]) == (True, "hello")
        tools = (await bridge.request("tools/list"))["tools"]
        assert [tool["name"] for tool in tools] == TOOLS


async def test_both_dialects_and_both_framings_share_one_connection(tmp_path: Path) -> None:
    # Without settings, so that nothing happens between two questions for the status.
    async with BridgeProcess(tmp_path) as bridge:
        assert (await bridge.bare("echo", message="before"))["content"]
        await bridge.initialize()
        await bridge.until(lambda it: it["phase"] == "unconfigured")
        assert await bridge.call("xmppStatus") == await bridge.status()
        body = json.dumps({"jsonrpc": "2.0", "id": 9, "method": "ping"}).encode()
        bridge.send_raw(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        assert await bridge.frame() == {"jsonrpc": "2.0", "id": 9, "result": {}}
        assert (await bridge.bare("echo", message="after"))["content"]


async def test_many_calls_at_once_are_answered_one_by_one(
    sandbox: XmppServer, tmp_path: Path
) -> None:
    settings = sandbox.environment(BRIDGE_SEND_RATE="300")
    async with BridgeProcess(tmp_path, settings) as bridge:
        await bridge.joined()
        answers = {}
        for number in range(300):
            answers[number] = bridge.expect(number)
            call = {"jsonrpc": "2.0", "id": number, "method": "xmppSend"}
            bridge.send(call | {"params": {"message": f"number {number}"}})
        for number, answer in answers.items():
            result = (await bridge.answer(answer, f"number {number}"))["result"]
            assert result["message"] == f"number {number}"
