"""A small XMPP server on the loopback interface, for trying the bridge out and for its tests.

No TLS, no other servers, nothing on disk, and a password that is new each time. For anything
else run Prosody or ejabberd.
"""

import asyncio
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from xml.etree.ElementTree import Element

from bridge.sandbox.room import Room
from bridge.sandbox.stanza import CLIENT, DOMAIN, MUC, Delivery, disco, error
from bridge.sandbox.stream import Stream, StreamEndedError

HOST, SERVICE, LOBBY = "127.0.0.1", "rooms.localhost", "lobby@rooms.localhost"
"""The only address listened on, as there is no TLS; the room service and its room."""

ACCOUNT = "debug"
"""The name of the account that always exists."""

NOTICE = "A sandbox for trying things out; for anything else run Prosody or ejabberd."
"""What the sandbox says of itself, in disco and as the subject of its room."""


@dataclass(frozen=True)
class SandboxAddress:
    """What differs from one running sandbox to the next."""

    port: int
    password: str = field(repr=False)
    """Of the account that always exists."""

    def environment(self) -> dict[str, str]:
        """Return the settings with which the bridge joins the room."""
        return {
            "XMPP_SERVICE": f"xmpp://{HOST}:{self.port}",
            "XMPP_DOMAIN": DOMAIN,
            "XMPP_USERNAME": ACCOUNT,
            "XMPP_PASSWORD": self.password,
            "MUC_ROOM": LOBBY,
            "XMPP_ALLOW_PLAINTEXT": "1",
        }


class Sandbox:
    """The server, which runs as long as the block `async with Sandbox() as address:`."""

    def __init__(self, accounts: Mapping[str, str] | None = None) -> None:
        self._accounts = {ACCOUNT: secrets.token_urlsafe(18), **(accounts or {})}
        self._rooms = {LOBBY: Room(LOBBY, DOMAIN, "Echo", NOTICE)}
        self._closed = False
        self._sessions: dict[str, Stream] = {}
        self._connections: dict[Stream, asyncio.Future[None]] = {}

    async def __aenter__(self) -> SandboxAddress:
        """Listen on a port that is free."""
        self._server = await asyncio.start_server(self._serve, HOST, 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return SandboxAddress(port, self._accounts[ACCOUNT])

    async def __aexit__(self, *_: object) -> None:
        """Stop listening and end every stream, within a second."""
        self._server.close()
        self._closed = True  # for connections that were accepted and are not served yet
        self._sessions.clear()  # so that nobody is sent the presence of those who leave
        for stream in self._connections:
            stream.end("system-shutdown")
        await asyncio.gather(*self._connections.values())

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        stream = Stream(reader, writer.transport)
        if self._closed:
            stream.end("system-shutdown")
            return
        self._connections[stream] = asyncio.get_running_loop().create_future()
        try:
            await stream.bind(await stream.authenticate(self._accounts))
            if stream.jid in self._sessions:  # goes to the newcomer (RFC 6120 section 7.7.2.2)
                self._end(self._sessions[stream.jid], "conflict")
            self._sessions[stream.jid] = stream
            while True:
                self._deliver(self._route(await stream.next(), stream.jid))
        except StreamEndedError as end:
            stream.end(str(end))
        except OSError:
            pass  # the connection was lost
        finally:
            self._end(stream)
            self._connections.pop(stream).set_result(None)

    def _end(self, stream: Stream, condition: str = "") -> None:
        stream.end(condition)
        if self._sessions.get(stream.jid) is stream:
            del self._sessions[stream.jid]
            self._deliver(self._leave_all(stream.jid))

    def _deliver(self, deliveries: list[Delivery]) -> None:
        for jid, xml in deliveries:
            if jid in self._sessions:
                self._sessions[jid].send(xml)

    def _route(self, stanza: Element, sender: str) -> list[Delivery]:
        """Return everything that is sent in consequence of a stanza (RFC 6120 section 10)."""
        if stanza.tag.removeprefix(CLIENT) not in ("iq", "message", "presence"):
            raise StreamEndedError("unsupported-stanza-type")
        stanza.set("from", sender)
        to = stanza.get("to", "")
        account, _, resource = to.partition("/")
        local, _, host = account.lower().rpartition("@")
        if host == SERVICE and local:
            return self._to_room(stanza, f"{local}@{host}", resource)
        if stanza.tag == f"{CLIENT}presence" and stanza.get("type") == "unavailable" and not to:
            return self._leave_all(sender)
        if stanza.tag == f"{CLIENT}presence" and host in ("", DOMAIN, SERVICE):
            return []
        if host == SERVICE:
            return disco(stanza, "category='conference' type='text'", (MUC,), *self._rooms)
        if host not in ("", DOMAIN):
            return error(stanza, "remote-server-not-found")
        if local:
            return error(stanza, "service-unavailable")
        return disco(stanza, f"category='server' type='im' name='{NOTICE}'", (), SERVICE)

    def _to_room(self, stanza: Element, jid: str, nick: str) -> list[Delivery]:
        if jid not in self._rooms and stanza.tag != f"{CLIENT}presence":
            return error(stanza, "item-not-found")
        room = self._rooms.setdefault(jid, Room(jid))
        match stanza.tag.removeprefix(CLIENT):
            case "presence":
                deliveries = room.presence(stanza, nick)
            case "message":
                deliveries = room.message(stanza, nick, datetime.now(UTC))
            case _:
                deliveries = room.iq(stanza, nick)
        if not room.occupants and jid != LOBBY:
            del self._rooms[jid]
        return deliveries

    def _leave_all(self, jid: str) -> list[Delivery]:
        unavailable = Element(f"{CLIENT}presence", {"from": jid, "type": "unavailable"})
        return [one for room in list(self._rooms) for one in self._to_room(unavailable, room, "")]
