"""Whom a tool is to ask: a word, a nickname or a JID, as agents write them."""

from typing import TYPE_CHECKING

from bridge.escaping import quoted
from bridge.mcp.toolset import ToolError
from bridge.tools.entries import noticed
from bridge.tools.link import RoomLink, connection_in

if TYPE_CHECKING:
    from bridge.xmpp.answers import Whom

MAX_TARGET_CHARACTERS = 3071
"""The longest JID: three parts of 1,023 bytes with `@` and `/` between (RFC 7622, section 3)."""

MAX_NAMED = 20
"""Occupants that are named when somebody is not found; the rest are counted."""

MAX_NAME_CHARACTERS = 60
"""Of a nickname in a sentence."""


def find(link: RoomLink, target: str) -> tuple["Whom", str]:
    """Return what kind of address `target` is, and the address, prepared.

    The words come first, so that nobody can stand before the server by a nickname; then what has
    an `@` and is a JID, for the same reason; then nicknames, then what else is a JID and no mere
    word, or our own server (`localhost` has no dot). Raises `ToolError` for what is none of these,
    and when not in the room.
    """
    from bridge.xmpp import stanzas
    from bridge.xmpp.answers import Whom

    membership = link.room()
    connection, own = connection_in(membership), membership.occupant
    room = own.partition("/")[0]
    domain = stanzas.prepared(connection.place.domain) or connection.place.domain
    match target:
        case "server":
            return Whom.SERVER, domain
        case "room":
            return Whom.ROOM, room
        case "self":
            return Whom.SELF, own
    jid = stanzas.prepared(target)
    named = stanzas.occupant_jid(room, target)
    present = {one.jid for one in link.room().status().occupants}
    if not (jid and "@" in target):
        if named in present:
            assert named is not None
            return (Whom.SELF if named == own else Whom.OCCUPANT), named
        if not (jid and (jid == domain or "." in target or "/" in target)):
            raise nobody(
                link,
                target,
                "Give server, room, self, a nickname as it is written here, or a full JID.",
            )
    assert jid is not None
    bare, _, resource = jid.partition("/")
    if bare == room:
        if jid == own:
            return Whom.SELF, jid
        return (Whom.OCCUPANT if resource else Whom.ROOM), jid
    if jid == domain:
        return Whom.SERVER, jid
    return (Whom.ACCOUNT if "@" in bare else Whom.DOMAIN), jid


def nobody(link: RoomLink, name: str, hint: str) -> ToolError:
    """Return what the caller is told who asks for somebody that is not there."""
    names = sorted(one.nickname for one in link.room().status().occupants)
    listed = ", ".join(quoted(one, MAX_NAME_CHARACTERS) for one in names[:MAX_NAMED])
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return ToolError(
        noticed(
            f"Nobody in the room is called {quoted(name, MAX_NAME_CHARACTERS)}. "
            f"In the room: {listed}{more}."
        ),
        condition="item-not-found",
        hint=hint,
    )
