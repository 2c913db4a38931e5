"""A page of entries: as many as were asked for, and no more than an agent can take at once."""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Generic, Literal, NamedTuple, Protocol, TypeVar

from bridge.frozen import dataclass
from bridge.mcp.replies import compact
from bridge.mcp.schema import Bounds, render
from bridge.mcp.toolset import ArgumentError

if TYPE_CHECKING:
    from bridge.tools.budget import Budget
    from bridge.xmpp.ring import CursorError, Loss, Numbered

MAX_PAGE_BYTES = 64 * 1024
"""Of JSON: of a longer result, clients drop a part or all."""

ENVELOPE_BYTES = 2 * 1024
"""Of these, for what stands around the entries."""

MAX_LIMIT = 500
"""Entries in one page."""

Limit = Annotated[int, Bounds(minimum=1, maximum=MAX_LIMIT), "how many entries at most"]
Since = Annotated[
    str | None, "a cursor from any result: only what came after it; without it, the newest"
]
Kept = TypeVar("Kept", bound="Numbered")
Leaf = TypeVar("Leaf", bound="Numbered")
Shown = TypeVar("Shown")


class Book(Protocol[Kept]):
    """What pages are taken from: the journal is one, and the trace."""

    @property
    def cursor(self) -> str:
        """The place after everything."""

    @property
    def evicted(self) -> "Loss | None":
        """What is not kept of this run."""

    def cursor_of(self, number: int) -> str:
        """The place after this number."""

    def since(self, cursor: str) -> "tuple[list[Kept], Loss | None]":
        """Return what came after `cursor`, and what of it is lost; raises `CursorError`."""

    def __reversed__(self) -> Iterator[Kept]:
        """Yield what is kept, newest first."""


@dataclass(frozen=True)
class Gap:
    """Events that came after the cursor and are not kept any more."""

    from_: Annotated[int, "number of the first; in the former run, if the bridge was restarted"]
    to: Annotated[int, "number of the last, in this run; 0: nothing of this run is missing"]
    reason: Literal["evicted", "restarted"]


class Page(Generic[Shown]):
    """Takes entries until it is full."""

    def __init__(self, limit: int | None = None) -> None:
        self.entries: list[Shown] = []
        self._limit = limit
        self._room = MAX_PAGE_BYTES - ENVELOPE_BYTES

    def add(self, entry: Shown) -> bool:
        """Take `entry`, if there is room for it; the first always has."""
        size = len(compact(render(entry)).encode("utf-8", "surrogatepass")) + 1
        if len(self.entries) == self._limit or (self.entries and size > self._room):
            return False
        self._room -= size
        self.entries.append(entry)
        return True


class Opened(NamedTuple, Generic[Shown]):
    """A page, and where it stands in the book."""

    entries: list[Shown]
    next: str
    gap: Gap | None
    more: bool


async def opened(
    book: Book[Leaf],
    since: str | None,
    limit: int,
    show: Callable[[Leaf], Awaitable[Shown | None]],
    budget: "Budget",
) -> Opened[Shown]:
    """Return the page after `since`, or the newest; `show` gives None for what is not wanted.

    Raises `ArgumentError` where `since` is no cursor.
    """
    from bridge.xmpp.ring import CursorError

    if since is None:
        end, lost = book.cursor, book.evicted
        newest, _, more = await _filled(limit, list(reversed(book)), show, budget)
        return Opened(newest[::-1], end, None if more else gap_of(lost), more)
    try:
        leaves, loss = book.since(since)
    except CursorError as error:
        raise no_cursor(error) from error
    end = book.cursor
    entries, last, more = await _filled(limit, leaves, show, budget)
    if more:
        start = since if loss is None else book.cursor_of(loss.last)
        end = start if last is None else book.cursor_of(last.number)
    return Opened(entries, end, gap_of(loss), more)


async def _filled(
    limit: int,
    leaves: "Iterable[Leaf]",
    show: Callable[[Leaf], Awaitable[Shown | None]],
    budget: "Budget",
) -> tuple[list[Shown], Leaf | None, bool]:
    """Return the entries, the last leaf that was looked at, and whether some were not."""
    page: Page[Shown] = Page(limit)
    last = None
    for leaf in leaves:
        if budget.exhausted:
            return page.entries, last, True
        entry = await show(leaf)
        if entry is not None and not page.add(entry):
            return page.entries, last, True
        last = leaf
    return page.entries, last, False


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
