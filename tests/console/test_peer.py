import asyncio
import sys

import pytest

from bridge.console.client import Client
from bridge.console.peer import MAX_LOG_LINE_BYTES, Peer, PeerError
from bridge.mcp.framing import Framing


async def test_a_program_that_never_answers_is_given_up_with_a_question() -> None:
    peer = await Peer.start([sys.executable, "-c", "import sys; sys.stdin.read()"])
    try:
        with pytest.raises(PeerError, match="is it an MCP server"):
            await Client(peer).open(seconds=0.3)
    finally:
        await peer.stop()


async def _first_log_line(program: str, framing: Framing = Framing.LINES) -> str:
    """Send one notification to a program, and return the first line of its stderr."""
    line: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def take(one: str) -> None:
        if not line.done():
            line.set_result(one)

    peer = await Peer.start([sys.executable, "-c", program], take)
    try:
        peer.framing = framing
        await peer.notify("notifications/initialized")
        async with asyncio.timeout(20):
            return await line
    finally:
        await peer.stop()


@pytest.mark.parametrize(
    ("framing", "begins"), [(Framing.LINES, '{"jsonrpc"'), (Framing.HEADERS, "Content-Length: ")]
)
async def test_a_message_goes_out_in_the_framing_that_was_chosen(
    framing: Framing, begins: str
) -> None:
    program = "import sys; sys.stderr.write(sys.stdin.readline()); sys.stdin.read()"
    assert (await _first_log_line(program, framing)).startswith(begins)


async def test_a_line_of_the_log_that_does_not_end_is_told_all_the_same() -> None:
    endless = f"'x' * {MAX_LOG_LINE_BYTES + 1}"
    program = f"import sys; sys.stderr.write({endless}); sys.stderr.flush(); sys.stdin.read()"
    assert await _first_log_line(program) == "x" * (MAX_LOG_LINE_BYTES + 1)
