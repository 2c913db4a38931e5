"""The official SDK's client against the real command, in each of its three modes."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.subscriptions import ResourceUpdated

from tests.e2e.bridge_process import COMMAND, TOOLS
from tests.servers.server import XmppServer
from tests.servers.witness import Witness

MODES = {"auto": "2026-07-28", "legacy": "2025-11-25", "2026-07-28": "2026-07-28"}
"""How the client may connect, and the revision that comes of it."""
EVERYTHING = str(Path(__file__).parent / "everything.py")
MESSAGES = "bridge://room/messages"
PATIENCE_SECONDS = 60.0
"""Limit for what the SDK itself would wait for without end."""


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@asynccontextmanager
async def connected(
    home: Path,
    mode: str,
    settings: Mapping[str, str] | None = None,
    command: Sequence[str] | None = None,
    **callbacks: Any,
) -> AsyncIterator[Client]:
    """A client of a bridge of its own, which sees these settings and none of ours."""
    nothing = home / "nothing.env"
    nothing.touch()
    words = list(command or (COMMAND, "--env-file", str(nothing)))
    server = StdioServerParameters(
        command=words[0], args=words[1:], env={"HOME": str(home), **(settings or {})}, cwd=home
    )
    # A file of its own: pytest's stand-in for stderr has no descriptor to hand on.
    with (home / "stderr").open("w", encoding="utf-8") as stderr:
        async with (
            asyncio.timeout(PATIENCE_SECONDS),
            Client(stdio_client(server, stderr), mode=mode, **callbacks) as client,
        ):
            yield client


def text_of(result: types.CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, types.TextContent)
    return block.text


async def joined(client: Client) -> dict[str, Any]:
    """The status once the bridge is in the room: the first message waits for the join."""
    sent = await client.call_tool("xmppSend", {"message": "I am in"})
    assert not sent.is_error, text_of(sent)
    status: dict[str, Any] | None = (await client.call_tool("xmppStatus")).structured_content
    assert status is not None
    assert status["connected"] is True
    return status


async def test_the_client_learns_who_we_are_and_what_we_offer(mode: str, tmp_path: Path) -> None:
    async with connected(tmp_path, mode) as client:
        assert client.protocol_version == MODES[mode]
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == TOOLS
        for tool in tools:
            assert tool.title
            assert tool.description
            assert tool.annotations
            assert tool.annotations.read_only_hint is (tool.name != "xmppSend")
            assert (tool.output_schema is None) is (tool.name == "echo")
        if mode != "2026-07-28":  # pinned to a version, it asks for nothing before the first call
            assert client.server_info is not None
            assert client.server_info.name == "xmpp-debug-bridge"
            assert client.instructions is not None
            assert "xmppStatus first" in client.instructions
            assert client.server_capabilities.tools is not None
            assert client.server_capabilities.resources is not None
            assert client.server_capabilities.resources.subscribe is True
            assert client.server_capabilities.prompts is not None
            assert client.server_capabilities.completions is not None


async def test_a_message_sent_with_the_client_is_heard_in_the_room(
    mode: str, prosody: XmppServer, tmp_path: Path
) -> None:
    settings = prosody.environment()
    async with (
        Witness(prosody, prosody.witness, settings["MUC_ROOM"], "Wilma") as witness,
        connected(tmp_path, mode, settings) as client,
    ):
        echoed = await client.call_tool("echo", {"message": "hello"})
        assert text_of(echoed) == "Echo: hello"
        assert echoed.structured_content is None
        # The client itself checks structured content against the schema it was told.
        await client.list_tools()
        sent = await client.call_tool("xmppSend", {"message": "hello from the client"})
        assert sent.structured_content is not None
        assert sent.structured_content["sent"] is True
        assert json.loads(text_of(sent)) == sent.structured_content
        assert (await witness.heard("hello from the client")).nick == "McpDebug"
        status = (await client.call_tool("xmppStatus")).structured_content
        assert status is not None
        assert (status["connected"], status["room"]) == (True, settings["MUC_ROOM"])


@pytest.mark.parametrize("pinned", ["auto", "2026-07-28"])
async def test_a_listening_client_hears_that_somebody_spoke(
    pinned: str, sandbox: XmppServer, tmp_path: Path
) -> None:
    settings = sandbox.environment()
    async with (
        Witness(sandbox, sandbox.witness, settings["MUC_ROOM"], "Wilma") as witness,
        connected(tmp_path, pinned, settings) as client,
    ):
        await joined(client)
        async with client.listen(
            tools_list_changed=True, resource_subscriptions=[MESSAGES, "bridge://nowhere"]
        ) as subscription:
            assert subscription.honored.resource_subscriptions == [MESSAGES]
            assert not subscription.honored.tools_list_changed
            witness.say("is anybody listening?")
            assert await anext(subscription) == ResourceUpdated(MESSAGES)
            (content,) = (await client.read_resource(MESSAGES)).contents
            assert isinstance(content, types.TextResourceContents)
            assert json.loads(content.text)["entries"][-1]["body"] == "is anybody listening?"
