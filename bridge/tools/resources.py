"""What can be read and watched without calling a tool: the status, the people, the talk."""

from typing import TYPE_CHECKING

from bridge.frozen import dataclass
from bridge.mcp.resource import resource
from bridge.tools.basics import Status, describe_status
from bridge.tools.entries import NOTICE, Entry, entry_of
from bridge.tools.link import RoomLink
from bridge.tools.occupants import Occupants, describe_occupants
from bridge.tools.pages import Page
from bridge.tools.setup import Setup

if TYPE_CHECKING:
    from bridge.xmpp.events import Event

STATUS = "bridge://status"
OCCUPANTS = "bridge://room/occupants"
MESSAGES = "bridge://room/messages"

RECENT_MESSAGES = 50
"""How many messages `bridge://room/messages` holds at most, as far as they fit in a page."""


@dataclass(frozen=True)
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
    return describe_occupants(link, link.participant.status().occupants)


@resource(MESSAGES, title="Recent messages")
def messages(link: RoomLink, /) -> Messages:
    """What was said last in the XMPP room, oldest first."""
    from bridge.xmpp.events import MessageReceived

    participant = link.participant
    journal = participant.journal
    page: Page[Entry] = Page(RECENT_MESSAGES)
    for record in reversed(journal):
        if isinstance(record.event, MessageReceived) and not page.add(entry_of(record, journal)):
            break
    return Messages(participant.room_jid or None, page.entries[::-1], journal.cursor)


def changed_by(event: "Event") -> tuple[str, ...]:
    """Return the addresses of what `event` changed."""
    from bridge.xmpp import events

    match event:
        case events.MessageReceived():
            return STATUS, MESSAGES
        case (
            events.OccupantJoined()
            | events.OccupantChanged()
            | events.OccupantLeft()
            | events.NicknameChanged()
        ):
            return STATUS, OCCUPANTS
        case events.ConnectionChanged():
            return STATUS, OCCUPANTS
        case events.MessageSent() | events.SendFailed():
            return ()
        case _:
            return (STATUS,)
