"""A room that a test has filled, and a session with the set `llm` in front of it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bridge.llm.tools import TOOLSET
from bridge.mcp.catalogue import Catalogue
from bridge.mcp.server import Server
from bridge.settings.table import Configuration
from bridge.xmpp.model.events import MessageReceived
from bridge.xmpp.model.journal import Journal
from tests.llm.model_service import KEY, Asked, ModelService
from tests.llm.test_model import settings
from tests.mcp.client import Client
from tests.mcp.sample_tools import IMPLEMENTATION, envelope, request, states
from tests.tools.played import ROOM, Played


def room(*said: str, sender: str = "Wilma", capacity: int = 1000) -> Journal:
    """A journal in which this was said."""
    journal = Journal("epoch", capacity)
    for number, body in enumerate(said):
        journal.append(MessageReceived(f"{ROOM}/{sender}", sender, body), float(number))
    return journal


def configured(home: Path, service: ModelService | None) -> Configuration:
    """Settings that name this service."""
    if service is None:
        return settings(home)
    return settings(home, LLM_BASE_URL=service.base_url, LLM_MODEL="small", LLM_API_KEY=KEY)


def events_in(asked: Asked | str) -> list[dict[str, Any]]:
    """The data of a request, as an honest model reads it."""
    message = asked if isinstance(asked, str) else asked.user
    _, marker, rest = message.partition("\n<<<DATA ")
    assert marker
    code, _, rest = rest.partition(">>>\n")
    data, marker, _ = rest.partition(f"\n<<<END {code}>>>")
    assert marker
    return [json.loads(line) for line in data.split("\n")]


class Desk(Client):
    """A client of a session with the set `llm`."""

    def __init__(self, journal: Journal, configuration: Configuration) -> None:
        catalogue = Catalogue(TOOLSET, [Played(journal=journal).link, configuration])
        super().__init__(server=Server(IMPLEMENTATION, catalogue, states()))

    async def shake_hands(self, revision: str, **capabilities: object) -> None:
        """Open the handshake era."""
        named = {"protocolVersion": revision, "capabilities": capabilities}
        await self.ask(request("hi", "initialize", **named))

    async def ask(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request and return its reply."""
        before = len(self.frames)
        self.send(message)
        replies: list[dict[str, Any]] = []
        while not (answers := [each for each in replies if each.get("id") == message["id"]]):
            replies = (await self.replies(before + len(replies) + 1))[before:]
        return answers[0]


async def called(desk: Desk, way: str, name: str, **arguments: object) -> dict[str, Any]:
    """Call a tool, in this way, of a client without sampling; return its object or its error."""
    if way == "bare":
        reply = await desk.ask(request(1, name, **arguments))
        return dict(reply["result"] if "result" in reply else reply["error"])
    params: dict[str, object] = {"name": name, "arguments": arguments}
    if way == "2026-07-28":
        params["_meta"] = envelope(way)
    else:
        await desk.shake_hands(way)
    result = (await desk.ask(request(1, "tools/call", **params)))["result"]
    if result.get("isError"):
        return {"text": result["content"][0]["text"]}
    shown = json.loads(result["content"][0]["text"])
    assert result["structuredContent"] == shown
    return dict(shown)
