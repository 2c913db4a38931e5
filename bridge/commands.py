"""What each command does: the place that talks to a person and picks exit codes."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from bridge.cli import FAILURE, INTERRUPTED, SUCCESS, USAGE, ignore_further_signals
from bridge.escaping import one_line
from bridge.log import complain, open_log
from bridge.settings.load import load
from bridge.settings.table import Configuration

if TYPE_CHECKING:
    import argparse

    from bridge.mcp.stdio import Stdio

PACKAGE_ROOT = Path(__file__).resolve().parent.parent
"""The folder that holds `bridge/`."""


Reader: TypeAlias = Callable[..., Configuration]
"""Reads the settings, and reads them anew each time; given those of the start, as `load`
does with `at_start`."""


class Options(NamedTuple):
    """What the command line says of the bridge to start."""

    env_file: Path | None = None
    sandbox: bool = False
    read_only: bool = False
    toolsets: tuple[str, ...] = ()


def _options(parsed: "argparse.Namespace") -> Options:
    return Options(
        parsed.env_file,
        parsed.sandbox,
        getattr(parsed, "read_only", False),
        tuple(getattr(parsed, "toolsets", ())),
    )


def _load(
    options: Options,
    sandbox: dict[str, str] | None,
    at_start: Configuration | None = None,
) -> Configuration:
    """Read the settings; beside a sandbox only those that are not about a server of one's own."""
    environ: dict[str, str] = dict(os.environ)
    if sandbox is not None:
        about_a_server = ("XMPP_", "MUC_", "NODE_", "TIA_")
        environ = {k: v for k, v in environ.items() if not k.startswith(about_a_server)} | sandbox
    return load(
        environ,
        cwd=_current_directory(),
        package_root=PACKAGE_ROOT,
        env_file=options.env_file,
        searching=sandbox is None,
        at_start=at_start,
    )


def _current_directory() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:  # it was deleted under us; there is no .env in it either
        return Path("/")


def serve(options: Options) -> int:
    """Be the bridge, until the client is gone."""
    from bridge.mcp.stdio import Stdio, StdioError

    try:
        # Before anything else is imported: whatever that prints must not reach the client.
        stdio = Stdio.claim()
    except StdioError as error:
        complain(f"xmpp-bridge: {error}")
        return FAILURE
    return asyncio.run(_with_settings(options, partial(_serve_settings, options, stdio)))


async def _serve_settings(options: Options, stdio: "Stdio", read: Reader) -> int:
    from bridge.service import UsageError, serve

    configuration = read()
    open_log("[Server]", configuration.log_level)
    _report(configuration)
    try:
        await serve(
            configuration,
            partial(read, configuration),
            stdio,
            read_only=options.read_only,
            toolsets=options.toolsets,
        )
    except UsageError as error:
        complain(f"xmpp-bridge: {one_line(str(error))}")
        return USAGE
    ignore_further_signals(asyncio.get_running_loop())
    return SUCCESS


def _report(configuration: Configuration) -> None:
    """Say on stderr where the settings came from and what is wrong with them."""
    for candidate in configuration.candidates:
        complain(f"[Server] settings: {one_line(candidate.path)}: {one_line(candidate.reason)}")
    for warning in configuration.warnings:
        complain(f"[Server] WARNING: {one_line(warning)}")
    for problem in configuration.problems:
        complain(f"[Server] ERROR: {one_line(str(problem))}")


def _client(parsed: "argparse.Namespace") -> int:
    from bridge.console.conversation import run_client

    command = parsed.server or _own_command(_options(parsed))
    return asyncio.run(run_client(command, waits_for_room=not parsed.server, as_json=parsed.json))


def _own_command(options: Options) -> list[str]:
    # -P: a folder that happens to be called `bridge` here is not ours.
    command = [sys.executable, "-P", "-m", "bridge", "serve"]
    if options.sandbox:
        command.append("--sandbox")
    if options.env_file is not None:
        command += ["--env-file", str(options.env_file)]
    for name in options.toolsets:
        command += ["--toolset", name]
    return command


def _check(parsed: "argparse.Namespace") -> int:
    return asyncio.run(_with_settings(_options(parsed), partial(_run_check, parsed)))


