"""Asking an address: whether it answers, and what it is and can do.

The address is that of the server, the room, an occupant or anything else that has a JID.
"""

import asyncio
import time
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from bridge.mcp.schema import ABSENT_IF_NONE, Bounds
from bridge.mcp.toolset import ToolError, tool
from bridge.text import visible
from bridge.tools.entries import (
    NOTICE,
    RESULT_BYTES,
    Escaped,
    OptionalFlag,
    json_size,
    noticed,
    sanitized,
)
from bridge.tools.link import RoomLink, RoomName, connection_in, failed
from bridge.tools.occupants import OccupantEntry, nobody, occupant_entry
from bridge.tools.paging import Page
from bridge.tools.status import TlsStatus, tls_status

if TYPE_CHECKING:
    from bridge.xmpp.iq_errors import DecodedError, TargetKind

MAX_TARGET_CHARACTERS = 3071
"""The longest JID: three parts of 1,023 bytes with `@` and `/` between (RFC 7622, section 3)."""

ANSWER_SECONDS = 15.0
"""For the answer: as long as the bridge gives its own pings."""

LISTS_BYTES = 3_000
"""Of the result as JSON, at least, for its lists: the known features come first, and what is left
out is counted."""

NOTES_BYTES = 200
"""Of these, for the counts of what is left out."""

MAX_IDENTITIES = 20
"""That are shown; one for each language a name was translated to makes the most of them."""

MAX_FIELDS = 50
"""Form fields that are shown; a room has about ten."""

MAX_VALUES = 5
"""Of one field that are shown: lists of addresses are the longest."""

MAX_NAME_CHARACTERS = 200
"""Of a name, a feature or a value of a form, as shown; the longest real feature has 80."""

MAX_DESCRIPTION_CHARACTERS = 2_000
"""Of a room's description, as shown."""

Target = Annotated[
    str,
    Bounds(min_length=1, max_length=MAX_TARGET_CHARACTERS),
    "server, room, self, the nickname of somebody in the room, or a JID",
]
Named: TypeAlias = dict[str, str | None]
"""A few words under their names: a class for each would cost start-up more than it explains."""


@dataclass(eq=False)
class AnswerError:
    """An error answer, or none at all, decoded."""

    condition: Annotated[str, "in the standard's own words"]
    message: str
    hint: Annotated[str, "what to make of it"]


@dataclass(eq=False)
class Pong:
    """What came back."""

    target: Annotated[str, "as asked"]
    address: Annotated[str, "the JID that was pinged"]
    round_trip_ms: Annotated[float | None, "of whatever answer came, an error too; null: none"]
    reachable: Annotated[bool, "whether the answer proves that the target is there"]
    in_room: Annotated[
        str | None, ABSENT_IF_NONE, "for self: in, out, or undecided where the answer cannot tell"
    ] = None
    error: Annotated[AnswerError | None, ABSENT_IF_NONE] = None
    truncated: OptionalFlag = None
    escaped: Escaped = None
    notice: str = NOTICE


@dataclass(eq=False)
class FeatureEntry:
    """One thing that it can do."""

    feature: str
    xep: Annotated[str | None, "what defines it: XEP-0313, or an RFC; null if neither is known"]
    name: Annotated[str | None, "the title of that"]


@dataclass(eq=False)
class FieldEntry:
    """One field of a form with which it extends its answer (XEP-0128)."""

    form: Annotated[str, "the form's FORM_TYPE"]
    field: str
    values: list[str]


@dataclass(eq=False)
class RoomEntry:
    """How the room is set up; null is what it does not say."""

    title: str | None
    description: str | None
    public: Annotated[bool | None, "whether it is listed"]
    moderated: Annotated[bool | None, "whether one needs voice to speak"]
    members_only: bool | None
    persistent: Annotated[bool | None, "whether it outlives its last occupant"]
    password_protected: bool | None
    anonymity: Annotated[
        str | None, "non-anonymous: everybody sees real JIDs; semi-anonymous: moderators do"
    ]
    archived: Annotated[bool, "whether it keeps an archive of what is said (XEP-0313)"]
    logs: Annotated[str | None, "where its logs can be read"]
    language: str | None
    occupants: Annotated[int | None, "how many, as the room says"]


@dataclass(eq=False)
class ConnectionEntry:
    """How the bridge is connected to its server."""

    jid: str | None
    service: str
    tls: TlsStatus | None
    sasl: Annotated[str | None, "the mechanism that logged in"]
    channel_binding: Annotated[str | None, "the type that ties the login to TLS; null if none"]
    stream_management: Annotated[bool, "whether XEP-0198 is in use"]
    resumable: Annotated[bool, "whether the session survives a cut connection for a minute"]


