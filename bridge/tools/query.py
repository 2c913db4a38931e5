"""The tools that ask an address whether it answers, and what it is and can do.

The address belongs to the server, the room, an occupant or anything else that has a JID.
"""

from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

from bridge.mcp.errors import ToolError
from bridge.mcp.schema import Bounds, Unlisted, always
from bridge.mcp.toolset import tool
from bridge.text import wire_name
from bridge.tools.entries import NOTICE, RESULT_BYTES, fit, noticed
from bridge.tools.link import RoomLink, RoomName, failed
from bridge.tools.occupants import exact_of, unknown_nickname
from bridge.tools.send import MAX_WAIT_SECONDS
from bridge.wire import names
from bridge.xmpp.link import stanzas
from bridge.xmpp.link.connection import Connection
from bridge.xmpp.link.from_slixmpp import prepared
from bridge.xmpp.model.faults import ConnectionFailedError
from bridge.xmpp.muc.membership import Membership
from bridge.xmpp.queries import disco, iq_errors, ping
from bridge.xmpp.queries.iq_errors import Target, TargetKind
from bridge.xmpp.queries.ping import Pong

MAX_TARGET_CHARACTERS = 3071
"""The longest JID: three parts of 1,023 bytes with `@` and `/` between (RFC 7622, section 3)."""

NOTES_BYTES = 200
"""Bytes of JSON reserved for notes that count what is left out of the lists."""

MAX_ITEMS = {"identities": 20, "rooms": 100, "features": 500, "fields": 50}
"""How many items of each list are shown. An identity comes once for each language that its name was
translated to; a room's form has about ten fields."""

TargetName = Annotated[
    str,
    Unlisted(min_length=1, max_length=MAX_TARGET_CHARACTERS),
    "server, room, self, a nickname in the room, or a JID",
]
Ping: TypeAlias = Annotated[
    dict[str, object], always(target=str, address=str, reachable=bool, verdict=str)
]
Info: TypeAlias = Annotated[dict[str, object], always(target=str, address=str, answered=bool)]


@tool("xmppPing", title="Ping over XMPP", read_only=True)
async def xmpp_ping(
    link: RoomLink,
    /,
    target: TargetName,
    timeout_seconds: Annotated[float, Bounds(minimum=0.1, maximum=MAX_WAIT_SECONDS)] = 10,
    room: RoomName = None,
) -> Ping:
    """To find out whether an address answers over XMPP (XEP-0199), and how fast.

    `verdict` decides, in a sentence: an error or a silence is a result too. `room` pings the room,
    `self` asks it whether the bridge is in it (`inRoom`). If an occupant is silent, `self` and
    `server` are pinged too.
    """
    connection = link.connection(link.room(room))
    try:
        compared = await ping.ping_compared(connection, find(link, target, room), timeout_seconds)
    except ConnectionFailedError as ended:
        raise _ended(ended) from ended
    pong = compared.pong
    result = {"target": target, **_outcome(pong), "verdict": compared.verdict}
    if pong.seconds is None:
        further = {"self": compared.own, "server": compared.server}
        result |= {name: _outcome(other) for name, other in further.items() if other is not None}
    hint = link.as_nickname(target, [link.room(room)])
    answered_with_error = pong.seconds is not None and pong.error is not None
    if pong.target.kind is TargetKind.OCCUPANT or answered_with_error or hint:
        result["notice"] = NOTICE  # strangers chose the nickname, or the text of the error
    return fit(result | ({"hint": hint} if hint else {}))


@tool("xmppInfo", title="What an XMPP address can do", read_only=True)
async def xmpp_info(
    link: RoomLink,
    /,
    target: TargetName,
    features: Annotated[bool, "features and form fields too"] = False,
    room: RoomName = None,
) -> Info:
    """To find out what an XMPP address is and how it is set up (XEP-0030).

    Of `room`: moderated, membersOnly, persistent, anonymity, ..., and the bridge `self` in it; of
    `server`: TLS and login of the `connection`; of a room service its public `rooms`; of a
    nickname its `software`. Takes at most 10 s: then `answered` is false.
    """
    connection = link.connection(link.room(room))
    kind, address, _ = find(link, target, room)
    is_server = kind is TargetKind.SERVER
    discovery = await _discovered(connection, kind, address)
    description = discovery.description
    about = {
        "target": target,
        "address": address,
        "answered": discovery.answered,
        "feature_count": len(description.features) if discovery.answered else None,
        "software": discovery.software and _known(vars(discovery.software)),
        "uptime_seconds": discovery.uptime_seconds,
        "room": discovery.room and _known(discovery.room),
        "self": _self(link, address),
        "connection": _connection(link, connection) if is_server else None,
        "notes": [str(question) for question in discovery.unanswered],
        "notice": NOTICE,
    }
    lists: dict[str, list[dict[str, Any]]] = {
        "identities": [vars(identity) for identity in description.identities],
        "rooms": [vars(listed) for listed in discovery.rooms],
    }
    if features:
        named = [{"feature": feature} for feature in description.features]
        lists |= {"fields": _fields(description), "features": named}
    bounded = {name: [*map(_known, items[: MAX_ITEMS[name]])] for name, items in lists.items()}
    info = fit(_known(about), RESULT_BYTES - NOTES_BYTES, **bounded)
    for name, items in lists.items():
        if left_out := len(items) - len(info[name]):
            info["notes"].append(f"Not shown of {name}: {left_out}.")
    return {name: value for name, value in info.items() if value != []}


