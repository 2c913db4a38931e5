"""Looking back: what happened in the room, from the bridge's memory or the room's archive."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Literal, NamedTuple, TypeAlias
from urllib.parse import quote, unquote

from bridge.mcp.errors import ArgumentError, ToolError
from bridge.mcp.schema import always
from bridge.mcp.toolset import tool
from bridge.recording.recorded import Reader
from bridge.store.database import Recorded
from bridge.store.errors import LEFT_OUT, StoreError, left_out
from bridge.text import iso, iso_of, quoted
from bridge.tools.entries import (
    FIELDS,
    NOTICE,
    RESULT_BYTES,
    Entry,
    brief,
    json_size,
    nonempty,
    sanitized,
)
from bridge.tools.link import RoomLink, RoomName, connection_in, failed
from bridge.tools.paging import (
    ENVELOPE_BYTES,
    OLDEST,
    Contains,
    Kinds,
    Limit,
    MaxBytes,
    Page,
    PatternText,
    Sender,
    Since,
    TimeSlice,
    event_filter,
    no_cursor,
    position_of,
)
from bridge.xmpp.model import events, faults
from bridge.xmpp.model.events import Event
from bridge.xmpp.model.filter import EventFilter
from bridge.xmpp.model.journal import Record
from bridge.xmpp.muc import archive

BUDGET_SECONDS = 25.0
"""For one page: clients give up on a call after a minute, and a search can be gone on with."""

MARK = "archive:"
"""How the archive's cursors begin, which the journal's cannot."""


History: TypeAlias = Annotated[
    dict[str, object],
    always(entries=Annotated[list[Entry], FIELDS], next=str, more=bool),
]
"""A page of what happened, oldest first."""


@tool("xmppHistory", title="What happened in the XMPP room", read_only=True)
async def xmpp_history(
    link: RoomLink,
    /,
    since: Since = None,
    limit: Limit = 50,
    from_: Sender = None,
    contains: Contains = None,
    pattern: PatternText = None,
    kinds: Kinds = None,
    before: Annotated[str | None, "until this time"] = None,
    after: Annotated[str | None, "from this time on"] = None,
    archive: Annotated[bool, "of the room (XEP-0313)"] = False,
    detail: Annotated[Literal["brief", "full"], "full has ids and JIDs"] = "brief",
    max_bytes: MaxBytes = RESULT_BYTES,
    room: RoomName = None,
) -> History:
    r"""To see what happened in the room: messages, who came and left, what went wrong.

    Oldest first; without `since` or `after` the newest. To follow, give `next` as `since`; `gap`
    says what is lost, `more`: after `next`, or before these. `after` and `before` reach what was
    recorded before the bridge came. What the bridge said is one entry, `heard` once it came back.
    Without a body: `encrypted` or `payload` (elements). Steps of connecting: if `kinds` has
    connection. `archive: true`: what the room has kept. Times: 2026-01-31T12:00:00Z. \u{...} is a
    hidden character.
    """
    # The archive knows senders by more than their messages tell: it is asked for them.
    sender = None if archive else from_
    wanted = await event_filter(kinds=kinds, sender=sender, contains=contains, pattern=pattern)
    if detail == "brief" and not archive:
        unheard = {id_ for one in link.participant.memberships for id_ in one.room.unheard}
        wanted = replace(wanted, unheard=unheard)
    warnings = link.warnings()
    page: Page[Entry] = Page(limit, max_bytes - ENVELOPE_BYTES - json_size(warnings))
    asked = _Asked(
        link=link,
        room=room,
        page=page,
        wanted=wanted,
        shorten=brief if detail == "brief" else dict,
        most=page.bytes_left,
        since=since,
        start=_time("after", after),
        end=_time("before", before),
    )
    oldest, recorded = None, False
    if archive:
        page.next, page.more = await _read_archive(asked, limit, from_)
    elif (reader := _store(asked)) is not None:
        recorded = True
        try:
            oldest, unreadable = await _read_store(asked, reader)
        except StoreError as error:
            raise ToolError(
                f"What was recorded cannot be read: {error}.",
                condition="internal-server-error",
                hint="xmppStatus has warnings of the store. For what the bridge itself remembers, "
                "leave out `after`, `before` and `since`.",
            ) from error
        if unreadable:  # in place of what the recorder found damaged
            warnings = [one for one in warnings if not one.endswith(LEFT_OUT)]
            warnings.append(left_out(unreadable))
    else:
        oldest = await _read_journal(asked)
    around = {
        "gap": page.gap,
        "oldest": oldest,
        "notice": NOTICE if page.entries else None,
        # What is not being recorded, and what cannot be read, is in no page of the store.
        "warnings": warnings if recorded else None,
    }
    return {"entries": page.entries, "next": page.next, "more": page.more} | nonempty(around)


class _Asked(NamedTuple):
    """What a call of `xmpp_history` asks for."""

    link: RoomLink
    room: str | None
    page: Page[Entry]
    """Empty as yet."""
    wanted: EventFilter
    shorten: Callable[[Entry], Entry]
    most: int
    """Bytes of JSON in which an entry must fit."""
    since: str | None
    start: str | None
    """A time as entries have them."""
    end: str | None


async def _read_journal(asked: _Asked) -> str:
    """Fill the page with what happened from `start` until `end`, and return `oldest`.

    Oldest first: what came after `since`, or what there is from `start` on; without either, the
    newest. Raises `ArgumentError` where `since` is no cursor.
    """
    link, room, page, wanted, shorten, most, since, start, end = asked
    if (since or "").startswith(MARK):
        raise ArgumentError(
            "Cursors of the archive go with archive: true only.",
            condition="bad-request",
            hint="Add archive: true, or take a cursor from a result without it.",
        )
    journal, records = link.participant.journal, link.records(room)
    if since is None and start is not None:
        since = OLDEST
    last, _ = position_of(records, OLDEST if since is None else since)
    earlier = 0

    def show(record: Record) -> Entry | None:
        nonlocal earlier, last
        if start or end:
            at = iso(record.at)
            if at < (start or at):
                earlier = max(earlier, record.number)
                return None
            if at > (end or at):
                return None
            last = max(last, record.number)
        if not wanted.matches(record.event):
            return None
        return sanitized(shorten(journal.encode(record)), most)

    await page.read(records, since, show, lambda record: wanted.cost(record.event))
    if end is not None and not (page.more and since is not None):
        page.next = records.cursor_of(last)  # what came after `end` comes after the page
    if earlier and page.gap is not None and page.gap["to"] <= earlier:
        page.gap = None  # what is lost came before `start`
    return records.oldest


def _store(asked: _Asked) -> Reader | None:
    """Return what reads the store, if the bridge's memory does not reach as far as is asked for."""
    reader, since, time_asked = asked.link.recorded(), asked.since, asked.start or asked.end
    if reader is None or since is not None:
        return reader if reader is not None and reader.is_cursor(since or "") else None
    records = asked.link.records(asked.room)
    first = next(records.after(records.forgotten), None)
    return reader if time_asked and (first is None or time_asked < iso(first.at)) else None


