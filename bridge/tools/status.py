"""The tools to call first: whether the bridge answers, and whether it is in its rooms."""

from typing import Annotated, TypeAlias

from bridge.mcp.errors import ArgumentError
from bridge.mcp.schema import always
from bridge.mcp.toolset import tool
from bridge.text import iso
from bridge.tools.check import CurrentSettings
from bridge.tools.entries import NOTICE, RESULT_BYTES, fit, json_size, nonempty
from bridge.tools.link import RoomLink
from bridge.xmpp.model.room import RoomStatus

ROOM_BYTES = 148
"""The least bytes of JSON for each of several rooms in a status: its phase, the condition of its
fault and the start of its JID. Fifty rooms leave 1,600 bytes, to which the rest can be cut."""

Status: TypeAlias = Annotated[
    dict[str, object],
    always(
        connected=bool,
        room=str | None,
        nickname=str | None,
        last_incoming=dict[str, object] | None,
        phase=str,
        since=str,
        occupants=int,
        cursor=str,
    ),
]
"""Whether the bridge is in its rooms, and what is known of them."""


@tool(title="Echo", read_only=True, open_world=False)
def echo(
    message: Annotated[str | None, "after `Echo: `"] = None,
    text: Annotated[str | None, "as it is"] = None,
) -> str:
    """Test the bridge itself: send back message or text, not both."""
    # Not in the schema: clients drop a tool whose schema has `oneOf` at its root, in silence.
    if (message is None) == (text is None):
        raise ArgumentError(
            "echo takes message or text, and exactly one of them.",
            condition="bad-request",
            hint="Call it with message alone, or with text alone.",
        )
    return f"Echo: {message}" if text is None else text


@tool("xmppStatus", title="XMPP status", read_only=True, open_world=False)
def xmpp_status(link: RoomLink, current: CurrentSettings, /) -> Status:
    """Use this first: it says whether the bridge is in its XMPP room, and if not, why not.

    `phase` decides: joined, a step on the way, waiting, or failed. `lastError.hint` names the
    setting to change, `problems` are of the settings. `self.voice` false: nobody gets what the
    bridge says. `roomCreated`: joining made the room, often a typo. Of several, `rooms` has each.
    """
    return describe_status(link, current)


def describe_status(link: RoomLink, current: CurrentSettings) -> Status:
    """Return the status, for the tool and for the resource."""
    participant, configuration = link.participant, current.configuration
    rooms = {membership.name: membership.status() for membership in participant.memberships}
    status, several = participant.status(), len(rooms) > 1
    candidates = [{"path": it.path, "reason": it.reason} for it in configuration.candidates]
    problems = list(map(str, (*configuration.problems, *current.problems)))
    last = max(
        ((room.last_incoming.at, name) for name, room in rooms.items() if room.last_incoming),
        default=None,
    )
    incoming = None if last is None else _incoming(rooms[last[1]], last[1] if several else None)
    quotes = incoming is not None or any(
        room.subject or room.similar_rooms or (room.last_error and room.last_error.fault.quotes)
        for room in rooms.values()
    )
    result: Status = {
        "connected": status.connected,
        "room": participant.room_jid or None,
        "nickname": status.nickname or None,
        "lastIncoming": incoming,
        "phase": status.phase.value,
        "since": iso(status.since),
        "occupants": len(status.occupants),
        "jid": status.jid,
        "service": status.service or None,
        "tls": status.tls and dict(vars(status.tls)),
        "sasl": status.sasl,
        "cursor": participant.journal.cursor,
    }
    if me := status.me:
        result["self"] = {"role": me.role, "affiliation": me.affiliation, "voice": me.voice}
        if status.moderated is not None:
            result["moderated"] = status.moderated
    result |= nonempty(
        {
            "subject": status.subject,
            "attempt": status.attempt or None,
            "nextAttemptAt": status.next_attempt_at and iso(status.next_attempt_at),
            "lastError": _last_error(status),
            "selfPingMs": status.self_ping_ms,
            "roomCreated": status.room_created,
            "problems": problems,
            "warnings": [*configuration.warnings, *link.warnings(), *link.room_warnings()],
            "envFile": configuration.env_file,
            "envCandidates": candidates if problems or not status.connected else [],
            "notice": NOTICE if quotes else None,
        }
    )
    if not several:
        return fit(result)
    fitting = fit(result, RESULT_BYTES - ROOM_BYTES * len(rooms))
    left = RESULT_BYTES - json_size(fitting | {"rooms": []})
    entries = [_room_entry(name, room) for name, room in rooms.items()]
    if json_size(entries) > left:  # the default room's fault has its text outside `rooms`
        entries = [_room_entry(name, room, short=True) for name, room in rooms.items()]
    share = left // len(rooms) - len(", ")
    return fitting | {"rooms": [fit(entry, share) for entry in entries]}


def _incoming(status: RoomStatus, room: str | None) -> dict[str, object]:
    """Return the last message of another occupant, and `room` where there are several."""
    assert status.last_incoming is not None
    message, at = status.last_incoming.message, status.last_incoming.at
    entry: dict[str, object] = {
        "body": message.body,
        "sender": message.sender,
        "from": message.from_,
        "type": message.type,
        "receivedAt": iso(at),
    }
    return entry | nonempty({"room": room})


def _room_entry(name: str, status: RoomStatus, *, short: bool = False) -> dict[str, object]:
    """Return the status of one of several rooms; if `short`, its fault has only the condition."""
    entry: dict[str, object] = {"room": name, "phase": status.phase.value}
    error = _last_error(status)
    if short and error:
        return entry | {"lastError": {"condition": error["condition"]}}
    more = {"nickname": status.nickname, "occupants": len(status.occupants), "lastError": error}
    return entry | nonempty(more)


def _last_error(status: RoomStatus) -> dict[str, object]:
    """Return why the bridge was last put, or kept, out of a room; empty if it never was."""
    if status.last_error is None:
        return {}
    fault = status.last_error.fault
    return {
        "condition": fault.condition,
        "message": fault.message,
        "hint": fault.hint,
        "at": iso(status.last_error.at),
        "retry": status.outlook,
    }
