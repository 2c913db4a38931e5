"""Completion of a line: names of commands, tools and arguments, their values, nicknames."""

import shlex
from collections.abc import Iterable, Iterator, Sequence

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from bridge.client.arguments import Parameter, as_typed
from bridge.client.client import ServerCatalogue
from bridge.client.commands import FRAMINGS, NAMES, PLAIN_NAMES, TOOL_COMMANDS
from bridge.mcp import revisions
from bridge.text import one_line

NICKNAME_ARGUMENTS = frozenset({"from", "nickname", "target", "sender", "occupant"})
"""Arguments whose value may be a nickname, in any tool."""

TARGETS = ("server", "room", "self")
"""What else `target` may be, in the bridge's own tools."""

MAX_CHARACTERS = 1_023
"""Of what is offered: a nickname has no more (RFC 7622), and a server's names ought not to."""


class LineCompleter(Completer):
    """Completes a line from what the server has told of itself by then."""

    def __init__(self, catalogue: ServerCatalogue) -> None:
        self._catalogue = catalogue

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterator[Completion]:
        """Yield what may stand at the cursor."""
        del complete_event
        before, catalogue = document.text_before_cursor, self._catalogue
        word, space, rest = before.partition(" ")
        if not space:
            names = (f"/{name}" for name in NAMES) if word.startswith("/") else PLAIN_NAMES
            return _matching(names if word else (), word)
        if not word.startswith("/") and word != "send":
            return iter(())
        first, has_first, others = rest.partition(" ")
        match word.removeprefix("/"):
            case "send":
                return _matching(catalogue.nicknames, rest.rpartition(" ")[2])
            case "call" if has_first:
                return _arguments(others, catalogue.tools.get(first, ()), None, catalogue)
            case "prompts" if has_first:
                return _arguments(others, catalogue.prompts.get(first, ()), None, catalogue)
            case name if command := TOOL_COMMANDS.get(name):
                known = catalogue.tools.get(command.tool, ())
                return _arguments(rest, known, command.argument, catalogue)
            case name:
                return _matching(_only_words(catalogue).get(name, ()), rest)


def _only_words(catalogue: ServerCatalogue) -> dict[str, Iterable[str]]:
    """Return what the one word may be that stands behind a command."""
    return {
        "tools": catalogue.tools,
        "call": catalogue.tools,
        "prompts": catalogue.prompts,
        "resources": catalogue.resources,
        "framing": FRAMINGS,
        "revision": [one.date for one in revisions.ALL],
        "bare": ("on", "off"),
    }


def possible_values(parameter: Parameter, catalogue: ServerCatalogue) -> list[str]:
    """Return the values that an argument may have, as far as they are known."""
    found = [as_typed(one) for one in parameter.choices]
    if parameter.types == ("boolean",):
        found += ["true", "false"]
    if parameter.name in NICKNAME_ARGUMENTS:
        found += catalogue.nicknames
    if parameter.name == "target":
        found += TARGETS
    return found


def _arguments(
    typed: str, parameters: Sequence[Parameter], main: str | None, catalogue: ServerCatalogue
) -> Iterator[Completion]:
    last = typed.rpartition(" ")[2]
    name, equals, value = last.partition("=")
    by_name = {one.name: one for one in parameters}
    if not equals:
        if main in by_name:
            yield from _matching(possible_values(by_name[main], catalogue), typed)
        yield from _matching((f"{one}=" for one in by_name), last)
    elif name in by_name:
        # Of several values, the last is the one being typed.
        values = possible_values(by_name[name], catalogue)
        for one in _matching(values, value.rpartition(",")[2]):
            yield Completion(shlex.quote(one.text), one.start_position)


def _matching(words: Iterable[str], begun: str) -> Iterator[Completion]:
    wanted = begun.casefold()
    for one in dict.fromkeys(words):
        if len(one) <= MAX_CHARACTERS and one.casefold().startswith(wanted):
            # What is offered is written to the terminal, and strangers choose nicknames.
            yield Completion(one_line(one), -len(begun))
