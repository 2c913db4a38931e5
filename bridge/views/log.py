"""The command `log`: shows what was recorded, oldest first, or hands it to a report."""

import asyncio
import json
import select
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import count
from math import inf
from time import time

from bridge.logs import complain, write_out
from bridge.recording.recorded import Walk
from bridge.store.database import Recorded
from bridge.store.errors import StoreError, left_out, may_pass
from bridge.text import iso, one_line
from bridge.views.results import entry_line
from bridge.views.watch import RoomView
from bridge.xmpp.checks.presence import MAX_COMPARED
from bridge.xmpp.model.filter import EventFilter
from bridge.xmpp.model.formatting import format_event

FOLLOW_MS = 500
"""Pause between two readings of a file, to which other processes add events."""

TEAM_FOLLOW_MS = 1_000
"""The same for a database, which many people ask."""

NEWEST = 10
"""How many earlier events `--follow` begins with, as `journalctl` does."""

ORDER_SECONDS = 1.0
"""The seconds by which events in the store may be out of order: several bridges write there, each
up to a quarter of a second after it saw an event."""


@dataclass(eq=False)
class Log:
    """Writes recorded events or stanzas to stdout, by their times; raises `OSError` if that fails.

    A message that a bridge sent is shown once: as the room echoed it, or else as it was sent.
    """

    walk: Callable[..., Awaitable[Walk]]
    filters: Sequence[EventFilter]
    """An event is shown if it matches one of them. Without filters, text leaves out the steps of
    connecting; JSON has these, and both copies of a message."""
    as_json: bool
    names_rooms: bool
    reporting: Callable[[Recorded], None] | None = None
    """Takes the events in place of stdout."""
    view: RoomView | None = None
    """Lays out events for a terminal; None means that each is one line."""
    has_shown: bool = False
    """Whether there was anything to show."""
    oldest: float = inf
    """When the records begin, in seconds since the epoch; infinite if there are none."""
    senders: set[str] = field(default_factory=set)
    """Who did what was left out, by nickname."""
    clock: Callable[[], float] = time
    """Returns the present time, in seconds since the epoch."""

    def __post_init__(self) -> None:
        self._waiting: list[tuple[float, int, int, Recorded, Walk]] = []
        """The rows that are not written yet, as a heap: the earliest first."""
        self._reading = count()
        self._away = ""
        """The last warning about a database that cannot be reached."""
        self._unheard: dict[str, str] = {}
        """The ids of sent messages that the room has not sent back so far, with their senders."""
        unheard = self._unheard if self.filters or not self.as_json else None
        filters = self.filters or [EventFilter()]
        self.filters = [replace(filter_, unheard=unheard) for filter_ in filters]

    async def show(
        self, since: str | None = None, limit: int | None = None, *, follows: bool = False
    ) -> str | None:
        """Show all events after `since`, or the newest `limit`; return the cursor after them.

        If it `follows`, events that are younger than `ORDER_SECONDS` wait for the next call. The
        cursor is None if the store cannot be read yet.
        """
        backward, walk = limit is not None, None
        while True:
            now = self.clock() if follows else -inf
            try:
                walk = await self.walk(since=since, backward=backward)
                await self._read(walk, limit, now)
            except StoreError as error:
                if not follows or not may_pass(error):
                    raise
                if not self._away:
                    self._away = str(error)
                    complain(f"WARNING: {error}; nothing is shown until it can be read")
                if backward:  # nothing of it was written
                    self._waiting.clear()
                return since if walk is None or backward else walk.next
            since = walk.next
            if backward or not walk.more:
                return since

    async def _read(self, walk: Walk, limit: int | None, now: float) -> None:
        """Show the events of one walk, the newest `limit` if that is a number."""
        self.oldest = walk.oldest_at
        if walk.away != self._away:
            self._away = walk.away
            if walk.away:
                complain(f"WARNING: {walk.away}; only what this machine recorded is shown")
        async for row in walk:
            self._pair(row)
            if not self._is_wanted(row, walk):
                continue
            heappush(self._waiting, (row.at, row.id, next(self._reading), row, walk))
            if limit is None:
                self._write_before(row.at - ORDER_SECONDS, now)
            if len(self._waiting) == limit:
                break
        self._write_before(inf, now)
        if walk.unreadable:
            complain(f"WARNING: {left_out(walk.unreadable)}")

    async def follow(self, limit: int | None, pause_ms: int, began: Callable[[], None]) -> None:
        """Show the newest `limit`, or all, and what follows, until the reader of stdout leaves.

        `began` is called before it waits.
        """
        stdout = select.poll()
        stdout.register(1, 0)  # `poll` reports that a reader such as `head` has left
        cursor = await self.show(limit=limit, follows=True)
        began()
        while not await asyncio.to_thread(stdout.poll, pause_ms):
            cursor = await self.show(cursor, None if cursor else limit, follows=True)

    def _pair(self, row: Recorded) -> None:
        """Take note of a message that was sent, or of the room's copy of it."""
        match row.event:
            case {"direction": "out", "id": str(id_)} if not row.echoed:
                self._unheard[id_] = row.event.get("from", "")
            case {"kind": "message", "from": sender}:
                said = str(row.event.get("reflects", row.event.get("id")))
                if self._unheard.get(said) == sender:
                    del self._unheard[said]

    def _is_wanted(self, row: Recorded, walk: Walk) -> bool:
        if row.event["kind"] == "stanza":
            return True
        event = walk.record(row).event
        is_wanted = any(filter_.matches(event) for filter_ in self.filters)
        if not is_wanted and len(self.senders) < MAX_COMPARED:
            self.senders.add(getattr(event, "sender", None) or "")
        return is_wanted

    def _write_before(self, end: float, now: float) -> None:
        """Write the waiting events before `end`; stop at an event that is young at `now`."""
        while self._waiting and self._waiting[0][0] < end:
            # A time further ahead comes from a clock that was put back since.
            if abs(now - self._waiting[0][0]) < ORDER_SECONDS:
                return
            *_, row, walk = heappop(self._waiting)
            self._write(row, walk)

    def _write(self, row: Recorded, walk: Walk) -> None:
        if row.event.get("direction") == "out" and not self._is_wanted(row, walk):
            return  # the room's copy came while it waited
        self.has_shown = True
        if self.reporting is not None:
            self.reporting(row)
        elif error := write_out(self._text(row, walk)):
            raise error

    def _text(self, row: Recorded, walk: Walk) -> str:
        at, by = iso(row.at), "" if row.shared else str(row.observer)
        room = {"room": row.room} if row.room and self.names_rooms else {}
        if self.as_json:
            around = {"cursor": walk.cursor_of(row.id), "at": at, **room}
            return json.dumps(around | row.event | ({"observer": by} if by else {}))
        if row.event["kind"] == "stanza":
            return entry_line(row.event | {"at": at})
        if self.view is not None:
            return self.view.event(walk.record(row), by)
        head = f"{at} [{one_line(by)}]" if by else at
        return f"{head} {format_event(room | row.event)}"
