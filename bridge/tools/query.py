"""Asking an address: whether it answers, and what it is and can do.

The address is that of the server, the room, an occupant or anything else that has a JID.
"""

from collections.abc import Mapping
from itertools import takewhile
from typing import Annotated, Any, TypeAlias

from bridge.mcp.errors import ToolError
from bridge.mcp.schema import Bounds, always, wire_name
from bridge.mcp.toolset import tool
from bridge.tools.entries import NOTICE, RESULT_BYTES, json_size, noticed, sanitized
from bridge.tools.link import RoomLink, RoomName, failed
from bridge.tools.occupants import nobody, occupant_entry
from bridge.tools.paging import Page
from bridge.tools.send import MAX_WAIT_SECONDS
from bridge.xmpp.link import stanzas
from bridge.xmpp.link.connection import Connection
from bridge.xmpp.link.from_slixmpp import prepared
from bridge.xmpp.model.faults import ConnectionFailedError
from bridge.xmpp.muc.membership import Membership
from bridge.xmpp.queries import disco, iq_errors, ping, xeps
from bridge.xmpp.queries.iq_errors import Target
from bridge.xmpp.queries.ping import Pong

MAX_TARGET_CHARACTERS = 3071
"""The longest JID: three parts of 1,023 bytes with `@` and `/` between (RFC 7622, section 3)."""

LISTS_BYTES = 3_000
"""Of the result as JSON, at least, for its lists; what is left out of them is counted."""

NOTES_BYTES = 200
"""Of these, for the counts of what is left out."""

ITEM_BYTES = 400
"""Of JSON for one item of a list: the longest real feature has 80 characters."""

MAX_ITEMS = {"identities": 20, "rooms": 100, "features": 500, "fields": 50}
"""Of each list that are shown. An identity is told once for each language that its name was
translated to; a room's form has about ten fields."""

MAX_VALUES = 5
"""Of one field that are shown: lists of addresses are the longest."""

TargetName = Annotated[
    str,
    Bounds(min_length=1, max_length=MAX_TARGET_CHARACTERS),
    "server, room, self, the nickname of somebody in the room, or a JID",
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
    timeout_seconds: Annotated[
        float, Bounds(minimum=0.1, maximum=MAX_WAIT_SECONDS), "0.1 to 50, default 10"
    ] = 10,
    room: RoomName = None,
) -> Ping:
    """Use this to find out whether somebody answers over XMPP (XEP-0199), and how fast.

    `server` is the bridge's own server, `room` the room, `self` asks the room whether it counts
    the bridge among its occupants (XEP-0410; `inRoom`: in, out, undecided); a nickname asks that
    person's client. Works in the room or not; only a nickname needs the room. An error answer or a
    silence is a result: `verdict` says in one sentence what came of it, `error` has condition,
    message and hint, and often an error still proves that the target is there (`reachable`). Where
    an occupant is silent, `self` and `server` are pinged too, and `verdict` says whose silence it
    is. `roundTripMs` is absent where nothing came. Somebody called server, room or self, or by a
    name with an @, is reached by their full JID, `room@service/nickname`.
    """
    # Deferred, since tools are listed before it is loaded.
    connection = link.connection(link.room(room))
    try:
        found = await ping.ping_compared(connection, find(link, target, room), timeout_seconds)
    except ConnectionFailedError as ended:
        raise _ended(ended) from ended
    pong = found.pong
    result = {"target": target, **_told(pong), "verdict": found.verdict}
    answered, occupant = pong.seconds is not None, iq_errors.TargetKind.OCCUPANT
    if pong.seconds is None:
        between = {"self": found.own, "server": found.server}
        result |= {name: _told(one) for name, one in between.items() if one is not None}
    if pong.target.kind is occupant or (answered and pong.error is not None):
        result["notice"] = NOTICE  # the address has a nickname in it, an answer its sender's words
    return sanitized(result)


