import asyncio
import logging
import sys
import time
from asyncio.subprocess import PIPE

import pytest

from bridge.client import process
from bridge.client.client import Client
from bridge.client.errors import ServerError
from bridge.client.process import MAX_LOG_LINE_BYTES, ServerProcess


async def test_a_program_that_never_answers_is_given_up_with_a_question() -> None:
    program = "import sys\nfor line in sys.stdin: sys.stderr.write(line)"
    received: list[str] = []
    ended = asyncio.Event()

    def take(line: str) -> None:
        received.append(line)
        if "the/end" in line:
            ended.set()

    server = await ServerProcess.start([sys.executable, "-c", program], stderr=PIPE)
    server.on_log_line = take
    try:
        with pytest.raises(ServerError, match="is it an MCP server"):
            await Client(server).open(seconds=0.3)
        # Unlike other requests `initialize` must not be cancelled (MCP, "Cancellation").
        await server.notify("the/end")
        async with asyncio.timeout(20):
            await ended.wait()
    finally:
        await server.stop()
    assert not any("notifications/cancelled" in line for line in received)


async def test_a_line_of_the_log_that_does_not_end_is_told_all_the_same() -> None:
    endless = f"'x' * {MAX_LOG_LINE_BYTES + 1}"
    program = f"import sys; sys.stderr.write({endless}); sys.stderr.flush(); sys.stdin.read()"
    line: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def take(one: str) -> None:
        if not line.done():
            line.set_result(one)

    server = await ServerProcess.start([sys.executable, "-c", program], stderr=PIPE)
    server.on_log_line = take
    try:
        async with asyncio.timeout(20):
            assert await line == "x" * (MAX_LOG_LINE_BYTES + 1)
    finally:
        await server.stop()


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
        assert [one.getMessage() for one in caplog.records] == [
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
