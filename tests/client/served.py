"""An MCP server that runs while a test speaks to it."""

import asyncio
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from bridge.client.process import ServerProcess

SECONDS = 60.0
"""Limit for all that a test does with one."""


@asynccontextmanager
async def served(
    *command: str, on_log_line: Callable[[str], None] = lambda line: None
) -> AsyncIterator[ServerProcess]:
    """Start a server, and end it afterwards."""
    server = await ServerProcess.start(command, stderr=PIPE)
    server.on_log_line = on_log_line
    try:
        async with asyncio.timeout(SECONDS):
            yield server
    finally:
        await server.stop()
