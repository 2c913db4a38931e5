"""The tools to begin with: does the bridge answer, and how do things stand in the rooms."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TypeAlias

from bridge.mcp.schema import ABSENT_IF_NONE, Keywords
from bridge.mcp.toolset import tool
from bridge.text import iso
from bridge.tools.check import CurrentSettings
from bridge.tools.entries import (
    NOTICE,
    RESULT_BYTES,
    Escaped,
    OptionalFlag,
    json_size,
    sanitized,
)
from bridge.tools.link import RoomLink

if TYPE_CHECKING:
    from bridge.xmpp.room import LastError, RoomStatus

ROOM_BYTES = 148
"""Of JSON, at least, for each of several rooms in a status: its phase, the condition of its fault
and the start of its JID. Fifty of them leave 1,600 bytes, into which the rest can be cut."""

DISPENSABLE = ("hint", "message", "at", "nickname", "occupants")
"""What is left out of such a room, the first of them first, where it would not fit otherwise."""

RoomEntry: TypeAlias = Annotated[
    dict[str, object],
    Keywords(properties={"room": {"type": "string"}, "phase": {"type": "string"}}),
]
"""How things stand in one of several rooms."""


@dataclass(eq=False)
class Incoming:
    """The last live message from somebody else."""

    body: str
    sender: Annotated[str, "nickname"]
    from_: Annotated[str, "full JID in the room"]
    type: Annotated[str, "groupchat, or chat for a private message"]
    received_at: str
    room: Annotated[str | None, ABSENT_IF_NONE, "where there are several"] = None
    truncated: Annotated[bool | None, ABSENT_IF_NONE, "the body was longer"] = None
    escaped: Escaped = None


@dataclass(eq=False)
class LastFault:
    """Why the bridge was last put, or kept, out of the room."""

    condition: Annotated[str, "in the standard's own words"]
    message: str
    hint: Annotated[str, "what to do, naming the setting"]
    at: str


@dataclass(eq=False)
class TlsStatus:
    """What protects the connection."""

    version: str
    cipher: str
    verified: Annotated[bool, "whether the certificate was checked"]


@dataclass(eq=False)
class EnvCandidate:
    """One place where settings were looked for."""

    path: str
    reason: Annotated[str, "used, or why not"]


@dataclass(eq=False)
class Status:
    """How things stand."""

    connected: Annotated[bool, "in the room now"]
    room: str | None
    nickname: str | None
    last_incoming: Incoming | None
    phase: str
    since: Annotated[str, "when the phase began"]
    attempt: Annotated[int, "attempts since the bridge was last in the room"]
    next_attempt_at: str | None
    last_error: LastFault | None
    occupants: Annotated[int, "how many are in the room, the bridge among them"]
    subject: str | None
    jid: str | None
    service: str | None
    tls: TlsStatus | None
    sasl: Annotated[str | None, "the mechanism that logged in"]
    self_ping_ms: float | None
    room_created: Annotated[bool, "joining made the room: often a typo in MUC_ROOM"]
    env_file: str | None
    env_candidates: list[EnvCandidate]
    problems: Annotated[list[str], "what is wrong with the settings"]
    warnings: list[str]
    cursor: str
    rooms: Annotated[
        list[RoomEntry] | None,
        ABSENT_IF_NONE,
        "where there are several: `room`, `phase`, `nickname`, `occupants`, `lastError` of each",
    ] = None
    truncated: OptionalFlag = None
    escaped: Escaped = None
    notice: str = NOTICE


@tool(title="Echo", read_only=True, open_world=False)
def echo(message: Annotated[str, "what to send back"]) -> str:
    """Send a text back, to see that the bridge itself answers. Touches no network."""
    return f"Echo: {message}"


@tool("xmppStatus", title="XMPP status", read_only=True, open_world=False)
def xmpp_status(link: RoomLink, current: CurrentSettings, /) -> Status:
    """Tell whether the bridge is in its XMPP chat room now, and if not, why not.

    Ask this first. `phase` says how far it got (unconfigured, resolving, connecting, securing,
    authenticating, joining, joined, waiting between attempts, failed, closed), `lastError` the
    cause with a hint naming the setting to change, `problems` what is wrong with the settings.
    Also: the last message from somebody else, the number of occupants, the connection's TLS.
    Where the bridge has several rooms, `rooms` says it of each; what stands beside it is of the
    default room, but for `lastIncoming`. Answers at once from memory; it never connects and never
    waits.
    """
    return describe_status(link, current)


def describe_status(link: RoomLink, current: CurrentSettings) -> Status:
    """Return how things stand, for the tool and for the resource."""
    participant = link.participant
    rooms = [(one.name, one.status()) for one in participant.memberships]
    status = participant.status()
    several = len(rooms) > 1
    said = [(last, name) for name, one in rooms if (last := one.last_incoming) is not None]
    incoming = None
    if said:
        last, where = max(said, key=lambda one: one[0].at)
        message, room = last.message, where if several else None
        incoming = Incoming(
            message.body, message.sender, message.from_, message.type, iso(last.at), room
        )
    configuration = current.configuration
    result = Status(
        connected=status.connected,
        room=participant.room_jid or None,
        nickname=status.nickname or None,
        last_incoming=incoming,
        phase=status.phase.value,
        since=iso(status.since),
        attempt=status.attempt,
        next_attempt_at=None if status.next_attempt_at is None else iso(status.next_attempt_at),
        last_error=_last_fault(status.last_error),
        occupants=len(status.occupants),
        subject=status.subject,
        jid=status.jid,
        service=status.service or None,
        tls=tls_status(status),
        sasl=status.sasl,
        self_ping_ms=status.self_ping_ms,
        room_created=status.room_created,
        env_file=configuration.env_file,
        env_candidates=[EnvCandidate(*one) for one in configuration.candidates],
        problems=[str(problem) for problem in (*configuration.problems, *current.problems)],
        warnings=[
            *configuration.warnings,
            *link.warnings(),
            *(
                f"{name}: {warning}" if several else warning
                for name, one in rooms
                for warning in one.warnings
            ),
        ],
        cursor=participant.journal.cursor,
    )
    if not several:
        return sanitized(result)
    result = sanitized(result, RESULT_BYTES - ROOM_BYTES * len(rooms))
    result.rooms = []
    for left, (name, one) in zip(range(len(rooms), 0, -1), rooms, strict=True):
        most = (RESULT_BYTES - json_size(result)) // left - len(", ")
        result.rooms.append(_room_entry(name, one, most))
    return result


def _room_entry(name: str, status: "RoomStatus", most: int) -> dict[str, object]:
    """Return how things stand in a room, in so many bytes of JSON."""
    entry: dict[str, object] = {
        "room": name,
        "phase": status.phase.value,
        "nickname": status.nickname,
        "occupants": len(status.occupants),
    }
    fault = _last_fault(status.last_error)
    error = {} if fault is None else vars(fault)
    if error:
        entry["lastError"] = error
    whole = sanitized(entry)["room"]
    for field in DISPENSABLE:
        shown = sanitized(entry, most)
        if json_size(shown) <= most and shown["room"] == whole:
            return shown
        (error if field in error else entry).pop(field, None)
    return sanitized(entry, most)


def _last_fault(error: "LastError | None") -> LastFault | None:
    if error is None:
        return None
    fault = error.fault
    return LastFault(fault.condition, fault.message, fault.hint, iso(error.at))


def tls_status(status: "RoomStatus") -> TlsStatus | None:
    """Return what protects the connection, if anything does."""
    tls = status.tls
    return None if tls is None else TlsStatus(tls.version, tls.cipher, tls.verified)
