"""The command line of `xmpp-bridge`: its `--help`, and which command runs.

Each command is a module of `bridge.commands`, and only the one that is run is imported.
"""

import argparse
import inspect
import os
import re
import sys
import textwrap
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from bridge import __version__
from bridge.arguments import COMMANDS, Once, add_options, first_page
from bridge.commands.exit import (
    FAILURE,
    INTERRUPTED,
    SUCCESS,
    UNKNOWN,
    USAGE,
    UsageError,
    ignore_further_signals,
    raise_on_interrupt,
)
from bridge.logs import can_print, complain, show, write_out
from bridge.mcp.stdio import Stdio, StdioError
from bridge.settings.table import TABLE, Variable
from bridge.text import nearest, one_line

PRINTLESS = frozenset({"init", "record", "register", "send", "serve", "tap"})
"""The modules of the commands that are of use even without a stdout."""

WIDTH = 80
"""Columns of a help page, whatever the width of the terminal."""

SETTINGS = """\
settings:
  xmpp-bridge help settings explains each, xmpp-bridge settings shows them."""
"""Stands on each page of a command that reads settings, but for the page that explains them."""

SKILL = Path(__file__).parent / "commands" / "agent.md"
"""How an agent finds out why a bot does not answer. The plugins in `packaging/` carry it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command `xmpp-bridge` and return its exit code."""
    if sys.flags.optimize > 1:
        complain("xmpp-bridge: its help and its tools need their docstrings: unset PYTHONOPTIMIZE")
        return USAGE
    if "_ARGCOMPLETE" in os.environ:
        import_module("bridge.commands.completion").complete(parser(), Once)
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words == ["help", "agent"]:
        return _show(SKILL.read_text("utf-8"))
    words = _command_first(words)
    # A monitoring plugin answers UNKNOWN if it cannot check, also after a mistake in its arguments.
    plugin = words[0] == "check" and any(word.endswith("nagios") for word in words)
    try:
        parsed = parser(words[0]).parse_args(words)
        if parsed.module not in PRINTLESS and not can_print():
            return UNKNOWN if plugin else FAILURE
        if parsed.module == "serve":
            # First of all: whatever an import prints must not reach the client.
            parsed.stdio = Stdio.claim()
        command = import_module(f"bridge.commands.{parsed.module}")
        raise_on_interrupt()
        return int(command.run(parsed))
    except SystemExit as ended:
        if not (plugin and ended.code):
            raise
        return _unknown("the command line is wrong: see xmpp-bridge check --help")
    except UsageError as error:
        if str(error):
            complain(f"xmpp-bridge: {one_line(str(error))}")
        return USAGE
    except KeyboardInterrupt:
        ignore_further_signals()
        return INTERRUPTED
    except StdioError as error:
        complain(f"xmpp-bridge: {error}")
        return FAILURE
    except ImportError as error:
        if os.environ.get("LOG_LEVEL", "").strip().upper() == "DEBUG":
            raise
        complain(
            f"xmpp-bridge: the installation is incomplete ({one_line(str(error), 200)}); install "
            "xmpp-debug-bridge and what it depends on again"
        )
        return _unknown("the installation is incomplete") if plugin else FAILURE


def _command_first(words: list[str]) -> list[str]:
    """Return the arguments with the command at the beginning; without one it is `serve`.

    `--env-file` may stand before the command, and `help` begins the request for a page.
    """
    count = 0
    while words[count : count + 1] and words[count].partition("=")[0] == "--env-file":
        count += 1 if "=" in words[count] else 2
    named, words = words[:count], words[count:]
    if not words or (words[0].startswith("-") and words[0] not in {"-h", "--help", "--version"}):
        words.insert(0, "serve")
    if words[0] == "help":
        return [*words[1:], "--help"]
    return [words[0], *named, *words[1:]]


def _show(page: str) -> int:
    return SUCCESS if can_print() and show([page.rstrip("\n")]) else FAILURE


def _unknown(why: str) -> int:
    write_out(f"XMPP UNKNOWN - {why}")
    return UNKNOWN


