"""Who answers what: the server, its room service, the rooms and the sessions, as values.

`receive` takes one stanza of one session and gives all that has to be delivered for it. The
resident's part is played in here; every other stanza that comes out is for a client.
"""

from collections import deque
from collections.abc import Iterable
from datetime import datetime
from xml.etree.ElementTree import Element

from bridge.sandbox.authority import administer, own
from bridge.sandbox.resident import NOTICE, Resident
from bridge.sandbox.room import Room
from bridge.sandbox.stanza import (
    CLIENT,
    DATA,
    DISCO_INFO,
    DISCO_ITEMS,
    IQ,
    MESSAGE,
    MUC,
    MUC_ADMIN,
    MUC_OWNER,
    PING,
    PRESENCE,
    STANZA_ID,
    addressed,
    answer,
    bare,
    bounce,
    build,
    prepared,
)

ROOM_LIMIT = 100
"""Rooms at a time; each keeps a history in memory."""

SERVER_FEATURES = (DISCO_INFO, DISCO_ITEMS, PING)
SERVICE_FEATURES = (*SERVER_FEATURES, MUC)
ROOM_FEATURES = (
    *SERVICE_FEATURES,
    STANZA_ID,
    "http://jabber.org/protocol/muc#self-ping-optimization",
    "muc_nonanonymous",
    "muc_open",
    "muc_public",
    "muc_unmoderated",
    "muc_unsecured",
)
"""What disco tells (XEP-0030); the names of rooms' kinds are from XEP-0045 section 6.4."""


class Domain:
    """One XMPP domain with a room service and a standing room in it."""

    def __init__(self, name: str, serial: str, *, resident: bool, now: datetime) -> None:
        self.name = name
        self.service = f"rooms.{name}"
        self.lobby = f"lobby@{self.service}"
        self._serial = serial
        lobby = Room(self.lobby, f"{serial}-0", standing=True, name="Lobby")
        self._rooms = {self.lobby: lobby}
        self._rooms_made = 0
        self._sessions: dict[str, bool] = {}
        """Full JID to whether it takes messages for its account."""
        self._resident: Resident | None = None
        if resident:
            self._resident = Resident(f"echo@{name}/sandbox", self.lobby)
            lobby.affiliations[bare(self._resident.jid)] = "owner"
            for stanza in self._resident.entrance():
                self.receive(self._resident.jid, stanza, now)

    def bind(self, jid: str) -> None:
        """Let a client be the session `jid` (RFC 6120 section 7)."""
        self._sessions[jid] = False

    def unbind(self, jid: str, now: datetime) -> list[Element]:
        """End a session, which leaves every room it was in."""
        self._sessions.pop(jid, None)
        return self.receive(jid, build(PRESENCE, {"type": "unavailable"}), now)

    def receive(self, sender: str, stanza: Element, now: datetime) -> list[Element]:
        """Give all that is to be delivered because `sender` sent `stanza`, in order."""
        delivered: list[Element] = []
        pending = deque(self._route(sender, stanza, now))
        while pending:
            outgoing = pending.popleft()
            if self._resident is None or outgoing.get("to") != self._resident.jid:
                delivered.append(outgoing)
                continue
            for reply in self._resident.receive(outgoing):
                pending.extend(self._route(self._resident.jid, reply, now))
        return delivered

    def _route(self, sender: str, stanza: Element, now: datetime) -> list[Element]:
        to = prepared(stanza.get("to", ""))
        stanza = addressed(stanza, sender=sender)
        if stanza.tag == IQ and not _well_formed(stanza):
            return bounce(stanza, "bad-request")
        account, _, resource = to.partition("/")
        local, _, host = account.rpartition("@")
        if host == self.service:
            if local:
                return self._to_room(account, resource, stanza, now)
            return self._to_service(stanza)
        if host not in ("", self.name):
            return bounce(stanza, "remote-server-not-found")
        if stanza.tag == PRESENCE:
            return self._availability(sender, stanza, now) if not to else []
        if local and (stanza.tag == MESSAGE or resource):
            return self._to_account(account, to, stanza)
        return self._to_server(stanza)

    def _availability(self, sender: str, presence: Element, now: datetime) -> list[Element]:
        if sender in self._sessions and presence.get("type") in (None, "unavailable"):
            shown = presence.findtext(CLIENT + "priority") or "0"
            # A negative priority asks not to be sent what is for the account (RFC 6121 8.5.2.1).
            listening = presence.get("type") is None and not shown.strip().startswith("-")
            self._sessions[sender] = listening
        if presence.get("type") != "unavailable":
            return []
        told: list[Element] = []
        for room in list(self._rooms.values()):
            told += room.receive_presence(presence, "", now)
            self._sweep(room)
        return told

    def _to_account(self, account: str, to: str, stanza: Element) -> list[Element]:
        resident = self._resident.jid if self._resident else ""
        if to in self._sessions or to == resident:
            return [addressed(stanza, to=to)]
        if stanza.tag == MESSAGE and to == account:
            listening = [s for s, takes in self._sessions.items() if takes and bare(s) == account]
            if listening:
                return [addressed(stanza, to=session) for session in listening]
        return bounce(stanza, "service-unavailable")

    def _to_server(self, stanza: Element) -> list[Element]:
        if stanza.find("{urn:ietf:params:xml:ns:xmpp-session}session") is not None:
            # RFC 6121 took it away; clients made for RFC 3921 still ask.
            return answer(stanza)
        about = _info("server", "im", NOTICE, SERVER_FEATURES)
        return _common(stanza, about, [(self.service, "Rooms")])

    def _to_service(self, stanza: Element) -> list[Element]:
        about = _info("conference", "text", "Rooms of the sandbox", SERVICE_FEATURES)
        return _common(stanza, about, [(room.jid, room.name) for room in self._rooms.values()])

    def _to_room(self, jid: str, nick: str, stanza: Element, now: datetime) -> list[Element]:
        room = self._rooms.get(jid)
        if room is None:
            joins = stanza.find(MUC + "x") is not None and stanza.get("type") is None
            if stanza.tag != PRESENCE or not joins:
                gone = stanza.tag == PRESENCE and stanza.get("type") is not None
                return [] if gone else bounce(stanza, "item-not-found")
            if len(self._rooms) >= ROOM_LIMIT:
                return bounce(stanza, "resource-constraint")
            self._rooms_made += 1
            room = self._rooms[jid] = Room(jid, f"{self._serial}-{self._rooms_made}")
        if stanza.tag == PRESENCE:
            told = room.receive_presence(stanza, nick, now)
        elif stanza.tag == MESSAGE:
            told = room.receive_message(stanza, nick, now)
        elif nick:
            told = _to_occupant(room, nick, stanza)
        else:
            told = _to_room_itself(room, stanza)
        self._sweep(room)
        return told

    def _sweep(self, room: Room) -> None:
        if not room.occupants and not room.standing:
            self._rooms.pop(room.jid, None)


