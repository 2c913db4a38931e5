import asyncio
import logging
import sys
import time
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from bridge.client import process
from bridge.client.client import Client
from bridge.client.errors import ServerError
from bridge.client.process import MAX_LOG_LINE_BYTES, ServerProcess
from bridge.mcp.framing import Framing
from tests.client import hostile_server
from tests.client.hostile_server import refusal
from tests.client.served import served


async def test_a_program_that_never_answers_is_given_up_with_a_question() -> None:
    program = "import sys\nfor line in sys.stdin: sys.stderr.write(line)"
    received = asyncio.Queue[str]()
    async with served(sys.executable, "-c", program, on_log_line=received.put_nowait) as server:
        with pytest.raises(ServerError, match="is it an MCP server"):
            await Client(server).open(seconds=0.3)
        # Unlike other requests `initialize` must not be cancelled (MCP, "Cancellation").
        await server.notify("the/end")
        while "the/end" not in (line := await received.get()):
            assert "notifications/cancelled" not in line


async def test_a_server_that_knows_no_method_of_mcp_is_given_up(tmp_path: Path) -> None:
    unknown = refusal('{"code":-32601,"message":"Method not found"}')
    async with served(*hostile_server.command(tmp_path, {"initialize": unknown})) as server:
        with pytest.raises(ServerError, match="refused the handshake: Method not found"):
            await Client(server).open()


ONLY_HEADERS = """
import json, sys
while line := sys.stdin.readline():
    if line.startswith("Content-Length: "):
        sys.stdin.readline()
        id_ = json.loads(sys.stdin.read(int(line.split()[1]))).get("id")
        result = {"protocolVersion": "2025-11-25", "capabilities": {}}
        print(json.dumps({"jsonrpc": "2.0", "id": id_, "result": result}), flush=True)
"""


async def test_a_server_that_knows_only_headers_is_opened_by_that_framing() -> None:
    async with served(sys.executable, "-c", ONLY_HEADERS) as server:
        server.framing = Framing.HEADERS
        client = Client(server)
        await client.open()
        assert client.capabilities == {}


async def test_a_line_of_the_log_that_does_not_end_is_told_all_the_same() -> None:
    endless = f"'x' * {MAX_LOG_LINE_BYTES + 1}"
    program = f"import sys; sys.stderr.write({endless}); sys.stderr.flush(); sys.stdin.read()"
    lines = asyncio.Queue[str]()
    async with served(sys.executable, "-c", program, on_log_line=lines.put_nowait):
        assert await lines.get() == "x" * (MAX_LOG_LINE_BYTES + 1)


async def test_a_server_that_does_not_end_with_its_input_is_waited_for_told_and_ended(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(process, "NOTICE_SECONDS", 0.1)
    monkeypatch.setattr(process, "STOP_SECONDS", 0.3)
    caplog.set_level(logging.INFO)
    obeys = (
        "signal.signal(signal.SIGTERM, lambda *_: (print('told', file=sys.stderr), sys.exit(3)))"
    )
    ignores = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    for prelude, limit, lines in ((obeys, 20.0, ["up", "told"]), (ignores, 0.2, ["up"])):
        monkeypatch.setattr(process, "TERMINATE_SECONDS", limit)
        caplog.clear()
        said: list[str] = []
        up = asyncio.Event()

        def take(line: str, said: list[str] = said, up: asyncio.Event = up) -> None:
            said.append(line)
            up.set()

        program = f"import signal, sys, time; {prelude}; print('up', file=sys.stderr, flush=True)"
        program += "\ntime.sleep(600)"  # it does not end by itself
        server = await ServerProcess.start([sys.executable, "-c", program], stderr=PIPE)
        server.on_log_line = take
        async with asyncio.timeout(20):
            await up.wait()
            await server.stop()
        assert said == lines
        assert [each.getMessage() for each in caplog.records] == [
            "the server is still at work; waiting 0.3 s at most",
            "the server did not end when its input did; it is terminated",
        ]


async def test_a_servers_own_children_do_not_hold_us_up_once_it_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(process, "EXIT_SECONDS", 0.2)
    child = "import subprocess; subprocess.Popen(['sleep', '15'])"
    began = time.monotonic()
    server = await ServerProcess.start([sys.executable, "-c", child], stderr=PIPE)
    await server.stop()
    assert time.monotonic() - began < 10
