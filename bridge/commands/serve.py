"""`xmpp-bridge serve`: the bridge, or sets of tools alone, until the client is gone."""

import argparse
from dataclasses import replace
from functools import partial

from bridge import __version__
from bridge.commands.configuration import (
    SERVER_PREFIXES,
    ReadSettings,
    advice_on,
    run_with_settings,
)
from bridge.commands.exit import SUCCESS
from bridge.logs import open_log, report
from bridge.mcp.stdio import Stdio
from bridge.service import serve, serve_only
from bridge.settings.table import Configuration
from bridge.text import one_line

WAITING = (
    "[Server] Waiting for an MCP client on stdin. Commands for people are xmpp-bridge client, "
    "xmpp-bridge check, xmpp-bridge init"
)


def run(parsed: argparse.Namespace) -> int:
    """Serve MCP on stdin and stdout."""
    return run_with_settings(parsed, _serve)


async def _serve(parsed: argparse.Namespace, read: ReadSettings) -> int:
    stdio: Stdio = parsed.stdio
    configuration = read()
    if problem := open_log("[Server]", configuration.log_level, configuration.log_file):
        configuration = replace(configuration, warnings=(*configuration.warnings, problem))
    report(f"[Server] Starting xmpp-debug-bridge {__version__}")
    _report(configuration, alone=bool(parsed.only_sets))
    if stdio.is_terminal:
        report(WAITING)
    if parsed.only_sets:
        await serve_only(parsed.only_sets, configuration, stdio, read_only=parsed.read_only)
    else:
        await serve(
            configuration,
            partial(read, configuration),
            stdio,
            read_only=parsed.read_only,
            toolsets=parsed.toolsets,
        )
    return SUCCESS


def _report(configuration: Configuration, *, alone: bool) -> None:
    """Say on stderr where the settings came from and what is wrong with them.

    Sets that are served `alone` need no settings of a server.
    """
    lines = [f"settings: {path}: {reason}" for path, reason in configuration.candidates]
    lines += [f"WARNING: {warning}" for warning in configuration.warnings]
    for problem in configuration.problems:
        if not (alone and problem.variable.startswith(SERVER_PREFIXES)):
            lines.append(f"ERROR: {problem}")
    lines += () if alone else advice_on(configuration)
    for line in lines:
        report(f"[Server] {one_line(line)}")
