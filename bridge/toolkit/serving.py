"""An MCP server that has only the sets of tools that it is given: it joins no room."""

import asyncio
import os
import secrets
import time
from collections.abc import Sequence
from pathlib import Path

from bridge.logs import open_log, report
from bridge.mcp.asking import RequestStates
from bridge.mcp.catalogue import Catalogue
from bridge.mcp.running import run_session
from bridge.mcp.server import Implementation, Server
from bridge.mcp.session import Session
from bridge.mcp.stdio import Stdio
from bridge.mcp.toolset import Toolset, merge
from bridge.settings.load import load
from bridge.settings.table import Configuration
from bridge.text import one_line


def serve(name: str, version: str, toolsets: Sequence[Toolset], *, instructions: str = "") -> None:
    """Be an MCP server of this name with these tools on stdin and stdout, until the client ends it.

    `instructions` say how the tools work together, for a model. `Configuration` has the settings
    of the environment; no file is read. Raises `ToolsetError` for tools that cannot be served
    together or that need the room, and `StdioError` without stdin or stdout.
    """
    stdio = Stdio.claim()
    # With `searching=False`, `load` looks into no folder.
    root = Path("/")
    configuration = load(dict(os.environ), cwd=root, package_root=root, searching=False)
    if problem := open_log("[Server]", configuration.log_level, configuration.log_file):
        report(f"[Server] WARNING: {one_line(problem)}")
    implementation = Implementation(name, name, version, instructions)
    tools = merge(toolsets)
    if configuration.read_only:
        tools = tools.that_only_read("what changes anything is withheld by BRIDGE_READ_ONLY")
    asyncio.run(serve_sets(implementation, tools, configuration, stdio))


async def serve_sets(
    implementation: Implementation, tools: Toolset, configuration: Configuration, stdio: Stdio
) -> None:
    """Serve these tools, until the client or a signal ends it; raises `ToolsetError`."""
    states = RequestStates(secrets.token_urlsafe, time.monotonic)
    server = Server(implementation, Catalogue(tools, [configuration]), states)
    await run_session(Session(server, stdio.write, ready=stdio.ready), stdio)
