"""Who is in the room."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

from bridge.mcp.schema import ABSENT_IF_NONE, Bounds
from bridge.mcp.toolset import tool
from bridge.text import visible
from bridge.tools.entries import (
    NOTICE,
    RESULT_BYTES,
    OccupantEntry,
    OptionalFlag,
    json_size,
    occupant_entry,
    sanitized,
)
from bridge.tools.link import InRoom, RoomLink, RoomName, not_in_room
from bridge.tools.paging import Page
from bridge.tools.query import nobody

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bridge.xmpp.room import Occupant


OCCUPANT_BYTES = range(600, 2_000)
"""Of JSON, for one of them: the share of each, so that nobody hides the others behind a long status
text, and no less than what most have, nor more than is of use."""


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
    rooms = list(link.participant.memberships) if room is None else [asked]
    inside = [one for one in rooms if one.status().connected]
    if not inside:
        raise not_in_room(asked.name, asked.status())
    here = _here(inside)
    if nickname is not None:
        here = [one for one in here if nickname in {one[1].nickname, visible(one[1].nickname)}]
        if not here:
            raise nobody(inside, nickname, "Write the nickname as it stands here; case matters.")
    if len(rooms) == 1:
        return _listed(link, asked.name, here)
    return _listed(link, None, here, [one.name for one in rooms if one not in inside])


def describe_occupants(link: RoomLink, room: str | None = None) -> Occupants:
    """Return who is in the room of this name or else in the default room, for the resource."""
    rooms = [link.room(room)] if link.participant.memberships else []
    return _listed(link, rooms[0].name if rooms else None, _here(rooms))


def _here(rooms: "Sequence[InRoom]") -> "list[tuple[str, Occupant]]":
    """Return everybody in the rooms, each with the name of the room."""
    return [(room.name, one) for room in rooms for one in room.status().occupants]


def _listed(
    link: RoomLink,
    room: str | None,
    here: "Sequence[tuple[str, Occupant]]",
    not_in: "Sequence[str]" = (),
) -> Occupants:
    told = Occupants(
        room=room,
        occupants=[],
        count=len(here),
        more=False,
        cursor=link.participant.journal.cursor,
        not_in=[*not_in] or None,
    )
    told = sanitized(told, RESULT_BYTES // 2)  # so that the names of rooms leave room for people
    page: Page[OccupantEntry] = Page(room=RESULT_BYTES - json_size(told))
    share = page.room // max(len(here), 1) - len(", ")
    most = min(max(share, OCCUPANT_BYTES.start), OCCUPANT_BYTES.stop)
    fitting = all(
        page.add(occupant_entry(one, most, where if room is None else None)) for where, one in here
    )
    return replace(told, occupants=page.entries, more=not fitting)
