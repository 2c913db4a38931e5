"""Finds sets of tools by name, loads them, and joins them to the bridge's own.

A name is one of `BUILT_IN`, one that an installed package offers as an entry point, or
`module:attribute` for a set that can be imported. Only sets that were asked for are looked up or
imported.
"""

import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from operator import attrgetter
from typing import Any

from bridge.mcp.catalogue import Catalogue
from bridge.mcp.toolset import Toolset, ToolsetError, merge
from bridge.settings.sources import Problem
from bridge.text import one_line

GROUP = "xmpp_debug_bridge.toolsets"
"""The group of the entry points by which packages offer their sets."""

BUILT_IN = {"llm": "bridge.llm.tools:TOOLSET", "samples": "bridge.samples:TOOLSET"}
"""Sets that come with the bridge, whether it is installed or run from its folder."""

MAX_CAUSE = 300
"""The most characters of a toolset's own error that are quoted in ours: a line or two of a
terminal."""

log = logging.getLogger(__name__)


def join_toolsets(
    base: Toolset, *, named: Iterable[str], settings: Iterable[str], collaborators: Sequence[object]
) -> tuple[Toolset, tuple[Problem, ...]]:
    """Return `base` with the further sets, and what is wrong with sets that the settings name.

    The sets `named` on the command line come first; if one is faulty, `ToolsetError` is raised. A
    faulty set in `settings` (`BRIDGE_TOOLSETS`) is left out.
    """
    sets = [base]
    for name in dict.fromkeys(named):
        sets.append(_checked(name, sets, collaborators))
    problems: list[Problem] = []
    for name in settings:
        if name in {joined.name for joined in sets[1:]}:
            continue
        try:
            sets.append(_checked(name, sets, collaborators))
        except ToolsetError as error:
            problems.append(_left_out(name, error))
    return merge(sets), tuple(problems)


def unknown_toolsets(names: Iterable[str]) -> Iterator[Problem]:
    """Yield a problem with each of the `names` by which no set is found; no set is imported."""
    for name in names:
        try:
            _find(name)
        except ToolsetError as error:
            yield _left_out(name, error)


def _left_out(name: str, error: ToolsetError) -> Problem:
    text = f"names {one_line(name, MAX_CAUSE)!r}, which is left out: {error}"
    return Problem("BRIDGE_TOOLSETS", text)


def load_toolset(name: str) -> Toolset:
    """Return the set that is found by this name; raises `ToolsetError` if it cannot be loaded."""
    load = _find(name)
    try:
        value = load()
    except (Exception, SystemExit) as error:  # its author's code may fail in any way
        log.debug("the toolset %s", one_line(name), exc_info=error)
        cause = one_line(f"{type(error).__name__}: {error}", MAX_CAUSE)
        if isinstance(error, ModuleNotFoundError):
            python = one_line(sys.executable)
            cause += f"; install it for {python}, or name its folder in PYTHONPATH"
        raise ToolsetError(f"{_called(name)} cannot be loaded: {cause}") from error
    if not isinstance(value, Toolset):
        raise ToolsetError(f"{_called(name)} is no Toolset but a {type(value).__name__}")
    return value


def known_toolsets() -> list[str]:
    """Return the names of all sets that are installed, the built-in ones first."""
    offered = sorted(offer.name for offer in _offers())
    return list(dict.fromkeys([*BUILT_IN, *offered]))


def _checked(name: str, sets: Sequence[Toolset], collaborators: Sequence[object]) -> Toolset:
    """Return the set of this name, if no name in it clashes and its collaborators are there."""
    toolset = replace(load_toolset(name), name=name)  # the name by which it was asked for
    merge([*sets, toolset])
    try:
        Catalogue(toolset, collaborators)
    except ToolsetError as error:
        raise ToolsetError(f"{_called(name)} does not fit in here: {error}") from error
    return toolset


def _find(name: str) -> Callable[[], object]:
    """Return the function that loads the set of this name; raises `ToolsetError` for no set."""
    if name in BUILT_IN or ":" in name:
        target = BUILT_IN.get(name, name)
        if not all(part.isidentifier() for part in target.replace(":", ".", 1).split(".")):
            raise ToolsetError(f"{_called(name)} is not of the form MODULE:ATTRIBUTE")
        return partial(_imported, target)
    for offer in _offers():
        if offer.name == name:
            load: Callable[[], object] = offer.load
            return load
    raise ToolsetError(
        f"there is no toolset {one_line(name, MAX_CAUSE)!r}; there are "
        f"{', '.join(known_toolsets())}, and whatever can be imported, as MODULE:ATTRIBUTE"
        + ("; each set takes a --toolset of its own" if "," in name else "")
    )


def _imported(target: str) -> object:
    module, _, attribute = target.partition(":")
    value: object = attrgetter(attribute)(import_module(module))
    return value


def _offers() -> Sequence[Any]:
    """Return the entry points of the sets that installed packages offer."""
    # This import loads half of the standard library's `email`, and few ask for another package's
    # set.
    from importlib.metadata import entry_points

    return entry_points(group=GROUP)


def _called(name: str) -> str:
    return f"the toolset {one_line(name, MAX_CAUSE)}"
