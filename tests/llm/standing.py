"""A room that a test has filled, and a session with the set `llm` in front of it."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bridge.llm.tools import TOOLSET
from bridge.mcp.catalogue import Catalogue
from bridge.mcp.server import Server
from bridge.mcp.session import Session
from bridge.settings.table import Configuration
from bridge.xmpp.model.events import MessageReceived
from bridge.xmpp.model.journal import Journal
from tests.llm.model_service import KEY, Asked, ModelService
from tests.llm.test_model import settings
from tests.mcp.sample_tools import IMPLEMENTATION, envelope, request, states
from tests.tools.played import ROOM, Played

PATIENCE = 10.0
"""Seconds after which a test that waits has failed."""


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


class Desk:
    """A client of a session with the set `llm`: asks, and answers what it is asked."""

    def __init__(
        self,
        journal: Journal,
        configuration: Configuration,
        model: Any = None,
        played: Played | None = None,
    ) -> None:
        link = (played or Played(journal=journal)).link
        catalogue = Catalogue(TOOLSET, [link, configuration])
        self.session = Session(Server(IMPLEMENTATION, catalogue, states()), self._receive)
        self.sampled: list[dict[str, Any]] = []
        """The params of each question to the client."""
        self.told: list[dict[str, Any]] = []
        """Each notification."""
        self._model = model
        self._replies: dict[object, asyncio.Future[dict[str, Any]]] = {}
        self._chunks: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._running = asyncio.create_task(self.session.run(self._feed()))

    async def shake_hands(self, revision: str, **capabilities: object) -> None:
        """Open the handshake era."""
        await self.ask(
            request(
                "hi",
                "initialize",
                protocolVersion=revision,
                capabilities=capabilities,
                clientInfo={"name": "desk", "version": "1"},
            )
        )

    async def ask(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request and return its reply."""
        waiting = asyncio.get_running_loop().create_future()
        self._replies[message["id"]] = waiting
        self.send(message)
        async with asyncio.timeout(PATIENCE):
            reply: dict[str, Any] = await waiting
        return reply

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message."""
        self._chunks.put_nowait(json.dumps(message).encode() + b"\n")

    async def end(self) -> None:
        """End the session."""
        self._chunks.put_nowait(None)
        await self._running

    async def _feed(self) -> Any:
        while (chunk := await self._chunks.get()) is not None:
            yield chunk

    def _receive(self, data: bytes) -> None:
        for line in data.splitlines():
            message = json.loads(line)
            if message.get("method") == "sampling/createMessage":
                self.sampled.append(message["params"])
                answer = self._model(message["params"])
                self.send({"jsonrpc": "2.0", "id": message["id"], **answer})
            elif "id" not in message:
                self.told.append(message)
            else:
                self._replies[message["id"]].set_result(message)


WAYS = ("bare", "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
"""How a tool can be called."""


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
    if way >= "2025-06-18":
        assert result["structuredContent"] == shown
    return dict(shown)
