"""Looking closer: the stanzas themselves, both ways."""

from dataclasses import dataclass
from typing import Annotated, Literal

from bridge.mcp.schema import Bounds
from bridge.mcp.toolset import tool
from bridge.text import iso
from bridge.tools.entries import NOTICE, RESULT_BYTES, Escaped, OptionalFlag, sanitized
from bridge.tools.link import RoomLink, RoomName
from bridge.tools.paging import (
    ENVELOPE_BYTES,
    MAX_FILTER_CHARACTERS,
    Limit,
    LostEntries,
    MaxBytes,
    Page,
    Since,
)


@dataclass(eq=False)
class TraceEntry:
    """One stanza, or another piece of the stream."""

    cursor: Annotated[str, "its position: `since` this gives what came after"]
    at: str
    direction: Literal["in", "out"]
    bytes: Annotated[int, "of the XML in UTF-8"]
    connection: Annotated[str, "1 for the first since the bridge was started, and so on"]
    xml: Annotated[str, "secrets are replaced by [redacted]"]
    truncated: OptionalFlag = None
    escaped: Escaped = None


@dataclass(eq=False)
class TracePage:
    """A page of what went over the wire, oldest first."""

    entries: list[TraceEntry]
    next: Annotated[str, "as `since` of the next call, gives what comes after this page"]
    gap: Annotated[LostEntries | None, "what before this page is lost"]
    more: Annotated[bool, "there is more: after `next`, or without `since` before this page"]
    oldest: Annotated[str, "as `since`, gives everything the bridge still has"]
    notice: str = NOTICE


@tool("xmppTrace", title="Stanzas on the wire", read_only=True, open_world=False)
async def xmpp_trace(
    link: RoomLink,
    /,
    since: Since = None,
    limit: Limit = 50,
    direction: Annotated[Literal["in", "out"] | None, "only what came in, or went out"] = None,
    contains: Annotated[
        str | None,
        Bounds(min_length=1, max_length=MAX_FILTER_CHARACTERS),
        "only with this text in the XML; case does not matter",
    ] = None,
    max_bytes: MaxBytes = RESULT_BYTES,
    room: RoomName = None,
) -> TracePage:
    """Show the raw XMPP stanzas that the bridge sent and received, oldest first, with their times.

    For what xmppHistory does not tell: how a login went (stream features, TLS, SASL, resource
    binding), what exactly a client sent, which extensions a message carries. Without `since` the
    newest; cursors are the same as those of xmppHistory, so both can be read side by side.
    Passwords and SASL exchanges are redacted. With `room` only stanzas from that room or to it.
    """
    # Deferred, since tools are listed before it is loaded.
    from bridge.xmpp import stanzas, trace

    kept = link.participant.trace
    page: Page[TraceEntry] = Page(limit, max_bytes - ENVELOPE_BYTES)
    most = page.bytes_left
    jid = None if room is None else link.room(room).jid
    wanted = (contains or "").casefold()

    def addresses(traced: trace.TracedStanza) -> set[str]:
        xml = traced.xml
        ends = [] if isinstance(xml, str) else [xml.get("from", ""), xml.get("to", "")]
        return {stanzas.prepared(one.partition("/")[0]) or "" for one in ends}

    def show(traced: trace.TracedStanza) -> TraceEntry | None:
        if direction not in {None, traced.direction}:
            return None
        if jid is not None and jid not in addresses(traced):
            return None
        xml = stanzas.xml_of(traced.xml)
        if wanted not in xml.casefold():
            return None
        entry = TraceEntry(
            cursor=kept.cursor_of(traced.number),
            at=iso(traced.at),
            direction=traced.direction,
            bytes=len(xml.encode("utf-8", "surrogatepass")),
            connection=traced.connection,
            xml=xml,
        )
        return sanitized(entry, most)

    await page.read(kept, since, show)
    return TracePage(page.entries, page.next, page.gap, page.more, kept.oldest)
