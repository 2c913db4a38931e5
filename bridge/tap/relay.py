"""What passes between a client and its server, and what is changed on the way, without I/O.

Everything passes byte for byte, but for what the table `CHANGES` has, and for STARTTLS, which is
spoken on each of the two connections. Without a `ClientLogin`, the login passes too, so that the
trouble with it stays what it is.
"""

import re
from base64 import b64decode
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple, TypeAlias
from xml.etree.ElementTree import Element

from bridge.capture.elements import elements_of
from bridge.capture.stanza import HOLE, STANZA_TAGS
from bridge.tap.lane import Piece, StreamLane, without
from bridge.tap.login import ClientLogin
from bridge.wire import names
from bridge.wire.names import SASL, SASL2, SASL_CB, SM, TLS
from bridge.wire.xmlstream import DamagedElement
from bridge.xmpp.link.offer import Offer, offer_in

COMPRESS = "http://jabber.org/protocol/compress"

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
    f"{{{SASL2}}}authenticate": f"<failure xmlns='{SASL2}'><not-authorized xmlns='{SASL}'/>"
    "</failure>",
    f"{{{COMPRESS}}}compress": f"<failure xmlns='{COMPRESS}'><setup-failed/></failure>",
}
"""What tap answers a client that asks for something that was taken out."""

PATTERNS = {
    f"{{{SM}}}enabled": re.compile(rb"""\s+location\s*=\s*(?:"[^"]*"|'[^']*')()"""),
    names.STREAM_ERROR: re.compile(rb"(<(?:[^\s<>/:]+:)?see-other-host(?:\s[^<>]*)?>)[^<]+"),
}
"""What is taken out of an element but for the group."""

_LOGIN = frozenset(f"{{{SASL}}}{name}" for name in ("auth", "response", "abort"))
_AUTH, _SUCCESS = f"{{{SASL}}}auth", f"{{{SASL}}}success"
_PROCEED = f"{{{TLS}}}proceed"
_STANZAS = names.STANZAS | {f"{{{names.COMPONENT}}}{name}" for name in STANZA_TAGS}


class PassedBytes(NamedTuple):
    """Bytes for the server or for the client."""

    to_server: bool
    data: bytes


class SeenElement(NamedTuple):
    """What the client sent or got, for the rules."""

    sent: bool
    element: Element
    raw: bytes


class BeginTls(NamedTuple):
    """TLS begins with the server; then the client is sent `proceed`, and begins it too."""

    proceed: bytes


class LogIn(NamedTuple):
    """The client has proved the password: log in to the server, and then send it `success`."""

    success: bytes


class LoginAnswer(NamedTuple):
    """What the server answers to tap's own login."""

    element: Element


class Remark(NamedTuple):
    """Something to say of the stream: the name of a row of `remarks`."""

    name: str
    words: dict[str, str]


class Changed(NamedTuple):
    """Something was taken out: a key of `CHANGES`."""

    tag: str


Step: TypeAlias = PassedBytes | SeenElement | BeginTls | LogIn | LoginAnswer | Remark | Changed


