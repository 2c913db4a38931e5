from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.bridge_process import BridgeProcess
from tests.e2e.company import in_company
from tests.servers.server import XmppServer

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
INVALID_PARAMS = -32602


SENDABLE = (
    "x" * 60_000,
    '"' * 33_333,
    "<&>]]>\t\n'\"",
    "\N{PILE OF POO}\u202e\u200b",
    "  blanks  ",
)
"""Bodies at the limits, which arrive as they are."""


@pytest.fixture
async def bridge(sandbox: XmppServer, tmp_path: Path) -> AsyncIterator[BridgeProcess]:
    """A bridge in the room, which must be there still when the test is over."""
    async with BridgeProcess(tmp_path, sandbox.environment()) as bridge:
        await bridge.initialize()
        before = await bridge.joined()
        yield bridge
        after = await bridge.status()
        assert bridge.running
        assert after["connected"] is True
        assert after["since"] == before["since"]
        assert (await bridge.call("xmppSend", message="still here"))["sent"] is True


def _error(frame: dict[str, Any]) -> tuple[object, int]:
    return frame["id"], frame["error"]["code"]


async def test_input_that_is_no_json_is_a_parse_error_that_says_where(
    bridge: BridgeProcess,
) -> None:
    for line in (b"{", b"hello", b'{"jsonrpc": "2.0", "id": 1,', b"\xff\xfe", b"[1,", b"{'a': 1}"):
        bridge.send_raw(line + b"\n")
        frame = await bridge.frame()
        assert _error(frame) == (None, PARSE_ERROR)
        assert frame["error"]["message"] == "Parse error"
        assert frame["error"]["data"]


async def test_json_that_is_no_message_is_an_invalid_request(bridge: BridgeProcess) -> None:
    for message, id_ in (
        (1, None),
        ("xmppStatus", None),
        (None, None),
        ({}, None),
        ({"jsonrpc": "1.0", "id": 7, "method": "ping"}, 7),
        ({"jsonrpc": "2.0", "id": 8}, 8),
        ({"jsonrpc": "2.0", "id": 9, "method": 5}, 9),
        ({"jsonrpc": "2.0", "id": None, "method": "ping"}, None),
        ({"jsonrpc": "2.0", "id": {}, "method": "ping"}, None),
        ({"jsonrpc": "2.0", "id": 10, "method": "ping", "params": 3}, 10),
    ):
        bridge.send(message)
        frame = await bridge.frame()
        assert _error(frame) == (id_, INVALID_REQUEST), message
        assert frame["error"]["data"]


async def test_a_body_at_the_limits_goes_through_as_it_is(
    xmpp_server: XmppServer, tmp_path: Path
) -> None:
    async with in_company(xmpp_server, tmp_path) as (bridge, witness):
        for body in SENDABLE:
            await bridge.bare("xmppSend", message=body)
            heard = await witness.heard(lambda it: it.nick == "McpDebug")
            assert heard.body == body
