import sys

import pytest

from bridge.console.peer import Peer, PeerError


async def test_a_program_that_never_answers_is_given_up_with_a_question() -> None:
    peer = await Peer.start([sys.executable, "-c", "import sys; sys.stdin.read()"])
    try:
        with pytest.raises(PeerError, match="is it an MCP server"):
            await peer.initialize({}, seconds=0.3)
    finally:
        await peer.stop()
