"""What happens in the room, told as it happens, by a server that lets us watch."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

from bridge.console.client import Client
from bridge.console.errors import RequestError, ServerError
from bridge.escaping import one_line
from bridge.mcp.jsonrpc import Json
from bridge.xmpp.formatting import format_event

WATCHED = ("bridge://status", "bridge://room/occupants", "bridge://room/messages")
"""What the bridge says has changed; together they cover all that can happen."""

HISTORY = "xmppHistory"
OCCUPANTS = "xmppOccupants"

CHANGES_WHO_IS_HERE = frozenset({"join", "leave", "nick", "connection"})
"""Kinds of events after which nicknames for completion are learnt anew."""

PAGE = 500
"""Events in one look: as many as the bridge gives at once."""

MAX_CHARACTERS = 20_000
"""Of one event: more than the longest that the bridge tells, and less than a screen is lost in."""

log = logging.getLogger(__name__)


class RoomFollower:
    """Watches the room's resources, and reads its history from where it last stopped.

    It speaks MCP, whatever a person has the console speak: the bare dialect has nothing to watch.
    """

    def __init__(self, client: Client, tell: Callable[[str], None]) -> None:
        self.following = False
        """Whether what happens is told here, so that the server's log need not be."""
        self._client = client
        self._catalogue = client.catalogue
        self._tell = tell
        self._cursor: str | None = None
        self._changed = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._subscribed: list[str] = []

    async def start(self) -> None:
        """Begin to watch; a server that has no such room is left alone."""
        uris = [one for one in WATCHED if one in self._catalogue.resources]
        if not uris or HISTORY not in self._catalogue.tools:
            return
        if self._cursor is None:
            newest = await self._client.structured_content(HISTORY, {"limit": 1})
            if newest is None:
                return
            self._cursor = str(newest.get("next"))
        if self._client.dialect.revision.handshake:
            try:
                for uri in uris:
                    await self._client.request("resources/subscribe", {"uri": uri})
                    self._subscribed.append(uri)
            except RequestError as refusal:
                log.debug("nothing can be watched: %s", one_line(str(refusal), MAX_CHARACTERS))
                return
        else:
            self._tasks.append(asyncio.create_task(self._listen(uris)))
        self.following = True
        self._changed.set()
        self._tasks.append(asyncio.create_task(self._follow()))
        await self._learn_names()

    async def stop(self) -> None:
        """Stop telling, and watching; to begin again, in whatever revision, is possible."""
        self.following = False
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        uris, self._subscribed = self._subscribed, []
        with suppress(RequestError, ServerError):
            for uri in uris:
                await self._client.request("resources/unsubscribe", {"uri": uri})

    def updated(self, params: Json) -> None:
        """Hear that something watched has changed (`notifications/resources/updated`)."""
        if isinstance(params, dict) and params.get("uri") in WATCHED:
            self._changed.set()

    async def _listen(self, uris: list[str]) -> None:
        # The answer comes when the listening ends; to cancel it is the way to end it.
        wanted: dict[str, Json] = {"notifications": {"resourceSubscriptions": uris}}
        with suppress(RequestError, ServerError):
            await self._client.request("subscriptions/listen", wanted)
        self.following = False

    async def _follow(self) -> None:
        with suppress(ServerError):  # whoever talks to the server says so
            while True:
                await self._changed.wait()
                self._changed.clear()
                await self._catch_up()

    async def _catch_up(self) -> None:
        more, moved = True, False
        while more:
            page = await self._client.structured_content(
                HISTORY, {"since": self._cursor, "limit": PAGE}
            )
            if page is None:
                return
            entries = page.get("entries")
            for one in entries if isinstance(entries, list) else ():
                if isinstance(one, dict) and one.get("direction") != "out":
                    self._tell(one_line(format_event(one), MAX_CHARACTERS))
                    moved = moved or str(one.get("kind")) in CHANGES_WHO_IS_HERE
            more = page.get("more") is True and page.get("next") != self._cursor
            self._cursor = str(page.get("next"))
        if moved:
            await self._learn_names()

    async def _learn_names(self) -> None:
        here = await self._client.structured_content(OCCUPANTS, {})
        occupants = here.get("occupants") if here is not None else None
        listed = occupants if isinstance(occupants, list) else []
        self._catalogue.nicknames = [
            str(one["nickname"]) for one in listed if isinstance(one, dict) and "nickname" in one
        ]
