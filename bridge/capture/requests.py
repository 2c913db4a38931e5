"""What a client asks, is asked and sends, and what comes of it. State and rules. Pure."""

import re
from collections.abc import Iterator
from xml.etree.ElementTree import Element

from bridge.capture.causes import cause, meaning
from bridge.capture.client import Entity
from bridge.capture.elements import LOST
from bridge.capture.finding import Disproof, Finding, Outcome, key_of_finding
from bridge.capture.rooms import Room, Rooms
from bridge.capture.stanza import MAX_TEXT, QUOTED, Stanza, is_invitation, is_signal, outline
from bridge.capture.waiting import PATIENCE_STANZAS, Awaited, AwaitedStanzas, Question
from bridge.newest import Newest
from bridge.text import quoted
from bridge.wire import names

MAX_MESSAGES = 64
"""We remember at most so many sent messages, and as many addresses that they went to."""

MAX_EARLY = 4
"""We remember at most so many answers that came before their requests."""

BLOCKED = "{urn:xmpp:blocking:errors}blocked"
"""The client's own account has blocked the address (XEP-0191, 3.3)."""
_RECEIVED = "{urn:xmpp:carbons:2}received"
_COPIED = "{urn:xmpp:forward:0}forwarded/{*}message"
"""A message in another message (XEP-0280, 7)."""
_UNPRIVILEGED = frozenset({"forbidden", "not-allowed"})
OLD_LOGIN = "jabber:iq:auth"
"""The login before SASL (XEP-0078)."""
REGISTER = "jabber:iq:register"
"""The request for a new account (XEP-0077)."""
_OCCUPANT = re.compile("[^/@]+@[^/]+/.")
"""The beginning of an address that may be an occupant's."""
ACKNOWLEDGEMENT: Question = "acknowledgement", "", ""
"""What the client asks for by `r`; an answer has no id, and may come unasked."""
OWN_ACKNOWLEDGEMENT: Question = "own-acknowledgement", "", ""
"""What the server asks for by `r`."""


class Requests:
    """The requests of both sides that wait for an answer, and the messages that may come back."""

    def __init__(self) -> None:
        self.messages = Newest[str, Stanza](MAX_MESSAGES)
        """The newest messages that the client sent, by id, each as its `outline`."""
        self.addressed = Newest[str, Stanza](MAX_MESSAGES)
        """The newest message to each address, by the address in lower case."""
        self.waiting = AwaitedStanzas()
        self._early = Newest[Question, int](MAX_EARLY)
        """The latest answers without a waiting request, and how many stanzas had passed. Some
        libraries log an answer before its request, since they log a request only once it is
        written."""

    def take(self, client: Entity, rooms: Rooms, stanza: Stanza) -> Iterator[Outcome]:
        """Take a stanza, and yield what it shows to be wrong."""
        is_error = stanza.element.get("type") == "error"
        match stanza.element.tag, stanza.sent:
            case "iq", _:
                yield from self._take_iq(client, stanza)
            case "presence", False if is_error:
                yield from refused_presence(client, rooms, stanza)
            case "message", True if not is_error:
                self.remember(stanza)
            case "message", False if is_error:
                yield from refused(self, client, rooms, _without_copy(client, stanza))
            case names.ACK_REQUEST, sent:
                key = ACKNOWLEDGEMENT if sent else OWN_ACKNOWLEDGEMENT
                if key not in self.waiting.open:  # one answer is enough for several
                    self._wait(key, client, stanza, "")
            case names.ACK, sent:
                self.acknowledge(client, OWN_ACKNOWLEDGEMENT if sent else ACKNOWLEDGEMENT)

    def late(self, client: Entity, stanza: Stanza, count: int) -> Iterator[Finding]:
        """Find the requests that were not answered in time, acknowledgements included."""
        if not (client.has_sent and client.has_received):
            return  # the log has one direction only so far
        for kind, awaited in self.waiting.expired(stanza, count):
            asked = awaited.stanza
            other = asked.element.get("to" if asked.sent else "from") or "its server"
            words = {"what": quoted(awaited.what, QUOTED), "other": quoted(other)}
            yield cause(kind, asked.place, awaited.what, **words)

    def is_asked(self, id_: str) -> bool:
        """Whether the client has to answer a request with this id."""
        return ("asks", id_[:MAX_TEXT]) in {key[:2] for key in self.waiting.open}

    def owed(self, client: Entity) -> Awaited | None:
        """Return the oldest request of the client's own server that the client has not answered."""
        for waiting in (self.waiting.overdue, self.waiting.open) if client.has_sent else ():
            for (kind, _, other), awaited in waiting.items():
                if kind in {"asks", OWN_ACKNOWLEDGEMENT[0]} and "@" not in client.other_side(other):
                    return awaited
        return None

    def remember(self, stanza: Stanza) -> None:
        """Remember a message of the client: it may come back."""
        sent = outline(stanza)
        self.addressed.add(sent.element.get("to", "").lower(), sent)
        if id_ := sent.element.get("id"):
            self.messages.add(id_, sent)

    def original(self, error: Element) -> Stanza | None:
        """Return the message that came back, by its id, else by the address that it went to."""
        id_ = error.get("id", "")[:MAX_TEXT]
        if id_ in self.messages:
            return self.messages[id_]
        from_ = error.get("from", "").lower()
        for to, sent in reversed(self.addressed.items()):
            if from_ in {to, names.bare(to)} and not (id_ and sent.element.get("id")):
                return sent
        return None

    def acknowledge(self, client: Entity, key: Question = ACKNOWLEDGEMENT) -> None:
        """Note that an acknowledgement has come, or that the client gave one."""
        if self.waiting.answer(key) == (None, None):
            self._early.add(key, client.count)

    def lose(self) -> None:
        """Allow for a hole in the log, which may hide answers."""
        self.waiting.open.clear()

    def _take_iq(self, client: Entity, stanza: Stanza) -> Iterator[Outcome]:
        element, id_ = stanza.element, stanza.element.get("id", "")[:MAX_TEXT]
        address = element.get("to" if stanza.sent else "from", "").lower()[:MAX_TEXT]
        other = client.other_side(address)
        payloads = [child.tag for child in element]
        if element.get("type") in {"get", "set"}:
            if len(payloads) == 1 and "}" in payloads[0]:
                kind = "asked" if stanza.sent else "asks"
                self._wait((kind, id_, other), client, stanza, payloads[0])
            return
        key = "asks" if stanza.sent else "asked", id_, other
        awaited, late = self.waiting.answer(key)
        if not (awaited or late or other):  # the client was not known yet when it was asked
            awaited, late = self.waiting.answer((*key[:2], address))
        if late:
            yield Disproof(key_of_finding(key[0], late.what, ""))
        elif awaited is None and id_:
            self._early.add(key, client.count)
            waiting = self.waiting.open.items()
            alike = [it for it, asked in waiting if it[::2] == key[::2] and asked.what in payloads]
            if alike and not stanza.sent:  # who pasted the log may have put it together
                self.waiting.answer(alike[0])
        is_error = element.get("type") == "error" or element.find("error") is not None
        if is_error and not stanza.sent:
            yield from refused_request(client, stanza, awaited or late)
        elif is_error and "@" not in element.get("from", "@"):  # a service refuses what it is asked
            yield error_of_other(stanza)

    def _wait(self, key: Question, client: Entity, stanza: Stanza, what: str) -> None:
        """Expect an answer, unless the log has it just before the request."""
        if client.count - self._early.pop(key, -PATIENCE_STANZAS) > PATIENCE_STANZAS:
            self.waiting.add(key, stanza, client.count, what)