async def _discovered(connection: Connection, kind: TargetKind, address: str) -> disco.Information:
    """Ask an address what it is; raises `ToolError` if it refuses, or the connection ends."""
    try:
        return await disco.discover(connection, address, is_server=kind is TargetKind.SERVER)
    except stanzas.IqError as refused:
        condition, text = refused.error.condition, refused.error.text
        service = names.domain_of(address)
        in_room = kind in iq_errors.IN_ROOM
        if in_room and await disco.is_gone(connection, service, refused.error):
            kind = TargetKind.GONE
        meaning = iq_errors.of_error(condition, text, kind, address, "service discovery")
        raise ToolError(
            noticed(meaning.message), condition=meaning.condition, hint=meaning.hint
        ) from refused
    except ConnectionFailedError as ended:
        raise _ended(ended) from ended


def _fields(description: disco.Description) -> list[dict[str, Any]]:
    return [
        {"form": field.form, "field": field.name, "values": [*field.values]}
        for field in description.fields
    ]


def _self(link: RoomLink, room: str) -> object:
    """Return the bridge as an occupant of the room; None if it is in no room of this JID."""
    for membership in link.participant.memberships:
        if membership.jid == room and (me := membership.status().me):
            return exact_of(me)
    return None


def _ended(error: ConnectionFailedError) -> ToolError:
    return failed(error.fault, "The connection ended before the answer came:")


def _outcome(pong: Pong) -> dict[str, object]:
    """Return the fields of a result for one ping."""
    error, seconds = pong.error, pong.seconds
    return _known(
        {
            "address": pong.target.address,
            "reachable": pong.reachable,
            "round_trip_ms": None if seconds is None else round(seconds * 1000, 3),
            "in_room": pong.in_room and pong.in_room.value,
            "error": error
            and {"condition": error.condition, "message": error.message, "hint": error.hint},
        }
    )


def _known(fields: Mapping[str, object]) -> dict[str, object]:
    """Return the fields that are not None, under the names that users see."""
    return {wire_name(name): value for name, value in fields.items() if value is not None}


def _connection(link: RoomLink, connection: Connection) -> dict[str, object]:
    """Return how the bridge is connected to its server."""
    status, management = link.participant.status(), connection.management
    return _known(
        {
            "jid": status.jid,
            "service": status.service,
            "tls": status.tls and _known(vars(status.tls)),
            "sasl": status.sasl,
            "channel_binding": connection.channel_binding,
            "stream_management": management is not None,
            "resumable": management is not None and management.id is not None,
        }
    )


def _occupant(membership: Membership) -> str:
    """Return the JID that we have in the room, or would have."""
    return membership.occupant or f"{membership.jid}/{membership.place.nickname}"


def find(link: RoomLink, target: str, name: str | None = None) -> Target:
    """Return the address that `target` names, prepared.

    Words and nicknames refer to the room called `name`, or without it to the default room. These
    are tried in turn, so that no occupant can pose as the server or an account by a nickname:

    - the words `server`, `room` and `self`,
    - a JID with an `@`,
    - a nickname,
    - a JID with a dot or a slash, or our own server (`localhost` has no dot).

    Raises `ToolError` for anything else, and for a nickname while not in the room.
    """
    membership = link.room(name)
    room, own, status = membership.jid, _occupant(membership), membership.status()
    domain = link.connection(membership).place.domain
    domain = prepared(domain) or domain
    match target:
        case "server":
            return Target(TargetKind.SERVER, domain)
        case "room":
            return Target(TargetKind.ROOM, room, own)
        case "self":
            return Target(TargetKind.SELF, own, own)
    jid = prepared(target) or ""
    if not jid or "@" not in target:
        # A server may admit nicknames that slixmpp prepares in another way, or refuses.
        here = {occupant.jid for occupant in (*status.occupants, *status.unlisted)}
        names = (f"{room}/{target}", stanzas.occupant_jid(room, target))
        named = next((name for name in names if name in here), None)
        if named is not None:
            jid = named
        elif not jid or not (jid == domain or "." in target or "/" in target):
            if not status.connected:
                out = status.out_of(membership.name)
                raise failed(out, "A nickname is known in the room only.")
            if not status.shows_all and (hidden := stanzas.occupant_jid(room, target)):
                return Target(TargetKind.OCCUPANT, hidden, own)
            raise unknown_nickname(
                link,
                [membership],
                target,
                "Give server, room, self, a nickname as it is written here, or a full JID.",
            )
    bare, _, resource = jid.partition("/")
    for other in link.participant.memberships:
        if bare == other.jid:
            own = _occupant(other)
            if jid == own:
                return Target(TargetKind.SELF, jid, own)
            return Target(TargetKind.OCCUPANT if resource else TargetKind.ROOM, jid, own)
    if jid == domain:
        return Target(TargetKind.SERVER, jid)
    return Target(TargetKind.ACCOUNT if "@" in bare else TargetKind.DOMAIN, jid)