async def _read_store(asked: _Asked, reader: Reader) -> tuple[str, int]:
    """Fill the page as `_read_journal` does, from the store, and behind it from memory.

    Returns how many rows of the store were left out, too.
    """
    link, room, page, wanted, shorten, most, since, start, end = asked
    participant = link.participant
    several = len(participant.memberships) > 1
    among = participant.memberships if room is None else [link.room(room)]
    unheard: set[str] = set()
    if wanted.unheard is not None:
        wanted = replace(wanted, unheard=unheard)
    time_slice = TimeSlice()

    def show(found: "tuple[Recorded, Event]") -> Entry | None:
        row, event = found
        sent = row.event.get("id", ""), row.event.get("from")
        if row.event.get("direction") == "out" and not (row.echoed or sent in came):
            unheard.add(sent[0])
        if not wanted.matches(event):
            return None
        entry: Entry = {"cursor": walk.cursor_of(row.id), "at": iso(row.at)}
        if row.room and several:
            entry["room"] = row.room
        entry |= row.event | {"source": "recorded"}
        if not row.shared and row.observer.run != participant.journal.numbering.epoch:
            entry["observer"] = str(row.observer)
        return sanitized(shorten(entry), most)

    def in_time(record: Record) -> bool:
        at = iso(record.at)
        return (start or at) <= at <= (end or at)

    backward = since is None and start is None
    begun = reader.walk(
        [one.name for one in among],
        wanted,
        since=since,
        start=start,
        end=end,
        backward=backward,
        connection=room is None,
    )
    try:
        walk = await begun
    except ValueError as error:
        raise no_cursor(error) from error
    records = link.records(room)
    behind = () if walk.unwritten is None else records.after(walk.unwritten - 1)
    seen = [one for one in behind if await time_slice.run(in_time, one, 0)]
    came = walk.messages_of(seen)
    async for row in walk:
        event = walk.record(row).event
        entry = await time_slice.run(show, (row, event), wanted.cost(event))
        page.more = entry is not None and not page.add(entry)
        if page.more:
            break
    page.more = page.more or walk.more
    if backward:
        page.entries.reverse()
    if walk.gap is not None and not (backward and page.more):
        page.gap = {"from": walk.gap.first, "to": walk.gap.last, "reason": walk.gap.reason}
    page.next = walk.next
    if seen and not page.more:
        missing = await walk.unrecorded(seen, records.numbering.epoch)
        await _add_unrecorded(asked, missing, seen[-1].number)
    return walk.oldest, walk.unreadable


