"""A connection made of plain values, for tools that ask something over it."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias, cast
from xml.etree.ElementTree import Element

from bridge.tools.link import RoomLink
from bridge.xmpp.link.connection import Connection
from bridge.xmpp.link.from_slixmpp import prepared
from bridge.xmpp.link.session import StreamManagement
from bridge.xmpp.model.events import Phase
from bridge.xmpp.model.faults import Fault, Place
from bridge.xmpp.model.room import LastError, Occupant, RoomStatus
from tests.tools.played import ROOM, STATUS, Played, in_room
from tests.xmpp.elements import parsed

OWN = f"{ROOM}/McpDebug"
Answer: TypeAlias = Callable[[str, str], Element | Exception | None]
"""From the address and the namespace that was asked for; None: silence."""


PLACE = Place("xmpp://example:5222", "Example", "bot@example", ROOM, "McpDebug")


def occupant(nickname: str) -> Occupant:
    """Somebody in the room."""
    return Occupant(f"{ROOM}/{nickname}", nickname, "participant", "none", 0.0)


@dataclass
class Asked:
    """Answers as `answer` says; knows what was asked."""

    answer: Answer
    occupant: str = OWN
    management: StreamManagement = field(default_factory=lambda: StreamManagement(print, "", None))
    channel_binding: str | None = "tls-server-end-point"
    place: Place = PLACE
    asked: list[tuple[str, str]] = field(default_factory=list)

    async def request(self, type_: str, to: str, payload: Element) -> Element:
        assert type_ == "get"
        namespace = payload.tag[1:].partition("}")[0]
        self.asked.append((to, namespace))
        await asyncio.sleep(0)  # no server answers in the same turn
        answer = self.answer(to, namespace)
        if answer is None:
            await asyncio.Event().wait()
        assert answer is not None
        if isinstance(answer, Exception):
            raise answer
        return answer


@dataclass
class Standing(Played):
    """A participant in the room, with a connection."""

    stream: Asked = field(default_factory=lambda: Asked(lambda *_: parsed("<iq type='result'/>")))
    place: Place = PLACE

    @property
    def connection(self) -> Connection:
        return cast("Connection", self.stream)

    async def recount(self) -> None:
        """It shows everybody."""


def standing(answer: Answer | None = None, *nicknames: str) -> tuple[RoomLink, Asked]:
    """The way to a room where these people are, besides the bridge; and what is asked on it."""
    stream = Asked(answer or (lambda *_: parsed("<iq type='result'/>")))
    everybody = (*STATUS.occupants, *map(occupant, nicknames))
    participant = Standing(picture=_with(everybody), stream=stream)
    return participant.link, stream


def outside() -> tuple[RoomLink, Asked]:
    """The way to a room that has put the bridge out, on a connection that stands."""
    stream = Asked(lambda *_: parsed("<iq type='result'/>"))
    fault = Fault("not-allowed", "We were kicked.", "Ask a moderator.")
    status = replace(STATUS, phase=Phase.WAITING, occupants=(), last_error=LastError(fault, 0.0))
    return Standing(picture=status, occupant="", stream=stream).link, stream


def standing_in(*rooms: tuple[str, str]) -> tuple[RoomLink, Asked]:
    """The way to rooms, in each of which is one more; and what is asked on the connection."""
    stream = Asked(lambda *_: parsed("<iq type='result'/>"))
    default, *further = [
        Standing(in_room(room, nickname), room, f"{prepared(room)}/McpDebug", stream=stream)
        for room, nickname in rooms
    ]
    default.further = tuple(further)
    return default.link, stream


def _with(everybody: tuple[Occupant, ...]) -> RoomStatus:
    return replace(STATUS, occupants=everybody)
