"""The tool that waits for an event in the room, so that an agent need not ask again and again."""

import asyncio
from collections import deque
from dataclasses import replace
from time import monotonic
from typing import Annotated, TypeAlias

from bridge.mcp.context import Context
from bridge.mcp.schema import Bounds, Unlisted, always
from bridge.mcp.toolset import tool
from bridge.tools import paging
from bridge.tools.entries import NOTICE, brief, fit, nonempty
from bridge.tools.link import RoomLink, RoomName
from bridge.tools.send import MAX_WAIT_SECONDS, PROGRESS_SECONDS
from bridge.xmpp.model.filter import EventFilter
from bridge.xmpp.model.journal import Record
from bridge.xmpp.muc.publisher import NextRecord

MIN_CATCH_UP_SECONDS = 1.0
"""How long past events are searched at least, even with a timeout of 0."""

PASSED = 5
"""The most events shown that did not match: often the filter is wrong."""


Waited: TypeAlias = Annotated[
    dict[str, object],
    always(
        matched=bool,
        next=str,
        seen=int,
        passed=list[dict[str, object]],
        elapsed_ms=float,
        phase=str,
    ),
]
"""The result of a wait: the event that matched, if any, and the last others that came."""


@tool("xmppWait", title="Wait for something in the XMPP room", read_only=True, own_slots=True)
async def xmpp_wait(
    link: RoomLink,
    context: Context,
    /,
    since: Annotated[str | None, Unlisted(min_length=1), "a cursor; without it from now on"] = None,
    from_: paging.Sender = None,
    contains: paging.Contains = None,
    pattern: paging.PatternText = None,
    kinds: Annotated[paging.Kinds, "without it, messages"] = None,
    timeout_seconds: Annotated[
        float,
        Bounds(minimum=0, maximum=MAX_WAIT_SECONDS),
        f"when to give up; at most {MAX_WAIT_SECONDS}",
    ] = 30,
    room: RoomName = None,
) -> Waited:
    """To wait until something happens in the room: `entry`, as in xmppHistory.

    It counts what came after `since`, so nothing is missed between two calls: give the `cursor` of
    xmppSend to await an answer. What the bridge said counts only if `from` names it. `matched`
    false: the time is over; `passed` says what came instead. To wait on, give `next` as `since`.
    """
    start = link.records(room).cursor if since is None else since
    awaited = ["message"] if kinds is None else kinds
    wanted = await paging.event_filter(
        kinds=awaited, sender=from_, contains=contains, pattern=pattern
    )
    wanted = replace(
        wanted, own=from_ is not None, silent=kinds is not None, history=False, unheard=()
    )
    return await _Wait(link, room, wanted, context, timeout_seconds).run(start)


class _Wait:
    """One wait under way."""

    def __init__(
        self, link: RoomLink, room: str | None, wanted: EventFilter, context: Context, most: float
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
        self._seen = 0
        self._passed: deque[Record] = deque(maxlen=PASSED)
        self._gap: paging.LostEntries | None = None

    async def run(self, start: str) -> Waited:
        """Wait for an event after `start` that matches, and return the result."""
        self._move_to(start)
        with NextRecord(self._participant.listen) as next_record:
            return self._result(await self._awaited(next_record))

    def _move_to(self, cursor: str) -> None:
        self._number, gap = paging.position_of(self._records, cursor)
        if gap is not None:
            self._gap = gap if self._gap is None else self._gap | {"to": gap["to"]}

    async def _awaited(self, next_record: NextRecord) -> Record | None:
        while True:
            if (record := await self._catch_up()) is not None:
                return record
            self._report()
            if (left := self._seconds - self._elapsed()) <= 0:
                return None
            await next_record.by(asyncio.get_running_loop().time() + min(left, PROGRESS_SECONDS))

    async def _catch_up(self) -> Record | None:
        """Look at the events in the journal, up to the newest; return the first that matches."""
        records, wanted = self._records, self._wanted
        time_slice = paging.TimeSlice()
        while True:
            if (evicted := records.forgotten) > self._number:
                self._move_to(records.cursor_of(self._number))
            for record in records.after(self._number):
                if self._elapsed() > max(self._seconds, MIN_CATCH_UP_SECONDS):
                    return None
                event = record.event
                matches = await time_slice.run(wanted.matches, event, wanted.cost(event))
                if self._see(record, matches=matches):
                    return record
                self._report()
            # Each number up to `evicted` was looked at or is in the gap: skip to it. If more was
            # evicted meanwhile, go round again to extend the gap.
            self._number = max(self._number, evicted)
            if self._number >= records.forgotten:
                return None

    def _see(self, record: Record, *, matches: bool) -> bool:
        self._number = record.number
        if not matches and self._wanted.may_show(record.event):
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

    def _result(self, record: Record | None) -> Waited:
        journal = self._participant.journal
        status = (self._room or self._participant).status()
        fault = status.out_of(self._participant.room_jid if self._room is None else self._room.name)
        entries = [] if record is None else [brief(journal.encode(record))]
        passed = [brief(journal.encode(event)) for event in reversed(self._passed)]
        out_because = "" if status.connected else f"{fault.message} {fault.hint}"
        strange = entries or passed or (out_because and fault.quotes)
        result: Waited = {
            "matched": record is not None,
            "next": journal.cursor_of(self._number),
            "seen": self._seen,
            "passed": [],
            "elapsedMs": round(self._elapsed() * 1000, 3),
            "phase": status.phase.value,
        }
        around = {"gap": self._gap, "outBecause": out_because, "notice": strange and NOTICE}
        # `passed` has the newest first until here, so that the oldest are left out if not all of
        # them fit into the result.
        fitting = fit(result | nonempty(around), entry=entries, passed=passed)
        fitting["passed"].reverse()
        entry = fitting.pop("entry")
        return fitting | {"entry": entry[0]} if entry else fitting
