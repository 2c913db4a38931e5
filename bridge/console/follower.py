"""Shows the events of the room as they happen, if the server lets us subscribe to them."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

from bridge.console.client import Client
from bridge.console.errors import RequestError, ServerError
from bridge.console.formatting import objects
from bridge.mcp.jsonrpc import Json
from bridge.text import one_line
from bridge.xmpp.formatting import format_event

RESOURCES = ("bridge://status", "bridge://room/occupants", "bridge://room/messages")
"""The bridge's resources; together their updates cover every event."""

PRESENCE_KINDS = frozenset({"join", "leave", "nick", "connection"})
"""The kinds of events that change who is in the room."""

PAGE = 500
"""Events in one call of xmppHistory: the most that it returns."""

MAX_CHARACTERS = 20_000
"""Length of the line of one event: more than the bridge's longest, and less than fills a screen
many times."""

log = logging.getLogger(__name__)


class RoomFollower:
    """Subscribes to the room's resources, and reads its history on from where it stopped.

    It speaks MCP even while the client's dialect is bare, which has no subscriptions.
    """

    def __init__(self, client: Client, tell: Callable[[str], None], *, enabled: bool) -> None:
        """Show each event with `tell`; unless `enabled`, `start` does nothing."""
        self.following = False
        """Whether events are shown here, so that the lines of the server's log need not be."""
        self._client = client
        self._tell = tell
        self._enabled = enabled
        self._cursor: str | None = None
        self._updated = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._subscribed: list[str] = []

    async def start(self) -> None:
        """Subscribe, and show what happens from now on; do nothing for a server without a room."""
        client = self._client
        uris = [uri for uri in RESOURCES if uri in client.catalogue.resources]
        if not (self._enabled and uris and "xmppHistory" in client.catalogue.tools):
            return
        if self._cursor is None:
            newest = await client.structured_content("xmppHistory", {"limit": 1})
            if newest is None:
                return
            self._cursor = str(newest.get("next"))
        if client.dialect.revision.handshake:
            try:
                for uri in uris:
                    await client.request("resources/subscribe", {"uri": uri})
                    self._subscribed.append(uri)
            except RequestError as refusal:
                log.debug("no subscription: %s", one_line(str(refusal), MAX_CHARACTERS))
                return
        else:
            self._tasks.append(asyncio.create_task(self._listen(uris)))
        self.following = True
        self._updated.set()
        self._tasks.append(asyncio.create_task(self._follow()))
        await self._read_nicknames()

    async def stop(self) -> None:
        """End the subscriptions; `start` may begin again, in whatever revision."""
        self.following = False
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        uris, self._subscribed = self._subscribed, []
        with suppress(RequestError, ServerError):
            for uri in uris:
                await self._client.request("resources/unsubscribe", {"uri": uri})

    def take_update(self, params: Json) -> None:
        """Take the params of a `notifications/resources/updated`."""
        if isinstance(params, dict) and params.get("uri") in RESOURCES:
            self._updated.set()

    async def _listen(self, uris: list[str]) -> None:
        # The result comes when the subscription ends; cancelling the request is the way to end it.
        wanted: dict[str, Json] = {"notifications": {"resourceSubscriptions": uris}}
        with suppress(RequestError, ServerError):
            await self._client.request("subscriptions/listen", wanted)
        self.following = False

    async def _follow(self) -> None:
        with suppress(ServerError):  # the conversation reports the end of the server
            while True:
                await self._updated.wait()
                self._updated.clear()
                await self._read_on()

    async def _read_on(self) -> None:
        """Show the events since the last call."""
        more, presence_changed = True, False
        while more:
            arguments: dict[str, Json] = {"since": self._cursor, "limit": PAGE}
            page = await self._client.structured_content("xmppHistory", arguments)
            if page is None:
                return
            for entry in objects(page, "entries"):
                if entry.get("direction") != "out":
                    self._tell(one_line(format_event(entry), MAX_CHARACTERS))
                    presence_changed |= str(entry.get("kind")) in PRESENCE_KINDS
            more = page.get("more") is True and page.get("next") != self._cursor
            self._cursor = str(page.get("next"))
        if presence_changed:
            await self._read_nicknames()

    async def _read_nicknames(self) -> None:
        """Read who is in the room, for completion."""
        page = await self._client.structured_content("xmppOccupants", {})
        self._client.catalogue.nicknames = [
            str(one["nickname"]) for one in objects(page, "occupants") if "nickname" in one
        ]
