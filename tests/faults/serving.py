"""The bridge without its process: a participant at work, and a client that calls the tools."""

import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bridge.mcp.asking import RequestStates
from bridge.mcp.catalogue import Catalogue
from bridge.mcp.server import Server
from bridge.service import IMPLEMENTATION, OWN
from bridge.settings.load import load
from bridge.tools.check import CurrentSettings
from bridge.tools.link import RoomLink
from bridge.tools.send import RateLimiter
from bridge.xmpp.muc.participant import Participant
from tests.e2e.bridge_process import RpcFailedError, check_result
from tests.faults.scene import Eyes, at_work
from tests.faults.scripted_server import ScriptedServer
from tests.mcp.client import Client


class ServedBridge:
    """Takes the calls of one client, in the bare dialect."""

    def __init__(self, client: Client, eyes: Eyes) -> None:
        self._client = client
        self.eyes = eyes
        self._ids = 0

    async def bare(self, tool: str, **arguments: object) -> dict[str, Any]:
        """The result of a tool; raises `RpcFailedError`."""
        self._ids += 1
        id_ = self._ids
        self._client.send({"jsonrpc": "2.0", "id": id_, "method": tool, "params": arguments})
        count = 0
        while True:
            replies = await self._client.replies(count + 1)
            count = len(replies)
            for reply in replies:
                if reply.get("id") != id_:
                    continue
                if "error" in reply:
                    raise RpcFailedError(reply["error"])
                result: dict[str, Any] = reply["result"]
                check_result(tool, result)
                return result

    async def status(self) -> dict[str, Any]:
        return await self.bare("xmppStatus")

    async def until(self, satisfied: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        """The first status that satisfies, looked at with each event."""
        while True:
            count = len(self.eyes.records)
            if satisfied(status := await self.status()):
                return status
            await self.eyes.news(count)


@asynccontextmanager
async def served_at(server: ScriptedServer, home: Path) -> AsyncIterator[ServedBridge]:
    """A bridge that is in the room of the server."""
    configuration = load(server.environment(), cwd=home, package_root=home)
    participant = Participant(configuration.settings)
    collaborators = (
        RoomLink(participant, None),
        RateLimiter(configuration.send_rate),
        CurrentSettings(configuration, lambda: configuration),
        configuration,
    )
    tools = Catalogue(OWN, collaborators)
    states = RequestStates(secrets.token_urlsafe, time.monotonic)
    async with at_work(participant) as eyes:
        await eyes.joined()
        client = Client(server=Server(IMPLEMENTATION, tools, states))
        try:
            yield ServedBridge(client, eyes)
        finally:
            await client.end()
