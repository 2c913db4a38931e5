"""The tool that shows what happened in the room: from memory, the store or the room's archive."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from typing import Annotated, Literal, TypeAlias
from urllib.parse import quote, unquote

from bridge.mcp.errors import ArgumentError, ToolError
from bridge.mcp.schema import Unlisted, always
from bridge.mcp.toolset import tool
from bridge.recording.recorded import Walk
from bridge.store.database import Recorded
from bridge.store.errors import StoreError, left_out
from bridge.store.pairing import SAME_SECONDS
from bridge.text import iso, iso_of, quoted
from bridge.tools import paging
from bridge.tools.entries import (
    FIELDS,
    NOTICE,
    RESULT_BYTES,
    Entry,
    brief,
    fit,
    fold_repeat,
    json_size,
    nonempty,
)
from bridge.tools.link import RoomLink, RoomName, failed
from bridge.xmpp.model import events, faults
from bridge.xmpp.model.events import Event, MessageReceived
from bridge.xmpp.model.filter import EventFilter
from bridge.xmpp.model.journal import RECORDED, Record
from bridge.xmpp.muc import archive

BUDGET_SECONDS = 25.0
"""How long one call asks the archive. Clients give up on a call after a minute; the next call goes
on where this one ended."""

MARK = "archive:"
"""The beginning of the archive's cursors; no cursor of the journal begins so."""

_THEN = "+"
"""Joins a cursor of the store, one of the journal, and the number of the first record that the
reader was shown out of the journal since."""


History: TypeAlias = Annotated[
    dict[str, object], always(entries=Annotated[list[Entry], FIELDS], next=str, more=bool)
]
"""A page of what happened, oldest first."""


@tool("xmppHistory", title="What happened in the XMPP room", read_only=True)
async def xmpp_history(
    link: RoomLink,
    /,
    since: paging.Since = None,
    limit: paging.Limit = 50,
    from_: paging.Sender = None,
    contains: paging.Contains = None,
    pattern: paging.PatternText = None,
    kinds: paging.Kinds = None,
    before: Annotated[str | None, Unlisted(min_length=1), "until this time"] = None,
    after: Annotated[str | None, Unlisted(min_length=1), "from this time"] = None,
    archive: Annotated[bool, "of the room (XEP-0313)"] = False,
    detail: Annotated[Literal["brief", "full"], "full has ids and JIDs"] = "brief",
    max_bytes: paging.MaxBytes = RESULT_BYTES,
    room: RoomName = None,
) -> History:
    """To see what happened in the room: messages, who came and left, what went wrong.

    Oldest first; without `since` or `after` the newest. To follow, give `next` as `since`; `gap`
    says what is lost. `after` and `before` (2026-01-31T12:00:00Z) reach what was recorded before
    the bridge came, `archive: true` what the room kept. Steps of connecting: kind connection.
    """
    if since not in {None, paging.OLDEST} and since.startswith(MARK) is not archive:
        raise ArgumentError(
            "Cursors of the archive go with archive: true only, and others without it.",
            condition="bad-request",
            hint="Take `since` from a result with the same `archive`, or give a time in `after`.",
        )
    warnings = link.warnings()
    page_size = max_bytes - paging.ENVELOPE_BYTES - json_size(warnings)
    search = Search(
        link=link,
        room=room,
        wanted=await paging.event_filter(kinds, from_, contains, pattern),
        since=since,
        start=_time("after", after),
        end=_time("before", before),
        brief=detail == "brief",
        page=paging.Page(limit, page_size),
    )
    if search.brief:
        search.page.fold = partial(fold_repeat, newest_first=search.newest_first)
    source = read_archive if archive else read_store if _is_recorded(search) else read_memory
    try:
        around = await source(search)
    except StoreError as error:
        raise ToolError(
            f"What was recorded cannot be read: {error}.",
            condition="service-unavailable",
            hint="xmppStatus has warnings of the store. For what the bridge itself remembers, "
            "leave out `after`, `before` and `since`.",
        ) from error
    hint = {} if search.page.entries else link.misspelt(from_, room)
    around |= hint or ({} if archive else search.limits())
    return search.page.result(**around)