@dataclass(eq=False)
class Info:
    """What an address says of itself."""

    target: Annotated[str, "as asked"]
    address: Annotated[str, "the JID that was asked"]
    identities: Annotated[list[Named], "each with category, type and name"]
    features: list[FeatureEntry]
    fields: list[FieldEntry]
    software: Annotated[Named | None, "name, version and os, in its own words"]
    uptime_seconds: Annotated[int | None, "of a server"]
    room: Annotated[RoomEntry | None, "where the target is a room"]
    self: Annotated[OccupantEntry | None, "the bridge in its room, for that room"]
    connection: Annotated[ConnectionEntry | None, "for the bridge's own server"]
    notes: Annotated[list[str], "what it did not answer, and what is left out here"]
    truncated: OptionalFlag = None
    escaped: Escaped = None
    notice: str = NOTICE


@tool("xmppPing", title="Ping over XMPP", read_only=True)
async def xmpp_ping(
    link: RoomLink,
    /,
    target: Target,
    room: RoomName = None,
) -> Pong:
    """Find out whether somebody answers over XMPP (XEP-0199), and how many milliseconds it takes.

    `server` is the bridge's own server, `room` the room, `self` asks the room whether it holds
    the bridge for one of its occupants (XEP-0410, see `inRoom`); a nickname asks that person's
    client. Somebody called server, room or self, or by a name with an @, is reached by their full
    JID, `room@service/nickname`. An error answer or a silence of 15 s is a result, with `error`
    saying what it means; often an error answer still proves that the target is there
    (`reachable`). Fails when the bridge is not in the room, or when there is no such target.
    """
    # Deferred, since tools are listed before it is loaded.
    from bridge.xmpp import faults, iq, iq_errors, keepalive, stanzas

    connection = connection_in(link.room(room))
    whom, address = find(link, target, room)
    meaning: DecodedError | None = None
    answered = True
    started = time.perf_counter()
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            await connection.request("get", address, stanzas.ping())
    except iq.IqError as refused:
        error = refused.error
        meaning = iq_errors.of_error(error.condition, error.text, whom, address, "pings")
    except TimeoutError:
        answered = False
        meaning = iq_errors.of_silence(whom, address, ANSWER_SECONDS)
    except faults.ConnectionFailedError as ended:
        raise failed(ended.fault, "The connection ended before the answer came:") from ended
    taken = round((time.perf_counter() - started) * 1000, 3)
    found = keepalive.verdict(None if meaning is None else meaning.condition)
    pong = Pong(
        target=target,
        address=address,
        round_trip_ms=taken if answered else None,
        reachable=meaning is None or meaning.reachable,
        in_room=found.value if whom is iq_errors.TargetKind.SELF else None,
        error=None
        if meaning is None
        else AnswerError(meaning.condition, meaning.message, meaning.hint),
    )
    return sanitized(pong)


@tool("xmppInfo", title="What an XMPP address can do", read_only=True)
async def xmpp_info(
    link: RoomLink,
    /,
    target: Target,
    room: RoomName = None,
) -> Info:
    """Ask an XMPP address what it is and can do (service discovery, XEP-0030).

    Returns its identities and its features, each with the XEP that defines it; further, where
    offered, the software that runs there and a server's uptime. `server` (the bridge's own) adds
    how the connection is secured and whether it can be resumed, `room` how the room is set up
    (public, moderated, members-only, persistent, archived, ...) and the bridge's own role and
    affiliation in it. `notes` says what was not answered. Takes at most 20 s. Fails when the
    bridge is not in the room, when there is no such target, or when it refuses to answer.
    """
    # Deferred, since tools are listed before it is loaded.
    from bridge.xmpp import disco, faults, iq, iq_errors, xeps

    connection = connection_in(link.room(room))
    whom, address = find(link, target, room)
    is_server = whom is iq_errors.TargetKind.SERVER
    try:
        found = await disco.discover(connection, address, is_server=is_server)
    except iq.IqError as refused:
        error = refused.error
        meaning = iq_errors.of_error(
            error.condition, error.text, whom, address, "service discovery"
        )
        raise ToolError(
            noticed(meaning.message), condition=meaning.condition, hint=meaning.hint
        ) from refused
    except faults.ConnectionFailedError as ended:
        raise failed(ended.fault, "The connection ended before the answer came:") from ended
    description, show = found.description, _Shown()
    rooms = [one for one in link.participant.memberships if one.jid == address]
    ours = [each for one in rooms for each in one.status().occupants if each.own]
    info = Info(
        target=show(target, MAX_TARGET_CHARACTERS),
        address=show(address, MAX_TARGET_CHARACTERS),
        identities=[],
        features=[],
        fields=[],
        software=None if found.software is None else show.each(vars(found.software)),
        uptime_seconds=found.uptime_seconds,
        room=None,
        self=occupant_entry(ours[0]) if ours else None,
        connection=None,
        notes=[str(one) for one in found.unanswered],
    )
    if is_server:
        status, management = link.participant.status(), connection.management
        info.connection = ConnectionEntry(
            jid=status.jid,
            service=status.service,
            tls=tls_status(status),
            sasl=status.sasl,
            channel_binding=connection.channel_binding,
            stream_management=management is not None,
            resumable=management is not None and management.id is not None,
        )
    if description.is_room and "@" in address and "/" not in address:
        configuration = vars(disco.room_configuration(description))
        info.room = RoomEntry(**show.each(configuration, MAX_DESCRIPTION_CHARACTERS))
    info = sanitized(info, RESULT_BYTES - LISTS_BYTES)
    page: Page[object] = Page(size=RESULT_BYTES - NOTES_BYTES - json_size(info))
    identities = (show.each(vars(one)) for one in description.identities[:MAX_IDENTITIES])
    fields = (
        FieldEntry(show(one.form), show(one.name), _values(one.values, show))
        for one in description.fields[:MAX_FIELDS]
    )
    standards = [(one, xeps.standard_of(one)) for one in description.features]
    standards.sort(key=lambda one: one[1] is None)
    features = (FeatureEntry(show(one), *(known or (None, None))) for one, known in standards)
    info.identities = list(takewhile(page.add, identities))
    info.fields = list(takewhile(page.add, fields))
    info.features = list(takewhile(page.add, features))
    for what, there_are, shown in (
        ("identities", description.identities, info.identities),
        ("features", description.features, info.features),
        ("form fields", description.fields, info.fields),
    ):
        if left_out := len(there_are) - len(shown):
            info.notes.append(f"{left_out} further {what} are not shown.")
    info.escaped = show.changed or info.escaped
    return info


