"""The resources, which can be read and watched without a tool: status, occupants and messages."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Annotated, TypeAlias

from bridge.mcp.toolset import Completes, resource
from bridge.tools.check import CurrentSettings
from bridge.tools.entries import NOTICE, RESULT_BYTES, Entry, brief, fit, json_size, nonempty
from bridge.tools.link import RoomLink
from bridge.tools.occupants import Occupants, occupants_of
from bridge.tools.paging import ENVELOPE_BYTES, Page
from bridge.tools.prompts import rooms
from bridge.tools.status import Status, describe_status
from bridge.xmpp.checks.evidence import is_signal
from bridge.xmpp.muc.membership import Membership

STATUS = "bridge://status"
OCCUPANTS = "bridge://room/occupants"
MESSAGES = "bridge://room/messages"


Messages: TypeAlias = dict[str, object]
"""What was said last: `entries`, the `room`, and the `cursor` from which to read on."""


@resource(STATUS, title="Status of the bridge")
def status(link: RoomLink, current: CurrentSettings, /) -> Status:
    """Whether the bridge is in its XMPP room now, and if not, why not: as in xmppStatus."""
    return describe_status(link, current)


@resource(OCCUPANTS, title="People in the room")
def occupants(link: RoomLink, /) -> Occupants:
    """Who is in the XMPP room now, with role, affiliation and status."""
    rooms = link.participant.memberships[:1]
    return occupants_of(link, [*rooms]) | _out_because(link, rooms)


@resource("bridge://room/{room}/occupants", title="People in one of several rooms")
def room_occupants(
    link: RoomLink, /, room: Annotated[str, "the room's JID", Completes(rooms)]
) -> Occupants:
    """Who is in this XMPP room now, with role, affiliation and status."""
    rooms = [link.room(room)]
    return occupants_of(link, rooms) | _out_because(link, rooms)


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


def _out_because(link: RoomLink, rooms: Sequence[Membership]) -> Entry:
    """Return `outBecause` if the bridge is not in the room, and so sees nothing there now."""
    status, name = link.participant.status(), ""
    for membership in rooms:
        status, name = membership.status(), membership.name
    fault = status.out_of(name)
    because = "" if status.connected else f"{fault.message} {fault.hint}"
    return nonempty({"outBecause": because, "notice": because and fault.quotes and NOTICE})


def _said_in(link: RoomLink, room: str) -> Messages:
    journal, records = link.participant.journal, link.records(room or None)
    around = nonempty({"room": room, "cursor": journal.cursor})
    around |= _out_because(link, [link.room(room)] if room else [])
    page: Page[Entry] = Page(size=RESULT_BYTES - ENVELOPE_BYTES - json_size(around))
    for record in reversed(records):
        if record.event.kind == "message":
            event = journal.encode(record)
            said = event["direction"] == "in" and "payload" not in event
            if said and not page.add(fit(brief(event), page.size)):
                break
    notice = nonempty({"notice": page.entries and NOTICE})
    return around | {"entries": page.entries[::-1]} | notice


def changed_by(event: Mapping[str, object], rooms: Sequence[str]) -> list[str]:
    """Return the URIs of the resources that an event, in its exact form, changed in these rooms.

    The default room is the first. What happens to the connection changes every room.
    """
    match event:
        case {"kind": "message", "direction": "out"}:
            return []
        case {"kind": "message", "payload": payload}:
            return [] if is_signal(payload) else [STATUS]  # its cursor has moved
        case {"kind": "message"}:
            of_default, of_room = MESSAGES, room_messages
        case {"kind": "join" | "leave" | "role" | "nick", "sender": _} | {"phase": _}:
            of_default, of_room = OCCUPANTS, room_occupants
        case _:
            return [STATUS]
    where = event.get("room")
    default = [of_default] if where in {None, *rooms[:1]} else []
    changed = (of_room.expanded({"room": room}) for room in rooms if where in {None, room})
    return [STATUS, *default, *chain(*changed)]
