"""The command `completion`, and the answer to a shell in which Tab was pressed.

The extra `completion` brings argcomplete, which speaks with the shells.
"""

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import cast

from bridge.commands.configuration import read
from bridge.commands.exit import FAILURE, SUCCESS, needing
from bridge.logs import show
from bridge.xmpp.model.events import KINDS

NAMES = ("xmpp-bridge", "xmpp-debug-bridge")
"""The two names of the command."""


def run(parsed: argparse.Namespace) -> int:
    """Print the code that switches completion on in a shell."""
    with needing("completion", "completion"):
        from argcomplete.shell_integration import shellcode
    return SUCCESS if show([shellcode(NAMES, shell=parsed.shell)]) else FAILURE


def complete(parser: argparse.ArgumentParser, *harmless: type[argparse.Action]) -> None:
    """Answer the shell, which has put the line into the environment, and end the process.

    argcomplete runs the actions of argparse, and the `harmless` ones.
    """
    from argcomplete import autocomplete
    from argcomplete.completers import BaseCompleter, FilesCompleter
    from argcomplete.finders import safe_actions

    def values(
        prefix: str, action: argparse.Action, parsed_args: argparse.Namespace, **more: object
    ) -> Iterable[str]:
        """Complete an argument without fixed choices: rooms, kinds of events, otherwise files."""
        match action.dest:
            case "room" | "rooms":
                parsed_args.env_file = parsed_args.env_file or parsed_args.named_first
                settings = read(parsed_args, {}).settings
                return () if settings is None else settings.rooms
            case "kinds":
                before, comma, _ = prefix.rpartition(",")
                return [f"{before}{comma}{kind}" for kind in KINDS]
            case "file" | "more":
                return FilesCompleter(["room.toml"])(prefix)
        return FilesCompleter()(prefix)

    parser.add_argument("--env-file", dest="named_first", type=Path)  # it may stand there, too
    safe_actions.update(harmless)
    # argcomplete calls it by keyword, as any completer; its class has nothing else.
    autocomplete(parser, default_completer=cast("BaseCompleter", values))
