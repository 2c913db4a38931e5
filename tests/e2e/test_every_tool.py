"""Every tool of every set that comes with the bridge, in all three ways of speaking to it."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest_asyncio

from bridge.service import INSTRUCTIONS
from tests.e2e.bridge_process import TOOLS, BridgeProcess
from tests.llm.model_service import KEY, Asked, model_service, thinking
from tests.llm.standing import events_in
from tests.samples.open_meteo import running_open_meteo
from tests.servers.server import XmppServer

LISTED_BYTES = 13_500
"""Of JSON, for what is listed of the bridge's own tools: a model reads it in every turn."""
CALLED_BYTES = 8_500
"""The part of it that a model needs for a call: names, descriptions, input schemas."""

SETS = ("samples", "llm")
PREFIX = "io.modelcontextprotocol/"
ENVELOPE = {f"{PREFIX}protocolVersion": "2026-07-28", f"{PREFIX}clientCapabilities": {}}
SPEAKS = {"handshake": {}, "stateless": {"_meta": ENVELOPE}}
"""What a call under MCP carries beside the tool and its arguments, in both eras."""

CALLS: dict[str, dict[str, object]] = {
    "echo": {"message": "hello"},
    "xmppStatus": {},
    "xmppSend": {"message": "hello, room"},
    "xmppHistory": {"limit": 5},
    "xmppWait": {"timeoutSeconds": 0},
    "xmppOccupants": {},
    "xmppPing": {"target": "server"},
    "xmppInfo": {"target": "room"},
    "xmppTrace": {"limit": 5},
    "xmppCheck": {},
    "xmppDiagnose": {"nickname": "Wilma"},
    "word_count": {"text": "the quick brown fox jumps"},
    "sentiment": {"text": "good"},
    "current_time": {},
    "answer_general_question": {"question": "Why is the sky blue?"},
    "current_weather": {"location": "Paris"},
    "scout": {"question": "Who said hello?"},
}
"""One call of each tool that does what it is for."""


def answering(asked: Asked) -> object:
    """What an honest model says."""
    cursor = events_in(asked)[-1]["cursor"]
    return {"answer": "The bridge.", "found": True, "cursors": [cursor]}


@pytest_asyncio.fixture
async def bridge(prosody: XmppServer, tmp_path: Path) -> AsyncIterator[BridgeProcess]:
    """The bridge in a room, with all of its sets and what they ask for."""
    options = [word for name in SETS for word in ("--toolset", name)]
    (tmp_path / "nothing.env").touch()
    async with running_open_meteo() as weather, model_service(thinking(answering)) as model:
        settings = prosody.environment(
            LLM_BASE_URL=model.base_url, LLM_MODEL="small", LLM_API_KEY=KEY
        )
        arguments = ("serve", "--env-file", str(tmp_path / "nothing.env"), *options)
        async with BridgeProcess(
            tmp_path, settings | weather.environment, arguments=arguments
        ) as process:
            await process.initialize()
            await process.joined()
            await process.call("xmppSend", message="hello")
            yield process


async def test_every_tool_of_every_set_works_in_all_three_ways_of_speaking(
    bridge: BridgeProcess,
) -> None:
    tools = (await bridge.request("tools/list"))["tools"]
    assert {each["name"] for each in tools} == set(CALLS)
    own = [each for each in tools if each["name"] in TOOLS]
    for most, parts in (
        (LISTED_BYTES, own[0].keys() | own[1].keys()),
        (CALLED_BYTES, {"name", "description", "inputSchema"}),
    ):
        listed = [{name: each[name] for name in each.keys() & parts} for each in own]
        assert len(json.dumps(listed, separators=(",", ":"))) <= most
    for each in own:
        assert not {"anyOf", "oneOf", "allOf"} & each["inputSchema"].keys()
        assert each["description"].startswith(("Use ", "To ", "Test "))  # when to use it
    assert "xmppDiagnose with its nickname" in INSTRUCTIONS
    for each in tools:
        name, arguments = each["name"], CALLS[each["name"]]
        shapes = []
        for era, more in SPEAKS.items():
            call = {"name": name, "arguments": arguments, **more}
            result = await bridge.request("tools/call", call)
            assert not result["isError"], (name, era, result)
            assert ("structuredContent" in result) is ("outputSchema" in each)
            shapes.append(shape(result))
        shapes.append(shape(await bridge.bare(name, **arguments)))
        assert shapes[0] == shapes[1] == shapes[2], name
    asked = {"archive": True, "contains": "HELLO, ROOM", "after": "2020-01-01T00:00:00Z"}
    archived = (await bridge.call("xmppHistory", **asked))["entries"]
    assert {(each["source"], each["body"]) for each in archived} == {("archive", "hello, room")}


def shape(result: dict[str, Any]) -> object:
    """What every way of speaking must agree on: the names in an object, or the text."""
    if "structuredContent" in result:
        return sorted(result["structuredContent"])
    match result.get("content"):
        case [{"type": "json", "json": data}, {"type": "interpret", "prompt": str()}]:
            return sorted([*data, "interpret"])
        case [{"type": "text", "text": text}]:
            return text
    return sorted(result)
