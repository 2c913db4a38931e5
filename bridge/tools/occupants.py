"""Who is in the rooms, and who went."""

from collections.abc import Sequence
from itertools import islice
from typing import Annotated, TypeAlias

from bridge.mcp.errors import ArgumentError, ToolError
from bridge.mcp.schema import Bounds, always
from bridge.mcp.toolset import tool
from bridge.store.clock import Instant
from bridge.text import iso, listed, name_of, visible
from bridge.tools.entries import NOTICE, RESULT_BYTES, Entry, fit, nonempty, noticed
from bridge.tools.link import MAX_NAMED, Nickname, RoomLink, RoomName, not_in_room
from bridge.tools.paging import MAX_LIMIT
from bridge.xmpp.model.room import Occupant
from bridge.xmpp.muc.membership import Membership

LEFT_SECONDS = 3_600.0
"""How long an occupant who left is listed in `left`."""

MAX_LEFT = 20
"""The most entries of `left`, for the last who went."""

UNLISTED = frozenset({"left", "notShown"})
"""The fields of a result that name people who are not among its occupants."""

NOT_SHOWN = "not shown by the room"
"""Why an occupant who speaks is not listed."""

LEFT_BYTES = RESULT_BYTES // 4
"""Bytes of JSON for the people who left; the rest of a result is for the occupants."""

OccupantEntry: TypeAlias = Annotated[
    dict[str, object], always(nickname=str, role=str, affiliation=str, voice=bool)
]
"""An occupant, as agents get it."""

Occupants: TypeAlias = Annotated[
    dict[str, object], always(count=int, more=bool, occupants=list[OccupantEntry], cursor=str)
]
"""Who is in a room, or in several."""


@tool("xmppOccupants", title="Who is in the XMPP room", read_only=True)
def xmpp_occupants(
    link: RoomLink,
    /,
    nickname: Annotated[Nickname, "only this one"] = None,
    limit: Annotated[int, Bounds(minimum=1, maximum=MAX_LIMIT)] = 100,
    after: Annotated[Nickname, "a nickname"] = None,
    room: RoomName = None,
) -> Occupants:
    """To see who is in the room and can speak in it, and who left, when and why.

    Who is not listed hears nothing; who has no `voice` is not heard in a moderated room. `left`:
    who went in the last hour, `why` and `by` whom. `notShown`: who speaks and is not listed.
    `since` is absent for who was there before the bridge. If `more`, give the last as `after`.
    """
    asked = link.room(room)
    rooms = [*link.participant.memberships] if room is None else [asked]
    if nickname is not None and "@" in nickname:
        asked, nickname = link.occupant(nickname, room)
    if after is not None and len(rooms) > 1:
        raise ArgumentError(
            "after is a place among the people of one room.",
            condition="bad-request",
            hint="Name the room, too.",
        )
    inside = [membership for membership in rooms if membership.status().connected]
    if not inside:
        raise not_in_room(asked.name, asked.status())
    result = occupants_of(link, rooms, nickname, limit, after)
    if nickname is not None and not result["count"] and result.keys().isdisjoint(UNLISTED):
        hint = "Write the nickname exactly as it is here; case matters."
        raise unknown_nickname(link, inside, nickname, hint)
    return result


def occupants_of(
    link: RoomLink,
    rooms: "list[Membership]",
    nickname: str | None = None,
    limit: int = MAX_LIMIT,
    after: str | None = None,
) -> Occupants:
    """Return who is in these rooms, and who left.

    With `nickname`, as it is or as `visible` escapes it, only people of this nickname are listed.
    With `after`, only occupants whose nicknames follow it in order are listed, and no departures.
    """
    several, now = len(rooms) > 1, Instant.now()
    statuses = {membership.name: membership.status() for membership in rooms}
    here: list[tuple[Occupant, Sequence[str], str | None]] = []
    went: list[tuple[float, Entry]] = []
    for name, status in statuses.items():
        if not status.connected:
            continue
        room, accounts = name if several else None, status.accounts
        here += [
            (occupant, accounts.get(occupant.account or "", ()), room)
            for occupant in sorted(status.occupants, key=lambda who: who.visible_nickname)
            if nickname in {None, occupant.nickname, occupant.visible_nickname}
        ]
        for departure in status.departures:
            named = nickname in {None, departure.nickname, visible(departure.nickname)}
            if named and now - departure.at <= LEFT_SECONDS and after is None:
                entry = departure._asdict() | {"at": iso(departure.at), "room": room}
                went.append((departure.at, nonempty(entry)))
    went.sort(key=lambda pair: pair[0], reverse=True)
    begin = "" if after is None else visible(after)
    rest = [who for who in here if who[0].visible_nickname > begin]
    hidden = [
        nonempty(
            {
                "nickname": speaker.nickname,
                "lastMessageAt": iso(speaker.last_message_at or 0.0),
                "why": NOT_SHOWN,
                "room": name if several else None,
            }
        )
        for name, status in statuses.items()
        for speaker in reversed(status.unlisted)
        if after is None and nickname in {None, speaker.nickname, speaker.visible_nickname}
    ]
    hidden = fit({}, LEFT_BYTES, hidden=hidden[:MAX_LEFT])["hidden"]
    left = fit({}, LEFT_BYTES, left=[entry for _, entry in went[:MAX_LEFT]])["left"]
    out = [name for name, status in statuses.items() if not status.connected]
    head: Occupants = {
        "room": None if several else next(iter(statuses), None),
        "cursor": link.participant.journal.cursor,
        "notIn": out if several else None,
        "notShown": hidden,
        "left": left,
        "notice": NOTICE if here or left or hidden else None,
    }
    result = nonempty(head) | {"count": len(here), "more": True}
    fitting = fit(result, occupants=[exact_of(*who) for who in rest[:limit]])
    return fitting | {"more": len(fitting["occupants"]) < len(rest)}


def exact_of(
    occupant: Occupant, account: Sequence[str] = (), room: str | None = None
) -> OccupantEntry:
    """Return what is known of `occupant`, under the names that users see.

    `account` has all nicknames of the same account; the result names at most `MAX_NAMED` others.
    `room` is given if the result lists several rooms.
    """
    spoke = occupant.last_message_at
    others = (name for name in account if name != occupant.nickname)
    exact: OccupantEntry = {
        "nickname": occupant.nickname,
        "role": occupant.role,
        "affiliation": occupant.affiliation,
        "voice": occupant.voice,
    }
    more: Entry = {
        "show": occupant.show,
        "status": occupant.status,
        "jid": occupant.real_jid,
        "since": None if occupant.since is None else iso(occupant.since),
        "lastMessageAt": None if spoke is None else iso(spoke),
        "sameAccountAs": [*islice(others, MAX_NAMED)],
        "payload": [*occupant.payload],
        "self": occupant.own,
        "room": room,
    }
    return exact | nonempty(more)


def unknown_nickname(
    link: RoomLink, rooms: Sequence[Membership], name: str, hint: str
) -> ToolError:
    """Return the error for a nickname that is in none of the rooms."""
    statuses = [room.status() for room in rooms]
    names = sorted({occupant.nickname for status in statuses for occupant in status.occupants})
    where = "room" if len(rooms) == 1 else "rooms"
    if not all(status.shows_all for status in statuses):
        hint = f"The {where} may hide {name_of(name)}: not everybody is shown. {hint}"
    message = f"Nobody in the {where} is called {name_of(name)}. "
    message += f"In the {where}: {listed(names, MAX_NAMED, name_of)}. "
    message += link.elsewhere(name, rooms)[0]
    return ToolError(noticed(message.rstrip()), condition="item-not-found", hint=hint)
