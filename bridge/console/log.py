"""The command `log`: shows what was recorded, oldest first, one event a line."""

import asyncio
import json
import select
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from bridge.logs import write_out
from bridge.recorded import Reader, Walk
from bridge.store.database import Recorded
from bridge.text import iso, one_line
from bridge.xmpp.filter import EventFilter
from bridge.xmpp.formatting import format_event

FOLLOW_MS = 500
"""Between two looks at what other processes have recorded."""

NEWEST = 10
"""Events that come first when following, as many as with `journalctl`."""


@dataclass
class Log:
    """Writes to stdout what was recorded in some rooms; raises `OSError` where that fails."""

    reader: Reader
    rooms: Sequence[str]
    """Bare JIDs, as configured."""
    filters: Sequence[EventFilter]
    """One of which matches; without any, only steps of connecting are left out, and messages on
    their way out that came back: JSON has these, too."""
    connection: bool
    """Whether what happens to the connection counts."""
    as_json: bool
    stanzas: bool
    """Stanzas are shown in place of events."""
    shown: bool = False
    """Whether there was anything to show."""
    _unheard: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        usual = EventFilter(unheard=None if self.as_json else self._unheard)
        self.filters = self.filters or [usual]

    async def show(self, start: str | None, end: str | None, limit: int | None) -> str:
        """Show the events of a time, or the newest `limit` of them; return the cursor behind."""
        if limit is None:
            return await self._show_on(None, start, end)
        walk, found = await self._walk(None, start, end, backward=True), list[str]()
        async for row in walk:
            found += self._lines(row, walk)
            if len(found) == limit:
                break
        self._write(reversed(found))
        return walk.next

    async def follow(self, cursor: str) -> None:
        """Show what is recorded behind the cursor, until nobody reads any more."""
        stdout = select.poll()
        stdout.register(1, 0)  # it has news when `| head` has left, though nothing is written
        while not await asyncio.to_thread(stdout.poll, FOLLOW_MS):
            cursor = await self._show_on(cursor)

    async def _show_on(
        self, cursor: str | None, start: str | None = None, end: str | None = None
    ) -> str:
        while True:
            walk = await self._walk(cursor, start, end)
            async for row in walk:
                self._write(self._lines(row, walk))
            cursor = walk.next
            if not walk.more:
                return cursor

    async def _walk(
        self, since: str | None, start: str | None, end: str | None, *, backward: bool = False
    ) -> Walk:
        return await self.reader.walk(
            self.rooms,
            self.filters[0],  # the others differ in the sender alone
            since=since,
            start=start,
            end=end,
            backward=backward,
            connection=self.connection,
            stanzas=self.stanzas,
        )

    def _lines(self, row: Recorded, walk: Walk) -> list[str]:
        at = iso(row.at)
        room = {"room": row.room} if row.room and len(self.rooms) > 1 else {}
        if not self.stanzas:
            if not row.heard:
                self._unheard.add(row.event.get("id", ""))
            event = self.reader.record(row).event
            if not any(one.matches(event) for one in self.filters):
                return []
        if self.as_json:
            by = {} if row.shared else {"observer": str(row.observer)}
            cursor = walk.cursor_of(row.id)
            return [json.dumps({"cursor": cursor, "at": at, **room, **row.event, **by})]
        if self.stanzas:
            arrow = "<--" if row.event["direction"] == "in" else "-->"
            return [f"{at} {arrow} {one_line(row.event['xml'])}"]
        return [format_event({"at": at, **room, **row.event})]

    def _write(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.shown = True
            if error := write_out(line):
                raise error
