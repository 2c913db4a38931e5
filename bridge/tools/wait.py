"""Waiting for something to happen in the room, so that an agent need not ask again and again."""

import asyncio
from collections import deque
from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING, Annotated

from bridge.mcp.context import Context
from bridge.mcp.schema import ABSENT_IF_NONE, Bounds
from bridge.mcp.toolset import tool
from bridge.tools.entries import NOTICE, RESULT_BYTES, Entry, json_size, sanitized
from bridge.tools.link import RoomLink, RoomName
from bridge.tools.paging import (
    Contains,
    Kinds,
    LostEntries,
    Page,
    PatternText,
    Sender,
    TimeSlice,
    event_filter,
    position_of,
)
from bridge.tools.send import MAX_WAIT_SECONDS

if TYPE_CHECKING:
    from bridge.xmpp.filter import EventFilter
    from bridge.xmpp.journal import Record

PROGRESS_SECONDS = 1.0
"""Between two words to a client that wants to know how the wait goes."""

LOOKING_SECONDS = 1.0
"""What lies behind is looked at for this long, even by a wait of no time at all."""

AT_ONCE_COST = 10_000
"""What a wait looks at while an event is published, in characters: 256 waits with the worst of
patterns hold it up for 15 ms. What costs more it looks at in its own time."""

PASSED = 5
"""Events that did not match and are shown all the same: often the filter is what is wrong."""


@dataclass(eq=False)
class Waited:
    """What came, or that nothing did."""

    matched: bool
    entry: Annotated[Entry | None, "an entry as those of xmppHistory"]
    next: Annotated[str, "as `since` of the next call, gives what comes after this"]
    seen: Annotated[int, "how many events passed by without matching"]
    passed: Annotated[list[Entry], f"the last {PASSED} of them"]
    phase: Annotated[str, "of `room`, else of the default room; only `joined` sees what is said"]
    gap: Annotated[LostEntries | None, "what after `since` is lost"]
    out_because: Annotated[
        str | None, ABSENT_IF_NONE, "why the bridge is not in the room, if it is not"
    ] = None
    notice: str = NOTICE


@tool("xmppWait", title="Wait for something in the XMPP room", read_only=True)
async def xmpp_wait(
    link: RoomLink,
    context: Context,
    /,
    since: Annotated[
        str | None, "a cursor from any result: what came after it counts too; without it, from now"
    ] = None,
    from_: Sender = None,
    contains: Contains = None,
    pattern: PatternText = None,
    kinds: Annotated[Kinds, "only events of these kinds; without it, messages"] = None,
    timeout_seconds: Annotated[
        float, Bounds(minimum=0, maximum=MAX_WAIT_SECONDS), "when to give up"
    ] = 30,
    room: RoomName = None,
) -> Waited:
    """Wait until something happens in the room, and return it; for example an answer.

    Looks first at what came after `since`, so nothing falls between two calls: to await the
    answer to what you sent, give the `cursor` of xmppSend. Our own messages match only when
    `from` names us; those with nothing but a `payload`, such as chat states (typing), only when
    `kinds` is given. `matched: false` means that the time is over: `seen` and `passed` tell what
    came instead, `phase` whether the bridge was in the room to see it. To wait on, give `next` as
    `since`. With `room` only what happens in that room counts, not what happens to the connection.
    """
    start = link.records(room).cursor if since is None else since
    awaited = ["message"] if kinds is None else kinds
    wanted = await event_filter(kinds=awaited, sender=from_, contains=contains, pattern=pattern)
    wanted = replace(wanted, own=from_ is not None, silent=kinds is not None)
    return await _Wait(link, room, wanted, context, timeout_seconds).run(start)