def _without_copy(client: Entity, stanza: Stanza) -> Stanza:
    """Return what the account's server copied for the client from another of its sessions."""
    received = stanza.element.find(_RECEIVED)
    if received is None or client.other_side(stanza.element.get("from")):
        return stanza
    copied = received.find(_COPIED)
    return stanza._replace(element=Element("message", {"from": LOST}) if copied is None else copied)


def refused(requests: Requests, client: Entity, rooms: Rooms, stanza: Stanza) -> Iterator[Outcome]:
    """Find the messages of the client that came back, and why."""
    element = stanza.element
    error, from_ = names.error_of(element), element.get("from", "")
    original = requests.original(element)
    if not _is_believed(original, client, rooms, element):
        yield error_of_other(stanza)
        return
    type_, to = "", from_
    if original:
        type_, to = original.element.get("type", "normal"), original.element.get("to", "")
    jid, _, nickname = to.partition("/")
    room = rooms.at(jid)
    asked = original.element if original else element  # an error may repeat it
    name = "bounced" if is_invitation(asked) else _bounce(type_, to, room, error.condition)
    may_be_room = room is not None or (original is not None and not client.is_complete)
    is_private = may_be_room and bool(nickname) and type_ != "groupchat"
    situation = _situation(name, asked, error.condition, is_private=is_private)
    if original and name == "bounced" and "@" not in jid:
        situation = "astray"
    if element.find(f"error/{BLOCKED}") is not None:
        situation = "blocked"
    address = to if error.condition == "jid-malformed" else jid
    meant = meaning(situation, error.condition, client, error.text, room=address)
    words = {**meant, "type": type_, "other": quoted(to)}
    if name == "bounced" and room and not room.is_taken and room.why:
        words["hint"] = room.why["hint"]  # a banned client cannot just join again
    is_plain = name in {"bounced", "bounced-person"}
    if is_plain and type_ != "chat" and room is None and error.condition == "forbidden":
        words["hint"] += " Some servers say so if the client has not joined the room."
    words["sent"] = f" The client sent it {original.place.words}." if original else ""
    if name == "bounced" and room is None and is_signal(asked):
        name = "bounced-signal"
    if name == "bounced-chat":
        yield from rooms.answer("unread", client, stanza)
    yield cause(name, stanza.place, error.condition, about=jid, **words)


