"""Who is in the rooms, and who went."""

import time
from collections.abc import Sequence
from itertools import islice
from typing import Annotated, TypeAlias

from bridge.mcp.errors import ArgumentError, ToolError
from bridge.mcp.schema import Bounds, always
from bridge.mcp.toolset import tool
from bridge.text import iso, quoted, visible
from bridge.tools.entries import (
    NOTICE,
    RESULT_BYTES,
    fit,
    json_size,
    nonempty,
    noticed,
)
from bridge.tools.link import (
    MAX_NAME_CHARACTERS,
    MAX_NAMED,
    RoomLink,
    RoomName,
    listed,
    not_in_room,
)
from bridge.tools.paging import MAX_LIMIT, Page
from bridge.xmpp.model.room import Departure, Occupant
from bridge.xmpp.muc.membership import Membership

OCCUPANT_BYTES = range(600, 2_000)
"""Of JSON, for one of them: the share of each, so that nobody hides the others behind a long status
text, and no less than what most have, nor more than is of use."""

LEFT_SECONDS = 3_600.0
"""How long somebody who went is told of."""

MAX_LEFT = 20
"""Of those who went, the newest that are told of."""

LEFT_BYTES = RESULT_BYTES // 4
"""Of JSON, for all of them: most of a result is for who is there."""

OccupantEntry: TypeAlias = Annotated[
    dict[str, object], always(nickname=str, role=str, affiliation=str, voice=bool)
]
"""Somebody in the room."""

Occupants: TypeAlias = Annotated[
    dict[str, object],
    always(
        count=Annotated[int, "in all"],
        more=bool,
        occupants=list[OccupantEntry],
        cursor=Annotated[str, "as `since`, gives what happened after this"],
    ),
]
"""Who is in a room, or in several."""


@tool("xmppOccupants", title="Who is in the XMPP room", read_only=True)
def xmpp_occupants(
    link: RoomLink,
    /,
    nickname: Annotated[str | None, Bounds(min_length=1, max_length=1023), "only this one"] = None,
    limit: Annotated[int, Bounds(minimum=1, maximum=MAX_LIMIT), "at most 500"] = 100,
    after: Annotated[
        str | None, Bounds(min_length=1, max_length=1023), "a nickname: go on behind it"
    ] = None,
    room: RoomName = None,
) -> Occupants:
    """Use this to see who is in the room and can speak in it, and when and why others left.

    A bot that is not listed hears nothing; what one without `voice` says, a moderated room drops.
    Each has, where there is something to say: `show`, `status`, `jid` (the real one, where the
    room shows it), `since` (when it came; absent: it was there before the bridge),
    `lastMessageAt` (the last that the bridge saw), `sameAccountAs` (other nicknames of the same
    account), `self` (the bridge). `left`: who went in the last hour, newest first: `nickname`,
    `at`, `why`, `by`. Nicknames are in order; where `more`, give the last as `after`. With several
    rooms each has its `room`, and `notIn` names those the bridge is not in; in none, it fails.
    """
    asked = link.room(room)
    rooms = [*link.participant.memberships] if room is None else [asked]
    if after is not None and len(rooms) > 1:
        raise ArgumentError(
            "after is a place among the people of one room.",
            condition="bad-request",
            hint="Name the room, too.",
        )
    inside = [one for one in rooms if one.status().connected]
    if not inside:
        raise not_in_room(asked.name, asked.status())
    found = occupants_of(link, rooms, nickname, limit, after)
    if nickname is not None and not found["count"] and "left" not in found:
        raise nobody(inside, nickname, "Write the nickname as it stands here; case matters.")
    return found


