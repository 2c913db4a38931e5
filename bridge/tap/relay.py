"""What passes between a client and its server, and what is changed on the way, without I/O.

Everything passes byte for byte, but for what the table `CHANGES` has, and for STARTTLS, which is
spoken on each of the two connections. Without a `SaslLogin`, the login passes too, so that the
trouble with it stays what it is.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias
from xml.etree.ElementTree import Element

from bridge.capture.elements import elements_of
from bridge.capture.stanza import HOLE, SIZE, STANZA_TAGS
from bridge.sandbox.scram import LOGIN, MECHANISMS, SaslLogin
from bridge.tap.lane import MAX_HELD_BYTES, Piece, StreamLane, without
from bridge.text import quoted
from bridge.wire import names
from bridge.wire.names import COMPRESS, SASL, SASL2, SASL_CB, SM, TLS, split
from bridge.wire.xmlstream import DamagedElement
from bridge.xmpp.link.offer import Offer, offer_in

CHANGES = {
    f"{{{SASL2}}}authentication": "SASL2 with Bind 2 and FAST (XEP-0388, XEP-0386, XEP-0484): it "
    "logs in and begins a session in one step, and its tokens belong to one connection",
    "{http://jabber.org/features/compress}compression": "stream compression (XEP-0138): what is "
    "compressed cannot be read on the way",
    f"{{{SM}}}enabled": "the location of the session (XEP-0198): the client would resume it past "
    "tap",
    names.STREAM_ERROR: "the address of see-other-host (RFC 6120, 4.9.3.19): the client would go "
    "there past tap; --to names another server",
    f"{{{SASL2}}}authenticate": "a login by SASL2, which tap has not offered",
    f"{{{COMPRESS}}}compress": "a request for compression, which tap has not offered",
}
"""What does not pass as it came, by the tag of its element: what it is, and why."""

OFFERS = frozenset(tag for tag in CHANGES if tag.endswith(("authentication", "compression")))
"""The features that are taken out."""

REFUSALS = {
    f"{{{SASL2}}}authenticate": f"<not-authorized xmlns='{SASL}'/>",
    f"{{{COMPRESS}}}compress": "<setup-failed/>",
}
"""The failure of a client that asks for something that was taken out."""

PATTERNS = {
    f"{{{SM}}}enabled": re.compile(rb"""\s+location\s*=\s*(?:"[^"]*"|'[^']*')()"""),
    names.STREAM_ERROR: re.compile(rb"(<(?:[^\s<>/:]+:)?see-other-host(?:\s[^<>]*)?>)[^<]+"),
}
"""Matches what is taken out of an element; the group in it stays."""

OURS = "<text>said by xmpp-bridge tap in the server's place; its output has the reason</text>"
"""The text in the failure by which tap refuses a login, for people who read the client's log."""

_MECHANISMS = f"{{{SASL}}}mechanisms"
_LOGIN_OFFERS = frozenset({_MECHANISMS, f"{{{SASL_CB}}}sasl-channel-binding"})


class Passage(NamedTuple):
    """What goes on from one side to the other."""

    sent: bool
    """Whether the client sent it, and the server gets it; else the client gets it."""
    data: bytes
    """Empty if tap keeps it from the other side."""
    element: Element | None = None
    """What the rules see of it."""


class BeginTls(NamedTuple):
    """TLS begins with the server; then the client is sent `proceed`, and begins it too."""

    proceed: bytes


class LogIn(NamedTuple):
    """The client has proved the password: log in to the server, and then send it `success`."""

    success: str


class LoginAnswer(NamedTuple):
    """What the server answers to tap's own login."""

    element: Element


class Remark(NamedTuple):
    """Something to say of the stream: the name of a row of `remarks`, and the words in it."""

    name: str
    words: dict[str, str]


Step: TypeAlias = Passage | BeginTls | LogIn | LoginAnswer | Remark


