"""A page of entries: as many as were asked for, and no more than an agent can take at once."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Generic, Literal, NamedTuple, TypeVar

from bridge.mcp.schema import Bounds
from bridge.mcp.toolset import ArgumentError
from bridge.tools.entries import RESULT_BYTES, json_size

if TYPE_CHECKING:
    from bridge.tools.budget import Budget
    from bridge.xmpp.book import Book
    from bridge.xmpp.ring import CursorError, Loss, Numbered

MIN_BYTES = 2_000
"""Of JSON, that may be asked for: what stands around an entry, and an entry with all its fields."""

MAX_BYTES = 45_000
"""Of JSON, that may be asked for: Claude Code hands no more than 50,000 characters to its model."""

ENVELOPE_BYTES = 640
"""Of these, for what stands around the entries: two cursors, of which the archive's are the
longest, a gap and the notice."""

SLICE = 1_000
"""Events or stanzas that are looked through in one turn of the loop: less than a millisecond."""

MAX_LIMIT = 500
"""Entries in one page."""

Limit = Annotated[int, Bounds(minimum=1, maximum=MAX_LIMIT), "how many entries at most"]
MaxBytes = Annotated[
    int, Bounds(minimum=MIN_BYTES, maximum=MAX_BYTES), "of the result as JSON; a longer body is cut"
]
Since = Annotated[
    str | None, "a cursor from any result: only what came after it; without it, the newest"
]
Leaf = TypeVar("Leaf", bound="Numbered")
Shown = TypeVar("Shown")


@dataclass(eq=False)
class Gap:
    """Events that came after the cursor and are not kept any more."""

    from_: Annotated[int, "number of the first; in the former run, if the bridge was restarted"]
    to: Annotated[int, "number of the last, in this run; 0: nothing of this run is missing"]
    reason: Literal["evicted", "restarted"]


class Page(Generic[Shown]):
    """Takes entries until it is full."""

    def __init__(self, limit: int | None = None, room: int = RESULT_BYTES - ENVELOPE_BYTES) -> None:
        self.entries: list[Shown] = []
        self.room = room
        """Bytes of JSON that are left for entries."""
        self._limit = limit

    def add(self, entry: Shown) -> bool:
        """Take `entry`, if there is room for it."""
        size = json_size(entry) + len(", ") * bool(self.entries)
        if len(self.entries) == self._limit or size > self.room:
            return False
        self.room -= size
        self.entries.append(entry)
        return True


class Opened(NamedTuple, Generic[Shown]):
    """A page, and where it stands in the book."""

    entries: list[Shown]
    next: str
    gap: Gap | None
    more: bool


async def _all(leaves: Sequence[Leaf]) -> Sequence[Leaf]:
    return leaves


async def opened(
    book: "Book[Leaf]",
    since: str | None,
    page: Page[Shown],
    show: Callable[[Leaf], Awaitable[Shown | None]],
    budget: "Budget",
    narrow: Callable[[Sequence[Leaf]], Awaitable[Sequence[Leaf]]] = _all,
) -> Opened[Shown]:
    """Fill the page after `since`, or the newest; `show` gives None for what is not wanted.

    An entry must have room on a page of its own. `narrow` leaves out beforehand what cannot be
    wanted. Raises `ArgumentError` where `since` is no cursor.
    """
    from bridge.xmpp.ring import CursorError

    filling = _Filling(page, show, budget, narrow)
    try:
        parts, loss = book.parts(since)
    except CursorError as error:
        raise no_cursor(error) from error
    end = book.cursor
    if since is None:
        more = await filling.fill(parts[::-1], backwards=True)
        return Opened(filling.entries[::-1], end, None if more else gap_of(loss), more)
    more = await filling.fill(parts)
    if more:
        start = since if loss is None else book.cursor_of(loss.last)
        end = start if filling.last is None else book.cursor_of(filling.last.number)
    return Opened(filling.entries, end, gap_of(loss), more)


class _Filling(Generic[Leaf, Shown]):
    """A page being filled."""

    def __init__(
        self,
        page: Page[Shown],
        show: Callable[[Leaf], Awaitable[Shown | None]],
        budget: "Budget",
        narrow: Callable[[Sequence[Leaf]], Awaitable[Sequence[Leaf]]],
    ) -> None:
        self._page = page
        self._show = show
        self._budget = budget
        self._narrow = narrow
        self.last: Leaf | None = None
        """The last leaf that was looked at."""

    @property
    def entries(self) -> list[Shown]:
        """What is on the page."""
        return self._page.entries

    async def fill(self, parts: Sequence[Sequence[Leaf]], *, backwards: bool = False) -> bool:
        """Look at `parts` until the page is full or the time up; whether some are left."""
        seen = 0
        for position, part in enumerate(parts, 1):
            wanted = await self._narrow(part)
            for leaf in reversed(wanted) if backwards else wanted:
                if self._budget.exhausted:
                    return True
                entry = await self._show(leaf)
                if entry is not None and not self._page.add(entry):
                    return True
                self.last = leaf
            self.last = part[-1]
            seen += len(part)
            if seen + len(part) > SLICE:
                seen = 0
                await asyncio.sleep(0)  # others get their turn
            if self._budget.exhausted:
                return position < len(parts)
        return False


def gap_of(loss: "Loss | None") -> Gap | None:
    """Return what is told of a loss."""
    return None if loss is None else Gap(loss.first, loss.last, loss.reason)


def no_cursor(error: "CursorError") -> ArgumentError:
    """Return what the caller is told of a cursor that is none."""
    return ArgumentError(
        f"since is not a cursor of this bridge: {error}.",
        condition="bad-request",
        hint="Take `next` or `cursor` from a result as it is, or leave `since` out.",
    )
