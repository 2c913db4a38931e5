"""The tool that shows the stanzas themselves, in both directions."""

from typing import Annotated, Literal, TypeAlias
from urllib.parse import unquote

from bridge.mcp.schema import Unlisted, always
from bridge.mcp.toolset import tool
from bridge.tools import paging
from bridge.tools.entries import RESULT_BYTES, fit
from bridge.tools.history import MARK
from bridge.tools.link import RoomLink, RoomName
from bridge.xmpp.link.trace import TracedStanza
from bridge.xmpp.muc import stanza_filter
from bridge.xmpp.muc.membership import Membership

NO_STANZA = (
    "This entry has no stanza: it is a step of the connection or a gap. For the stanzas after it, "
    "give its cursor as `since`."
)

LOST_STANZA = (
    "The stanza of this entry is not kept any more: the trace has the newest stanzas only."
)

TraceEntry: TypeAlias = Annotated[
    dict[str, object], always(cursor=str, at=str, direction=str, xml=str)
]
"""One stanza, or another piece of the stream."""

TracePage: TypeAlias = Annotated[
    dict[str, object], always(entries=list[TraceEntry], next=str, more=bool, oldest=str)
]
"""A page of what went over the wire, oldest first."""


@tool("xmppTrace", title="Stanzas on the wire", read_only=True, open_world=False)
async def xmpp_trace(
    link: RoomLink,
    /,
    since: paging.Since = None,
    of: Annotated[
        str | None, paging.CURSOR_BOUNDS, "an entry's cursor: only its own stanzas"
    ] = None,
    limit: paging.Limit = 50,
    from_: paging.Sender = None,
    direction: Literal["in", "out"] | None = None,
    contains: Annotated[
        str | None, Unlisted(min_length=1, max_length=paging.MAX_FILTER_CHARACTERS), "in the XML"
    ] = None,
    keepalives: bool = False,
    max_bytes: paging.MaxBytes = RESULT_BYTES,
    room: RoomName = None,
) -> TracePage:
    """To see the raw stanzas, without secrets, when entries do not say enough.

    `of`, an entry's cursor: what is really in that message; for what the bridge said, what went out
    and what came back. `from`: what a client sent. Without `since` the newest.
    """
    kept, memberships = link.participant.trace, link.participant.memberships
    numbers: set[int] | None = None
    why_none = LOST_STANZA
    if of is not None and of.startswith(MARK):
        id_ = unquote(of.removeprefix(MARK))
        numbers = stanza_filter.archived(kept, link.room(room).jid, id_)
    elif of is not None:
        record = link.event(of)
        numbers = stanza_filter.stanzas_of(record, [*kept])
        if record.event.kind in {"connection", "gap"}:
            numbers, why_none = set(), NO_STANZA
    hidden = set() if keepalives else stanza_filter.keepalives(kept)
    wanted = stanza_filter.StanzaFilter(
        direction=direction,
        room=None if room is None else link.room(room).jid,
        sender=from_,
        contains=contains,
        rooms={membership.jid for membership in memberships},
        own={name for membership in memberships for name in _names_in(membership)},
    )
    page: paging.Page[TraceEntry] = paging.Page(limit, max_bytes - paging.ENVELOPE_BYTES)

    def show(traced: TracedStanza) -> TraceEntry | None:
        number = traced.number
        left_out = number in hidden if numbers is None else number not in numbers
        if left_out or not wanted.matches(traced):
            return None
        return fit(stanza_filter.encode(traced, kept.cursor_of(number)), page.size)

    await page.read(kept, since, show)
    if of is not None:
        page.gap = None
    note = why_none if numbers == set() else None
    unknown = {} if page.entries or of is not None else link.misspelt(from_, room)
    return page.result(oldest=kept.oldest, note=note, **unknown)


def _names_in(membership: Membership) -> set[str]:
    """Return the JIDs and the nickname under which we are in a room."""
    status = membership.status()
    account = status.jid or ""
    return {membership.occupant, status.nickname, account, account.partition("/")[0]}