def occupants_of(
    link: RoomLink,
    rooms: "list[Membership]",
    nickname: str | None = None,
    limit: int = MAX_LIMIT,
    after: str | None = None,
) -> Occupants:
    """Return who is in these rooms, and who went.

    With `nickname` only of this nickname, as it is or as it is shown; with `after` only those
    behind it in the order of nicknames, and nobody who went.
    """
    several = len(rooms) > 1
    pictures = {one.name: one.status() for one in rooms}
    names = {room: room if several else None for room, one in pictures.items() if one.connected}
    here = [
        (one, room)
        for room in names
        for one in sorted(pictures[room].occupants, key=lambda one: visible(one.nickname))
        if nickname is None or nickname in {one.nickname, visible(one.nickname)}
    ]
    head: Occupants = {
        "room": None if several else next(iter(pictures), None),
        "cursor": link.participant.journal.cursor,
        "notIn": [room for room in pictures if room not in names] if several else None,
    }
    # So that the names of rooms leave room for people.
    found = fit(nonempty(head), RESULT_BYTES // 2)
    found |= {"count": len(here), "more": False}
    went = sorted(
        (
            (one, room)
            for room in names
            for one in pictures[room].departures
            if one.at >= time.time() - LEFT_SECONDS
            and nickname in {None, one.nickname, visible(one.nickname)}
        ),
        key=lambda went: -went[0].at,
    )
    left: Page[dict[str, object]] = Page(MAX_LEFT, LEFT_BYTES)
    for departure, room in went if after is None else ():
        if not left.add(_departure_entry(departure, names[room])):
            break
    found |= nonempty({"left": left.entries})
    if here or left.entries:
        found["notice"] = NOTICE
    # Those who are there come before those who went, and take what is left of the result.
    page: Page[OccupantEntry] = Page(limit, RESULT_BYTES - json_size(found | {"occupants": []}))
    rest = [one for one in here if after is None or visible(one[0].nickname) > visible(after)]
    share = page.bytes_left // max(min(len(rest), limit), 1) - len(", ")
    most = min(max(share, OCCUPANT_BYTES.start), OCCUPANT_BYTES.stop)
    accounts = {room: pictures[room].accounts for room in names}
    found["more"] = not all(
        page.add(occupant_entry(one, most, names[room], accounts[room].get(one.account or "", ())))
        for one, room in rest
    )
    return found | {"occupants": page.entries}


def occupant_entry(
    occupant: Occupant,
    most: int = RESULT_BYTES,
    room: str | None = None,
    account: Sequence[str] = (),
) -> OccupantEntry:
    """Return what `occupant` looks like to an agent, in `most` bytes of JSON.

    `room` is named where several are listed; `account` has all nicknames of the same account, of
    which `MAX_NAMED` others are named.
    """
    spoke, others = occupant.last_message_at, (one for one in account if one != occupant.nickname)
    exact: OccupantEntry = {
        "nickname": occupant.nickname,
        "role": occupant.role,
        "affiliation": occupant.affiliation,
        "voice": occupant.voice,
    }
    more: dict[str, object] = {
        "show": occupant.show,
        "status": occupant.status,
        "jid": occupant.real_jid,
        "since": None if occupant.since is None else iso(occupant.since),
        "lastMessageAt": None if spoke is None else iso(spoke),
        "sameAccountAs": [*islice(others, MAX_NAMED)],
        "self": occupant.own,
        "room": room,
    }
    return fit(exact | nonempty(more), most)


def _departure_entry(departure: Departure, room: str | None) -> dict[str, object]:
    entry: dict[str, object] = {
        "nickname": departure.nickname,
        "at": iso(departure.at),
        "why": departure.why,
        "by": departure.by,
        "room": room,
    }
    return fit(nonempty(entry), OCCUPANT_BYTES.start)


def nobody(rooms: Sequence[Membership], name: str, hint: str) -> ToolError:
    """Return the error for a nickname that is in none of the rooms."""
    names = sorted({one.nickname for room in rooms for one in room.status().occupants})
    where = "room" if len(rooms) == 1 else "rooms"
    return ToolError(
        noticed(
            f"Nobody in the {where} is called {quoted(name, MAX_NAME_CHARACTERS)}. "
            f"In the {where}: {listed(names)}."
        ),
        condition="item-not-found",
        hint=hint,
    )
