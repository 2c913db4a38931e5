"""Recognises names of variables that look like misspelt names of our settings. Pure.

The names may come from a stranger's file. So only a few are compared. Only a few are shown, escaped
and cut.
"""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from itertools import chain

from bridge.settings.table import VARIABLES

PREFIXES = ("XMPP_", "MUC_", "BRIDGE_", "MCP_BOT_")
"""The beginnings of names that are ours, or may have been meant to be."""

LIKENESS = 0.87
"""How similar a misspelt name is to ours, by `difflib`: one or two characters differ. With less,
names that bots give to settings of their own would count as ours, such as `XMPP_SERVER`."""

MAX_COMPARED = 50
"""The most unknown names of one place that are compared with ours. Each takes up to a millisecond,
and a stranger's file may have thousands."""

MAX_NAMED = 5
"""The most names that one message lists; the others are counted."""

MAX_NAME_CHARACTERS = 40
"""The most characters of a name that are shown."""


def misspelt(names: Iterable[str]) -> dict[str, str]:
    """Return the names that look misspelt, each with the setting that is meant."""
    ours = (name for name in names if name.upper().startswith(PREFIXES))
    unknown = [name for name in ours if name not in VARIABLES]
    meant = {name: _meant_by(name.upper()) for name in unknown[:MAX_COMPARED]}
    return {name: right for name, right in meant.items() if right}


def shown(name: str) -> str:
    """Return a name as messages show it: in ASCII, so that letters of another script stand out."""
    return ascii(name[:MAX_NAME_CHARACTERS])[1:-1]


def first_of(items: Sequence[str], separator: str = ", ") -> str:
    """Return the first items, and how many more there are."""
    first = items[:MAX_NAMED]
    more = len(items) - len(first)
    return separator.join([*first, f"{more} more"] if more else first)


def _meant_by(name: str) -> str:
    """Return the most similar setting, or the first that begins so; empty if there is none."""
    near = get_close_matches(name, VARIABLES, 1, LIKENESS)
    begun = (it for it in VARIABLES if it.startswith(name) and name not in PREFIXES)
    return next(chain(near, begun), "")
