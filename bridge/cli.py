"""The command line: the only place that talks to a person and picks exit codes."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from bridge import __version__, config
from bridge.escaping import one_line
from bridge.log import complain, open_log

if TYPE_CHECKING:
    import argparse

    from bridge.mcp.stdio import Stdio

SUCCESS = 0
FAILURE = 1
"""The thing checked or asked for failed."""
USAGE = 2
"""The command line or the settings do not do."""
MAX_REPEATS = 1_000
"""Of a check: each logs in, and servers count."""
PACKAGE_ROOT = Path(__file__).resolve().parent.parent
"""The folder that holds `bridge/`."""


Reader: TypeAlias = Callable[[], config.Configuration]
"""Reads the settings, and reads them anew each time."""


class Options(NamedTuple):
    """What the command line says of the bridge to start."""

    env_file: Path | None = None
    sandbox: bool = False
    read_only: bool = False
    toolsets: tuple[str, ...] = ()


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

    from bridge.manual import complete

    parser = argparse.ArgumentParser(
        prog="xmpp-bridge",
        description="Sits in an XMPP chat room and hands what happens there to a coding agent. "
        "Without a command it serves.",
        epilog="Example: xmpp-bridge client --sandbox",
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
    _add_toolsets(serve)
    serve.set_defaults(run=lambda parsed: _serve(_options(parsed)))
    client = commands.add_parser(
        "client",
        help="the interactive test client",
        description="Starts the bridge, or any MCP server on stdio, and talks to it: a line is "
        "echoed, `help` tells the rest. From a pipe, stdout has one answer a line and the exit "
        "code is 1 if any call failed.",
        epilog="Example: echo status | xmpp-bridge client --sandbox   Another server: "
        "xmpp-bridge client -- npx some-mcp-server",
    )
    _add_settings(client)
    _add_toolsets(client)
    client.add_argument(
        "--json", action="store_true", help="from a pipe: each answer as it came, in one line"
    )
    client.add_argument(
        "server", nargs="*", metavar="COMMAND", help="another MCP server to start, after --"
    )
    client.set_defaults(run=_client)
    check = commands.add_parser(
        "check",
        help="walk through a connection stage by stage, and say where it breaks",
        description="Walks a connection of its own into the room and out again, and tells what "
        "each stage found and how long it took. Exit code 0 only if every stage passed, 1 if one "
        "failed, 2 if the settings do not do.",
        epilog="Example: xmpp-bridge check --repeat 10",
    )
    _add_settings(check)
    check.add_argument(
        "--send", action="store_true", help="also say something in the room, and await it back"
    )
    check.add_argument("--json", action="store_true", help="one JSON object")
    check.add_argument(
        "--repeat",
        type=_times,
        default=1,
        metavar="N",
        help="check N times, and show the median and the worst of each stage",
    )
    check.set_defaults(run=_check)
    watch = commands.add_parser(
        "watch",
        help="follow the room in the terminal",
        description="Joins the room and shows what happens there, as it happens; times are UTC. "
        "Ctrl-C ends it. What happens in the room goes to stdout, how we stand to it and all "
        "else to stderr. It takes part under the nickname with `-watch` behind it, so that a "
        "bridge may be in the room at the same time.",
        epilog="Example: xmpp-bridge watch --json | jq -ac 'select(.kind == \"message\") | .body'",
    )
    _add_settings(watch)
    watch.add_argument(
        "--stanzas",
        action="store_true",
        help="the stanzas themselves, laid out, without their secrets",
    )
    watch.add_argument("--json", action="store_true", help="one JSON object a line")
    watch.set_defaults(run=_watch)
    sandbox = commands.add_parser(
        "sandbox",
        help="a small local XMPP server to try things out with",
        description="A small local XMPP server with one room and one resident that answers. For "
        "trying out; use Prosody or ejabberd for anything else. Ctrl-C ends it.",
        epilog="Example: xmpp-bridge sandbox > .env   (in another terminal: xmpp-bridge client)",
    )
    sandbox.set_defaults(run=_sandbox)
    _add_registration(commands)
    complete(parser, commands)
    return parser


def _add_registration(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    from bridge.registration.client import KEYS

    register = commands.add_parser(
        "register",
        help="tell a coding agent's program how to start this bridge",
        description="Registers this bridge with a client: by the client's own command where that "
        "is installed, else in its configuration file, of which a copy is kept. What is "
        "registered is the path of this command and the path of your settings file; no password. "
        "Then the registered command is started once, to see that it answers.",
        epilog="Example: xmpp-bridge register codex --env-file ~/.config/xmpp-bridge.env",
    )
    register.add_argument(
        "--env-file",
        type=Path,
        metavar="PATH",
        help="the file with the settings; without it, the one that the bridge would find now",
    )
    register.add_argument(
        "--approve-send",
        action="store_true",
        help="let the agent speak in the room without asking you each time; nothing else",
    )
    register.set_defaults(run=_register)
    unregister = commands.add_parser(
        "unregister",
        help="undo `register`",
        description="Takes out of a client's configuration what `register` put there.",
        epilog="Example: xmpp-bridge unregister codex",
    )
    unregister.set_defaults(run=_unregister)
    for command in (register, unregister):
        command.add_argument("client", choices=KEYS, help="which program")
        command.add_argument(
            "--name", type=_server_name, default="xmpp", help="name of the entry (default: xmpp)"
        )
        command.add_argument(
            "--print",
            dest="only_shown",
            action="store_true",
            help="show what would be done, and do nothing",
        )


def _server_name(text: str) -> str:
    import argparse
    import re

    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", text):
        raise argparse.ArgumentTypeError("1 to 64 letters, digits, - and _ make a name")
    return text


def _add_settings(parser: "argparse.ArgumentParser") -> None:
    parser.add_argument(
        "--env-file", type=Path, metavar="PATH", help="the file with the settings, and no other"
    )
    parser.add_argument(
        "--sandbox", action="store_true", help="bring a small XMPP server along; no settings needed"
    )


def _add_toolsets(parser: "argparse.ArgumentParser") -> None:
    parser.add_argument(
        "--toolset",
        dest="toolsets",
        action="append",
        default=[],
        metavar="NAME",
        help="a further set of tools: llm, samples, one that a package offers, or "
        "MODULE:ATTRIBUTE; may be given again",
    )


def _options(parsed: "argparse.Namespace") -> Options:
    return Options(
        parsed.env_file,
        parsed.sandbox,
        getattr(parsed, "read_only", False),
        tuple(getattr(parsed, "toolsets", ())),
    )


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
    return asyncio.run(_with_settings(options, partial(_serve_settings, options, stdio)))


async def _serve_settings(options: Options, stdio: "Stdio", read: Reader) -> int:
    from bridge.service import UsageError, serve

    configuration = read()
    open_log("[Server]", configuration.log_level)
    _report(configuration)
    try:
        await serve(
            configuration,
            read,
            stdio,
            read_only=options.read_only,
            toolsets=options.toolsets,
        )
    except UsageError as error:
        complain(f"xmpp-bridge: {one_line(str(error))}")
        return USAGE
    _ignore_further_signals()
    return SUCCESS


def _ignore_further_signals() -> None:
    """Let no second signal make a traceback or a bad exit code of the interpreter's end.

    The goodbye is said by then, and nothing else is left to do.
    """
    import signal

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


def _times(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:6]) <= MAX_REPEATS):
        import argparse

        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to {MAX_REPEATS}")
    return int(text)


def _check(parsed: "argparse.Namespace") -> int:
    return asyncio.run(_with_settings(_options(parsed), partial(_run_check, parsed)))


async def _run_check(parsed: "argparse.Namespace", read: Reader) -> int:
    import time

    from bridge.console.check import check, of_settings

    if sys.stdout is None:
        complain("xmpp-bridge: stdout is closed, so that nothing could be shown")
        return FAILURE
    started = time.perf_counter()
    configuration = read()
    first = of_settings(configuration, time.perf_counter() - started)
    settings = _settings_of(configuration)
    if settings is None:
        return USAGE
    open_log("[Client]", configuration.log_level)
    passed = await check(
        settings,
        first,
        send=parsed.send,
        as_json=parsed.json,
        times=parsed.repeat,
        environ=os.environ,
    )
    return SUCCESS if passed else FAILURE


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

    if sys.stdout is None:
        complain("xmpp-bridge: stdout is closed, so that nothing could be shown")
        return FAILURE
    configuration = read()
    settings = _settings_of(configuration)
    if settings is None:
        return USAGE
    open_log("[Client]", configuration.log_level)
    well = await watch(settings, stanzas=parsed.stanzas, as_json=parsed.json, environ=os.environ)
    _ignore_further_signals()
    return SUCCESS if well else FAILURE


def _settings_of(configuration: config.Configuration) -> config.Settings | None:
    """Return the settings; without them, say on stderr what is wrong with them."""
    for warning in configuration.warnings:
        complain(f"WARNING: {one_line(warning)}")
    if configuration.settings is None:
        for problem in configuration.problems:
            complain(f"xmpp-bridge: {one_line(str(problem))}")
        for candidate in configuration.candidates:
            complain(f"xmpp-bridge: looked at {one_line(candidate.path)}: {candidate.reason}")
    return configuration.settings


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
    from bridge.registration.command import Wish, register

    return register(
        Wish(parsed.client, parsed.name, only_shown=parsed.only_shown),
        env_file=parsed.env_file,
        approve_send=parsed.approve_send,
        cwd=_current_directory(),
        package_root=PACKAGE_ROOT,
    )


def _unregister(parsed: "argparse.Namespace") -> int:
    from bridge.registration.command import Wish, unregister

    return unregister(Wish(parsed.client, parsed.name, only_shown=parsed.only_shown))