async def _run_check(parsed: "argparse.Namespace", read: Reader) -> int:
    import signal
    import time

    from bridge.console.check import check, show_unconfigured
    from bridge.xmpp.report import settings_phase

    if not _can_show():
        return FAILURE
    started = time.perf_counter()
    configuration = read()
    first = settings_phase(configuration, time.perf_counter() - started)
    if configuration.settings is None:
        _complain_of(configuration)
        if parsed.json:
            await show_unconfigured(configuration, first)
        return USAGE
    if parsed.send and configuration.read_only:
        source = configuration.in_effect["BRIDGE_READ_ONLY"].source
        complain(
            "xmpp-bridge: --send would say something in the room, and BRIDGE_READ_ONLY in "
            f"{source} forbids that; check without --send"
        )
        return USAGE
    open_log("[Client]", configuration.log_level)
    checking = asyncio.create_task(
        check(
            configuration.settings,
            first,
            send=parsed.send,
            as_json=parsed.json,
            times=parsed.repeat,
            environ=os.environ,
            in_effect=configuration.in_effect.values(),
        )
    )
    # Of our own, so that a second Ctrl-C does not cut short what the first began: hanging up.
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, checking.cancel)
    try:
        return SUCCESS if await checking else FAILURE
    except asyncio.CancelledError:
        return INTERRUPTED
    finally:
        ignore_further_signals(asyncio.get_running_loop())


def _watch(parsed: "argparse.Namespace") -> int:
    return asyncio.run(_with_settings(_options(parsed), partial(_run_watch, parsed)))


async def _with_settings(options: Options, run: Callable[[Reader], Awaitable[int]]) -> int:
    """Run what was asked for, with the way to read the settings, and perhaps beside a sandbox."""
    if not options.sandbox:
        return await run(partial(_load, options, None))
    from bridge.sandbox.server import Sandbox

    async with Sandbox() as address:
        return await run(partial(_load, options, address.environment()))


async def _run_watch(parsed: "argparse.Namespace", read: Reader) -> int:
    from bridge.console.watch import watch

    if not _can_show():
        return FAILURE
    configuration = read()
    _complain_of(configuration)
    if configuration.settings is None:
        return USAGE
    open_log("[Client]", configuration.log_level)
    well = await watch(
        configuration.settings,
        stanzas=parsed.stanzas,
        as_json=parsed.json,
        environ=os.environ,
    )
    ignore_further_signals(asyncio.get_running_loop())
    return SUCCESS if well else FAILURE


def _can_show() -> bool:
    """Whether there is a stdout; if not, say so."""
    if sys.stdout is None:
        complain("xmpp-bridge: stdout is closed, so that nothing could be shown")
    return sys.stdout is not None


def _complain_of(configuration: Configuration) -> None:
    """Say on stderr what is wrong with the settings, and where they were looked for."""
    for warning in configuration.warnings:
        complain(f"WARNING: {one_line(warning)}")
    if configuration.settings is None:
        for problem in configuration.problems:
            complain(f"xmpp-bridge: {one_line(str(problem))}")
        for candidate in configuration.candidates:
            complain(
                f"xmpp-bridge: looked at {one_line(candidate.path)}: {one_line(candidate.reason)}"
            )


def _sandbox(parsed: "argparse.Namespace") -> int:
    del parsed
    return asyncio.run(_run_sandbox())


async def _run_sandbox() -> int:
    import signal

    from bridge.sandbox.server import Sandbox

    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with Sandbox() as address:
        sys.stdout.write("".join(f"{k}={v}\n" for k, v in address.environment().items()))
        sys.stdout.flush()
        complain(
            f"[Server] A server for trying out listens at {address.host}:{address.port}; the lines "
            "above are the .env that reaches it. Ctrl-C ends it. For anything else use Prosody or "
            "ejabberd."
        )
        await stopped.wait()
    return SUCCESS


def _register(parsed: "argparse.Namespace") -> int:
    from bridge.registration.errors import LaunchError, RegistrationError
    from bridge.registration.register import location_of, register, unregister

    try:
        location = location_of(parsed.client, parsed.name)
        if parsed.command == "unregister":
            unregister(location, only_shown=parsed.only_shown)
        else:
            register(
                location,
                env_file=parsed.env_file,
                approve_send=parsed.approve_send,
                only_shown=parsed.only_shown,
                cwd=_current_directory(),
                package_root=PACKAGE_ROOT,
            )
    except RegistrationError as error:
        complain(f"xmpp-bridge: {error}")
        return USAGE if isinstance(error, LaunchError) else FAILURE
    return SUCCESS


RUNS: dict[str, Callable[["argparse.Namespace"], int]] = {
    "serve": lambda parsed: serve(_options(parsed)),
    "client": _client,
    "check": _check,
    "watch": _watch,
    "sandbox": _sandbox,
    "register": _register,
    "unregister": _register,
}
"""What runs each command that `bridge.commandline` knows."""
