"""Paged queries of the room's own archive (XEP-0313)."""

import secrets
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from bridge.xmpp import stanzas
from bridge.xmpp.events import Event

if TYPE_CHECKING:
    from bridge.xmpp.connection import Connection

PAGE = 100
"""Messages asked for at a time; servers may give fewer."""


async def exists(connection: "Connection", room: str) -> bool:
    """Tell whether the room says that it keeps an archive (XEP-0313, section 7)."""
    features = await connection.features_of(room)
    return stanzas.MAM in features


async def since(connection: "Connection", room: str, start: str) -> AsyncIterator[Event]:
    """Yield what the room has archived from `start` (a time in UTC) on, oldest first.

    Raises `StanzaRefusedError` where the room has no archive, `ConnectionFailedError` when the
    connection ends.
    """
    after: str | None = None
    while True:
        id_ = secrets.token_hex(8)
        payload = stanzas.archive_query(id_, start, after, PAGE)
        results, finished = await connection.collect(id_, room, payload)
        for result in results:
            for event in stanzas.read_archived(result, room=room, own=connection.occupant):
                yield event
        complete, last = stanzas.end_of_page(finished)
        if complete or last == after:
            return
        after = last
