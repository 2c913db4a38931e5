"""Completion of a line: names of commands, tools and arguments, their values, nicknames."""

import shlex
from collections.abc import Iterable, Iterator, Sequence

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from bridge.client.arguments import Parameter, as_typed
from bridge.client.client import ServerCatalogue
from bridge.client.commands import NAMES, PLAIN_NAMES, TOOL_COMMANDS
from bridge.text import one_line

NICKNAME_ARGUMENTS = frozenset({"from", "nickname", "target", "sender", "occupant"})
"""Arguments whose value may be a nickname, in any tool."""

TARGETS = ("server", "room", "self")
"""What `target` of the bridge's own tools may be besides a nickname."""

MAX_CHARACTERS = 1_023
"""The most characters of a completion: a nickname has no more (RFC 7622)."""


class LineCompleter(Completer):
    """Completes a line from the server's lists, as last read."""

    def __init__(self, catalogue: ServerCatalogue, *, chat: bool = False) -> None:
        """In a `chat` only a line that begins with a slash is a command."""
        self._catalogue, self._chat = catalogue, chat

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterator[Completion]:
        """Yield the words that may follow at the cursor."""
        del complete_event
        word, space, rest = document.text_before_cursor.partition(" ")
        if self._chat and word and not word.startswith("/"):
            return _matching(self._catalogue.nicknames, (rest or word).rpartition(" ")[2])
        if not space:
            names = (f"/{name}" for name in NAMES) if word.startswith("/") else PLAIN_NAMES
            return _matching(names if word else (), word)
        if not word.startswith("/") and word != "send":
            return iter(())
        name, catalogue = word.removeprefix("/"), self._catalogue
        if name == "send":
            return _matching(catalogue.nicknames, rest.rpartition(" ")[2])
        if name in TOOL_COMMANDS:
            tool, main, *_ = TOOL_COMMANDS[name]
            return self._arguments(rest, catalogue.tools.get(tool, ()), main)
        first, has_first, others = rest.partition(" ")
        lists = {"call": catalogue.tools, "tools": catalogue.tools, "prompts": catalogue.prompts}
        words = {**lists, "resources": catalogue.resources}
        if has_first and name in {"call", "prompts"}:
            return self._arguments(others, lists[name].get(first, ()))
        return _matching(words.get(name, ()), rest)

    def _arguments(
        self, typed: str, parameters: Sequence[Parameter], main: str | None = None
    ) -> Iterator[Completion]:
        last = typed.rpartition(" ")[2]
        name, equals, value = last.partition("=")
        values = {each.name: possible_values(each, self._catalogue) for each in parameters}
        if equals:
            # An argument may have several values with commas; the last one is being typed.
            for completion in _matching(values.get(name, ()), value.rpartition(",")[2]):
                yield Completion(shlex.quote(completion.text), completion.start_position)
            return
        if main in values:
            yield from _matching(values[main], typed)
        yield from _matching((f"{name}=" for name in values), last)


def possible_values(parameter: Parameter, catalogue: ServerCatalogue) -> list[str]:
    """Return the values that an argument may have, as far as they are known."""
    values = [as_typed(choice) for choice in parameter.choices]
    if parameter.types == ("boolean",):
        values += ["true", "false"]
    if parameter.name in NICKNAME_ARGUMENTS:
        values += catalogue.nicknames
    return values + list(TARGETS if parameter.name == "target" else ())


def _matching(words: Iterable[str], begun: str) -> Iterator[Completion]:
    wanted = begun.casefold()
    for word in dict.fromkeys(words):
        if len(word) <= MAX_CHARACTERS and word.casefold().startswith(wanted):
            # The terminal shows the words, and strangers choose nicknames.
            yield Completion(one_line(word), -len(begun))
