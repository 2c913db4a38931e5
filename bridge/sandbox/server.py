"""A small XMPP server on the loopback interface, for trying the bridge out and for its tests.

It speaks to no other server, writes nothing to disk, and makes a new password each time. For
anything else run Prosody or ejabberd.
"""

import asyncio
import math
import re
import secrets
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Self
from xml.etree.ElementTree import Element

from bridge.sandbox.fault import FAULTS, STRIKES, SandboxFault
from bridge.sandbox.room import Occupant, Room
from bridge.sandbox.stanza import DOMAIN, Deliveries, disco, error, is_malformed, reply, tag
from bridge.sandbox.stream import Observer, Stream, StreamEndedError, TlsIdentity, unobserved
from bridge.wire.names import CLIENT, IQ, MUC, PRESENCE, ROSTER, STANZAS, bare
from bridge.wire.xmlwriter import escaped, written

HOST, SERVICE, LOBBY = "127.0.0.1", "rooms.localhost", "lobby@rooms.localhost"
"""The only address that the server listens on, the room service, and the room in it."""

ACCOUNT = "debug"
"""The name of the account that always exists."""

ACCOUNT_NAME = re.compile(r"""[^\s"&'/:<>@]{1,1023}""")
"""What an account may be called (RFC 7622 section 3.3)."""

NOTICE = "A sandbox for trying things out; for anything else run Prosody or ejabberd."
"""What the sandbox says of itself, in disco and as the subject of its room."""


