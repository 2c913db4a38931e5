"""`xmpp-bridge serve`: the bridge, until its client is gone."""

import argparse
import asyncio
from functools import partial

from bridge.commands.exit import FAILURE, SUCCESS, USAGE, ignore_further_signals
from bridge.commands.settings import Reader, run_with_settings
from bridge.logs import complain, open_log
from bridge.mcp.stdio import Stdio, StdioError
from bridge.mcp.toolset import ToolsetError
from bridge.settings.table import Configuration
from bridge.text import one_line


def run(parsed: argparse.Namespace) -> int:
    """Serve MCP on stdin and stdout."""
    try:
        stdio = Stdio.claim()
    except StdioError as error:
        complain(f"xmpp-bridge: {error}")
        return FAILURE
    return run_with_settings(parsed, partial(_serve, parsed, stdio))


async def _serve(parsed: argparse.Namespace, stdio: Stdio, read: Reader) -> int:
    # Not before stdout is claimed: whatever an import prints must not reach the client.
    from bridge.service import serve

    configuration = read()
    open_log("[Server]", configuration.log_level)
    _report(configuration)
    try:
        await serve(
            configuration,
            partial(read, configuration),
            stdio,
            read_only=parsed.read_only,
            toolsets=parsed.toolsets,
        )
    except ToolsetError as error:
        complain(f"xmpp-bridge: {one_line(str(error))}")
        return USAGE
    ignore_further_signals(asyncio.get_running_loop().remove_signal_handler)
    return SUCCESS


def _report(configuration: Configuration) -> None:
    """Say on stderr where the settings came from and what is wrong with them."""
    lines = [f"settings: {one.path}: {one.reason}" for one in configuration.candidates]
    lines += [f"WARNING: {warning}" for warning in configuration.warnings]
    lines += [f"ERROR: {problem}" for problem in configuration.problems]
    for line in lines:
        complain(f"[Server] {one_line(line)}")
