"""Reads the settings for a command, from files or a sandbox, and reports mistakes in them."""

import argparse
import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

from bridge.commands.exit import UsageError, ignore_further_signals
from bridge.logs import complain
from bridge.mcp.toolset import ToolsetError
from bridge.settings.load import load
from bridge.settings.sources import users_file
from bridge.settings.table import Configuration, Settings
from bridge.text import one_line

PACKAGE_ROOT = Path(__file__).resolve().parent.parent.parent
"""The folder that holds `bridge/`."""

SERVER_PREFIXES = ("XMPP_", "MUC_", "NODE_", "TIA_")
"""The prefixes of the settings that lead to a server. A sandbox replaces all of these settings."""

ReadSettings: TypeAlias = Callable[..., Configuration]
"""Reads the settings again with each call. Its optional argument is `at_start` of `load`."""

Command: TypeAlias = Callable[[argparse.Namespace, ReadSettings], Awaitable[int]]
"""Runs the command of the command line, and returns the exit code."""


def run_with_settings(parsed: argparse.Namespace, command: Command) -> int:
    """Run `command`, beside a sandbox if `--sandbox` is given, and return the exit code.

    Raises `UsageError` if the user made a mistake. After the command, signals are ignored.
    """

    async def run() -> int:
        async with AsyncExitStack() as stack:
            environment: dict[str, str] = {}
            if parsed.sandbox:
                # Imported here: a bridge without a sandbox answers sooner.
                from bridge.sandbox.server import Sandbox

                environment = (await stack.enter_async_context(Sandbox())).environment()
            try:
                return await command(parsed, partial(read, parsed, environment))
            except ToolsetError as error:
                raise UsageError(str(error)) from error
            finally:
                ignore_further_signals(asyncio.get_running_loop().remove_signal_handler)

    return asyncio.run(run())


def read(
    parsed: argparse.Namespace, sandbox: dict[str, str], at_start: Configuration | None = None
) -> Configuration:
    """Read the settings; a `sandbox` replaces all settings that lead to a server.

    A name in `BRIDGE_TOOLS` or `BRIDGE_TOOLSETS` that nothing has is a problem, too.
    """
    environ = dict(os.environ)
    if sandbox:
        environ = {k: v for k, v in environ.items() if not k.startswith(SERVER_PREFIXES)} | sandbox
    configuration = load(
        environ,
        cwd=current_directory(),
        package_root=PACKAGE_ROOT,
        env_file=parsed.env_file,
        searching=not parsed.sandbox,
        at_start=at_start,
    )
    if configuration.tools or configuration.toolsets:
        # Imported here: without names most commands need no tools, and start sooner.
        from bridge.service import unknown

        problems = (*configuration.problems, *unknown(configuration))
        configuration = replace(configuration, problems=problems)
    return configuration


def current_directory() -> Path:
    """Return the current directory. If it was deleted, return the root, which has no `.env`."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return Path("/")


def usable(read: ReadSettings, *needed: str) -> tuple[Configuration, Settings]:
    """Report what is wrong with the settings; return all settings, and the participant's.

    Raises `UsageError` if they lead to no room, or if a `needed` variable is wrong.
    """
    configuration = read()
    complain_of(configuration)
    if configuration.settings is None or any(map(configuration.rejected, needed)):
        raise UsageError
    return configuration, configuration.settings


def advice_on(configuration: Configuration) -> list[str]:
    """Return advice if no settings file was found; otherwise nothing."""
    is_missing = configuration.env_file is None and not configuration.rejected("--env-file")
    if configuration.settings is not None or not is_missing:
        return []
    file = users_file(os.environ) or "a file"
    return [f"xmpp-bridge init asks for the settings and writes {file}; --env-file names another"]


def complain_of(configuration: Configuration) -> None:
    """Report on stderr what is wrong with the settings.

    If they cannot be used, name the places where they were looked for, too.
    """
    lines = [f"WARNING: {warning}" for warning in configuration.warnings]
    lines += [f"xmpp-bridge: {problem}" for problem in configuration.problems]
    if configuration.settings is None:
        lines += [f"xmpp-bridge: looked at {path}: {why}" for path, why in configuration.candidates]
        lines += [f"xmpp-bridge: {advice}" for advice in advice_on(configuration)]
    for line in lines:
        complain(one_line(line))