class Relay:
    """The two directions of one client's connection."""

    def __init__(self, login: SaslLogin | None = None) -> None:
        """With a `login`, the client logs in to tap itself."""
        self._login = login
        self._lanes = {True: StreamLane(), False: StreamLane()}
        self.offer = Offer()
        """What the server has offered."""
        self.is_secured = False
        """Whether the client speaks TLS with tap; without it, tap offers no PLAIN."""
        self._is_in = False
        """Whether the client has logged in."""
        self._waits = False
        """Whether tap itself logs in just now."""
        self._is_whole = True
        """Whether the rules see all stanzas of both sides."""

    def receive(self, sent: bool, data: bytes) -> Iterator[Step]:
        """Take what the client `sent`, or else what the server did; go through all steps at once.

        After `BeginTls` nothing is kept: an attacker on the way may have added what came before.
        """
        lane = self._lanes[sent]
        for piece in lane.feed(data):
            yield from self._pass(sent, piece, lane.unparsed)
            if lane is not self._lanes[sent]:  # the stream begins anew
                yield from self.receive(sent, lane.rest())
                return

    @property
    def held(self) -> int:
        """How many bytes of a client's stanza are held that is not whole yet."""
        return len(self._lanes[True].held)

    def close(self, sent: bool) -> Passage:
        """Let out what is held of a side that has ended its connection."""
        return Passage(sent, self._lanes[sent].rest())

    def logged_in(self, success: str) -> Iterator[Step]:
        """Tell the client that it has logged in, since tap has."""
        self._waits = False
        yield self._told(success)
        yield from self._begin_anew()

    def refuse(self, condition: str) -> Passage:
        """Tell the client that its login has failed."""
        self._waits = False
        return self._told(f"<failure xmlns='{SASL}'><{condition}/></failure>")

    def _pass(self, sent: bool, piece: Piece, unparsed: str) -> Iterator[Step]:
        raw, element = piece
        if element is None or isinstance(element, DamagedElement):
            yield from self._pass_unread(sent, raw, unparsed if element is None else element.reason)
            self._is_whole = self._is_whole and not unparsed
        elif element.tag in STANZA_TAGS:
            yield Passage(sent, raw, element if self._is_whole else None)
        elif sent:
            yield from self._pass_to_server(element, raw)
        else:
            yield from self._pass_to_client(element, raw)

    def _pass_unread(self, sent: bool, raw: bytes, reason: str) -> Iterator[Step]:
        """Pass on blanks, parts of stanzas, and, with a `reason`, what cannot be read.

        Before the login, what cannot be read does not pass to the client: tap might have to change
        it.
        """
        if reason and not (sent or self._is_in):
            yield Remark("unreadable", {"reason": quoted(reason)})
            return
        hole = None
        if reason and self._is_whole:
            hole = Element(HOLE)
            hole.text = f"XML that cannot be read ({reason})"
            elements, _ = elements_of(raw.decode("utf-8", "replace"))
            hole = next((each for each in elements if each.tag == HOLE and each.text), hole)
            if len(raw) > MAX_HELD_BYTES:
                hole.set(SIZE, str(len(raw)))
        yield Passage(sent, raw, hole)

    def _pass_to_server(self, element: Element, raw: bytes) -> Iterator[Step]:
        tag, mechanism, answers = element.tag, element.get("mechanism", ""), list[Step]()
        if self._login is not None and tag in LOGIN:
            answer, account = self._login.receive(element)
            self._waits = account != ""
            answers = [LogIn(answer)] if self._waits else [self._told(answer)]
            if "<not-authorized" in answer:
                answers.insert(0, Remark("own-refusal", {}))
        elif tag == f"{{{SASL}}}auth" and mechanism.endswith("-PLUS"):
            refusal = self.refuse("invalid-mechanism")
            answers = [Remark("binds", {"mechanism": quoted(mechanism)}), refusal]
        elif tag in REFUSALS:
            refusal = self._told(f"<failure xmlns='{split(tag)[0]}'>{REFUSALS[tag]}</failure>")
            name = "unoffered" if split(tag)[0] == SASL2 else "taken-out"
            answers = [Remark(name, {"what": CHANGES[tag]}), refusal]
        yield Passage(True, b"" if answers else raw, element)
        yield from answers

    def _pass_to_client(self, element: Element, raw: bytes) -> Iterator[Step]:
        tag = element.tag
        if self._waits and tag.startswith(f"{{{SASL}}}"):
            yield LoginAnswer(element)
        elif tag == f"{{{TLS}}}proceed" and not self._is_in:
            yield Passage(False, b"", element)
            self._lanes[False].rest()
            self._lanes = {True: StreamLane(), False: StreamLane()}
            self.is_secured = True
            yield BeginTls(raw)
        elif tag == names.FEATURES:
            yield from self._pass_features(element, raw)
        else:
            passed = PATTERNS[tag].sub(rb"\1", raw) if tag in PATTERNS else raw
            if passed != raw:
                yield Remark("taken-out", {"what": CHANGES[tag]})
            yield Passage(False, passed, element)
            self._is_in = self._is_in or tag == "handshake"
            if tag == f"{{{SASL}}}success":
                yield from self._begin_anew()

    def _pass_features(self, element: Element, raw: bytes) -> Iterator[Step]:
        self.offer = offer_in(element, self.offer)
        tags = OFFERS if self._login is None else OFFERS | _LOGIN_OFFERS
        taken = [child for child in element if child.tag in tags]
        passed = without(raw, element, taken) if taken else raw
        for child in taken:
            if child.tag in OFFERS:
                yield Remark("taken-out", {"what": CHANGES[child.tag]})
        if self._login is not None and _MECHANISMS in {child.tag for child in taken}:
            offered = {*self.offer.mechanisms} - (set() if self.is_secured else {"PLAIN"})
            self._login.offered = [name for name in MECHANISMS if name in offered]
            own, end = self._login.feature, passed.rindex(b"</")
            passed = passed[:end] + own.encode() + passed[end:]
            element.extend(elements_of(own)[0])
        yield Passage(False, passed, element)

    def _told(self, xml: str) -> Passage:
        """Return an answer to the client in the server's place; if a login failed, it says so."""
        xml = xml.replace("</failure>", f"{OURS}</failure>") if SASL in xml else xml
        (element,), _ = elements_of(xml)
        return Passage(False, xml.encode(), element)

    def _begin_anew(self) -> Iterator[Step]:
        """Begin both streams anew after the login; the client may have begun its own already."""
        rest = self._lanes[True].rest()
        self._is_in = True
        self._lanes = {True: StreamLane(), False: StreamLane()}
        yield from self.receive(True, rest)