def _bounce(type_: str, to: str, room: Room | None, condition: str) -> str:
    """Return the cause for a message to the address `to`; its type is empty if it is not known."""
    jid, _, nickname = to.partition("/")
    is_public = type_ == "groupchat"
    if is_public and "@" not in jid:
        return "bounced-serviceless"
    if is_public and nickname:
        return "bounced-groupchat"
    if is_public and condition == "service-unavailable" and not room:
        return "bounced-person"
    return "bounced-chat" if type_ and not is_public and room and not nickname else "bounced"


def _situation(name: str, asked: Element, condition: str, *, is_private: bool) -> str:
    """Return the situation that says what the condition means for such a message."""
    if is_private and condition in {"forbidden", "policy-violation"}:
        return "whispered"
    if name not in {"bounced", "bounced-person"}:
        return "mistyped"
    if is_invitation(asked) and condition in {*_UNPRIVILEGED, "item-not-found"}:
        return "invited"
    is_title = asked.find("subject") is not None and asked.find("body") is None
    return "retitled" if is_title and condition in _UNPRIVILEGED else "bounced"


def _is_believed(original: Stanza | None, client: Entity, rooms: Rooms, error: Element) -> bool:
    """Whether an error can be about the client's own message, and is no stranger's.

    It comes from the address that the message went to, from its room or domain, from the client's
    own account or server, or without an address (RFC 6120, 8.1.2.1). If the log does not have the
    message, an occupant's address proves nothing, nor does an error from a resource to an address
    without one: in a server's log, a client may have sent it to a room.
    """
    from_, to = error.get("from", "").lower(), error.get("to", "")
    if client.other_side(from_) == "" or not from_:
        return True
    if original is not None:
        sent_to = original.element.get("to", "").lower()
        return from_ in {sent_to, names.bare(sent_to), names.domain_of(sent_to)}
    if not client.has_sent:
        return "/" not in from_ or "/" in to or "@" not in to
    return "/" not in from_ and (not client.is_complete or rooms.at(from_) is not None)


def refused_presence(client: Entity, rooms: Rooms, stanza: Stanza) -> Iterator[Finding]:
    """Find that the client's presence was refused, other than by a room: `join` finds that."""
    element, from_ = stanza.element, stanza.element.get("from", "")
    room = rooms.of(client, stanza)
    if room is not None and (room.is_inside or room.place == stanza.place):
        return
    if client.other_side(from_) and client.has_sent:
        yield error_of_other(stanza)
        return
    error = names.error_of(element)
    words = {"condition": error.condition, "why": error.text or "", "other": quoted(from_)}
    name = "presence-bounced" if client.other_side(from_) else "presence-refused"
    yield cause(name, stanza.place, error.condition, **words)


def refused_request(client: Entity, stanza: Stanza, awaited: Awaited | None) -> Iterator[Finding]:
    """Find that a request was refused because the client has no resource; note other errors."""
    element = stanza.element
    error = names.error_of(element)
    # An error may repeat what was asked (RFC 6120, 8.3.1).
    repeated = next((each.tag for each in element if "}" in each.tag), element.tag)
    asked = awaited.what if awaited else repeated
    other = client.other_side(element.get("from"))
    is_of_server, to = "@" not in other, element.get("to", "")
    # Who has an account asks a gateway, or for another password (XEP-0077, 3.3).
    may_be_new = not client.bound and "@" not in to and not (other and to)
    if is_of_server and asked.startswith(f"{{{OLD_LOGIN}}}"):
        words = meaning("old-login", error.condition, client, error.text)
        yield cause("refused-login", stanza.place, **words)
    elif is_of_server and asked.startswith(f"{{{REGISTER}}}") and may_be_new:
        yield cause("not-registered", stanza.place, condition=error.condition, why=error.text)
    elif is_of_server and error.condition == "not-authorized" and not client.bound:
        yield cause("unbound", stanza.place, what=quoted(asked, QUOTED))
    elif awaited is None or not asked.startswith(f"{{{names.BIND}}}"):
        yield error_of_other(stanza, "" if awaited is None and client.is_complete else asked)


def error_of_other(stanza: Stanza, asked: str = "") -> Finding:
    """Note an error that accuses the client of nothing; `asked` is the request that it refuses."""
    element = stanza.element
    error = names.error_of(element)
    from_ = element.get("from", "")
    words = {"kind": element.tag, "condition": error.condition, "why": error.text or ""}
    words |= {"other": quoted(from_ or "its server"), "what": quoted(asked, QUOTED)}
    name = "refused-request" if asked else "other-error"
    if element.tag == "iq" and not (stanza.sent or len(element)):
        name, words["what"] = "untold", quoted(asked or "iq", QUOTED)
    elif asked and error.condition == "not-acceptable" and _OCCUPANT.match(from_):
        name = "refused-outside"
    return cause(name, stanza.place, f"{asked} {error.condition}", **words)
