"""Queries the room and its room service before joining, for the check (XEP-0045, section 6)."""

import asyncio
from collections.abc import Callable

from bridge.text import quoted
from bridge.xmpp import disco, faults, stanzas
from bridge.xmpp.connection import Connection
from bridge.xmpp.faults import ConnectionFailedError, Place
from bridge.xmpp.iq import IqError

DISCO_SECONDS = 5.0
"""For one answer to a query whose failure decides nothing."""

MAX_SERVICES_ASKED = 10
"""Items of the server that are queried for room services."""

_SILENCE = "remote-server-timeout"
"""The condition of an address that does not answer."""


class RoomService:
    """Queries the room service and the room over a connection; `find` gets each finding."""

    def __init__(self, place: Place, connection: Connection, find: Callable[[str], None]) -> None:
        self._place = place
        self._connection = connection
        self._find = find
        self.others: list[str] = []
        """The room services of our server, where the configured one is none."""

    async def look(self) -> None:
        """Query both; raises `ConnectionFailedError` where joining can only fail."""
        place = self._place
        service = stanzas.prepared(place.room_service) or place.room_service
        features, refusal = await self._ask(service)
        if refusal is not None:
            self._find(f"{service} does not answer disco ({refusal.condition}); joining decides")
        elif stanzas.MUC in features:
            self._find(f"{service} is a room service")
        elif features:
            self._find(f"{service} does not name {stanzas.MUC} among its features")
        else:
            self._find(f"{service} says nothing of what it is; joining decides")
        if stanzas.MUC not in features and (refusal is None or refusal.condition != _SILENCE):
            await self._find_others(service)
        # Joining would only fail with the same condition.
        if refusal is not None and refusal.condition == "remote-server-not-found":
            fault = faults.of_join_error(refusal.condition, refusal.text, place, None)
            raise ConnectionFailedError(fault)
        if refusal is None:
            room = stanzas.prepared(place.room) or place.room
            of_room, refusal = await self._ask(room)
            self._find(_description(of_room, refusal))
            if features and stanzas.MUC not in features | of_room:
                raise ConnectionFailedError(faults.of("no-room-service", place))

    async def _ask(self, target: str) -> tuple[frozenset[str], stanzas.StanzaError | None]:
        """Return the features of an address, or the error in place of them."""
        try:
            async with asyncio.timeout(DISCO_SECONDS):
                return await disco.features_of(self._connection, target), None
        except IqError as refused:
            return frozenset(), refused.error
        except TimeoutError:
            return frozenset(), stanzas.StanzaError(_SILENCE)

    async def _find_others(self, doubted: str) -> None:
        """Query the server for its room services."""
        domain = stanzas.prepared(self._place.domain) or self._place.domain
        try:
            async with asyncio.timeout(DISCO_SECONDS):
                answer = await self._connection.request("get", domain, stanzas.items_query())
                for item in stanzas.items_in(answer)[:MAX_SERVICES_ASKED]:
                    if "@" not in item and item != doubted:
                        features, _ = await self._ask(item)
                        if stanzas.MUC in features:
                            self.others.append(item)
        except (IqError, TimeoutError):
            return
        if self.others:
            self._find(f"room services of {domain}: {', '.join(map(quoted, self.others))}")


def _description(features: frozenset[str], refusal: stanzas.StanzaError | None) -> str:
    if refusal is not None and refusal.condition == "item-not-found":
        return "the room does not exist yet"
    if refusal is not None:
        return f"the room does not answer disco ({refusal.condition})"
    kinds = sorted(one.removeprefix("muc_") for one in features if one.startswith("muc_"))
    archive = "with an archive" if stanzas.MAM in features else "without an archive"
    kind = quoted(", ".join(kinds)) if kinds else "nothing said of its kind"
    return f"the room exists ({kind}), {archive}"
