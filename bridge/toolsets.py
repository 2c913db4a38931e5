"""Sets of tools by name: found, loaded, and put beside the bridge's own.

A name is one of ours, one that an installed package offers as an entry point, or
`module:attribute` for whatever can be imported. Nothing is looked up or imported that was not
asked for.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING

from bridge.escaping import one_line
from bridge.mcp.catalogue import Catalogue
from bridge.mcp.toolset import Toolset, ToolsetError, merge
from bridge.settings.sources import Problem

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "xmpp_debug_bridge.toolsets"
"""The entry points by which packages offer their sets."""

OURS = {"llm": "bridge.llm.tools:TOOLSET", "samples": "bridge.samples:TOOLSET"}
"""Sets that come with the bridge. No entry points: those take 10 ms, and an installation."""

MAX_CAUSE = 300
"""Characters of a foreign error that are shown; one line of a terminal or two."""

log = logging.getLogger(__name__)


def gathered(
    base: Toolset,
    *,
    named: Iterable[str],
    wished: Iterable[str],
    collaborators: Sequence[object],
) -> tuple[Toolset, tuple[Problem, ...]]:
    """Return `base` with the further sets, and what is wrong with those wished for.

    Those `named` on the command line come first, and raise `ToolsetError` for any fault; those
    `wished` for in `BRIDGE_TOOLSETS` are left out for one.
    """
    sets = [base]
    for name in dict.fromkeys(named):
        sets.append(_fitting(name, sets, collaborators))
    problems: list[Problem] = []
    have = {one.name for one in sets[1:]}
    for name in wished:
        if name in have:
            continue
        try:
            sets.append(_fitting(name, sets, collaborators))
        except ToolsetError as error:
            shown = one_line(name, MAX_CAUSE)
            text = f"names {shown!r}, which is left out: {error}"
            problems.append(Problem("BRIDGE_TOOLSETS", text))
    return merge(sets), tuple(problems)


def found(name: str) -> Toolset:
    """Return the set of this name; raises `ToolsetError` with the reason why it cannot."""
    try:
        value = _loaded(name)
    except ToolsetError:
        raise
    except (Exception, SystemExit) as error:  # whatever its author's code does when it is loaded
        log.debug("the toolset %s", one_line(name), exc_info=error)
        cause = one_line(f"{type(error).__name__}: {error}", MAX_CAUSE)
        raise ToolsetError(f"{_called(name)} cannot be loaded: {cause}") from error
    if not isinstance(value, Toolset):
        raise ToolsetError(f"{_called(name)} is no Toolset but a {type(value).__name__}")
    return replace(value, name=name)


def known() -> list[str]:
    """Return the names of all sets there are, ours first."""
    return list(dict.fromkeys([*OURS, *sorted(one.name for one in _entry_points())]))


def _fitting(name: str, sets: Sequence[Toolset], collaborators: Sequence[object]) -> Toolset:
    """Return the set of this name, if it goes with `sets` and finds what its tools ask for."""
    one = found(name)
    merge([*sets, one])
    try:
        Catalogue(one, collaborators)
    except ToolsetError as error:
        raise ToolsetError(f"{_called(name)} does not fit in here: {error}") from error
    return one


def _loaded(name: str) -> object:
    if target := OURS.get(name):
        return _imported(target)
    if ":" in name:
        return _imported(name)
    offers = [one for one in _entry_points() if one.name == name]
    if not offers:
        raise ToolsetError(
            f"there is no toolset {one_line(name, MAX_CAUSE)!r}; there are {', '.join(known())}, "
            "and whatever can be imported, as MODULE:ATTRIBUTE"
            + ("; each set takes a --toolset of its own" if "," in name else "")
        )
    if len(offers) > 1:
        packages = " and ".join(sorted(one.dist.name if one.dist else "?" for one in offers))
        raise ToolsetError(
            f"{_called(name)} is offered by {packages}; say which, as MODULE:ATTRIBUTE"
        )
    return offers[0].load()


def _imported(target: str) -> object:
    module, _, path = target.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), *path.split("."))):
        raise ToolsetError(f"{_called(target)} is not of the form MODULE:ATTRIBUTE")
    value: object = import_module(module)
    for part in path.split("."):
        value = getattr(value, part)
    return value


def _entry_points() -> "Sequence[EntryPoint]":
    from importlib.metadata import entry_points

    return tuple(entry_points(group=GROUP))


def _called(name: str) -> str:
    return f"the toolset {one_line(name, MAX_CAUSE)}"
