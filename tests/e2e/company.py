"""A bridge in a room, where it is not alone."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.e2e.bridge_process import BridgeProcess
from tests.servers.server import XmppServer
from tests.servers.witness import Witness


@asynccontextmanager
async def in_company(
    server: XmppServer, home: Path, **settings: str
) -> AsyncIterator[tuple[BridgeProcess, Witness]]:
    """A bridge that speaks MCP and is in a room, and Wilma, who was there before it."""
    environment = server.environment(None, **settings)
    async with (
        Witness(server, server.witness, environment["MUC_ROOM"], "Wilma") as wilma,
        BridgeProcess(home, environment) as bridge,
    ):
        await bridge.initialize()
        await bridge.joined()
        await wilma.joined("McpDebug")
        yield bridge, wilma