class Parser(argparse.ArgumentParser):
    """A parser whose `--help` has more sections, and whose errors have the nearest spelling."""

    def __init__(self, **arguments: Any) -> None:
        page = partial(argparse.RawDescriptionHelpFormatter, width=WIDTH)
        super().__init__(formatter_class=page, allow_abbrev=False, **arguments)
        # A word such as `-90m` is a value (a time), and not an option: no option begins with a
        # digit.
        self._negative_number_matcher = re.compile("-[0-9]")
        self.exit_codes: list[str] = []
        """A line for each code: the code, and what it means."""
        self.notes: list[str] = []
        """What else stands on the page."""

    def format_help(self) -> str:
        """Return the whole page; it may be as long as a manual page."""
        self.description = textwrap.fill(self.description or "", WIDTH)
        sections = ["\n".join(["exit codes:", *map(_code, self.exit_codes)]), *self.notes]
        if self.prog.endswith(" settings"):
            sections.append("\n".join(map(_explained, TABLE)))
        elif "--env-file" in self._option_string_actions:
            sections.insert(0, SETTINGS)
        return "\n\n".join([super().format_help().rstrip("\n"), *sections]) + "\n"

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Parse; unlike argparse, have the command itself refuse what it does not know."""
        parsed, unknown = super().parse_known_args(args, namespace)
        if unknown:
            known = self._option_string_actions
            self.error(f"unrecognized arguments: {' '.join(unknown)}{nearest(unknown[0], known)}")
        return parsed, unknown

    def _print_message(self, message: str, file: Any = None) -> None:
        if file is sys.stderr:
            complain(message.rstrip("\n"))
        elif code := _show(message):  # argparse would leave it to the interpreter's end to fail
            sys.exit(code)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            error.message += nearest(str(value), action.choices or ())
            raise


def _code(line: str) -> str:
    """Return the lines of a page on an exit code, or on several."""
    meaning = line.lstrip("0123456789, ")
    code = line.removesuffix(meaning).strip()
    indent = " " * (4 + len(code))
    return textwrap.fill(meaning, WIDTH, initial_indent=f"  {code}  ", subsequent_indent=indent)


def _explained(row: Variable[Any]) -> str:
    """Return the lines of the manual on one setting."""
    default = row.default or row.otherwise.replace("`", "") or "none"
    notes = "required" if row.required else f"default: {default}"
    notes += "; a restriction" if row.is_restriction else ""
    meaning = textwrap.indent(textwrap.fill(row.plain_meaning, WIDTH - 6), " " * 6)
    return f"  {row.name} ({notes})\n{meaning}"


def parser(only: str | None = None) -> Parser:
    """Return the parser of the command line; with `only`, other commands lack their options.

    What it parses has the command's name as `command`, and the name of its module as `module`.
    Mistakes end the process with exit code 2, and `--help` with 0, as argparse does it.
    """
    result = Parser(prog="xmpp-bridge")
    _add_page(result, first_page)
    result.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = result.add_subparsers(
        title="commands", dest="command", required=True, metavar="COMMAND", prog="xmpp-bridge"
    )
    for name, add_arguments in COMMANDS.items():
        line, _, _ = (add_arguments.__doc__ or "").partition("\n")
        command = commands.add_parser(name, help=line[0].lower() + line[1:].rstrip("."))
        command.set_defaults(module=name)
        if only in {None, name}:
            _add_page(command, add_arguments)
    return result


def _add_page(command: Parser, add_arguments: Callable[[Parser], None]) -> None:
    """Give a parser its options and its page, from the docstring of the function that adds them."""
    _, description, *blocks = (inspect.getdoc(add_arguments) or "").split("\n\n")
    *options, examples, codes = [block for block in blocks if block.startswith(" ")]
    lines = textwrap.dedent(examples).splitlines()
    command.description = " ".join(description.split())
    command.epilog = "\n  ".join(["examples:" if len(lines) > 1 else "example:", *lines])
    command.exit_codes = textwrap.dedent(codes).splitlines()
    command.notes = [block for block in blocks if not block.startswith(" ")]
    for block in options:
        add_options(command, block)
    add_arguments(command)
