"""Sifting events by what the caller asked for, without keeping everybody else waiting."""

import asyncio
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Annotated, TypeVar

from bridge.mcp.schema import Bounds
from bridge.mcp.toolset import ArgumentError
from bridge.tools.budget import SLICE_COST, Budget
from bridge.tools.entries import Kind

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from bridge.xmpp.events import Event
    from bridge.xmpp.journal import Record
    from bridge.xmpp.selection import Selection

MAX_FILTER_CHARACTERS = 1_000
"""Of a text or a pattern to look for."""

Sender = Annotated[
    str | None, Bounds(min_length=1, max_length=3_071), "only from this nickname or JID"
]
Contains = Annotated[
    str | None,
    Bounds(min_length=1, max_length=MAX_FILTER_CHARACTERS),
    "only with this text in body, subject or status text; case does not matter",
]
PatternText = Annotated[
    str | None,
    Bounds(min_length=1, max_length=MAX_FILTER_CHARACTERS),
    "only where this regular expression (RE2 syntax) is found in one of these",
]
Kinds = Annotated[list[Kind] | None, Bounds(min_length=1), "only events of these kinds"]
Seen = TypeVar("Seen")
Found = TypeVar("Found")


class Sieve:
    """Lets through what a selection takes, within a budget."""

    def __init__(self, selection: "Selection") -> None:
        self.selection = selection
        self.budget = Budget()

    async def narrowed(self, records: "Sequence[Record]") -> "list[Record]":
        """Return those that can be wanted at all, in little time."""
        cost = self.selection.cost_of_narrowing(records)
        return await self._look(cost, self.selection.narrowed, records)

    async def takes(self, event: "Event") -> bool:
        """Whether `event` is wanted."""
        return await self._look(self.selection.cost(event), self.selection.takes, event)

    async def _look(self, cost: int, look: Callable[[Seen], Found], seen: Seen) -> Found:
        if cost > SLICE_COST:
            # RE2 lets go of the interpreter while it searches.
            return await asyncio.get_running_loop().run_in_executor(_searcher(), look, seen)
        await self.budget.spend(cost)
        return look(seen)


@cache
def _searcher() -> "Executor":
    """Return the thread for long searches: one, so that they leave a processor to others.

    The loop's own threads are for looking up names, and a process ends when the last has.
    """
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(1, "search")


async def selected(
    *,
    kinds: Sequence[str] | None,
    sender: str | None,
    contains: str | None,
    pattern: str | None,
    own: bool = True,
    silent: bool = True,
) -> "Selection":
    """Return what the caller asked for; raises `ArgumentError` for a pattern that is none."""
    from bridge.xmpp.selection import Pattern, PatternError, Selection

    compiled = None
    if pattern is not None:
        try:
            compiled = await asyncio.to_thread(Pattern.of, pattern)
        except PatternError as error:
            raise ArgumentError(
                f"pattern is no regular expression that RE2 takes: {error}.",
                condition="bad-request",
                hint="RE2 has no look-around and no back-references; `contains` finds plain text.",
            ) from error
    return Selection(
        kinds=None if kinds is None else frozenset(kinds),
        sender=sender,
        contains=contains,
        pattern=compiled,
        own=own,
        silent=silent,
    )
