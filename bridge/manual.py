"""What `--help` of every command says beside its own options: as much as a manual page."""

import argparse
import re
import textwrap

WIDTH = 80
"""Columns; a manual is not laid out anew for each terminal."""

EXIT_CODES = """\
exit codes:
  0  success; for what runs until it is stopped, also Ctrl-C
  1  what was checked or asked for failed
  2  a mistake on the command line or in the settings"""

SETTINGS = """\
settings:
  XMPP_USERNAME, XMPP_PASSWORD and MUC_ROOM are needed; .env.example in the
  source has all others, with their defaults. They come from the environment
  and, where that is silent, from one file: the one that --env-file names, or
  the first of these that says something of the account or the room:
    .env in the current directory (trusted with less than the others),
    the file that TIA_ENV_PATH names,
    .env beside the package.
  Restrictions add up: BRIDGE_READ_ONLY=1 and the lowest BRIDGE_SEND_RATE of the
  environment and all these files hold; with --env-file, of that file alone."""

ENVIRONMENT = """\
environment:
  TIA_ENV_PATH  the path of a settings file
  LOG_LEVEL     of the log on stderr: DEBUG, INFO, WARNING, ERROR or CRITICAL
  NO_COLOR      no colour on a terminal, if it holds anything"""

ELSEWHERE = """\
xmpp-bridge COMMAND --help tells of each command, README.md of the rest."""


def complete(
    parser: argparse.ArgumentParser,
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> None:
    """Lay out the help of `parser` and its `commands`, and add what is true of all of them."""
    for one in commands.choices.values():
        # argparse has no public word for the options of a parser.
        reads_settings = any(action.dest == "env_file" for action in one._actions)  # noqa: SLF001 - as said
        _lay_out(one, *((SETTINGS, ENVIRONMENT) if reads_settings else ()), EXIT_CODES)
    _lay_out(parser, SETTINGS, ENVIRONMENT, EXIT_CODES, ELSEWHERE)


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
