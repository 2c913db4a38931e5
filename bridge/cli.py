"""The command line: the only place that talks to a person and picks exit codes."""

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bridge import __version__, config
from bridge.escaping import one_line
from bridge.log import complain, open_log

if TYPE_CHECKING:
    import argparse

    from bridge.mcp.stdio import Stdio

SUCCESS = 0
FAILURE = 1
"""The thing checked or asked for failed."""
PACKAGE_ROOT = Path(__file__).resolve().parent.parent
"""The folder that holds `bridge/`."""


class Options(NamedTuple):
    """What the command line says of the bridge to start."""

    env_file: Path | None = None
    sandbox: bool = False
    read_only: bool = False


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command `xmpp-bridge` and return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if words in ([], ["serve"]):
            # As agents start it; the parser takes time that they may not give.
            return _serve(Options())
        if words[0].startswith("-") and words[0] not in {"-h", "--help", "--version"}:
            words.insert(0, "serve")
        parsed = _parser().parse_args(words)
        return int(parsed.run(parsed))
    except KeyboardInterrupt:
        return 128 + 2


def _parser() -> "argparse.ArgumentParser":
    import argparse

    parser = argparse.ArgumentParser(
        prog="xmpp-bridge",
        description="Sits in an XMPP chat room and hands what happens there to a coding agent.",
        epilog="Without a command it serves.  Example: xmpp-bridge client --sandbox",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    serve = commands.add_parser(
        "serve",
        help="the bridge: MCP on stdio beside a participant in the room",
        description="The bridge: MCP on stdin and stdout, beside a participant in the room.",
        epilog="Example: codex mcp add xmpp --env TIA_ENV_PATH=/path/to/.env -- xmpp-bridge",
    )
    _add_settings(serve)
    serve.add_argument(
        "--read-only", action="store_true", help="withhold every tool that writes to the room"
    )
    serve.set_defaults(run=lambda parsed: _serve(_options(parsed)))
    client = commands.add_parser(
        "client",
        help="the interactive test client",
        description="Starts the bridge and talks to it: a line is echoed, `help` tells the rest.",
        epilog="Example: echo status | xmpp-bridge client --sandbox",
    )
    _add_settings(client)
    client.add_argument(
        "server", nargs="*", metavar="COMMAND", help="another MCP server to start, after --"
    )
    client.set_defaults(run=_client)
    sandbox = commands.add_parser(
        "sandbox",
        help="a small local XMPP server to try things out with",
        description="A small local XMPP server with one room and one resident that answers. For "
        "trying out; use Prosody or ejabberd for anything else. Ctrl-C ends it.",
        epilog="Example: xmpp-bridge sandbox > .env   (in another terminal: xmpp-bridge client)",
    )
    sandbox.set_defaults(run=_sandbox)
    return parser


def _add_settings(parser: "argparse.ArgumentParser") -> None:
    parser.add_argument(
        "--env-file", type=Path, metavar="PATH", help="the file with the settings, and no other"
    )
    parser.add_argument(
        "--sandbox", action="store_true", help="bring a small XMPP server along; no settings needed"
    )


def _options(parsed: "argparse.Namespace") -> Options:
    return Options(parsed.env_file, parsed.sandbox, getattr(parsed, "read_only", False))


def _load(options: Options, sandbox: dict[str, str] | None) -> config.Configuration:
    """Read the settings; beside a sandbox only those that are not about a server of one's own."""
    environ: dict[str, str] = dict(os.environ)
    if sandbox is not None:
        about_a_server = ("XMPP_", "MUC_", "NODE_", "TIA_")
        environ = {k: v for k, v in environ.items() if not k.startswith(about_a_server)} | sandbox
    return config.load(
        environ,
        cwd=_current_directory(),
        package_root=PACKAGE_ROOT,
        env_file=options.env_file,
        searching=sandbox is None,
    )


def _current_directory() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:  # it was deleted under us; there is no .env in it either
        return Path("/")


def _serve(options: Options) -> int:
    from bridge.mcp.stdio import Stdio, StdioError

    try:
        # Before anything else is imported: whatever that prints must not reach the client.
        stdio = Stdio.claim()
    except StdioError as error:
        complain(f"xmpp-bridge: {error}")
        return FAILURE
    asyncio.run(_serve_with_or_without_sandbox(options, stdio))
    return SUCCESS


async def _serve_with_or_without_sandbox(options: Options, stdio: "Stdio") -> None:
    if not options.sandbox:
        await _serve_configuration(options, stdio, _load(options, None))
        return
    from bridge.sandbox.server import Sandbox

    async with Sandbox() as address:
        await _serve_configuration(options, stdio, _load(options, address.environment()))


async def _serve_configuration(
    options: Options, stdio: "Stdio", configuration: config.Configuration
) -> None:
    import signal

    from bridge.service import serve

    open_log("[Server]", configuration.log_level)
    _report(configuration)
    await serve(configuration, stdio, read_only=options.read_only)
    # The goodbye is said and only the interpreter's end is left, which a client's second signal
    # would turn into a traceback or a bad exit code.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})


def _report(configuration: config.Configuration) -> None:
    """Say on stderr where the settings came from and what is wrong with them."""
    for candidate in configuration.candidates:
        complain(f"[Server] settings: {one_line(candidate.path)}: {one_line(candidate.reason)}")
    for warning in configuration.warnings:
        complain(f"[Server] WARNING: {one_line(warning)}")
    for problem in configuration.problems:
        complain(f"[Server] ERROR: {one_line(str(problem))}")


def _client(parsed: "argparse.Namespace") -> int:
    from bridge.console.client import run_client

    command = parsed.server or _own_command(_options(parsed))
    return asyncio.run(run_client(command, waits_for_room=not parsed.server))


def _own_command(options: Options) -> list[str]:
    # -P: a folder that happens to be called `bridge` here is not ours.
    command = [sys.executable, "-P", "-m", "bridge", "serve"]
    if options.sandbox:
        command.append("--sandbox")
    if options.env_file is not None:
        command += ["--env-file", str(options.env_file)]
    return command


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