class Relay:
    """The two directions of one client's connection."""

    def __init__(self, login: ClientLogin | None = None) -> None:
        self._login = login
        self._lanes = {True: StreamLane(), False: StreamLane()}
        self.offer = Offer()
        """What the server has offered."""
        self._is_in = False
        """Whether the client has logged in."""
        self._waits = False
        """Whether tap itself logs in just now."""
        self._is_whole = True
        """Whether the rules see all stanzas of both sides."""

    def receive(self, sent: bool, data: bytes) -> Iterator[Step]:
        """Take what the client `sent`, or else what the server did; go through all steps at once.

        After `BeginTls` nothing is kept: somebody on the way may have added what came before.
        """
        lane = self._lanes[sent]
        for piece in lane.feed(data):
            yield from self._pass(sent, piece, lane)
            if lane is not self._lanes[sent]:  # the stream begins anew
                yield from self.receive(sent, lane.rest())
                return

    def close(self, sent: bool) -> Iterator[Step]:
        """Let out what is held of a side that has ended its connection."""
        yield PassedBytes(sent, self._lanes[sent].rest())

    def logged_in(self, success: bytes) -> Iterator[Step]:
        """Tell the client that it is in, since tap is."""
        self._waits = False
        yield from self._tell(success.decode())
        yield from self._begin_anew()

    def refuse(self, condition: str) -> Iterator[Step]:
        """Tell the client that its login has failed."""
        self._waits = False
        yield from self._tell(f"<failure xmlns='{SASL}'><{condition}/></failure>")

    def _pass(self, sent: bool, piece: Piece, lane: StreamLane) -> Iterator[Step]:
        raw, element = piece
        if element is None or isinstance(element, DamagedElement):
            reason = lane.unparsed if element is None else element.reason
            yield from self._pass_unread(sent, raw, reason)
            self._is_whole = self._is_whole and not lane.unparsed
        elif element.tag in _STANZAS:
            yield PassedBytes(sent, raw)
            if self._is_whole:
                yield SeenElement(sent, element, raw)
        elif sent:
            yield SeenElement(True, element, raw)
            yield from self._pass_to_server(element, raw)
        else:
            yield from self._pass_to_client(element, raw, lane)

    def _pass_unread(self, sent: bool, raw: bytes, reason: str) -> Iterator[Step]:
        """Pass on blanks, parts of stanzas, and for a `reason` what cannot be read.

        Before the login nothing of the server passes that may have to be changed.
        """
        if reason and not (sent or self._is_in):
            yield Remark("unreadable", {"reason": reason})
            return
        yield PassedBytes(sent, raw)
        if reason and self._is_whole:
            elements, _ = elements_of(raw.decode("utf-8", "replace"))
            holes = [each for each in elements if each.tag == HOLE and each.text]
            if not holes:
                holes = [Element(HOLE)]
                holes[0].text = f"XML that cannot be read ({reason})"
            yield SeenElement(sent, holes[0], raw)

    def _pass_to_server(self, element: Element, raw: bytes) -> Iterator[Step]:
        tag = element.tag
        remark = self._about(element) if tag == _AUTH and self._login is None else None
        if remark is not None:
            yield remark
        if refusal := REFUSALS.get(tag):
            yield Changed(tag)
            yield from self._tell(refusal)
        elif self._login is not None and tag in _LOGIN:
            reply, self._waits = self._login.receive(element)
            if self._waits:
                yield LogIn(reply)
            else:
                yield from self._tell(reply.decode())
        elif remark is not None and remark.name == "binds":
            yield from self.refuse("invalid-mechanism")
        else:
            yield PassedBytes(True, raw)

    def _pass_to_client(self, element: Element, raw: bytes, lane: StreamLane) -> Iterator[Step]:
        tag = element.tag
        if self._waits and tag.startswith(f"{{{SASL}}}"):
            yield LoginAnswer(element)
        elif tag == _PROCEED and not self._is_in:
            yield SeenElement(False, element, raw)
            for each in self._lanes.values():
                each.rest()
            self._lanes = {True: StreamLane(), False: StreamLane()}
            yield BeginTls(raw)
        elif tag == names.FEATURES:
            yield from self._pass_features(element, raw, lane)
        else:
            passed = PATTERNS[tag].sub(rb"\1", raw) if tag in PATTERNS else raw
            if passed != raw:
                yield Changed(tag)
            yield PassedBytes(False, passed)
            yield SeenElement(False, element, passed)
            self._is_in = self._is_in or tag == f"{{{names.COMPONENT}}}handshake"
            if tag == _SUCCESS:
                yield from self._begin_anew()

    def _pass_features(self, element: Element, raw: bytes, lane: StreamLane) -> Iterator[Step]:
        self.offer = offer_in(element, self.offer)
        tags, mechanisms = OFFERS, f"{{{SASL}}}mechanisms"
        replaces = self._login is not None and element.find(mechanisms) is not None
        if replaces:
            tags |= {mechanisms, f"{{{SASL_CB}}}sasl-channel-binding"}
        passed, taken = without(raw, lane.opening, tags)
        for child in [child for child in element if child.tag in taken]:
            element.remove(child)
        for tag in sorted(taken & OFFERS):
            yield Changed(tag)
        if self._login is not None and replaces:
            end = passed.rindex(b"</")
            own = self._login.offer(element, self.offer.mechanisms)
            passed = passed[:end] + own + passed[end:]
        yield PassedBytes(False, passed)
        yield SeenElement(False, element, passed)

    def _about(self, auth: Element) -> Remark | None:
        """Return what to say of the flag for channel binding of a login (RFC 5802, section 7)."""
        mechanism, first = auth.get("mechanism", ""), b""
        with suppress(ValueError):
            first = b64decode((auth.text or "").strip()[:4])[:1]
        offers = [name for name in self.offer.mechanisms if name.endswith("-PLUS")]
        if mechanism.endswith("-PLUS") or (mechanism.startswith("SCRAM-") and first == b"p"):
            return Remark("binds", {"mechanism": mechanism})
        if mechanism.startswith("SCRAM-") and first == b"y" and offers:
            return Remark("could-bind", {"mechanism": mechanism, "offered": ", ".join(offers)})
        return None

    def _tell(self, xml: str) -> Iterator[Step]:
        """LoginAnswer the client in the server's place."""
        yield PassedBytes(False, xml.encode())
        for element in elements_of(xml)[0]:
            yield SeenElement(False, element, xml.encode())

    def _begin_anew(self) -> Iterator[Step]:
        """Begin both streams anew after the login; the client may have begun its own already."""
        rest = self._lanes[True].rest()
        self._is_in = True
        self._lanes = {True: StreamLane(), False: StreamLane()}
        yield from self.receive(True, rest)
