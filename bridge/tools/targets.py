"""Whom a tool is to ask: a word, a nickname or a JID, as agents write them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bridge.mcp.toolset import ToolError
from bridge.text import quoted
from bridge.tools.entries import noticed
from bridge.tools.link import InRoom, RoomLink, connection_in

if TYPE_CHECKING:
    from bridge.xmpp.iq_errors import TargetKind

MAX_TARGET_CHARACTERS = 3071
"""The longest JID: three parts of 1,023 bytes with `@` and `/` between (RFC 7622, section 3)."""

MAX_NAMED = 20
"""Occupants that are named when somebody is not found; the rest are counted."""

MAX_NAME_CHARACTERS = 60
"""Of a nickname in a sentence."""


def find(link: RoomLink, target: str, name: str | None = None) -> tuple["TargetKind", str]:
    """Return what kind of address `target` is, and the address, prepared.

    The words and the nicknames are those of the room of this name, or else of the default room.
    The words come first, so that nobody can stand before the server by a nickname; then what has
    an `@` and is a JID, for the same reason; then nicknames, then what else is a JID and no mere
    word, or our own server (`localhost` has no dot). Raises `ToolError` for what is none of these,
    and when not in the room.
    """
    from bridge.xmpp import stanzas
    from bridge.xmpp.iq_errors import TargetKind

    membership = link.room(name)
    connection, own, room = connection_in(membership), membership.occupant, membership.jid
    domain = stanzas.prepared(connection.place.domain) or connection.place.domain
    match target:
        case "server":
            return TargetKind.SERVER, domain
        case "room":
            return TargetKind.ROOM, room
        case "self":
            return TargetKind.SELF, own
    jid = stanzas.prepared(target)
    named = stanzas.occupant_jid(room, target)
    present = {one.jid for one in membership.status().occupants}
    if not (jid and "@" in target):
        if named in present:
            assert named is not None
            return (TargetKind.SELF if named == own else TargetKind.OCCUPANT), named
        if not (jid and (jid == domain or "." in target or "/" in target)):
            raise nobody(
                [membership],
                target,
                "Give server, room, self, a nickname as it is written here, or a full JID.",
            )
    assert jid is not None
    bare, _, resource = jid.partition("/")
    for one in link.participant.memberships:
        if bare == one.jid:
            if jid == one.occupant:
                return TargetKind.SELF, jid
            return (TargetKind.OCCUPANT if resource else TargetKind.ROOM), jid
    if jid == domain:
        return TargetKind.SERVER, jid
    return (TargetKind.ACCOUNT if "@" in bare else TargetKind.DOMAIN), jid


def nobody(rooms: Sequence[InRoom], name: str, hint: str) -> ToolError:
    """Return what the caller is told who asks for somebody that is in none of the rooms."""
    names = sorted({one.nickname for room in rooms for one in room.status().occupants})
    where = "room" if len(rooms) == 1 else "rooms"
    listed = ", ".join(quoted(one, MAX_NAME_CHARACTERS) for one in names[:MAX_NAMED])
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return ToolError(
        noticed(
            f"Nobody in the {where} is called {quoted(name, MAX_NAME_CHARACTERS)}. "
            f"In the {where}: {listed}{more}."
        ),
        condition="item-not-found",
        hint=hint,
    )
