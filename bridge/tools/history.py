"""Looking back: what happened in the room, from the bridge's memory or the room's archive."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from bridge.mcp.schema import ABSENT_IF_NONE
from bridge.mcp.toolset import ArgumentError, tool
from bridge.tools.archive import MARK, read
from bridge.tools.entries import FIELDS, NOTICE, RESULT_BYTES, Entry, sanitized
from bridge.tools.link import RoomLink, RoomName
from bridge.tools.paging import (
    ENVELOPE_BYTES,
    Contains,
    Gap,
    Kinds,
    Limit,
    MaxBytes,
    Page,
    PatternText,
    Sender,
    Since,
    event_filter,
)

if TYPE_CHECKING:
    from bridge.xmpp.journal import Record


@dataclass(eq=False)
class History:
    """A page of what happened, oldest first."""

    entries: Annotated[list[Entry], FIELDS]
    next: Annotated[str, "as `since` of the next call, gives what comes after this page"]
    gap: Annotated[Gap | None, "what before this page is lost"]
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
    most = page.room
    if archive:
        # The archive knows senders by more than their messages tell.
        wanted = await event_filter(kinds=kinds, sender=None, contains=contains, pattern=pattern)
        span = {"since": since, "after": after, "before": before}
        next_, more = await read(link, room, page, limit, wanted, **span, sender=from_)
        return History(page.entries, next_, None, more)
    _only_of_the_journal(since, before, after)
    wanted = await event_filter(kinds=kinds, sender=from_, contains=contains, pattern=pattern)

    def show(record: "Record") -> Entry | None:
        if not wanted.matches(record.event):
            return None
        return sanitized(journal.encode(record), most)

    await page.read(records, since, show, lambda record: wanted.cost(record.event))
    return History(page.entries, page.next, page.gap, page.more, records.oldest)


def _only_of_the_journal(since: str | None, before: str | None, after: str | None) -> None:
    if before is not None or after is not None or (since or "").startswith(MARK):
        raise ArgumentError(
            "before, after and cursors of the archive go with archive: true only.",
            condition="bad-request",
            hint="Add archive: true, or leave them out and follow the cursors in `next`.",
        )