class _Shown:
    """Shows what strangers wrote, cut to a length, and remembers whether anything had hidden."""

    def __init__(self) -> None:
        self.changed = False

    def __call__(self, text: str, limit: int = MAX_NAME_CHARACTERS) -> str:
        # Cut before, since there may be a lot of it, and after, since an escape is longer.
        part = text[:limit]
        shown = visible(part)
        self.changed = self.changed or shown != part
        if len(text) > limit or len(shown) > limit:
            return f"{shown[:limit]}... ({len(text)} characters)"
        return shown

    def each(self, fields: dict[str, Any], limit: int = MAX_NAME_CHARACTERS) -> dict[str, Any]:
        """Return these fields with what is shown of those that are texts."""
        return {
            name: self(value, limit) if isinstance(value, str) else value
            for name, value in fields.items()
        }


def _values(values: tuple[str, ...], show: _Shown) -> list[str]:
    shown = [show(one) for one in values[:MAX_VALUES]]
    if len(values) > MAX_VALUES:
        shown.append(f"... and {len(values) - MAX_VALUES} more")
    return shown


def find(link: RoomLink, target: str, name: str | None = None) -> tuple["TargetKind", str]:
    """Return what kind of address `target` is, and the address, prepared.

    The words and the nicknames are those of the room of this name, or else of the default room.
    The words come first, so that nobody can stand before the server by a nickname; then what has
    an `@` and is a JID, for the same reason; then nicknames, then what else is a JID and no mere
    word, or our own server (`localhost` has no dot). Raises `ToolError` for what is none of these,
    and when not in the room.
    """
    # Deferred, since tools are listed before it is loaded.
    from bridge.xmpp import iq_errors, stanzas

    kinds, membership = iq_errors.TargetKind, link.room(name)
    connection, room = connection_in(membership), membership.jid
    domain = stanzas.prepared(connection.place.domain) or connection.place.domain
    match target:
        case "server":
            return kinds.SERVER, domain
        case "room":
            return kinds.ROOM, room
        case "self":
            return kinds.SELF, membership.occupant
    jid = stanzas.prepared(target) or ""
    if not jid or "@" not in target:
        named = stanzas.occupant_jid(room, target)
        if named and any(one.jid == named for one in membership.status().occupants):
            jid = named
        elif not jid or not (jid == domain or "." in target or "/" in target):
            raise nobody(
                [membership],
                target,
                "Give server, room, self, a nickname as it is written here, or a full JID.",
            )
    bare, _, resource = jid.partition("/")
    for one in link.participant.memberships:
        if bare == one.jid:
            if jid == one.occupant:
                return kinds.SELF, jid
            return (kinds.OCCUPANT if resource else kinds.ROOM), jid
    if jid == domain:
        return kinds.SERVER, jid
    return (kinds.ACCOUNT if "@" in bare else kinds.DOMAIN), jid
