"""What may stand where the cursor is. Pure."""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bridge.console.arguments import Parameter
from bridge.console.commands import PLAIN_WORDS, SHORTCUTS, WORDS
from bridge.mcp import revisions

NAMES_SOMEBODY = frozenset({"from", "nickname", "target", "sender", "occupant"})
"""Arguments that a nickname may be the value of, in any tool."""

MAX_CHARACTERS = 1_023
"""Of what is offered: a nickname has no more (RFC 7622), and a server's names ought not to."""

TARGETS = ("server", "room", "self")
"""What else `target` may be, in the bridge's own tools."""


@dataclass
class Known:
    """What the server has told of itself so far."""

    tools: dict[str, tuple[Parameter, ...]] = field(default_factory=dict)
    prompts: dict[str, tuple[Parameter, ...]] = field(default_factory=dict)
    resources: Sequence[str] = ()
    nicknames: Sequence[str] = ()


@dataclass(frozen=True)
class Candidate:
    """One way to go on."""

    text: str
    replaces: int
    """How many characters before the cursor it stands for."""


def completions(before: str, known: Known) -> list[Candidate]:
    """Return how the line up to the cursor could go on."""
    word, space, rest = before.partition(" ")
    if not space:
        words: Iterable[str] = PLAIN_WORDS
        if word.startswith("/"):
            words = (f"/{one}" for one in WORDS)
        return _matching(words, word) if word else []
    if word == "send":
        word = "/send"
    return list(_after(word.removeprefix("/"), rest, known)) if word.startswith("/") else []


def values(parameter: Parameter, known: Known, begun: str) -> list[Candidate]:
    """Return how the value of an argument could go on, where it is typed alone."""
    return _matching(_values(parameter.name, parameter, known), begun)


def _after(word: str, rest: str, known: Known) -> Iterator[Candidate]:
    first, space, others = rest.partition(" ")
    shortcut = SHORTCUTS.get(word)
    match word:
        case "send":
            yield from _matching(known.nicknames, rest.rpartition(" ")[2])
        case "call" if space:
            yield from _arguments(others, known.tools.get(first, ()), None, known)
        case "call" | "tools" if not space:
            yield from _matching(known.tools, first)
        case "resources" if not space:
            yield from _matching(known.resources, first)
        case "prompts" if space:
            yield from _arguments(others, known.prompts.get(first, ()), None, known)
        case "prompts":
            yield from _matching(known.prompts, first)
        case "framing":
            yield from _matching(("lines", "headers"), rest)
        case "revision":
            yield from _matching((one.date for one in revisions.ALL), rest)
        case "bare":
            yield from _matching(("on", "off"), rest)
        case _ if shortcut is not None:
            found = known.tools.get(shortcut.tool, ())
            yield from _arguments(rest, found, shortcut.argument, known)


def _arguments(
    typed: str, parameters: Sequence[Parameter], main: str | None, known: Known
) -> Iterator[Candidate]:
    last = typed.rpartition(" ")[2]
    name, equals, value = last.partition("=")
    by_name = {one.name: one for one in parameters}
    if equals:
        if name in by_name:
            # Of several values, the last is the one being typed.
            begun = value.rpartition(",")[2]
            for one in _matching(_values(name, by_name[name], known), begun):
                yield Candidate(shlex.quote(one.text), one.replaces)
        return
    if main is not None:
        yield from _matching(_values(main, by_name.get(main), known), typed)
    yield from _matching((f"{one}=" for one in by_name), last)


def _values(name: str, parameter: Parameter | None, known: Known) -> list[str]:
    found: list[str] = []
    if parameter is not None:
        found += [str(one) for one in parameter.choices]
        if parameter.types == ("boolean",):
            found += ["true", "false"]
    if name in NAMES_SOMEBODY:
        found += known.nicknames
    if name == "target":
        found += TARGETS
    return found


def _matching(words: Iterable[str] | Mapping[str, object], begun: str) -> list[Candidate]:
    wanted = begun.casefold()
    short = (one for one in words if len(one) <= MAX_CHARACTERS)
    found = dict.fromkeys(one for one in short if one.casefold().startswith(wanted))
    return [Candidate(one, len(begun)) for one in found]
