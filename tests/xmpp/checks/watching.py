"""What the bridge has watched in a room, and the evidence in it on a bot with the name Robot."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from bridge.xmpp.checks.diagnosis import find
from bridge.xmpp.checks.evidence import Evidence, Finding, Past, Person, Ping
from bridge.xmpp.model.events import Event, MessageReceived, OccupantJoined, OccupantLeft
from bridge.xmpp.model.journal import Journal
from bridge.xmpp.model.room import Occupant
from tests.tools.played import ROOM, STATUS

Act: TypeAlias = tuple[float, Event]
BOT = Occupant(f"{ROOM}/Robot", "Robot", "participant", "none", None)
ALIVE = Ping(0.003, None, "It answers.", alone=False)
DEAD = Ping(None, None, "The occupant alone is silent.", alone=True)


def said(nickname: str, body: str, **more: object) -> MessageReceived:
    return MessageReceived(f"{ROOM}/{nickname}", nickname, body)._replace(**more)  # type: ignore[arg-type]


def came(nickname: str = "Robot") -> OccupantJoined:
    return OccupantJoined(f"{ROOM}/{nickname}", nickname, "participant", "none")


def left(nickname: str = "Robot", *codes: int) -> OccupantLeft:
    return OccupantLeft(f"{ROOM}/{nickname}", nickname, codes=frozenset(codes))


def evidence(
    acts: Sequence[Act], *, occupant: Occupant | None = BOT, told: int = 0, **more: object
) -> Evidence:
    """Of what happened at these times, with the bot in the room.

    The room has `told` us of the first ones because we entered.
    """
    journal = Journal("epoch")
    nickname = occupant.nickname if occupant else "Robot"
    past = Past(nickname, there=occupant is not None, person=Person.of(occupant))
    for number, (at, event) in enumerate(acts):
        journal.append(event, at, ROOM, earlier=number < told)
    past.read(reversed(journal))
    there = (occupant,) if occupant else ()
    status = replace(STATUS, occupants=(*STATUS.occupants, *there))
    now = acts[-1][0] if acts else 0.0
    made = Evidence(nickname, ROOM, status, occupant, past, now, ping=ALIVE)
    return made._replace(**more)  # type: ignore[arg-type]


def look(name: str, given: Evidence) -> Finding:
    return find(given)[1][name]
