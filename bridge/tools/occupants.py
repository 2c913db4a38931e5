"""Who is in the rooms."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

from bridge.mcp.schema import ABSENT_IF_NONE, Bounds
from bridge.mcp.toolset import ToolError, tool
from bridge.text import iso, quoted, visible
from bridge.tools.entries import (
    NOTICE,
    RESULT_BYTES,
    Escaped,
    OptionalFlag,
    json_size,
    noticed,
    sanitized,
)
from bridge.tools.link import MAX_NAME_CHARACTERS, RoomLink, RoomName, listed, not_in_room
from bridge.tools.paging import Page

if TYPE_CHECKING:
    from bridge.xmpp.membership import Membership
    from bridge.xmpp.room import Occupant

OCCUPANT_BYTES = range(600, 2_000)
"""Of JSON, for one of them: the share of each, so that nobody hides the others behind a long status
text, and no less than what most have, nor more than is of use."""


@dataclass(eq=False)
class OccupantEntry:
    """Somebody in the room."""

    nickname: str
    role: str
    affiliation: str
    show: str | None
    status: str | None
    jid: Annotated[str | None, "the real JID; null where the room hides it"]
    since: str
    self: Annotated[bool, "the bridge itself"]
    room: Annotated[str | None, ABSENT_IF_NONE, "where several rooms are listed"] = None
    truncated: OptionalFlag = None
    escaped: Escaped = None


@dataclass(eq=False)
class Occupants:
    """Who is in the room."""

    room: Annotated[str | None, "null: all of several rooms"]
    occupants: list[OccupantEntry]
    count: Annotated[int, "how many there are"]
    more: Annotated[bool, "some did not fit here; ask for one by nickname"]
    cursor: Annotated[str, "as `since`, gives what happened after this"]
    not_in: Annotated[
        list[str] | None, ABSENT_IF_NONE, "the rooms in which the bridge itself is not"
    ] = None
    truncated: OptionalFlag = None
    notice: str = NOTICE


@tool("xmppOccupants", title="Who is in the XMPP room", read_only=True)
def xmpp_occupants(
    link: RoomLink,
    /,
    nickname: Annotated[str | None, Bounds(min_length=1, max_length=1023), "only this one"] = None,
    room: RoomName = None,
) -> Occupants:
    """Tell who is in the room now, with role, affiliation, show, status text, and since when.

    `self` marks the bridge itself. `jid` is the real JID, null where the room hides it. A bot
    that is not in this list hears nothing; one without voice (role visitor) in a moderated room
    is not heard. Fails when the bridge is not in the room, with the reason. Where it has several
    rooms, all are listed unless `room` names one, and each entry says its `room`.
    """
    asked = link.room(room)
    rooms = [*link.participant.memberships] if room is None else [asked]
    inside = [one for one in rooms if one.status().connected]
    if not inside:
        raise not_in_room(asked.name, asked.status())
    page = occupants_of(link, rooms, nickname)
    if nickname is not None and not page.count:
        raise nobody(inside, nickname, "Write the nickname as it stands here; case matters.")
    return page


def occupants_of(
    link: RoomLink, rooms: "list[Membership]", nickname: str | None = None
) -> Occupants:
    """Return who is in these rooms, or only those of this nickname, as it is or as it is shown."""
    several = len(rooms) > 1
    inside = [one for one in rooms if one.status().connected]
    here = [
        (one, room.name if several else None)
        for room in inside
        for one in room.status().occupants
        if nickname is None or nickname in {one.nickname, visible(one.nickname)}
    ]
    result = Occupants(
        room=None if several or not rooms else rooms[0].name,
        occupants=[],
        count=len(here),
        more=False,
        cursor=link.participant.journal.cursor,
        not_in=[one.name for one in rooms if one not in inside] or None if several else None,
    )
    result = sanitized(
        result, RESULT_BYTES // 2
    )  # so that the names of rooms leave room for people
    page: Page[OccupantEntry] = Page(size=RESULT_BYTES - json_size(result))
    share = page.bytes_left // max(len(here), 1) - len(", ")
    most = min(max(share, OCCUPANT_BYTES.start), OCCUPANT_BYTES.stop)
    fitting = all(page.add(occupant_entry(one, most, name)) for one, name in here)
    return replace(result, occupants=page.entries, more=not fitting)


def occupant_entry(
    occupant: "Occupant", most: int = RESULT_BYTES, room: str | None = None
) -> OccupantEntry:
    """Return what `occupant` looks like to an agent, in `most` bytes of JSON; with its `room`."""
    exact = OccupantEntry(
        nickname=occupant.nickname,
        role=occupant.role,
        affiliation=occupant.affiliation,
        show=occupant.show,
        status=occupant.status,
        jid=occupant.real_jid,
        since=iso(occupant.since),
        self=occupant.own,
        room=room,
    )
    return sanitized(exact, most)


def nobody(rooms: "Sequence[Membership]", name: str, hint: str) -> ToolError:
    """Return the error for a nickname that is in none of the rooms."""
    names = sorted({one.nickname for room in rooms for one in room.status().occupants})
    where = "room" if len(rooms) == 1 else "rooms"
    return ToolError(
        noticed(
            f"Nobody in the {where} is called {quoted(name, MAX_NAME_CHARACTERS)}. "
            f"In the {where}: {listed(names)}."
        ),
        condition="item-not-found",
        hint=hint,
    )