class Sandbox:
    """The server; it runs within the block `async with Sandbox() as sandbox:`."""

    def __init__(
        self, *, identity: TlsIdentity | None = None, observe: Observer = unobserved
    ) -> None:
        """Prepare a server with one account; `observe` is called with each piece of XML.

        With an `identity` it offers TLS, and more mechanisms to log in.
        """
        self._accounts: dict[str, str] = {}
        self._identity = identity
        self._observe = observe
        self.port = 0
        """The port that the server listens on."""
        self.password = self.add_account(ACCOUNT)
        """The password of the account that always exists."""
        self._faults: set[SandboxFault] = set()
        self._rooms = {LOBBY: Room(LOBBY, DOMAIN, "Echo", NOTICE)}
        self._closed = False
        self._sessions: dict[str, Stream] = {}
        self._available: set[str] = set()
        """The full JIDs of the sessions that get what is sent to their bare JID."""
        self._connections: dict[Stream, asyncio.Future[None]] = {}

    async def __aenter__(self) -> Self:
        """Listen on a port that is free."""
        self._server = await asyncio.start_server(self._serve, HOST, 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def environment(self) -> dict[str, str]:
        """Return the settings with which the bridge joins the room."""
        trust = {"XMPP_ALLOW_PLAINTEXT": "1"}
        if self._identity is not None:
            trust = {"XMPP_TLS_CA_FILE": str(self._identity.path)}
        return {
            "XMPP_SERVICE": f"xmpp://{HOST}:{self.port}",
            "XMPP_DOMAIN": DOMAIN,
            "XMPP_USERNAME": ACCOUNT,
            "XMPP_PASSWORD": self.password,
            "MUC_ROOM": LOBBY,
            **trust,
        }

    def add_account(self, name: str, password: str = "") -> str:
        """Add an account unless it is there, with a random password if none is given.

        Returns its password. Raises `ValueError` for what cannot be the name of an account.
        """
        if not ACCOUNT_NAME.fullmatch(name):
            raise ValueError("an account's name has no blanks and none of \"&'/:<>@")
        return self._accounts.setdefault(name.lower(), password or secrets.token_urlsafe(18))

    def fault(
        self, name: str, *, room: str = "", nickname: str = "", seconds: float | None = None
    ) -> Callable[[], None]:
        """Begin a fault, and return the function that ends it; call both in the server's loop.

        The fault affects the occupant `nickname` of `room`, which is a bare JID or its local part.
        An empty nickname means every occupant, an empty room every room.

        - `drop` cuts the connection, and `kick` removes the occupant from the room. Both happen at
          once. With `seconds`, they happen again each time so many seconds have passed.
        - `silence`: the server ignores what the occupant sends, and sends them nothing. With
          neither room nor nickname it affects every client that has logged in.
        - `duplicate-nickname`: the room refuses the nickname to every client, with a conflict.
        - `lost-reflection`: messages to the room reach all occupants except their sender.
        - `late-reflection`: the sender gets the reflection `seconds` later.
        - `refused-login`: the account called `nickname` cannot log in.

        The faults other than `drop` and `kick` last until they are ended. All but
        `late-reflection` also end by themselves after `seconds`.

        Raises `ValueError` for an unknown name, for a room of another server, for an account that
        does not exist, for a room with `refused-login`, for seconds that are not above 0, and for
        `late-reflection` without seconds.
        """
        if name not in FAULTS:
            raise ValueError(f"there is no such fault; there are {', '.join(FAULTS)}")
        local, _, host = room.lower().partition("@")
        if host not in ("", SERVICE):
            raise ValueError(f"the sandbox has rooms at {SERVICE} only")
        if name == "refused-login" and room:
            raise ValueError(f"{name} concerns an account, so it takes no room")
        if name == "refused-login" and nickname.lower() not in ("", *self._accounts):
            raise ValueError(
                f"there is no account {nickname!r}: {name} takes the name of an account"
                f" as nickname; there are {', '.join(self._accounts)}"
            )
        is_late = name == "late-reflection"
        if seconds is None and is_late:
            raise ValueError(f"{name} needs seconds")
        if seconds is not None and not 0 < seconds < math.inf:
            raise ValueError("seconds must be a number above 0")
        fault = SandboxFault(name, local and f"{local}@{SERVICE}", nickname, seconds or 0)
        self._faults.add(fault)
        if name in STRIKES:
            self._strike(fault)
        elif seconds and not is_late:
            asyncio.get_running_loop().call_later(seconds, self._faults.discard, fault)
        return partial(self._faults.discard, fault)

    async def __aexit__(self, *_: object) -> None:
        """Stop listening and end every stream, within a second."""
        self._server.close()
        self._closed = True  # for connections that were accepted and are not served yet
        self._faults.clear()
        self._sessions.clear()  # so that no client is sent the presence of another that leaves
        for stream in self._connections:
            stream.end("system-shutdown")
        await asyncio.gather(*self._connections.values())

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        context = self._identity.context if self._identity else None
        stream = Stream(reader, writer, context, self._observe)
        if self._closed:
            stream.end("system-shutdown")
            return
        self._connections[stream] = asyncio.get_running_loop().create_future()
        try:
            await stream.secure()
            await stream.bind(await stream.authenticate(self._admitted))
            if stream.jid in self._sessions:  # the newer session stays (RFC 6120 section 7.7.2.2)
                self._end(self._sessions[stream.jid], "conflict")
            self._sessions[stream.jid] = stream
            while True:
                stanza = await stream.next()
                if not self._is_silenced(stream.jid):
                    self._deliver(self._route(stanza, stream.jid))
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
            gone = Element(PRESENCE, {"from": stream.jid, "type": "unavailable"})
            self._deliver(self._presence(gone, stream.jid))

    def _deliver(self, deliveries: Deliveries) -> None:
        for jid, xml in deliveries:
            if jid in self._sessions and not self._is_silenced(jid):
                self._sessions[jid].send(xml)

    def _route(self, stanza: Element, sender: str) -> Deliveries:
        """Return the stanzas to send after receiving a stanza (RFC 6120 section 10)."""
        if stanza.tag not in STANZAS:
            raise StreamEndedError("unsupported-stanza-type")
        stanza.set("from", sender)
        account, _, resource = (stanza.get("to") or bare(sender)).partition("/")
        account = account.lower()
        local, _, host = account.rpartition("@")
        if is_malformed(stanza):
            return error(stanza, "bad-request")
        if local and not ACCOUNT_NAME.fullmatch(local):
            return error(stanza, "jid-malformed")
        if host == SERVICE and local:
            return self._to_room(stanza, account, resource)
        if stanza.tag == PRESENCE and not stanza.get("to"):
            return self._presence(stanza, sender)
        if host == SERVICE:
            rooms = ((jid, room) for jid, room in self._rooms.items() if not room.is_over)
            public = (jid for jid, room in rooms if room.options["publicroom"])
            return disco(stanza, "conference text", (MUC,), *public)
        if host != DOMAIN:
            return error(stanza, "remote-server-not-found")
        if stanza.tag != IQ or resource:
            return self._to_account(stanza, account, resource)
        if account == bare(sender):
            if stanza.get("type") == "get" and stanza.find(f"{{{ROSTER}}}query") is not None:
                # Nobody has contacts here; programs ask before they join a room.
                return reply(stanza, "result", tag("query", xmlns=ROSTER))
            return disco(stanza, "account registered", ())
        if local:
            return error(stanza, "service-unavailable")
        return disco(stanza, "server im", (), SERVICE, name=NOTICE)

    def _to_account(self, stanza: Element, account: str, resource: str) -> Deliveries:
        """Pass a stanza on to a session, or to all that are available (RFC 6121 section 8.5)."""
        kind, full = stanza.get("type", ""), f"{account}/{resource}"
        if "subscribe" in kind:  # clients that accept each other's would do so for ever
            return []
        there = [full] if full in self._sessions else []
        if stanza.tag != IQ and not there and kind not in ("groupchat", "error"):
            there = [jid for jid in self._available if bare(jid) == account]
        if there or stanza.tag == PRESENCE:
            return [(jid, written(stanza, CLIENT)) for jid in there]
        return error(stanza, "service-unavailable")

    def _presence(self, presence: Element, sender: str) -> Deliveries:
        """Note whether a session is available, and leave all rooms if it is not.

        Its sender gets the presence, too (RFC 6121 section 4.2.2).
        """
        self._available.discard(sender)
        if presence.get("type") == "unavailable":
            seats = [(room, it) for room in self._rooms.values() if (it := room.find(sender))]
            now = datetime.now(UTC)
            return [sent for room, it in seats for sent in room.receive(presence, it.nick, now)]
        if not presence.findtext(f"{{{CLIENT}}}priority", "").startswith("-"):
            self._available.add(sender)
        return [(sender, written(presence, CLIENT))]

    def _to_room(self, stanza: Element, jid: str, nick: str) -> Deliveries:
        room = self._rooms.get(jid)
        if room is None or room.is_over:
            if stanza.tag != PRESENCE or stanza.get("type") is not None:
                return error(stanza, "item-not-found")
            self._rooms = {name: room for name, room in self._rooms.items() if not room.is_over}
            room = self._rooms[jid] = Room(jid)
        sender = room.find(stanza.get("from", ""))
        taken = self._fault("duplicate-nickname", jid, nick)
        sent = room.receive(stanza, nick, datetime.now(UTC), is_taken=taken is not None)
        return self._disturbed(sent, jid, sender) if sender else sent

    def _fault(self, name: str, room: str = "", nickname: str = "") -> SandboxFault | None:
        hits = (fault for fault in self._faults if fault.hits(room, nickname))
        return next((fault for fault in hits if fault.name == name), None)

    def _hit(self, fault: SandboxFault) -> list[tuple[Room, Occupant]]:
        """Return the occupants with a session whom the fault affects, each with the room."""
        seats = ((room, who) for room in self._rooms.values() for who in room.everybody)
        meant = ((room, who) for room, who in seats if fault.hits(room.jid, who.nick))
        return [(room, who) for room, who in meant if who.jid in self._sessions]

    def _strike(self, fault: SandboxFault) -> None:
        if fault not in self._faults:
            return
        for room, occupant in self._hit(fault):
            if fault.name == "drop":
                self._sessions[occupant.jid].cut()
            else:
                self._deliver(room.put_out(occupant, "307"))
        if fault.seconds:
            asyncio.get_running_loop().call_later(fault.seconds, self._strike, fault)

    def _admitted(self) -> dict[str, str]:
        """Return the accounts that can log in now, with their passwords."""
        refused = partial(self._fault, "refused-login", "")
        return {name: word for name, word in self._accounts.items() if not refused(name)}

    def _is_silenced(self, jid: str) -> bool:
        silences = [fault for fault in self._faults if fault.name == "silence"]
        hit = (occupant.jid for fault in silences for _, occupant in self._hit(fault))
        return any(fault.hits("", "") for fault in silences) or jid in hit

    def _disturbed(self, sent: Deliveries, room: str, speaker: Occupant) -> Deliveries:
        """Leave out the reflections to the speaker if a fault loses or delays them."""
        late = self._fault("late-reflection", room, speaker.nick)
        lost = self._fault("lost-reflection", room, speaker.nick)
        own = f"from='{escaped(room)}/{escaped(speaker.nick)}' type='groupchat'"
        reflections = [(jid, xml) for jid, xml in sent if jid == speaker.jid and own in xml]
        if late and not lost:
            asyncio.get_running_loop().call_later(late.seconds, self._deliver, reflections)
        if not (late or lost):
            return sent
        return [delivery for delivery in sent if delivery not in reflections]