def _to_room_itself(room: Room, iq: Element) -> list[Element]:
    if iq.get("type") in ("result", "error"):
        return []
    query = iq[0]
    if query.tag == MUC_ADMIN + "query":
        return administer(room, iq, query)
    if query.tag == MUC_OWNER + "query":
        return own(room, iq, query)
    kind = "muc_persistent" if room.standing else "muc_temporary"
    about = _info("conference", "text", room.name, (*ROOM_FEATURES, kind), _room_info(room))
    return _common(iq, about, [(f"{room.jid}/{nick}", nick) for nick in room.occupants])


def _to_occupant(room: Room, nick: str, iq: Element) -> list[Element]:
    """Pass a request on in the room's name, so that the answer comes back through it too."""
    asking, asked = room.occupant_of(iq.get("from", "")), room.occupants.get(nick)
    if asking is None:
        return bounce(iq, "not-acceptable")
    if asked is None:
        return bounce(iq, "item-not-found")
    if asked is asking and iq.find(PING + "ping") is not None and iq.get("type") == "get":
        # XEP-0410 section 3.3: the room knows, so the client need not be asked.
        return answer(iq)
    return [addressed(iq, sender=f"{room.jid}/{asking.nick}", to=asked.jid)]


def _well_formed(iq: Element) -> bool:
    """Whether RFC 6120 section 8.2.3 lets it be an IQ."""
    kind = iq.get("type")
    return "id" in iq.attrib and (
        (kind in ("get", "set") and len(iq) == 1) or kind in ("result", "error")
    )


def _common(
    stanza: Element, about: list[Element], items: Iterable[tuple[str, str]]
) -> list[Element]:
    """Answer what server, service and rooms all answer: ping (XEP-0199), disco (XEP-0030)."""
    if stanza.tag == PRESENCE:
        return []
    if stanza.tag != IQ or stanza.get("type") != "get":
        return bounce(stanza, "service-unavailable")
    tag = stanza[0].tag
    if tag == PING + "ping":
        return answer(stanza)
    if tag in (DISCO_INFO + "query", DISCO_ITEMS + "query") and stanza[0].get("node"):
        return bounce(stanza, "item-not-found")
    if tag == DISCO_INFO + "query":
        return answer(stanza, build(tag, {}, *about))
    if tag == DISCO_ITEMS + "query":
        listed = (build(DISCO_ITEMS + "item", {"jid": jid, "name": name}) for jid, name in items)
        return answer(stanza, build(tag, {}, *listed))
    return bounce(stanza, "service-unavailable")


def _info(
    category: str, kind: str, name: str, features: Iterable[str], *forms: Element
) -> list[Element]:
    identity = {"category": category, "type": kind, "name": name}
    names = (feature.strip("{}") for feature in features)
    listed = (build(DISCO_INFO + "feature", {"var": name}) for name in names)
    return [build(DISCO_INFO + "identity", identity), *listed, *forms]


def _room_info(room: Room) -> Element:
    """Describe the room as XEP-0045 section 6.4 extends disco."""
    facts = {
        "FORM_TYPE": "http://jabber.org/protocol/muc#roominfo",
        "muc#roominfo_occupants": str(len(room.occupants)),
        "muc#roominfo_subject": room.subject,
    }
    fields = (
        build(DATA + "field", {"var": var}, build(DATA + "value", text=value))
        for var, value in facts.items()
    )
    return build(DATA + "x", {"type": "result"}, *fields)
