"""`xmpp-bridge client`: the interactive test client of this bridge or another MCP server."""

import argparse
import asyncio
import sys

from bridge.client.conversation import run_client
from bridge.commands.configuration import read
from bridge.mcp.framing import Framing
from bridge.mcp.revisions import find


def run(parsed: argparse.Namespace) -> int:
    """Start the server and talk to it."""
    command = parsed.program or _own_command(parsed)
    configuration = read(parsed, {})  # for the client's log and history
    return asyncio.run(
        run_client(
            command,
            as_json=parsed.json,
            framing=Framing[parsed.framing.upper()],
            revision=parsed.revision and find(parsed.revision),
            configuration=configuration,
            chat=parsed.sandbox and not (parsed.program or parsed.json or configuration.read_only),
        )
    )


def _own_command(parsed: argparse.Namespace) -> list[str]:
    # -P: without it, a folder called `bridge` in the current directory would be imported.
    command = [sys.executable, "-P", "-m", "bridge", "serve"]
    if parsed.sandbox:
        command.append("--sandbox")
    if parsed.env_file is not None:
        command += ["--env-file", str(parsed.env_file)]
    for name in parsed.toolsets:
        command += ["--toolset", name]
    return command
