"""The tools to begin with: does the bridge answer, and how do things stand in the rooms."""

from typing import Annotated, TypeAlias

from bridge.mcp.errors import ArgumentError
from bridge.mcp.schema import always
from bridge.mcp.toolset import tool
from bridge.text import iso
from bridge.tools.check import CurrentSettings
from bridge.tools.entries import NOTICE, RESULT_BYTES, fit, json_size, nonempty
from bridge.tools.link import RoomLink
from bridge.xmpp.model.room import LastIncoming, RoomStatus

ROOM_BYTES = 148
"""Of JSON, at least, for each of several rooms in a status: its phase, the condition of its fault
and the start of its JID. Fifty of them leave 1,600 bytes, into which the rest can be cut."""

DISPENSABLE = ("hint", "message", "retry", "at", "nickname", "occupants")
"""What is left out of such a room, the first of them first, where it would not fit otherwise."""

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
        jid=str | None,
        service=str | None,
        tls=dict[str, object] | None,
        sasl=str | None,
        cursor=str,
    ),
]
"""How things stand."""


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
    """Use this first: tell whether the bridge is in its XMPP room now, and if not, why not.

    Answers at once. `phase`: unconfigured, resolving, connecting, securing,
    authenticating, joining, joined, waiting (for the next attempt), failed or closed.
    `lastIncoming`: the last message from somebody else. Only where they say something:
    `lastError` (`hint` names the setting to change, `retry` says what happens next by itself),
    `problems` (of the settings), `warnings`, `self` (`voice`: whether the others get what the
    bridge says), `moderated`, `roomCreated` (joining made the room: often a typo in MUC_ROOM),
    `subject`. Of several rooms `rooms` has each, and the other fields are of the default room.
    If a bot is silent: xmppSend what it should answer, with awaitSeconds 10, then xmppDiagnose
    with its nickname.
    """
    return describe_status(link, current)


def describe_status(link: RoomLink, current: CurrentSettings) -> Status:
    """Return how things stand, for the tool and for the resource."""
    participant = link.participant
    rooms = [(one.name, one.status()) for one in participant.memberships]
    status = participant.status()
    several = len(rooms) > 1
    incoming = [(one.last_incoming, name) for name, one in rooms if one.last_incoming is not None]
    last, where = max(incoming, key=lambda one: one[0].at, default=(None, ""))
    configuration = current.configuration
    warnings = link.room_warnings()
    quotes = any(
        one.subject or one.similar_rooms or (one.last_error and one.last_error.fault.quotes)
        for _, one in rooms
    )
    problems = list(map(str, (*configuration.problems, *current.problems)))
    candidates = [{"path": one.path, "reason": one.reason} for one in configuration.candidates]
    told: Status = {
        "connected": status.connected,
        "room": participant.room_jid or None,
        "nickname": status.nickname or None,
        "lastIncoming": None if last is None else _incoming(last, where if several else None),
        "phase": status.phase.value,
        "since": iso(status.since),
        "occupants": len(status.occupants),
        "jid": status.jid,
        "service": status.service or None,
        "tls": None if status.tls is None else dict(vars(status.tls)),
        "sasl": status.sasl,
        "cursor": participant.journal.cursor,
        **_position(status),
        **nonempty(
            {
                "subject": status.subject,
                "attempt": status.attempt or None,
                "nextAttemptAt": status.next_attempt_at and iso(status.next_attempt_at),
                "lastError": _last_error(status),
                "selfPingMs": status.self_ping_ms,
                "roomCreated": status.room_created,
                "problems": problems,
                "warnings": [*configuration.warnings, *link.warnings(), *warnings],
                "envFile": configuration.env_file,
                "envCandidates": candidates if problems or not status.connected else [],
                "notice": NOTICE if quotes or last is not None else None,
            }
        ),
    }
    if not several:
        return fit(told)
    told = fit(told, RESULT_BYTES - ROOM_BYTES * len(rooms))
    shown: list[Status] = []
    told["rooms"] = shown
    for left, (name, one) in zip(range(len(rooms), 0, -1), rooms, strict=True):
        most = (RESULT_BYTES - json_size(told)) // left - len(", ")
        shown.append(_room_entry(name, one, most))
    return told


def _incoming(last: LastIncoming, room: str | None) -> dict[str, object]:
    """Return the last message from somebody else, and the room, where there are several."""
    message = last.message
    told: dict[str, object] = {
        "body": message.body,
        "sender": message.sender,
        "from": message.from_,
        "type": message.type,
        "receivedAt": iso(last.at),
    }
    return told if room is None else told | {"room": room}


def _position(status: RoomStatus) -> dict[str, object]:
    """Return what the bridge may do in the room, while it is there."""
    own = next((one for one in status.occupants if one.own), None)
    if own is None:
        return {}
    told: dict[str, object] = {
        "self": {"role": own.role, "affiliation": own.affiliation, "voice": own.voice}
    }
    return told if status.moderated is None else told | {"moderated": status.moderated}


def _room_entry(name: str, status: RoomStatus, most: int) -> dict[str, object]:
    """Return how things stand in a room, in so many bytes of JSON."""
    entry: dict[str, object] = {
        "room": name,
        "phase": status.phase.value,
        "nickname": status.nickname,
        "occupants": len(status.occupants),
    }
    error = _last_error(status)
    if error:
        entry["lastError"] = error
    whole = fit(entry)["room"]
    for field in DISPENSABLE:
        shown = fit(entry, most)
        if json_size(shown) <= most and shown["room"] == whole:
            return shown
        (error if field in error else entry).pop(field, None)
    return fit(entry, most)


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
