"""Who is in the room."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

from bridge.escaping import visible
from bridge.mcp.schema import Bounds
from bridge.mcp.toolset import tool
from bridge.tools.entries import NOTICE, RESULT_BYTES, OccupantEntry, json_size, occupant_entry
from bridge.tools.link import RoomLink, not_in_room
from bridge.tools.paging import Page
from bridge.tools.targets import nobody

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bridge.xmpp.room import Occupant


OCCUPANT_BYTES = range(600, 2_000)
"""Of JSON, for one of them: the share of each, so that nobody hides the others behind a long status
text, and no less than what most have, nor more than is of use."""


@dataclass(eq=False)
class Occupants:
    """Who is in the room."""

    room: str | None
    occupants: list[OccupantEntry]
    count: Annotated[int, "how many there are"]
    more: Annotated[bool, "some did not fit here; ask for one by nickname"]
    cursor: Annotated[str, "as `since`, gives what happened after this"]
    notice: str = NOTICE


@tool("xmppOccupants", title="Who is in the XMPP room", read_only=True)
def xmpp_occupants(
    link: RoomLink,
    /,
    nickname: Annotated[str | None, Bounds(min_length=1, max_length=1023), "only this one"] = None,
) -> Occupants:
    """Tell who is in the room now, with role, affiliation, show, status text, and since when.

    `self` marks the bridge itself. `jid` is the real JID, null where the room hides it. A bot
    that is not in this list hears nothing; one without voice (role visitor) in a moderated room
    is not heard. Fails when the bridge is not in the room, with the reason.
    """
    room = link.room()
    status = room.status()
    if not status.connected:
        raise not_in_room(room.name, status)
    here = status.occupants
    if nickname is not None:
        here = tuple(one for one in here if nickname in {one.nickname, visible(one.nickname)})
        if not here:
            raise nobody(link, nickname, "Write the nickname as it stands here; case matters.")
    return describe_occupants(link, here)


def describe_occupants(link: RoomLink, here: "Sequence[Occupant]") -> Occupants:
    """Return who is `here`, for the tool and for the resource."""
    participant = link.participant
    told = Occupants(
        room=participant.room_jid or None,
        occupants=[],
        count=len(here),
        more=False,
        cursor=participant.journal.cursor,
    )
    room = RESULT_BYTES - json_size(told)
    page: Page[OccupantEntry] = Page(room=room)
    share = room // max(len(here), 1) - len(", ")
    most = min(max(share, OCCUPANT_BYTES.start), OCCUPANT_BYTES.stop)
    fitting = all(page.add(occupant_entry(one, most)) for one in here)
    return replace(told, occupants=page.entries, more=not fitting)
