"""The command `log`: shows what was recorded, oldest first, one event a line."""

import asyncio
import json
import select
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from math import inf

from bridge.logs import complain, write_out
from bridge.recording.recorded import Walk
from bridge.store.database import Recorded
from bridge.store.errors import left_out
from bridge.text import iso, one_line
from bridge.xmpp.model.filter import EventFilter
from bridge.xmpp.model.formatting import format_event

FOLLOW_MS = 500
"""Pause between two readings of the store, to which other processes add events."""

NEWEST = 10
"""Earlier events that `--follow` shows first, as many as `journalctl` does."""


@dataclass(eq=False)
class Log:
    """Writes recorded events or stanzas to stdout; raises `OSError` if that fails."""

    walk: Callable[..., Awaitable[Walk]]
    filters: Sequence[EventFilter]
    """An event is shown if it matches one of them. Without filters, lines of text leave out the
    steps of connecting, and outgoing copies of messages that the room echoed; JSON has both."""
    as_json: bool
    names_rooms: bool
    has_shown: bool = False
    """Whether there was anything to show."""
    oldest: float = inf
    """When the records begin, in seconds since the epoch; infinite if there are none."""

    def __post_init__(self) -> None:
        self._unheard: set[str] = set()
        usual = EventFilter(unheard=None if self.as_json else self._unheard)
        self.filters = self.filters or [usual]

    async def show(self, since: str | None = None, limit: int | None = None) -> str:
        """Show all events after `since`, or the newest `limit`; return the cursor after them."""
        newest: list[str] = []
        while True:
            backward = limit is not None
            walk = await self.walk(since=since, backward=backward)
            self.oldest = walk.oldest_at
            async for row in walk:
                lines = self._lines(row, walk)
                if limit is None:
                    self._write(lines)
                else:
                    newest += lines
                    if len(newest) == limit:
                        break
            if walk.unreadable:
                complain(f"WARNING: {left_out(walk.unreadable)}")
            since = walk.next
            if backward or not walk.more:
                break
        self._write(reversed(newest))
        return since

    async def follow(self, cursor: str) -> None:
        """Show what is recorded after the cursor, until nobody reads any more."""
        stdout = select.poll()
        stdout.register(1, 0)  # `poll` reports that a reader such as `head` has left
        while not await asyncio.to_thread(stdout.poll, FOLLOW_MS):
            cursor = await self.show(cursor)

    def _lines(self, row: Recorded, walk: Walk) -> list[str]:
        if row.event.get("direction") == "out" and not row.echoed:
            self._unheard.add(row.event.get("id", ""))
        is_stanza = row.event["kind"] == "stanza"
        if not is_stanza:
            event = walk.record(row).event
            if not any(filter_.matches(event) for filter_ in self.filters):
                return []
        at, by = iso(row.at), "" if row.shared else str(row.observer)
        room = {"room": row.room} if row.room and self.names_rooms else {}
        if self.as_json:
            around = {"cursor": walk.cursor_of(row.id), "at": at, **room}
            return [json.dumps(around | row.event | ({"observer": by} if by else {}))]
        if is_stanza:
            arrow = "<--" if row.event["direction"] == "in" else "-->"
            return [one_line(f"{at} {arrow} {row.event['xml']}")]
        head = f"{at} [{one_line(by)}]" if by else at
        return [f"{head} {format_event(room | row.event)}"]

    def _write(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.has_shown = True
            if error := write_out(line):
                raise error
