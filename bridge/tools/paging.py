"""Pages of entries from a long list, read without keeping other callers waiting."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import Annotated, Any, Generic, Literal, TypeAlias, TypeVar

from bridge.mcp.errors import ArgumentError
from bridge.mcp.schema import Bounds, Unlisted, always
from bridge.tools.entries import NOTICE, RESULT_BYTES, Entry, json_size, nonempty
from bridge.xmpp.model.events import Kind
from bridge.xmpp.model.filter import EventFilter, Pattern, PatternError
from bridge.xmpp.model.journal import Loss, Numbered, Records

MIN_BYTES = 2_000
"""The least bytes of JSON that a caller may ask for: they hold the envelope, and an entry with all
its fields."""

MAX_BYTES = 45_000
"""The most bytes of JSON that a caller may ask for: Claude Code passes no more than 50,000
characters to its model."""

ENVELOPE_BYTES = 640
"""Bytes of JSON for what surrounds the entries: two cursors (the longest are an archive's), a gap
and the notice."""

MAX_LIMIT = 500
"""The most entries in one page."""

OLDEST = "oldest"
"""A word in place of a cursor: it stands for the place before the oldest entry that is kept."""

MAX_FILTER_CHARACTERS = 1_000
"""The most characters of a text or a pattern to look for."""

CURSOR_BOUNDS = Unlisted(min_length=1, max_length=512)
"""The longest cursors have 392 characters, with the 128 bytes that an archive's id may have."""

SLICE_SECONDS = 0.001
"""Seconds that one call works before other calls get their turn of the loop."""

MAX_INLINE_COST = 250_000
"""The highest cost, as `EventFilter.cost` counts it, of work that is done on the loop. It takes one
to three milliseconds; work that costs more goes to the searcher thread."""

SCAN_SECONDS = 20.0
"""Time after which a scan ends with what it has found, and says where to go on."""

SEARCHER = ThreadPoolExecutor(1, "search")
"""Runs expensive searches in one thread, so that patterns leave a processor to others. They do not
run in the loop's own threads: these look names up, and the process cannot end before they do."""

Limit = Annotated[int, Bounds(minimum=1, maximum=MAX_LIMIT)]
MaxBytes = Annotated[int, Bounds(minimum=MIN_BYTES, maximum=MAX_BYTES), "of JSON"]
Since = Annotated[str | None, CURSOR_BOUNDS, f'a cursor, or "{OLDEST}"']
Sender = Annotated[str | None, Unlisted(min_length=1, max_length=3_071), "a nickname or JID"]
Contains = Annotated[
    str | None,
    Unlisted(min_length=1, max_length=MAX_FILTER_CHARACTERS),
    "in body, subject or status, in any case",
]
PatternText = Annotated[
    str | None, Unlisted(min_length=1, max_length=MAX_FILTER_CHARACTERS), "RE2, likewise"
]
Kinds = Annotated[list[Kind] | None, Unlisted(min_length=1, max_length=100)]
Kept = TypeVar("Kept", bound="Numbered")
Subject = TypeVar("Subject")
Result = TypeVar("Result")
Shown = TypeVar("Shown")


LostEntries: TypeAlias = Annotated[
    dict[str, Any],
    always(
        from_=Annotated[int, "the first number; of the former run, if the bridge was restarted"],
        to=Annotated[int, "the last number, of this run; 0: nothing of this run is missing"],
        reason=Literal["evicted", "restarted"],
    ),
]
"""The range of the events after the cursor that are not kept any more. Some events within it may
still be kept."""


class TimeSlice:
    """Limits how long a call works at a stretch, and in all: one process answers all callers."""

    def __init__(self) -> None:
        now = monotonic()
        self._end = now + SLICE_SECONDS
        self._last_end = now + SCAN_SECONDS

    @property
    def exhausted(self) -> bool:
        """Whether the call has worked as long as it may."""
        return monotonic() > self._last_end

    async def run(self, work: Callable[[Subject], Result], subject: Subject, cost: int) -> Result:
        """Return `work(subject)`; if the slice is over, others have their turn of the loop first.

        Work that costs more than `MAX_INLINE_COST` is done in the searcher thread.
        """
        if monotonic() > self._end:
            await asyncio.sleep(0)
            self._end = monotonic() + SLICE_SECONDS
        if cost <= MAX_INLINE_COST:
            return work(subject)
        # RE2 releases the interpreter's lock while it searches.
        return await asyncio.get_running_loop().run_in_executor(SEARCHER, work, subject)


class Page(Generic[Shown]):
    """Entries up to a number and a size, and where in the journal or the trace they end."""

    def __init__(self, limit: int | None = None, size: int = RESULT_BYTES - ENVELOPE_BYTES) -> None:
        """Make a page for `limit` entries and `size` bytes of JSON."""
        self.limit = limit
        self.size = size
        self.fold: Callable[[Sequence[Shown], Shown], tuple[int, Shown] | None] | None = None
        """Folds a further entry into the entries: returns the place of the entry to replace, and an
        entry that stands for both. None if the further entry stands for itself."""
        self.entries: list[Shown] = []
        self.bytes_left = size
        """Bytes of JSON that are left for entries."""
        self.next = ""
        """The cursor after what was read."""
        self.gap: LostEntries | None = None
        """What is lost before the page."""
        self.more = False
        """Whether there are more records: after `next`, or, on a page of the newest, before it."""

    def add(self, entry: Shown) -> bool:
        """Add `entry` if there is space for it; return whether there was."""
        if self.fold is not None and (folded := self.fold(self.entries, entry)) is not None:
            place, both = folded
            growth = json_size(both) - json_size(self.entries[place])
            if growth > self.bytes_left:
                return False
            self.bytes_left -= growth
            self.entries[place] = both
            return True
        size = json_size(entry) + (len(", ") if self.entries else 0)
        if len(self.entries) == self.limit or size > self.bytes_left:
            return False
        self.bytes_left -= size
        self.entries.append(entry)
        return True

    async def read(
        self,
        records: Records[Kept],
        since: str | None,
        show: Callable[[Kept], Shown | None],
        cost: Callable[[Kept], int] = lambda _: 0,
    ) -> None:
        """Fill the page with what came after `since`; without `since`, with the newest.

        `show` returns None for a record that is not wanted; each of its entries must fit on an
        empty page. `cost` returns the cost of `show` for `TimeSlice.run`. Raises `ArgumentError` if
        `since` is no cursor.
        """
        self.next = records.cursor
        newest = records.numbering.last
        forgotten = records.forgotten
        last, gap = position_of(records, OLDEST if since is None else since)
        unread: Iterable[Kept] = reversed(records) if since is None else records.after(last)
        time_slice = TimeSlice()
        for number, record in enumerate(unread):
            if record.number > newest:
                break  # it came later, and is left for the next page
            self.more = number > 0 and time_slice.exhausted
            if not self.more:
                entry = await time_slice.run(show, record, cost(record))
                self.more = entry is not None and not self.add(entry)
            if self.more:
                break
            last = record.number
        if since is None:
            self.entries.reverse()
            self.gap = None if self.more else gap
        else:
            self.gap = gap
            if not self.more:  # everything up to `forgotten` was read or is in the gap
                last = max(last, forgotten)
            # While others had their turns, records may have been evicted before they were read.
            self.more = self.more or last < records.forgotten
            if self.more:
                self.next = records.cursor_of(last)

    def result(self, **around: object) -> Entry:
        """Return the fields of a result: the page's own, and the further fields `around` it."""
        read = {"entries": self.entries, "next": self.next, "more": self.more}
        return read | nonempty({"gap": self.gap, "notice": self.entries and NOTICE} | around)


def position_of(records: Records[Kept], since: str) -> tuple[int, LostEntries | None]:
    """Return the number after which a reader goes on from `since`, and what is lost before.

    Raises `ArgumentError` where `since` is neither a cursor nor `OLDEST`.
    """
    try:
        number, loss = records.position(records.cursor_of(0) if since == OLDEST else since)
    except ValueError as error:
        raise no_cursor(error) from error
    return number, None if loss is None else lost(loss)


def lost(loss: Loss) -> LostEntries:
    """Return `loss` in the form that results have."""
    return {"from": loss.first, "to": loss.last, "reason": loss.reason}


def no_cursor(error: ValueError) -> ArgumentError:
    """Return the error for a `since` that is no cursor."""
    return ArgumentError(
        f"since is not a cursor of this bridge: {error}.",
        condition="bad-request",
        hint="Take `next` or `cursor` from a result as it is, or leave `since` out.",
    )


async def event_filter(
    kinds: Sequence[str] | None, sender: str | None, contains: str | None, pattern: str | None
) -> EventFilter:
    """Return the filter that the caller's arguments describe.

    Raises `ArgumentError` for a pattern that is invalid.
    """
    try:
        compiled = None if pattern is None else await asyncio.to_thread(Pattern, pattern)
    except PatternError as error:
        raise ArgumentError(
            f"pattern is no regular expression that RE2 takes: {error}.",
            condition="bad-request",
            hint="RE2 has no look-around and no back-references; `contains` finds plain text.",
        ) from error
    kinds_wanted = None if kinds is None else frozenset(kinds)
    return EventFilter(kinds_wanted, sender, contains, compiled)
