"""Asking an address: whether it answers, and what it is and can do.

The address is that of the server, the room, an occupant or anything else that has a JID.
"""

import asyncio
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Annotated, TypeAlias, TypeVar

from bridge.mcp.schema import ABSENT_IF_NONE, Bounds
from bridge.mcp.toolset import ToolError, tool
from bridge.text import visible
from bridge.tools.entries import (
    ESCAPED,
    NOTICE,
    RESULT_BYTES,
    OptionalFlag,
    json_size,
    noticed,
    sanitized,
)
from bridge.tools.link import RoomLink, RoomName, connection_in, failed
from bridge.tools.occupants import OccupantEntry, nobody, occupant_entry
from bridge.tools.paging import Page
from bridge.tools.status import TlsStatus

if TYPE_CHECKING:
    from bridge.xmpp.connection import Connection
    from bridge.xmpp.disco import Description, Information, Unanswered
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

Listed = TypeVar("Listed")
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
    escaped: Annotated[bool | None, ABSENT_IF_NONE, ESCAPED] = None
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
    escaped: Annotated[bool | None, ABSENT_IF_NONE, ESCAPED] = None
    notice: str = NOTICE


@tool("xmppPing", title="Ping over XMPP", read_only=True)
async def xmpp_ping(
    link: RoomLink,
    /,
    target: Annotated[
        str,
        Bounds(min_length=1, max_length=MAX_TARGET_CHARACTERS),
        "server, room, self, the nickname of somebody in the room, or a JID",
    ],
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
    from bridge.xmpp import iq_errors, stanzas
    from bridge.xmpp.faults import ConnectionFailedError
    from bridge.xmpp.iq import IqError
    from bridge.xmpp.iq_errors import TargetKind
    from bridge.xmpp.keepalive import Verdict, verdict

    connection = connection_in(link.room(room))
    whom, address = find(link, target, room)
    meaning: DecodedError | None = None
    found = Verdict.IN
    answered = True
    started = time.perf_counter()
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            await connection.request("get", address, stanzas.ping())
    except IqError as refused:
        error = refused.error
        meaning = iq_errors.of_error(error.condition, error.text, whom, address, "pings")
        found = verdict(error.condition)
    except TimeoutError:
        answered = False
        meaning = iq_errors.of_silence(whom, address, ANSWER_SECONDS)
        found = Verdict.UNDECIDED
    except ConnectionFailedError as ended:
        raise failed(ended.fault, "The connection ended before the answer came:") from ended
    taken = round((time.perf_counter() - started) * 1000, 3)
    pong = Pong(
        target=target,
        address=address,
        round_trip_ms=taken if answered else None,
        reachable=meaning is None or meaning.reachable,
        in_room=found.value if whom is TargetKind.SELF else None,
        error=None if meaning is None else _error(meaning),
    )
    return sanitized(pong)


def _error(meaning: "DecodedError") -> AnswerError:
    return AnswerError(meaning.condition, meaning.message, meaning.hint)


@tool("xmppInfo", title="What an XMPP address can do", read_only=True)
async def xmpp_info(
    link: RoomLink,
    /,
    target: Annotated[
        str,
        Bounds(min_length=1, max_length=MAX_TARGET_CHARACTERS),
        "server, room, self, the nickname of somebody in the room, or a JID",
    ],
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
    from bridge.xmpp import iq_errors
    from bridge.xmpp.disco import discover
    from bridge.xmpp.faults import ConnectionFailedError
    from bridge.xmpp.iq import IqError
    from bridge.xmpp.iq_errors import TargetKind

    connection = connection_in(link.room(room))
    whom, address = find(link, target, room)
    try:
        told = await discover(connection, address, is_server=whom is TargetKind.SERVER)
    except IqError as refused:
        error = refused.error
        meaning = iq_errors.of_error(
            error.condition, error.text, whom, address, "service discovery"
        )
        raise ToolError(
            noticed(meaning.message), condition=meaning.condition, hint=meaning.hint
        ) from refused
    except ConnectionFailedError as ended:
        raise failed(ended.fault, "The connection ended before the answer came:") from ended
    show = _Shown()
    is_room = told.description.is_room and "@" in address and "/" not in address
    info = Info(
        target=show(target, MAX_TARGET_CHARACTERS) or "",
        address=show(address, MAX_TARGET_CHARACTERS) or "",
        identities=[],
        features=[],
        fields=[],
        software=_software(told, show),
        uptime_seconds=told.uptime_seconds,
        room=_room(told.description, show) if is_room else None,
        self=_self(link, address),
        connection=_connection(link, connection) if whom is TargetKind.SERVER else None,
        notes=[_unanswered(one) for one in told.unanswered],
        escaped=show.changed or None,
    )
    return _with_lists(sanitized(info, RESULT_BYTES - LISTS_BYTES), told.description, show)


def _with_lists(bare: Info, told: "Description", show: "_Shown") -> Info:
    """Return `bare` with as much of its lists as has room, and a note on the rest."""
    page: Page[object] = Page(room=RESULT_BYTES - NOTES_BYTES - json_size(bare))

    def fitting(listed: Iterable[Listed]) -> list[Listed]:
        return list(takewhile(page.add, listed))

    fit = replace(
        bare,
        identities=fitting(_identities(told, show)),
        fields=fitting(_fields(told, show)),
        features=fitting(_features(told, show)),
    )
    left_out = (
        ("identities", len(told.identities) - len(fit.identities)),
        ("features", len(told.features) - len(fit.features)),
        ("form fields", len(told.fields) - len(fit.fields)),
    )
    notes = [f"{number} further {what} are not shown." for what, number in left_out if number]
    return replace(fit, notes=fit.notes + notes, escaped=show.changed or bare.escaped)


class _Shown:
    """Shows what strangers wrote, cut to a length, and remembers whether anything had hidden."""

    def __init__(self) -> None:
        self.changed = False

    def __call__(self, text: str | None, limit: int = MAX_NAME_CHARACTERS) -> str | None:
        if text is None:
            return None
        # Cut before, since there may be a lot of it, and after, since an escape is longer.
        part = text[:limit]
        shown = visible(part)
        self.changed = self.changed or shown != part
        if len(text) > limit or len(shown) > limit:
            return f"{shown[:limit]}... ({len(text)} characters)"
        return shown

    def text(self, text: str) -> str:
        return self(text) or ""


def _identities(told: "Description", show: _Shown) -> list[Named]:
    return [
        {"category": show(one.category), "type": show(one.type), "name": show(one.name)}
        for one in told.identities[:MAX_IDENTITIES]
    ]


def _features(told: "Description", show: _Shown) -> Iterator[FeatureEntry]:
    from bridge.xmpp.xeps import standard_of

    found = [(one, standard_of(one)) for one in told.features]
    found.sort(key=lambda one: one[1] is None)
    for feature, standard in found:
        yield FeatureEntry(
            show.text(feature),
            None if standard is None else standard.number,
            None if standard is None else standard.name,
        )


def _fields(told: "Description", show: _Shown) -> list[FieldEntry]:
    return [
        FieldEntry(show.text(one.form), show.text(one.name), _values(one.values, show))
        for one in told.fields[:MAX_FIELDS]
    ]


def _values(values: tuple[str, ...], show: _Shown) -> list[str]:
    shown = [show.text(one) for one in values[:MAX_VALUES]]
    if len(values) > MAX_VALUES:
        shown.append(f"... and {len(values) - MAX_VALUES} more")
    return shown


def _software(told: "Information", show: _Shown) -> Named | None:
    if told.software is None:
        return None
    name, version, os = told.software.name, told.software.version, told.software.os
    return {"name": show(name), "version": show(version), "os": show(os)}


def _room(told: "Description", show: _Shown) -> RoomEntry:
    from bridge.xmpp.disco import room_configuration

    room = room_configuration(told)
    return RoomEntry(
        title=show(room.title),
        description=show(room.description, MAX_DESCRIPTION_CHARACTERS),
        public=room.public,
        moderated=room.moderated,
        members_only=room.members_only,
        persistent=room.persistent,
        password_protected=room.password_protected,
        anonymity=room.anonymity,
        archived=room.archived,
        logs=show(room.logs),
        language=show(room.language),
        occupants=room.occupants,
    )


def _self(link: RoomLink, address: str) -> OccupantEntry | None:
    """Return the bridge in the room of this address, if it is in one."""
    rooms = [one for one in link.participant.memberships if one.jid == address]
    occupants = [each for one in rooms for each in one.status().occupants if each.own]
    return occupant_entry(occupants[0]) if occupants else None


def _connection(link: RoomLink, connection: "Connection") -> ConnectionEntry:
    status, management = link.participant.status(), connection.management
    tls = status.tls
    return ConnectionEntry(
        jid=status.jid,
        service=status.service,
        tls=None if tls is None else TlsStatus(tls.version, tls.cipher, tls.verified),
        sasl=status.sasl,
        channel_binding=connection.channel_binding,
        stream_management=management is not None,
        resumable=management is not None and management.id is not None,
    )


_QUESTIONS = {
    "http://jabber.org/protocol/disco#info": "what it is and can do (XEP-0030)",
    "jabber:iq:version": "its software (XEP-0092)",
    "jabber:iq:last": "its uptime (XEP-0012)",
}


def _unanswered(one: "Unanswered") -> str:
    from bridge.xmpp.disco import ANSWER_SECONDS
    from bridge.xmpp.faults import quoted_text

    question = _QUESTIONS[one.question]
    if one.error is None:
        return f"Asked for {question}, it did not answer within {ANSWER_SECONDS:g} s."
    return (
        f"Asked for {question}, it refused with {one.error.condition}.{quoted_text(one.error.text)}"
    )


def find(link: RoomLink, target: str, name: str | None = None) -> tuple["TargetKind", str]:
    """Return what kind of address `target` is, and the address, prepared.

    The words and the nicknames are those of the room of this name, or else of the default room.
    The words come first, so that nobody can stand before the server by a nickname; then what has
    an `@` and is a JID, for the same reason; then nicknames, then what else is a JID and no mere
    word, or our own server (`localhost` has no dot). Raises `ToolError` for what is none of these,
    and when not in the room.
    """
    from bridge.xmpp import stanzas
    from bridge.xmpp.iq_errors import TargetKind

    membership = link.room(name)
    connection, own, room = connection_in(membership), membership.occupant, membership.jid
    domain = stanzas.prepared(connection.place.domain) or connection.place.domain
    match target:
        case "server":
            return TargetKind.SERVER, domain
        case "room":
            return TargetKind.ROOM, room
        case "self":
            return TargetKind.SELF, own
    jid = stanzas.prepared(target)
    named = stanzas.occupant_jid(room, target)
    present = {one.jid for one in membership.status().occupants}
    if not (jid and "@" in target):
        if named in present:
            assert named is not None
            return (TargetKind.SELF if named == own else TargetKind.OCCUPANT), named
        if not (jid and (jid == domain or "." in target or "/" in target)):
            raise nobody(
                [membership],
                target,
                "Give server, room, self, a nickname as it is written here, or a full JID.",
            )
    assert jid is not None
    bare, _, resource = jid.partition("/")
    for one in link.participant.memberships:
        if bare == one.jid:
            if jid == one.occupant:
                return TargetKind.SELF, jid
            return (TargetKind.OCCUPANT if resource else TargetKind.ROOM), jid
    if jid == domain:
        return TargetKind.SERVER, jid
    return (TargetKind.ACCOUNT if "@" in bare else TargetKind.DOMAIN), jid
