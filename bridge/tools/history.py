"""Looking back: what happened in the room, from the bridge's memory or the room's archive."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from bridge.mcp.schema import ABSENT_IF_NONE
from bridge.mcp.toolset import tool
from bridge.tools.entries import NOTICE, Entry, entry_of
from bridge.tools.link import RoomLink
from bridge.tools.pages import Gap, Limit, Since, opened
from bridge.tools.sieve import Contains, Kinds, PatternText, Sender, Sieve, selected

if TYPE_CHECKING:
    from bridge.xmpp.journal import Record


@dataclass(frozen=True)
class History:
    """A page of what happened, oldest first."""

    entries: list[Entry]
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
) -> History:
    """Look back at what happened in the room, oldest first: messages and everything else.

    Kinds: message (ours too, going out and coming back), join, leave (with reason and status
    codes), nick, role (role, affiliation, show or status text changed), subject, config, error
    (what the room refused), connection (how the bridge got in or lost its way), gap (a time when
    nothing could be seen). Without `since` the newest entries. To follow what happens, give the
    `next` of the last call as `since`: nothing is told twice, and what is lost is said in `gap`.
    """
    journal = link.participant.journal
    selection = await selected(kinds=kinds, sender=from_, contains=contains, pattern=pattern)
    sieve = Sieve(selection)

    async def show(record: "Record") -> Entry | None:
        return entry_of(record, journal) if await sieve.takes(record.event) else None

    page = await opened(journal, since, limit, show, sieve.budget)
    return History(*page, oldest=journal.oldest)
