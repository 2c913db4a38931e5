"""`xmpp-bridge serve`: the bridge, or sets of tools alone, until the client is gone."""

import argparse
from dataclasses import replace
from functools import partial

from bridge.commands.exit import SUCCESS, USAGE
from bridge.commands.settings import OF_A_SERVER, Reader, run_with_settings
from bridge.logs import complain, open_log, report
from bridge.mcp.stdio import Stdio
from bridge.mcp.toolset import ToolsetError
from bridge.service import serve, serve_only
from bridge.settings.table import Configuration
from bridge.text import one_line


def run(parsed: argparse.Namespace) -> int:
    """Serve MCP on stdin and stdout."""
    return run_with_settings(parsed, partial(_serve, parsed))


async def _serve(parsed: argparse.Namespace, read: Reader) -> int:
    stdio: Stdio = parsed.stdio
    configuration = read()
    if problem := open_log("[Server]", configuration.log_level, configuration.log_file):
        configuration = replace(configuration, warnings=(*configuration.warnings, problem))
    _report(configuration, alone=bool(parsed.only))
    try:
        if parsed.only:
            await serve_only(parsed.only, configuration, stdio, read_only=parsed.read_only)
        else:
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
    return SUCCESS


def _report(configuration: Configuration, *, alone: bool) -> None:
    """Say on stderr where the settings came from and what is wrong with them.

    To sets that are served alone a server and its rooms are nothing.
    """
    problems = [
        one
        for one in configuration.problems
        if not (alone and one.variable.startswith(OF_A_SERVER))
    ]
    lines = [f"settings: {one.path}: {one.reason}" for one in configuration.candidates]
    lines += [f"WARNING: {warning}" for warning in configuration.warnings]
    lines += [f"ERROR: {problem}" for problem in problems]
    for line in lines:
        report(f"[Server] {one_line(line)}")
