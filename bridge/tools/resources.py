"""What can be read and watched without calling a tool: the status, the people, the talk."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bridge.mcp.toolset import resource
from bridge.tools.basics import Status, describe_status
from bridge.tools.entries import NOTICE, RESULT_BYTES, Entry, json_size, sanitized
from bridge.tools.link import RoomLink
from bridge.tools.occupants import Occupants, describe_occupants
from bridge.tools.paging import Page
from bridge.tools.setup import Setup

if TYPE_CHECKING:
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


@resource(MESSAGES, title="Recent messages")
def messages(link: RoomLink, /) -> Messages:
    """What was said last in the XMPP room, oldest first, as far as a page holds it."""
    from bridge.xmpp.events import MessageReceived

    participant = link.participant
    journal, room = participant.journal, participant.room_jid
    told = Messages(room or None, [], journal.cursor)
    page: Page[Entry] = Page(room=RESULT_BYTES - json_size(told))
    most = page.room
    for record in reversed(journal.of(room)):
        match record.event:
            case MessageReceived(payload=()):
                if not page.add(sanitized(journal.encode(record), most)):
                    break
    return replace(told, entries=page.entries[::-1])


def changed_by(record: "Record", default: str) -> tuple[str, ...]:
    """Return the addresses of what an event changed; `default` is the default room.

    In another room it changes the status alone, and what is of the connection changes every room.
    """
    from bridge.xmpp import events

    of_default = record.room in {"", default}
    match record.event:
        case events.MessageReceived(payload=payload) if payload:
            return ()
        case events.MessageReceived():
            return (STATUS, MESSAGES) if of_default else (STATUS,)
        case (
            events.OccupantJoined()
            | events.OccupantChanged()
            | events.OccupantLeft()
            | events.NicknameChanged()
            | events.ConnectionChanged()
        ):
            return (STATUS, OCCUPANTS) if of_default else (STATUS,)
        case events.MessageSent() | events.SendFailed():
            return ()
        case _:
            return (STATUS,)
