"""The tool that waits for an event in the room, so that an agent need not ask again and again."""

import asyncio
from collections import deque
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Annotated, TypeAlias

from bridge.mcp.context import Context
from bridge.mcp.schema import Bounds, Unlisted, always
from bridge.mcp.toolset import tool
from bridge.text import counted
from bridge.tools import paging
from bridge.tools.entries import NOTICE, brief, fit, nonempty
from bridge.tools.link import RoomLink, RoomName
from bridge.tools.send import MAX_WAIT_SECONDS, PROGRESS_SECONDS
from bridge.xmpp.model.filter import EventFilter
from bridge.xmpp.model.journal import Record, Records
from bridge.xmpp.muc.membership import Membership
from bridge.xmpp.muc.participant import Participant
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
    wanted = await paging.event_filter(awaited, from_, contains, pattern)
    wanted = replace(
        wanted, own=from_ is not None, silent=kinds is not None, history=False, unheard=()
    )
    membership = None if room is None else link.room(room)
    wait = _Wait(link.participant, membership, link.records(room), wanted, context, timeout_seconds)
    waited = await wait.run(start)
    return waited if waited["matched"] else waited | link.misspelt(from_, room)


@dataclass
class _Wait:
    """One wait under way."""

    participant: Participant
    room: Membership | None
    records: Records[Record]
    wanted: EventFilter
    context: Context
    seconds: float
    """How long it waits at most."""
    began: float = field(default_factory=monotonic)
    reported: float = field(default_factory=monotonic)
    number: int = 0
    """The number of the event that was looked at last, or after which the wait began."""
    seen: int = 0
    passed: deque[Record] = field(default_factory=lambda: deque(maxlen=PASSED))
    gap: paging.LostEntries | None = None

    async def run(self, start: str) -> Waited:
        """Wait for an event after `start` that matches, and return the result."""
        self._move_to(start)
        loop = asyncio.get_running_loop()
        with NextRecord(self.participant.listen) as next_record:
            while (record := await self._catch_up()) is None:
                self._report()
                if (left := self.seconds - self._elapsed()) <= 0:
                    break
                await next_record.by(loop.time() + min(left, PROGRESS_SECONDS))
        return self._result(record)

    def _move_to(self, cursor: str) -> None:
        self.number, gap = paging.position_of(self.records, cursor)
        if gap is not None:
            self.gap = gap if self.gap is None else self.gap | {"to": gap["to"]}

    async def _catch_up(self) -> Record | None:
        """Look at the events in the journal, up to the newest; return the first that matches."""
        records, wanted = self.records, self.wanted
        time_slice = paging.TimeSlice()
        while True:
            if (evicted := records.forgotten) > self.number:
                self._move_to(records.cursor_of(self.number))
            for record in records.after(self.number):
                if self._elapsed() > max(self.seconds, MIN_CATCH_UP_SECONDS):
                    return None
                event = record.event
                matches = await time_slice.run(wanted.matches, event, wanted.cost(event))
                self.number = record.number
                if matches:
                    return record
                if wanted.may_show(event):
                    self.seen += 1
                    self.passed.append(record)
                self._report()
            # Each number up to `evicted` was looked at or is in the gap: skip to it. If more was
            # evicted meanwhile, go round again to extend the gap.
            self.number = max(self.number, evicted)
            if self.number >= records.forgotten:
                return None

    def _elapsed(self) -> float:
        return monotonic() - self.began

    def _report(self) -> None:
        if monotonic() - self.reported < PROGRESS_SECONDS:
            return
        self.reported = monotonic()
        phase = (self.room or self.participant).status().phase.value
        seen = f"{phase}; {counted(self.seen, 'event')} passed by"
        self.context.progress(round(self._elapsed(), 3), self.seconds, seen)

    def _result(self, record: Record | None) -> Waited:
        journal = self.participant.journal
        status = (self.room or self.participant).status()
        fault = status.out_of(self.participant.room_jid if self.room is None else self.room.name)
        entries = [] if record is None else [brief(journal.encode(record))]
        passed = [brief(journal.encode(event)) for event in reversed(self.passed)]
        out_because = "" if status.connected else f"{fault.message} {fault.hint}"
        strange = entries or passed or (out_because and fault.quotes)
        result: Waited = {
            "matched": record is not None,
            "next": journal.cursor_of(self.number),
            "seen": self.seen,
            "passed": [],
            "elapsedMs": round(self._elapsed() * 1000, 3),
            "phase": status.phase.value,
        }
        around = {"gap": self.gap, "outBecause": out_because, "notice": strange and NOTICE}
        # `passed` has the newest first until here, so that the oldest are left out if not all of
        # them fit into the result.
        fitting = fit(result | nonempty(around), entry=entries, passed=passed)
        fitting["passed"].reverse()
        entry = fitting.pop("entry")
        return fitting | {"entry": entry[0]} if entry else fitting
