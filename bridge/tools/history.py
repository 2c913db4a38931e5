"""Looking back: what happened in the room, from the bridge's memory or the room's archive."""

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote, unquote

from bridge.mcp.schema import ABSENT_IF_NONE
from bridge.mcp.toolset import ArgumentError, tool
from bridge.text import iso, iso_of, quoted
from bridge.tools.entries import FIELDS, NOTICE, RESULT_BYTES, Entry, sanitized
from bridge.tools.link import RoomLink, RoomName, connection_in, failed
from bridge.tools.paging import (
    ENVELOPE_BYTES,
    Contains,
    Kinds,
    Limit,
    LostEntries,
    MaxBytes,
    Page,
    PatternText,
    Sender,
    Since,
    TimeSlice,
    event_filter,
)

if TYPE_CHECKING:
    from bridge.xmpp.filter import EventFilter

BUDGET_SECONDS = 25.0
"""For one page: clients give up on a call after a minute, and a search can be gone on with."""

MARK = "archive:"
"""How the archive's cursors begin, which the journal's cannot."""


@dataclass(eq=False)
class History:
    """A page of what happened, oldest first."""

    entries: Annotated[list[Entry], FIELDS]
    next: Annotated[str, "as `since` of the next call, gives what comes after this page"]
    gap: Annotated[LostEntries | None, "what before this page is lost"]
    more: Annotated[bool, "there is more: after `next`, or without `since` before this page"]
    oldest: Annotated[
        str | None, ABSENT_IF_NONE, "as `since`, gives everything the bridge still has"
    ] = None
    notice: str = NOTICE


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
    archive: Annotated[bool, "ask the room's own archive (XEP-0313) instead"] = False,
    before: Annotated[str | None, "with archive: only what was said until this time"] = None,
    after: Annotated[str | None, "with archive: only what was said from this time on"] = None,
    max_bytes: MaxBytes = RESULT_BYTES,
    room: RoomName = None,
) -> History:
    """Look back at what happened in the room, oldest first: messages and everything else.

    Kinds: message (ours too, going out and coming back), join, leave (with reason and status
    codes), nick, role (role, affiliation, show or status text changed), subject, config, error
    (what the room refused), connection (how the bridge got in or lost its way), gap (a time when
    nothing could be seen). Without `since` the newest entries. To follow what happens, give the
    `next` of the last call as `since`: nothing is told twice, and what is lost is said in `gap`.
    With `archive: true`, what the room itself has kept, also from before the bridge came: the
    newest, or from the time `after` on, page by page with `since`; cursors of the archive are its
    own. Times are ISO 8601, such as 2026-01-31T12:00:00Z. With `room` only what happened in that
    room, not to the connection; the archive is that of `room` or else of the default room.
    """
    journal, records = link.participant.journal, link.records(room)
    page: Page[Entry] = Page(limit, max_bytes - ENVELOPE_BYTES)
    most = page.bytes_left
    if archive:
        # The archive knows senders by more than their messages tell: it is asked for them.
        wanted = await event_filter(kinds=kinds, sender=None, contains=contains, pattern=pattern)
        span = {"since": since, "after": after, "before": before}
        next_, more = await _read_archive(link, room, page, limit, wanted, **span, sender=from_)
        return History(page.entries, next_, None, more)
    _only_of_the_journal(since, before, after)
    wanted = await event_filter(kinds=kinds, sender=from_, contains=contains, pattern=pattern)
    await page.read(
        records,
        since,
        lambda record: (
            sanitized(journal.encode(record), most) if wanted.matches(record.event) else None
        ),
        lambda record: wanted.cost(record.event),
    )
    return History(page.entries, page.next, page.gap, page.more, records.oldest)


def _only_of_the_journal(since: str | None, before: str | None, after: str | None) -> None:
    if before is not None or after is not None or (since or "").startswith(MARK):
        raise ArgumentError(
            "before, after and cursors of the archive go with archive: true only.",
            condition="bad-request",
            hint="Add archive: true, or leave them out and follow the cursors in `next`.",
        )


async def _read_archive(
    link: RoomLink,
    room: str | None,
    page: Page[Entry],
    limit: int,
    wanted: "EventFilter",
    *,
    since: str | None,
    after: str | None,
    before: str | None,
    sender: str | None,
) -> tuple[str, bool]:
    """Fill the empty `page` with what `room` has archived, and return `next` and `more`.

    Oldest first: what came after the cursor `since` or from the time `after` on; without either,
    the newest. `page` has room for `limit` entries at most. Raises `ToolError`, and
    `ArgumentError` for what no archive can be asked.
    """
    # Deferred, as all that speaks XMPP is, until the first answer has gone out.
    from bridge.xmpp import archive, events, faults

    membership = link.room(room)
    connection_in(membership)
    jid = membership.name
    start, end, position = _time("after", after), _time("before", before), _position(since)
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
    time_slice, most = TimeSlice(), page.bytes_left

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
        return page.add(sanitized(entry, most))

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
    if cursor is None:
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
