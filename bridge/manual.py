"""What `--help` of every command says beside its own options: as much as a manual page."""

import argparse
import re
import textwrap
from collections.abc import Iterable

from bridge.settings.table import TABLE

WIDTH = 80
"""Columns; a manual is not laid out anew for each terminal."""

EXIT_CODES = """\
exit codes:
  0  success; for what runs until it is stopped, also Ctrl-C
  1  what was checked or asked for failed
  2  a mistake on the command line or in the settings"""

ENVIRONMENT = ("LOG_LEVEL", "TIA_ENV_PATH")
"""The variables that belong into the environment rather than into a file, mostly."""

FILES = """\
  .env.example in the source explains each. They come from the environment and,
  where that is silent, from one file: the one that --env-file names, or the
  first of these that says something of the account or the room:
    .env in the current directory (trusted with less than the others),
    the file that TIA_ENV_PATH names,
    .env beside the package."""

ELSEWHERE = """\
xmpp-bridge COMMAND --help tells of each command, README.md of the rest."""


def _settings() -> str:
    needed = _listed(row.name for row in TABLE if row.required)
    others = _listed(row.name for row in TABLE if not row.required)
    restrictions = _listed(row.name for row in TABLE if row.who == "restriction")
    adding_up = (
        f"Restrictions add up: the strictest {restrictions} of the environment and all these "
        "files hold; with --env-file, of that file alone."
    )
    named = f"{needed} are needed; there are also {others}."
    return "\n".join(["settings:", _filled(named), FILES, _filled(adding_up)])


def _environment() -> str:
    entries = {row.name: row.plain_meaning for row in TABLE if row.name in ENVIRONMENT}
    entries["NO_COLOR"] = "no colour on a terminal, if it holds anything"
    lines = [_filled(meaning, f"{name:14}") for name, meaning in sorted(entries.items())]
    return "\n".join(["environment:", *lines])


def _listed(names: Iterable[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}"


def _filled(text: str, head: str = "") -> str:
    indent = " " * (2 + len(head))
    return textwrap.fill(text, WIDTH, initial_indent=f"  {head}", subsequent_indent=indent)


def complete(
    parser: argparse.ArgumentParser,
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> None:
    """Lay out the help of `parser` and its `commands`, and add what is true of all of them."""
    for one in commands.choices.values():
        # argparse has no public word for the options of a parser.
        reads_settings = any(action.dest == "env_file" for action in one._actions)  # noqa: SLF001 - as said
        _lay_out(one, *((_settings(), _environment()) if reads_settings else ()), EXIT_CODES)
    _lay_out(parser, _settings(), _environment(), EXIT_CODES, ELSEWHERE)


def _lay_out(parser: argparse.ArgumentParser, *sections: str) -> None:
    parser.formatter_class = _Layout
    parser.description = textwrap.fill(parser.description or "", WIDTH)
    parser.epilog = "\n\n".join([_examples(parser.epilog or ""), *sections])


def _examples(epilog: str) -> str:
    """Return the examples, one a line, under a heading of their own."""
    lines = re.split(r"\n *| {2,}", epilog.removeprefix("Example:").strip())
    return "\n".join(["examples:" if len(lines) > 1 else "example:", *(f"  {it}" for it in lines)])


class _Layout(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=WIDTH)