async def _add_unrecorded(asked: _Asked, records: "list[Record]", last: int) -> None:
    """Add to the page what the store does not have of what was seen up to the number `last`.

    Once an entry was added, `next` is a place in the bridge's memory, which goes on from there.
    """
    page, wanted, journal = asked.page, asked.wanted, asked.link.participant.journal
    time_slice, told = TimeSlice(), False
    for record in records:
        if await time_slice.run(wanted.matches, record.event, wanted.cost(record.event)):
            entry = sanitized(asked.shorten(journal.encode(record)), asked.most)
            page.more = not page.add(entry)
            if page.more:
                last = record.number - 1
                break
            told = True
    if told:
        page.next = journal.cursor_of(last)


async def _read_archive(asked: _Asked, limit: int, sender: str | None) -> tuple[str, bool]:
    """Fill the page with what the room has archived, and return `next` and `more`.

    Oldest first: what came after the cursor `since` or from the time `start` on; without either,
    the newest. The page has room for `limit` entries at most. Raises `ToolError`, and
    `ArgumentError` for what no archive can be asked.
    """
    # Deferred, as all that speaks XMPP is, until the first answer has gone out.
    link, room, page, wanted, shorten, most, since, start, end = asked
    membership = link.room(room)
    connection_in(membership)
    jid = membership.name
    position = _position(since)
    newest = since is None and start is None
    if sender is not None and "@" not in sender:
        sender = f"{jid}/{sender}"
    try:
        query = archive.ArchiveQuery(
            start=start, end=end, after=position, before="" if newest else None, sender=sender
        )
    except ValueError as error:
        raise ArgumentError(
            f"The archive cannot be asked for that: {error}.",
            condition="bad-request",
            hint="`from` is a nickname or a JID; `after` and `before` are times.",
        ) from error
    time_slice = TimeSlice()

    async def keep(result: archive.ArchiveResult) -> bool | None:
        exact: Entry = {}
        for event in result.events:
            if await time_slice.run(wanted.matches, event, wanted.cost(event)):
                exact |= events.encode(event)
        if not exact:
            return None
        at = iso_of(result.at or "") or iso(time.time())
        entry: Entry = {"cursor": _cursor(result.id), "at": at}
        if len(link.participant.memberships) > 1:
            entry["room"] = jid
        entry |= exact | {"source": "archive"}
        if result.jid is not None:
            entry["jid"] = result.jid
        return page.add(sanitized(shorten(entry), most))

    try:
        searched = await membership.archive.search(query, keep, limit=limit, seconds=BUDGET_SECONDS)
    except archive.ArchiveError as error:
        raise failed(error.fault(jid)) from error
    except faults.ConnectionFailedError as ended:
        raise failed(
            ended.fault, "The connection ended before the archive had answered:"
        ) from ended
    if not query.backward:
        return _cursor(searched.next_id or ""), searched.more
    page.entries.reverse()
    newest_seen = str(page.entries[-1]["cursor"]) if page.entries else MARK
    return newest_seen, searched.more


def _cursor(id_: str) -> str:
    """Return the cursor after what the archive has under this id, which is a stranger's text."""
    return MARK + quote(id_, safe="/:=+@,;")


def _position(cursor: str | None) -> str | None:
    """Return the archive's id in a cursor of the archive."""
    if cursor in {None, OLDEST}:
        return None
    if not cursor.startswith(MARK):
        raise ArgumentError(
            "since is a place in the bridge's own memory, and the archive has its own places.",
            condition="bad-request",
            hint="With archive: true, take `since` from results of archive: true, or give a "
            "time in `after`.",
        )
    return unquote(cursor.removeprefix(MARK)) or None


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
