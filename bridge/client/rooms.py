"""The rooms of a bridge, as its client sees them: their status, who is there, what happens.

A server that is no bridge lacks these tools. Then this module does nothing.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from time import monotonic
from typing import Any
from urllib.parse import quote

from bridge.client.client import Client
from bridge.client.errors import RequestError, ServerError
from bridge.mcp.jsonrpc import Json, objects, preview
from bridge.text import one_line
from bridge.views.watch import PRESENT
from bridge.xmpp.model.formatting import format_event

STATUS, OCCUPANTS, HISTORY = "xmppStatus", "xmppOccupants", "xmppHistory"
"""The tools that are called here."""

OF_THE_BRIDGE, OF_A_ROOM = "bridge://status", "bridge://room/{}/{}"
"""The URIs of the resources that change when something happens."""

PAGE: Mapping[str, Json] = {"detail": "full", "limit": 500, "maxBytes": 45_000}
"""The largest page of xmppHistory, with every kind of event."""

SETTLED_PHASES = frozenset({"joined", "failed", "waiting", "closed", "unconfigured"})
"""Phases in which a room stays for a while."""

LOOK_SECONDS = 0.05
"""Pause between two looks at the status while it is not settled."""


async def settled_status(client: Client, seconds: float) -> dict[str, Any]:
    """Ask xmppStatus until the bridge is in each room or says why it is not; return the result.

    After `seconds`, return the result as it is then. It is empty if the server is no bridge.
    """
    until = monotonic() + seconds
    while True:
        status = await client.structured_content(STATUS)
        if all(map(_is_settled, rooms_in(status))) or monotonic() > until:
            return status
        await asyncio.sleep(LOOK_SECONDS)


def rooms_in(status: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the part of each room in the result of xmppStatus, the default room first."""
    return objects(status, "rooms") or [status]


def standing_of(status: dict[str, Any]) -> str:
    """Return in words whether the bridge is in its rooms, and if it is not, why."""
    rooms = rooms_in(status)
    out = [room for room in rooms if room.get("phase") != "joined"]
    first, *others = out or rooms
    more = f" and {len(others)} more" if others else ""
    words = f"in the room {first.get('room')}{more}, as {first.get('nickname')}"
    if out:
        more += f" of {len(rooms)}" if others else ""
        words = f"not in {first.get('room') or 'any room'}{more}, phase {first.get('phase')}"
    match first:
        case {"lastError": {"message": message, "hint": hint}}:
            words += f": {message} {hint}"
        case {"phase": "unconfigured"}:
            words += ": settings are missing or wrong; xmppStatus says which"
    return one_line(words)


def _is_settled(room: Mapping[str, Json]) -> bool:
    return "lastError" in room or str(room.get("phase", "closed")) in SETTLED_PHASES


class RoomFollower:
    """Shows what happens in the rooms of a bridge, and keeps the nicknames for completion.

    It subscribes to what changes in the rooms (MCP, "Resources", "Subscriptions"). At each update
    it reads on from its cursor. A message of ours is shown once the room has sent it back.
    """

    def __init__(self, client: Client, tell: Callable[[str], None]) -> None:
        """`tell` shows a line to the person."""
        self.is_following = False
        """Whether events are shown. They are not if the server has no such resources."""
        self._client = client
        self._tell = tell
        self._cursor: Json = None
        """The cursor after the last event that was shown."""
        self._begun = asyncio.Event()
        """Set once the subscription stands, or is refused."""
        self._updated = asyncio.Event()
        self._occupants_changed = False
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Read the nicknames, and show what happens from now on."""
        client = self._client
        with suppress(ServerError):  # the conversation reports the end of the server
            await self._read_nicknames()
            resources = client.capabilities.get("resources")
            can_subscribe = isinstance(resources, dict) and resources.get("subscribe") is True
            if not can_subscribe or HISTORY not in client.catalogue.tools:
                return
            status = await client.structured_content(STATUS)
            self._cursor = status.get("cursor")
            self.is_following = isinstance(self._cursor, str)
            if self.is_following:
                await self._tell_history()
                self._task = asyncio.create_task(self._follow(status))
                await self._begun.wait()

    def stop(self) -> None:
        """Show no more."""
        self.is_following = False
        if self._task is not None:
            self._task.cancel()

    def take_update(self, uri: Json = None) -> None:
        """Take note that this resource has changed, or that the subscription begins."""
        self._occupants_changed |= str(uri).endswith("/occupants")
        self._updated.set()
        self._begun.set()

    async def _follow(self, status: dict[str, Any]) -> None:
        whole = [room for room in rooms_in(status) if "truncated" not in room]
        of_rooms = [
            OF_A_ROOM.format(quote(str(room.get("room")), "@", errors="replace"), what)
            for room in whole
            for what in ("messages", "occupants")
        ]
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._subscribe([OF_THE_BRIDGE, *of_rooms]))
                while self.is_following:
                    await self._updated.wait()
                    self._updated.clear()
                    await self._read_on()
        except* (ServerError, RequestError):
            self.is_following = False
            self._begun.set()

    async def _subscribe(self, uris: list[str]) -> None:
        await self._client.subscribe(uris)
        self.take_update()  # something may have happened before the subscription stood

    async def _tell_history(self) -> None:
        """Show the history that the rooms sent, before anything else."""
        wanted = {"since": "oldest", "kinds": ["message"], **PAGE}
        page = await self._client.structured_content(HISTORY, wanted)
        history = [each for each in objects(page, "entries") if each.get("source") == "history"]
        for entry in history:
            self._tell(format_event(entry))
        if history:
            self._tell(PRESENT)

    async def _read_on(self) -> None:
        """Show the next page of what happened."""
        arguments = {"since": self._cursor, **PAGE}
        page = await self._client.structured_content(HISTORY, arguments)
        if gap := page.get("gap"):
            self._tell(f"[Client] some of what happened is lost: {preview(gap)}")
        for entry in objects(page, "entries"):
            if entry.get("direction") != "out":
                self._tell(format_event(entry))
        self._cursor = page.get("next")
        self.is_following = isinstance(self._cursor, str)
        if page.get("more") is True:
            self._updated.set()
        if self._occupants_changed:
            self._occupants_changed = False
            await self._read_nicknames()

    async def _read_nicknames(self) -> None:
        if OCCUPANTS in self._client.catalogue.tools:
            page = await self._client.structured_content(OCCUPANTS)
            occupants = [each for each in objects(page, "occupants") if "nickname" in each]
            self._client.catalogue.nicknames = [str(each["nickname"]) for each in occupants]
