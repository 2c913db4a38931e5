"""One conversation with an MCP server: the handshake, what it has to offer, calls."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bridge import __version__
from bridge.console.dialect import FIRST, STATELESS, Dialect
from bridge.console.peer import HANDSHAKE_SECONDS, Peer, PeerError, RefusedError, Reply
from bridge.escaping import one_line
from bridge.mcp import revisions
from bridge.mcp.jsonrpc import Json
from bridge.mcp.revisions import Revision

MAX_PAGES = 100
"""Of one list: a server that never comes to its end does not hold us for ever."""

SHOWN_CHARACTERS = 300
"""Of what a server says when it refuses the handshake, and of the revision that it speaks."""

CLIENT_INFO = {"name": "xmpp-bridge client", "version": __version__}


class Client:
    """The client's side; `dialect` may be changed between any two requests."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.dialect = FIRST
        self.capabilities: Mapping[str, Json] = {}
        """What the server said it has; empty as long as it said nothing."""

    async def open(self, *, seconds: float = HANDSHAKE_SECONDS) -> None:
        """Shake hands, or find a server that knows no handshake; raises `PeerError`."""
        try:
            async with asyncio.timeout(seconds):
                try:
                    await self.speak(FIRST.revision)
                except RefusedError as refusal:
                    try:
                        await self.speak(STATELESS.revision)
                    except RefusedError:
                        said = one_line(str(refusal), SHOWN_CHARACTERS)
                        raise PeerError(f"the server refused the handshake: {said}") from refusal
        except TimeoutError as error:
            raise PeerError(f"no answer within {seconds:g} s: is it an MCP server?") from error

    async def speak(self, revision: Revision) -> str:
        """Agree on `revision` and return the date of what was agreed on.

        Raises `RefusedError`, and then the former dialect stays.
        """
        wanted = replace(self.dialect, revision=revision)
        if revision.handshake:
            offer: dict[str, Json] = {
                "protocolVersion": revision.date,
                "capabilities": {},
                "clientInfo": CLIENT_INFO,
            }
            result = (await self.peer.request("initialize", offer)).result
            await self.peer.notify("notifications/initialized")
            date = str(_member(result, "protocolVersion", revision.date))
            # A newer revision than we know is spoken as the nearest: there is no other way.
            wanted = replace(wanted, revision=revisions.find(date) or revision)
        else:
            params = wanted.params({}, CLIENT_INFO)
            result = (await self.peer.request("server/discover", params)).result
            date = revision.date
        self.dialect = wanted
        capabilities = _member(result, "capabilities", {})
        self.capabilities = capabilities if isinstance(capabilities, dict) else {}
        return date

    async def request(self, method: str, params: Mapping[str, Json] | None = None) -> Reply:
        """Return the result of a method of MCP; raises `RefusedError`, `PeerError`."""
        return await self.peer.request(method, self.dialect.params(params or {}, CLIENT_INFO))

    async def call(
        self, tool: str, arguments: Mapping[str, Json], dialect: Dialect | None = None
    ) -> Reply:
        """Return the result of a tool, in `dialect` or the current; raises as `request` does."""
        method, params = (dialect or self.dialect).call(tool, arguments, CLIENT_INFO)
        return await self.peer.request(method, params)

    async def structured(self, tool: str, arguments: Mapping[str, Json]) -> dict[str, Any] | None:
        """Return the object that a tool gives, in whatever dialect; None where it failed."""
        try:
            result = (await self.call(tool, arguments, replace(self.dialect, bare=False))).result
        except RefusedError:
            return None
        structured = _member(result, "structuredContent", None)
        return structured if isinstance(structured, dict) else None

    async def listing(self, kind: str) -> Reply:
        """Return all pages of `kind` (`tools`, `resources`, `prompts`) as one result."""
        reply = await self.request(f"{kind}/list")
        result, seconds = _as_object(reply.result), reply.seconds
        everything = _items(result, kind)
        for _ in range(MAX_PAGES):
            cursor = result.get("nextCursor")
            if not isinstance(cursor, str):
                break
            reply = await self.request(f"{kind}/list", {"cursor": cursor})
            result, seconds = _as_object(reply.result), seconds + reply.seconds
            everything += _items(result, kind)
        return Reply({**result, kind: everything}, seconds)


def _member(result: Json, name: str, otherwise: Json) -> Json:
    return result.get(name, otherwise) if isinstance(result, dict) else otherwise


def _as_object(result: Json) -> dict[str, Json]:
    return result if isinstance(result, dict) else {}


def _items(result: Mapping[str, Json], kind: str) -> list[Json]:
    items = result.get(kind)
    return [one for one in items if isinstance(one, dict)] if isinstance(items, list) else []