@dataclass
class Search:
    """One call of `xmpp_history`: what it asks for, and the page that a source fills.

    A source is the bridge's memory, the store or the room's archive. It offers its events to `add`,
    in its own order, until one does not fit. (For memory `Page.read` does so: it knows which events
    are evicted meanwhile.) The source sets `next`, `more` and `gap` of the page, and returns the
    further fields of the result.
    """

    link: RoomLink
    room: str | None
    wanted: EventFilter
    since: str | None
    start: str | None
    """A time in the form that entries have."""
    end: str | None
    brief: bool
    page: paging.Page[Entry]
    begins: float = inf
    """When the records of the store begin, in seconds since the epoch, if it was read."""
    time_slice: paging.TimeSlice = field(default_factory=paging.TimeSlice)

    @property
    def newest_first(self) -> bool:
        """Whether the caller asks for the newest, so that a source is read from its end."""
        return self.since is None and self.start is None

    def in_time(self, at: str) -> bool:
        """Whether the caller asks for events of the time `at`."""
        return (self.start or at) <= at <= (self.end or at)

    def leave_out_copies(self) -> set[str]:
        """In `brief`, want of what we sent only what no room sent back; return the ids of that."""
        rooms = (membership.room for membership in self.link.participant.memberships)
        unheard = {id_ for room in rooms for id_ in room.unheard}
        if self.brief:
            self.wanted = replace(self.wanted, unheard=unheard)
        return unheard

    def entry(self, event: Event, exact: Callable[[], Entry]) -> Entry | None:
        """Return the entry of `event`, whose exact form `exact` makes; None if it is not wanted."""
        if not self.wanted.matches(event):
            return None
        # It is cut so that it fits on a page of its own.
        return fit(brief(exact()) if self.brief else exact(), self.page.size)

    async def add(self, event: Event, exact: Callable[[], Entry]) -> bool | None:
        """Add the entry of `event`: False if there is no space for it, None if it is not wanted."""
        cost = self.wanted.cost(event)
        entry = await self.time_slice.run(partial(self.entry, event), exact, cost)
        return None if entry is None else self.page.add(entry)

    def limits(self) -> Entry:
        """Return a `note` if not all of these times are known, or nothing is seen of them now."""
        start, end, now, note = self.start, self.end, iso(time.time()), ""
        records = self.link.records(self.room)
        first = next(records.after(records.forgotten), None)
        known = self.begins if first is None else min(self.begins, first.at)
        members = self.link.participant.memberships
        rooms = [it for it in members if self.room is None or it is self.link.room(self.room)]
        outside = [it for it in rooms if not it.status().connected]
        if start is not None and start > now:
            note = f"`after` is in the future: it is {now} (UTC)."
        elif start is not None and end is not None and end < start:
            note = "`before` is earlier than `after`."
        elif known < inf and (start or end or iso(known)) < iso(known):
            note = f"Nothing is known from before {iso(known)}."
        elif outside and not self.page.entries:
            fault = outside[0].status().out_of(outside[0].name)
            return {"note": fault.message, **nonempty({"notice": fault.quotes and NOTICE})}
        return {"note": note} if note else {}

    def stamp(self, cursor: str, at: str, room: str) -> Entry:
        """Return the first fields of an entry; if there are several rooms, it names its room."""
        named = self.link.among_several(room)
        return {"cursor": cursor, "at": at, **({"room": named} if named else {})}


async def read_memory(search: Search) -> dict[str, object]:
    """Fill the page from the journal."""
    page, since = search.page, search.since
    search.leave_out_copies()
    journal, records = search.link.participant.journal, search.link.records(search.room)
    if since is None and search.start is not None:
        since = paging.OLDEST
    last, _ = paging.position_of(records, since or paging.OLDEST)
    earlier, timed = 0, search.start or search.end

    def show(record: Record) -> Entry | None:
        nonlocal earlier, last
        at = iso(record.at) if timed else ""
        if at < (search.start or at):
            earlier = max(earlier, record.number)
        if not search.in_time(at):
            return None
        last = max(last, record.number)
        return search.entry(record.event, partial(journal.encode, record))

    await page.read(records, since, show, lambda record: search.wanted.cost(record.event))
    if search.end is not None and not (page.more and since is not None):
        page.next = records.cursor_of(last)  # the next page begins with what came after `end`
    if earlier and page.gap is not None and page.gap["to"] <= earlier:
        page.gap = None  # what is lost came before `start`
    return {"oldest": records.oldest}


def _is_recorded(search: Search) -> bool:
    """Whether the store is read, because the bridge's memory does not go back far enough."""
    if search.link.recorded() is None:
        return False
    if search.since is not None:
        return search.since.startswith(RECORDED)
    records, asked = search.link.records(search.room), search.start or search.end
    first = next(records.after(records.forgotten), None)
    return asked is not None and (first is None or asked < iso(first.at))


