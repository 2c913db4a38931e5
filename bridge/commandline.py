"""What may stand on the command line, and what `--help` says of it.

Apart from what runs the commands: agents start `serve` without a word, and need not wait for this.
"""

import argparse
import re
from pathlib import Path
from typing import TypeAlias

from bridge import __version__
from bridge.manual import complete
from bridge.registration.clients import KEYS

_Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001 - no public name

MAX_REPEATS = 1_000
"""Of a check: each logs in, and servers count."""


def parser() -> argparse.ArgumentParser:
    """Return what reads the command line: `command` of its result is which one is meant.

    Mistakes end the process with exit code 2, and `--help` with 0, as argparse does it.
    """
    result = argparse.ArgumentParser(
        prog="xmpp-bridge",
        description="Sits in an XMPP chat room and hands what happens there to a coding agent. "
        "Without a command it serves.",
        epilog="Example: xmpp-bridge client --sandbox",
    )
    result.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = result.add_subparsers(
        title="commands", dest="command", required=True, metavar="COMMAND"
    )
    _add_serve(commands)
    _add_client(commands)
    _add_check(commands)
    _add_watch(commands)
    _add_sandbox(commands)
    _add_registration(commands)
    complete(result, commands)
    return result


def _add_serve(commands: _Commands) -> None:
    serve = commands.add_parser(
        "serve",
        help="the bridge: MCP on stdio beside a participant in the room",
        description="The bridge: MCP on stdin and stdout, beside a participant in the room.",
        epilog="Example: codex mcp add xmpp -- xmpp-bridge --env-file /path/to/.env",
    )
    _add_settings(serve)
    serve.add_argument(
        "--read-only", action="store_true", help="withhold every tool that writes to the room"
    )
    _add_toolsets(serve)


def _add_client(commands: _Commands) -> None:
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


def _add_check(commands: _Commands) -> None:
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
        help="check N times, and show the median and the worst of each stage; a refused password "
        "ends it, since trying on would lock the account",
    )


def _add_watch(commands: _Commands) -> None:
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


def _add_sandbox(commands: _Commands) -> None:
    commands.add_parser(
        "sandbox",
        help="a small local XMPP server to try things out with",
        description="A small local XMPP server with one room and one resident that answers. For "
        "trying out; use Prosody or ejabberd for anything else. Ctrl-C ends it.",
        epilog="Example: xmpp-bridge sandbox > .env   (in another terminal: xmpp-bridge client)",
    )


def _add_registration(commands: _Commands) -> None:
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
        help="the file with the settings; without it, the one that the bridge would find now, "
        "unless that merely lies in the current directory",
    )
    register.add_argument(
        "--approve-send",
        action="store_true",
        help="let the agent speak in the room without asking you each time; nothing else",
    )
    unregister = commands.add_parser(
        "unregister",
        help="undo `register`",
        description="Takes out of a client's configuration what `register` put there.",
        epilog="Example: xmpp-bridge unregister codex",
    )
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
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", text):
        raise argparse.ArgumentTypeError("1 to 64 letters, digits, - and _ make a name")
    return text


def _add_toolsets(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--toolset",
        dest="toolsets",
        action="append",
        default=[],
        metavar="NAME",
        help="a further set of tools: llm, samples, one that a package offers, or "
        "MODULE:ATTRIBUTE; may be given again",
    )


def _add_settings(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--env-file", type=Path, metavar="PATH", help="the file with the settings, and no other"
    )
    parser.add_argument(
        "--sandbox", action="store_true", help="bring a small XMPP server along; no settings needed"
    )


def _times(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:6]) <= MAX_REPEATS):
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to {MAX_REPEATS}")
    return int(text)