class _Wait:
    """One wait under way."""

    def __init__(
        self, link: RoomLink, room: str | None, wanted: "EventFilter", context: Context, most: float
    ) -> None:
        """Wait for `most` seconds at most."""
        self._participant = link.participant
        self._room = None if room is None else link.room(room)
        self._records = link.records(room)
        self._wanted = wanted
        self._context = context
        self._seconds = most
        self._began = self._reported = monotonic()
        self._number = 0
        """The number of the event that was looked at last, or after which the wait began."""
        self._news: asyncio.Future[Record | None] | None = None
        """While each event is looked at as it is published: the one that matches, or None where
        the journal is to be looked at again."""
        self._seen = 0
        self._passed: deque[Record] = deque(maxlen=PASSED)
        self._gap: LostEntries | None = None

    async def run(self, start: str) -> Waited:
        """Return what came after `start`, or that nothing did within the time."""
        self._begin_at(start)
        stop_listening = self._participant.listen(self._look_at)
        try:
            return self._result(await self._awaited())
        finally:
            stop_listening()

    def _begin_at(self, cursor: str) -> None:
        self._number, gap = position_of(self._records, cursor)
        if gap is not None:
            self._gap = gap if self._gap is None else replace(self._gap, to=gap.to)

    async def _awaited(self) -> "Record | None":
        while True:
            if (record := await self._catch_up()) is not None:
                return record
            while self._news is None or not self._news.done():
                left = self._seconds - self._elapsed()
                if left <= 0:
                    return None
                self._news = self._news or asyncio.get_running_loop().create_future()
                await asyncio.wait([self._news], timeout=min(left, PROGRESS_SECONDS))
                self._report()
            if (record := self._news.result()) is not None:
                return record
            self._news = None

    def _look_at(self, record: "Record") -> None:
        """Look at an event as it is published; wake up only for what matches, or takes long."""
        if self._news is None or self._news.done():
            return  # `_catch_up` comes to it
        if self._room is not None and self._room.name != record.room:
            return
        if self._wanted.cost(record.event) > AT_ONCE_COST:
            self._news.set_result(None)
        elif self._note(record, matches=self._wanted.matches(record.event)):
            self._news.set_result(record)

    async def _catch_up(self) -> "Record | None":
        """Look at what the journal has, until there is no more of it; return what matches."""
        records, wanted = self._records, self._wanted
        time_slice = TimeSlice()
        while True:
            self._begin_at(records.cursor_of(self._number))
            told = records.forgotten
            for record in records.after(self._number):
                if self._elapsed() > max(self._seconds, LOOKING_SECONDS):
                    return None
                event = record.event
                matches = await time_slice.run(wanted.matches, event, wanted.cost(event))
                if self._note(record, matches=matches):
                    return record
                self._report()
            # Up to `told`, everything was looked at or is in the gap. Nothing comes between this
            # and the last event that was looked at, but what was evicted meanwhile.
            self._number = max(self._number, told)
            if self._number >= records.forgotten:
                return None

    def _note(self, record: "Record", *, matches: bool) -> bool:
        self._number = record.number
        if not matches:
            self._seen += 1
            self._passed.append(record)
        return matches

    def _elapsed(self) -> float:
        return monotonic() - self._began

    def _report(self) -> None:
        if monotonic() - self._reported < PROGRESS_SECONDS:
            return
        self._reported = monotonic()
        phase = (self._room or self._participant).status().phase.value
        self._context.progress(
            round(self._elapsed(), 3), self._seconds, f"{phase}; {self._seen} events passed by"
        )

    def _result(self, record: "Record | None") -> Waited:
        journal = self._participant.journal
        status = (self._room or self._participant).status()
        fault = status.out_of(self._participant.room_jid if self._room is None else self._room.name)
        nothing = Waited(
            matched=record is not None,
            entry=None,
            next=journal.cursor_of(self._number),
            seen=self._seen,
            passed=[],
            phase=status.phase.value,
            gap=self._gap,
            out_because=None if status.connected else f"{fault.message} {fault.hint}",
        )
        told = sanitized(nothing)
        page: Page[Entry] = Page(size=RESULT_BYTES - json_size(told))
        most = page.bytes_left // PASSED
        if record is not None:
            told.entry = sanitized(journal.encode(record), page.bytes_left)
            page.add(told.entry)
        # As many as fit beside it, the newest first.
        passed = [sanitized(journal.encode(one), most) for one in reversed(self._passed)]
        told.passed = [one for one in passed if page.add(one)][::-1]
        return told
