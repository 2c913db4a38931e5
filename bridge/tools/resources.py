"""What can be read and watched without calling a tool: the status, the people, the talk."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated

from bridge.mcp.toolset import Completes, resource
from bridge.settings.values import MAX_ROOMS
from bridge.tools.entries import NOTICE, RESULT_BYTES, Entry, json_size, sanitized
from bridge.tools.link import RoomLink
from bridge.tools.occupants import Occupants, describe_occupants
from bridge.tools.paging import Page
from bridge.tools.prompts import rooms
from bridge.tools.setup import Setup
from bridge.tools.status import Status, describe_status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bridge.xmpp.journal import Record

STATUS = "bridge://status"
OCCUPANTS = "bridge://room/occupants"
MESSAGES = "bridge://room/messages"


@dataclass(eq=False)
class Messages:
    """What was said last."""

    room: str | None
    entries: list[Entry]
    cursor: str
    notice: str = NOTICE


@resource(STATUS, title="Status of the bridge")
def status(link: RoomLink, setup: Setup, /) -> Status:
    """Whether the bridge is in its XMPP room now, and if not, why not; as xmppStatus tells it."""
    return describe_status(link, setup)


@resource(OCCUPANTS, title="People in the room")
def occupants(link: RoomLink, /) -> Occupants:
    """Who is in the XMPP room now, with role, affiliation and status."""
    return describe_occupants(link)


@resource("bridge://room/{room}/occupants", title="People in one of several rooms")
def room_occupants(
    link: RoomLink, /, room: Annotated[str, "the room's JID", Completes(rooms)]
) -> Occupants:
    """Who is in this XMPP room now, with role, affiliation and status."""
    return describe_occupants(link, room)


@resource(MESSAGES, title="Recent messages")
def messages(link: RoomLink, /) -> Messages:
    """What was said last in the XMPP room, oldest first, as far as a page holds it."""
    return _said_in(link, link.participant.room_jid)


@resource("bridge://room/{room}/messages", title="Recent messages in one of several rooms")
def room_messages(
    link: RoomLink, /, room: Annotated[str, "the room's JID", Completes(rooms)]
) -> Messages:
    """What was said last in this XMPP room, oldest first, as far as a page holds it."""
    return _said_in(link, room)


def _said_in(link: RoomLink, room: str) -> Messages:
    from bridge.xmpp.events import MessageReceived

    journal = link.participant.journal
    told = Messages(room or None, [], journal.cursor)
    page: Page[Entry] = Page(room=RESULT_BYTES - json_size(told))
    most = page.room
    for record in reversed(journal.of(room)):
        match record.event:
            case MessageReceived(payload=()):
                if not page.add(sanitized(journal.encode(record), most)):
                    break
    return replace(told, entries=page.entries[::-1])


def changed_by(record: "Record", rooms: "Sequence[str]") -> list[str]:
    """Return the URIs of what an event changed, of these rooms, the default room first.

    What happens to the connection changes every room.
    """
    from bridge.xmpp import events

    match record.event:
        case events.MessageReceived(payload=payload) if payload:
            return []
        case events.MessageReceived():
            of_default, of_room = MESSAGES, _uris_of_messages
        case (
            events.OccupantJoined()
            | events.OccupantChanged()
            | events.OccupantLeft()
            | events.NicknameChanged()
            | events.ConnectionChanged()
        ):
            of_default, of_room = OCCUPANTS, _uris_of_occupants
        case events.MessageSent() | events.SendFailed():
            return []
        case _:
            return [STATUS]
    changed = [one for one in rooms if record.room in {"", one}]
    default = [of_default] if record.room in {"", *rooms[:1]} else []
    return [STATUS, *default, *(uri for one in changed for uri in of_room(one))]


# Kept, since every message asks for them; quoting takes longer than reading the message.
_uris_of_messages = lru_cache(MAX_ROOMS)(room_messages.expanded)
_uris_of_occupants = lru_cache(MAX_ROOMS)(room_occupants.expanded)
