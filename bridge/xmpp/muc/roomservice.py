"""Queries a room service and its rooms by service discovery (XEP-0045, section 6)."""

import asyncio
from contextlib import suppress
from difflib import get_close_matches
from xml.etree.ElementTree import Element

from bridge.text import quoted
from bridge.wire import names
from bridge.wire.names import StanzaError
from bridge.xmpp.link.connection import Connection
from bridge.xmpp.link.from_slixmpp import prepared
from bridge.xmpp.model import faults
from bridge.xmpp.model.faults import ConnectionFailedError, Fault, Place
from bridge.xmpp.queries import disco
from bridge.xmpp.queries.disco import Description, Item

DISCO_SECONDS = 5.0
"""Seconds for one answer to a query; a query without an answer does not make joining fail."""

MAX_SERVICES_ASKED = 10
"""Most items of the server that we ask for their kind, to find room services."""

MAX_ROOMS_LISTED = 500
"""Most rooms of a service that we list, and compare with our room by their names."""

MAX_NAME_CHARACTERS = 60
"""Most characters of a room's name that we compare: the time grows with their square."""

MAX_SIMILAR = 5
"""Most rooms with similar names that we report."""

ITEM_NOT_FOUND = "item-not-found"
"""The condition of the error for a room that does not exist (XEP-0045, section 6.4)."""

SILENCE = "remote-server-timeout"
"""The condition of the error for an address that does not answer."""


async def ask(connection: Connection, target: str) -> tuple[Description, StanzaError | None]:
    """Return the description of an address, and an error if it refuses or does not answer.

    Raises `ConnectionFailedError` when the connection ends.
    """
    target = prepared(target) or target
    answer = await disco.ask(connection, target, names.DISCO_INFO, DISCO_SECONDS)
    refusal = None if isinstance(answer, Element) else answer.error or StanzaError(SILENCE)
    return disco.description_in(answer), refusal


def denies(description: Description) -> bool:
    """Whether an address with this description is neither a room nor a room service.

    A gateway may have rooms and not say so.
    """
    described = bool(description.identities or description.features)
    may_have = description.is_room or description.is_gateway or names.MUC in description.features
    return described and not may_have


def denial(place: Place, description: Description, refusal: StanzaError | None) -> Fault | None:
    """Return why we can join no room of a service that answers so; None if we may."""
    if refusal is not None and refusal.condition == "remote-server-not-found":
        return faults.of_join_error(refusal.condition, refusal.text, place, None)
    return faults.of("no-room-service", place) if denies(description) else None


async def room_services(connection: Connection, domain: str, doubted: str = "") -> list[str]:
    """Return the room services that the server of `domain` lists, without the `doubted` service.

    Services that do not answer within `DISCO_SECONDS` are left out. Raises `ConnectionFailedError`
    when the connection ends.
    """
    services: list[str] = []
    with suppress(TimeoutError):
        async with asyncio.timeout(DISCO_SECONDS):
            items = await _items(connection, prepared(domain) or domain)
            for item in items[:MAX_SERVICES_ASKED]:
                if "@" not in item.jid and item.jid != doubted:
                    description, _ = await ask(connection, item.jid)
                    if names.MUC in description.features:
                        services.append(item.jid)
    return services


def gone(place: Place, condition: str) -> Fault:
    """Return the fault of a room whose service is gone; an error with `condition` showed it."""
    return faults.of("service-gone", place, condition=condition)


class ServiceHealth:
    """Whether the service of one room is there, as the room's errors show."""

    def __init__(self) -> None:
        self.has_let_in = False
        """Whether the service has let us into the room. If so, its name is right."""
        self.bounce: StanzaError | None = None
        """The error with which a message came back, if we have not asked the service since."""

    async def loss(self, connection: Connection, place: Place) -> Fault | None:
        """After a `bounce`, ask the service; return a fault if the service is gone, otherwise None.

        Raises `ConnectionFailedError`.
        """
        bounce, self.bounce = self.bounce, None
        if bounce is None or not await disco.is_gone(connection, place.room_service, bounce):
            return None
        return gone(place, bounce.condition)

    async def explained(
        self, connection: Connection, place: Place, fault: Fault, *, refused: bool
    ) -> Fault:
        """Return `fault` with what the server and the service say about it.

        `refused` says that the room did not let us in. Raises `ConnectionFailedError`.
        """
        # We do not ask a server again that did not answer: the fault would be reported late.
        if fault.condition == SILENCE:
            return fault
        guesses = faults.guesses_service(fault, place)
        # Without a guess, `service-unavailable` may mean that the room is full.
        is_unclear = fault.condition == "service-unavailable" and not guesses
        if refused and (self.has_let_in or is_unclear):
            error = StanzaError(fault.condition)
            if await disco.is_gone(connection, place.room_service, error):
                return gone(place, fault.condition)
        if guesses:
            services = await room_services(connection, place.domain, place.room_service)
            return faults.with_services(fault, place, services)
        return fault


async def rooms_of(connection: Connection, service: str) -> list[Item]:
    """Return the rooms that `service` (prepared) lists, at most `MAX_ROOMS_LISTED`.

    The list is empty if it does not answer within `DISCO_SECONDS`. Raises `ConnectionFailedError`
    when the connection ends.
    """
    items = await _items(connection, service)
    return [item for item in items[:MAX_ROOMS_LISTED] if item.jid.endswith(f"@{service}")]


async def similar_rooms(connection: Connection, room: str, service: str = "") -> list[str]:
    """Return the JIDs of the rooms of `service` whose names are similar to `room`'s name.

    Without `service`, look among the rooms of the room's own service. The most similar one is the
    first, and `room` itself is left out. `room` and `service` are prepared. The list is empty if
    the service does not answer within `DISCO_SECONDS`, or lists no similar room, or the connection
    ends.
    """
    try:
        rooms = await rooms_of(connection, service or room.partition("@")[2])
    except ConnectionFailedError:
        return []
    names = {
        name: item.jid
        for item in rooms
        if item.jid != room and len(name := item.jid.partition("@")[0]) <= MAX_NAME_CHARACTERS
    }
    ours = room.partition("@")[0][:MAX_NAME_CHARACTERS]
    # In a thread, since strangers may choose names for which the comparison takes half a second.
    similar = await asyncio.to_thread(get_close_matches, ours, names, MAX_SIMILAR)
    return [names[name] for name in similar]


async def _items(connection: Connection, address: str) -> tuple[Item, ...]:
    answer = await disco.ask(connection, address, names.DISCO_ITEMS, DISCO_SECONDS)
    return disco.items_in(answer)


def described(room: Description, refusal: StanzaError | None) -> str:
    """Return what a room says of itself, for a finding."""
    if refusal is not None and refusal.condition == ITEM_NOT_FOUND:
        return "the room does not exist yet"
    if refusal is not None:
        return f"the room does not answer disco ({refusal.condition})"
    features = frozenset(room.features)
    kinds = sorted(name.removeprefix("muc_") for name in features if name.startswith("muc_"))
    archive = "with an archive" if names.MAM in features else "without an archive"
    kind = quoted(", ".join(kinds)) if kinds else "nothing said of its kind"
    return f"the room exists ({kind}), {archive}"