@tool("xmppInfo", title="What an XMPP address can do", read_only=True)
async def xmpp_info(
    link: RoomLink,
    /,
    target: TargetName,
    features: Annotated[bool, "list features and form fields too, default false"] = False,
    room: RoomName = None,
) -> Info:
    """Use this to find out what an XMPP address is and how it is set up (XEP-0030).

    Returns `identities`, `software`, `uptimeSeconds` and `featureCount`, as far as it tells them.
    `server` (the bridge's own) adds `connection`: its TLS, login and stream management; `room` how
    the `room` is set up (public, moderated, membersOnly, persistent, passwordProtected, anonymity,
    archived, ...) and the bridge `self` in it; a room service its public `rooms`, at most
    100. With `features: true` also each feature with the XEP that defines it, and the `fields` of
    forms. Works in the room or not; only a nickname needs the room. Takes at most 10 s: then
    `answered` is false. `notes` says what else was not answered, and what is left out. Fails where
    the address refuses.
    """
    # Deferred, since tools are listed before it is loaded.
    connection = link.connection(link.room(room))
    kind, address, _ = find(link, target, room)
    is_server = kind is iq_errors.TargetKind.SERVER
    try:
        found = await disco.discover(connection, address, is_server=is_server)
    except stanzas.IqError as refused:
        condition, text = refused.error.condition, refused.error.text
        meaning = iq_errors.of_error(condition, text, kind, address, "service discovery")
        raise ToolError(
            noticed(meaning.message), condition=meaning.condition, hint=meaning.hint
        ) from refused
    except ConnectionFailedError as ended:
        raise _ended(ended) from ended
    description = found.description
    known = {
        "feature_count": len(description.features) if found.answered else None,
        "software": None if found.software is None else _known(vars(found.software)),
        "uptime_seconds": found.uptime_seconds,
        "room": None if found.room is None else _known(found.room),
        "self": _self(link, address),
        "connection": _connection(link, connection) if is_server else None,
        "notes": [str(one) for one in found.unanswered],
        "notice": NOTICE,
    }
    about = {"target": target, "address": address, "answered": found.answered, **_known(known)}
    info: dict[str, Any] = sanitized(about, RESULT_BYTES - LISTS_BYTES)
    lists: dict[str, list[dict[str, object]]] = {
        "identities": [vars(one) for one in description.identities],
        "rooms": [vars(one) for one in found.rooms],
    }
    if features:
        standards = [(one, xeps.standard_of(one)) for one in description.features]
        standards.sort(key=lambda one: one[1] is None)
        lists["fields"] = [
            {"form": one.form, "field": one.name, "values": _values(one.values)}
            for one in description.fields
        ]
        lists["features"] = [
            {"feature": one, "xep": known and known.number, "name": known and known.name}
            for one, known in standards
        ]
    page: Page[object] = Page(size=RESULT_BYTES - NOTES_BYTES - json_size(info))
    for name, items in lists.items():
        shown = (sanitized(_known(one), ITEM_BYTES) for one in items[: MAX_ITEMS.get(name)])
        if fitting := list(takewhile(page.add, shown)):
            info[name] = fitting
        if left_out := len(items) - len(fitting):
            info["notes"].append(f"{left_out} further {name} are not shown.")
    if not info["notes"]:
        del info["notes"]
    return info


def _values(values: tuple[str, ...]) -> list[str]:
    more = len(values) - MAX_VALUES
    return [*values[:MAX_VALUES], *[f"... and {more} more"] * (more > 0)]


def _self(link: RoomLink, room: str) -> object:
    """Return the bridge as an occupant of the room; None if it is in no room of this JID."""
    rooms = [one for one in link.participant.memberships if one.jid == room]
    ours = [each for one in rooms for each in one.status().occupants if each.own]
    return occupant_entry(ours[0]) if ours else None


def _ended(error: ConnectionFailedError) -> ToolError:
    return failed(error.fault, "The connection ended before the answer came:")


def _told(pong: Pong) -> dict[str, object]:
    """Return what came of a ping."""
    error, seconds = pong.error, pong.seconds
    told = {
        "address": pong.target.address,
        "reachable": pong.reachable,
        "round_trip_ms": None if seconds is None else round(seconds * 1000, 3),
        "in_room": None if pong.in_room is None else pong.in_room.value,
        "error": None
        if error is None
        else {"condition": error.condition, "message": error.message, "hint": error.hint},
    }
    return _known(told)


def _known(fields: Mapping[str, object]) -> dict[str, object]:
    """Return the fields that are not None, under the names that users see."""
    return {wire_name(name): one for name, one in fields.items() if one is not None}


def _connection(link: RoomLink, connection: Connection) -> dict[str, object]:
    """Return how the bridge is connected to its server."""
    status, management = link.participant.status(), connection.management
    return _known(
        {
            "jid": status.jid,
            "service": status.service,
            "tls": None if status.tls is None else _known(vars(status.tls)),
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

    The words and the nicknames are those of the room of this name, or else of the default room.
    The words come first, so that nobody can stand before the server by a nickname; then what has
    an `@` and is a JID, for the same reason; then nicknames, then what else is a JID and no mere
    word, or our own server (`localhost` has no dot). Raises `ToolError` for what is none of these,
    and for a nickname when not in the room.
    """
    # Deferred, since tools are listed before it is loaded.
    kinds, target_of = iq_errors.TargetKind, iq_errors.Target
    membership = link.room(name)
    room, own, status = membership.jid, _occupant(membership), membership.status()
    domain = link.connection(membership).place.domain
    domain = prepared(domain) or domain
    match target:
        case "server":
            return target_of(kinds.SERVER, domain)
        case "room":
            return target_of(kinds.ROOM, room, own)
        case "self":
            return target_of(kinds.SELF, own, own)
    jid = prepared(target) or ""
    if not jid or "@" not in target:
        named = stanzas.occupant_jid(room, target)
        if named and any(one.jid == named for one in status.occupants):
            jid = named
        elif not jid or not (jid == domain or "." in target or "/" in target):
            if not status.connected:
                out = status.out_of(membership.name)
                raise failed(out, "A nickname is known in the room only.")
            raise nobody(
                [membership],
                target,
                "Give server, room, self, a nickname as it is written here, or a full JID.",
            )
    bare, _, resource = jid.partition("/")
    for one in link.participant.memberships:
        if bare == one.jid:
            own = _occupant(one)
            if jid == own:
                return target_of(kinds.SELF, jid, own)
            return target_of(kinds.OCCUPANT if resource else kinds.ROOM, jid, own)
    if jid == domain:
        return target_of(kinds.SERVER, jid)
    return target_of(kinds.ACCOUNT if "@" in bare else kinds.DOMAIN, jid)