async def read_store(search: Search) -> dict[str, object]:
    """Fill the page from the store, and then with what only memory has.

    After that the cursor has a place in each, until the store has everything. Raises
    `ArgumentError` for a wrong cursor, and `StoreError`.
    """
    link, room, page = search.link, search.room, search.page
    reader = link.recorded()
    assert reader is not None
    stored, then, remembered = (search.since or "").partition(_THEN)
    remembered, _, number = remembered.partition(_THEN)
    records, journal = link.records(room), link.participant.journal
    first, last = 1, 0
    rooms = link.participant.memberships if room is None else [link.room(room)]
    try:
        walk = await reader.walk(
            [membership.name for membership in rooms],
            search.wanted,
            since=stored or None,
            start=search.start,
            end=search.end,
            backward=search.newest_first,
            connection=room is None,
        )
        loss = walk.gap
        if then:
            first, (last, lost) = int(number), records.position(remembered)
            if lost is not None and lost.reason == "restarted":  # else the store tells it later
                loss = lost
    except ValueError as error:
        raise paging.no_cursor(error) from error
    unwritten = () if walk.unwritten is None else records.after(max(last, walk.unwritten - 1))
    seen = [
        record
        for record in unwritten
        if await search.time_slice.run(search.in_time, iso(record.at), 0)
    ]
    known = () if walk.is_over or not then else records.after(first - 1)
    if kept := [*(it for it in known if it.number <= last), *seen]:
        before = [it for it in records.after(records.forgotten) if it.number < kept[0].number]
        near = (it for it in before if kept[0].at - it.at <= 2 * SAME_SECONDS)
        beside = [*near, *kept]
        await walk.compare(beside, journal.numbering.epoch, range(first, last + 1))
    await _add_recorded(search, walk, seen)
    if loss is not None and not (search.newest_first and page.more):
        page.gap = paging.lost(loss)
    if not page.more:
        first = max(first, walk.unwritten or journal.numbering.last + 1)
        last = max([last, *(record.number for record in seen)])
        for record in walk.unrecorded(seen):
            if await search.add(record.event, partial(journal.encode, record)) is False:
                page.more, last = True, record.number - 1
                break
    page.next = walk.next
    if last >= first:
        page.next += f"{_THEN}{journal.cursor_of(last)}{_THEN}{first}"
    search.begins = walk.oldest_at
    damaged = [left_out(walk.unreadable)] if walk.unreadable else []
    return {"oldest": walk.oldest, "warnings": link.warnings() + damaged}


async def _add_recorded(search: Search, walk: Walk, seen: Sequence[Record]) -> None:
    """Add what the store has; `seen` are the records in memory that it may lack."""
    page, journal = search.page, search.link.participant.journal
    unheard = search.leave_out_copies()
    messages = [record.event for record in seen if isinstance(record.event, MessageReceived)]
    came = {(message.reflects or message.id, message.from_) for message in messages}

    def exact(row: Recorded) -> Entry:
        entry = search.stamp(walk.cursor_of(row.id), iso(row.at), row.room)
        entry |= row.event | {"source": "recorded"}
        if not row.shared and row.observer.run != journal.numbering.epoch:
            entry["observer"] = str(row.observer)
        return entry

    async for row in walk:
        sent = row.event.get("id", ""), row.event.get("from")
        if row.event.get("direction") == "out" and not (row.echoed or sent in came):
            unheard.add(sent[0])
        page.more = await search.add(walk.record(row).event, partial(exact, row)) is False
        if page.more:
            break
    page.more = page.more or walk.more
    if search.newest_first:
        page.entries.reverse()
        if search.brief:
            page.fold = fold_repeat  # what memory has is newer


async def read_archive(search: Search) -> dict[str, object]:
    """Read the room's archive; raises `ToolError`."""
    page, membership = search.page, search.link.room(search.room)
    search.link.connection(membership, inside=True)
    jid = membership.name
    after = "" if search.since in {None, paging.OLDEST} else str(search.since)
    query = archive.ArchiveQuery(
        start=search.start,
        end=search.end,
        position=unquote(after.removeprefix(MARK)) or None,
        backward=search.newest_first,
    )

    def exact(result: archive.ArchiveResult, event: Event) -> Entry:
        at = iso_of(result.at or "") or iso(time.time())
        entry = search.stamp(_cursor(result.id), at, jid)
        return entry | events.encode(event) | {"source": "archive"}

    async def keep(result: archive.ArchiveResult) -> bool | None:
        for event in result.events:
            if (fits := await search.add(event, partial(exact, result, event))) is not None:
                return fits
        return None

    try:
        searched = await membership.archive.search(
            query, keep, limit=page.limit, seconds=BUDGET_SECONDS
        )
    except archive.ArchiveError as error:
        raise failed(error.fault(membership.place)) from error
    except faults.ConnectionFailedError as ended:
        raise failed(
            ended.fault, "The connection ended before the archive had answered:"
        ) from ended
    page.more, page.next = searched.more, _cursor(searched.next_id or "")
    if search.newest_first:
        page.entries.reverse()
        page.next = str(page.entries[-1]["cursor"]) if page.entries else MARK
    return {}


def _cursor(id_: str) -> str:
    """Return the cursor after the archive's entry of this id, which is text from a stranger."""
    return MARK + quote(id_, safe="/:=+@,;")


def _time(name: str, text: str | None) -> str | None:
    if text is None:
        return None
    moment = iso_of(text)
    if moment is None:
        raise ArgumentError(
            f"{name} is no time with a zone: {quoted(text)}.",
            condition="bad-request",
            hint="Write it in ISO 8601, such as 2026-01-31T12:00:00Z.",
        )
    return moment
