"""Keeps the newest stanzas of both directions, without their secrets. Pure.

The trace keeps stanzas as elements, and writes them as XML only for a reader, since most are never
read.
"""

from collections.abc import Callable
from copy import deepcopy
from typing import Literal, NamedTuple, TypeAlias
from xml.etree.ElementTree import Element

from bridge.wire.names import local
from bridge.xmpp.model.journal import Numbering, Ring

CAPACITY = 2_000
"""Most stanzas that are kept, at some 6 kB each. They cover a quarter of an hour of a busy
room, or a day of a quiet one."""

MAX_WEIGHT = 16_000_000
"""Most bytes of memory of all kept stanzas, as `_weight` estimates them, never too low."""

MAX_PIECE_WEIGHT = MAX_WEIGHT // 4
"""Most bytes of memory that one stanza may take: a larger one would push out all others."""

NAME_WEIGHT = 470
"""Bytes that an element or an attribute takes in addition to its text, with its namespace and its
place in a dictionary."""

CHARACTER_WEIGHT = 5
"""Bytes of a character in a text with an emoji: four as Python stores it, and one if the text is
kept in UTF-8 as well. In a text of ASCII a character takes one byte."""

SECRETS = frozenset(
    {
        # SASL (RFC 6120, section 6.4) and SASL2 (XEP-0388): PLAIN has the password itself, SCRAM
        # enough to try passwords against.
        "auth",
        "challenge",
        "response",
        "success",
        "initial-response",
        "additional-data",
        # Room passwords (XEP-0045, sections 7.2.5 and 7.8.2), registration (XEP-0077).
        "password",
        "digest",
        "key",
        # A component's login (XEP-0114), an upload slot's right to upload (XEP-0363), OAuth.
        "handshake",
        "header",
        "token",
        "access_token",
        "oauth_token",
        "oauth_signature",
    }
)
"""Names of elements whose text is a secret or helps to guess one, in any namespace."""

SECRET_ATTRIBUTES = {
    "resume": "previd",  # the id lets others resume the session (XEP-0198, section 5)
    "resumed": "previd",
    "enabled": "id",
    "put": "url",  # the address lets anyone upload, or read the upload (XEP-0363)
    "get": "url",
}
"""The secret attribute of an element, by the element's name in any namespace."""

PASSWORD = "password"  # noqa: S105 - the name of an attribute
ALWAYS_SECRET = frozenset({PASSWORD, "token", "secret"})
"""The attributes that are secrets on every element: invitations (XEP-0249), bookmarks (XEP-0048),
services such as TURN (XEP-0215), logins without a password (XEP-0484)."""

SECRET_FIELDS = ("secret", PASSWORD)
"""If a form field's name contains one of these, the field holds a secret (XEP-0045, section
10.2)."""

OPEN_FIELDS = frozenset({"muc#roomconfig_passwordprotectedroom"})
"""Fields with such a name that hold a boolean and no secret."""

SUSPECTS = SECRETS | SECRET_ATTRIBUTES.keys() | {"field"}
"""Names of the elements in which `redacted` may change more than the attributes `ALWAYS_SECRET`."""

REDACTED = "[redacted]"

Direction: TypeAlias = Literal["in", "out"]
Tracer: TypeAlias = Callable[[Direction, Element | str, bytes], None]
"""Takes each stanza, or other piece, of one connection's stream, together with its bytes."""


def untraced(direction: Direction, xml: Element | str, raw: bytes) -> None:
    """Drop a piece; connections without a trace use this."""
    del direction, xml, raw


class TracedStanza(NamedTuple):
    """One stanza, or another piece of the stream, as it was sent or received."""

    number: int
    at: float
    """Seconds since the epoch."""
    direction: Direction
    connection: str
    """The label of the connection: its purpose, if it has any, and its number."""
    xml: Element | str
    """The redacted piece. A piece that is no element is a string: the header and footer of the
    stream, and our comments, such as the comments about TLS."""
    identity: int = 0
    """Python's `id` of the element before anything was redacted; `Trace.number_of` looks for it."""


class Trace(Ring[TracedStanza]):
    """Keeps the last `capacity` pieces; fewer if they would exceed `max_weight`."""

    def __init__(
        self, numbering: Numbering, capacity: int = CAPACITY, *, max_weight: int = MAX_WEIGHT
    ) -> None:
        super().__init__(numbering)
        self._capacity = capacity
        self._max_weight = max_weight
        self._listeners: list[Callable[[TracedStanza], None]] = []
        self._connections = 0

    def of_connection(self, clock: Callable[[], float], what: str = "") -> Tracer:
        """Return the function that traces a new connection; `what` begins its label."""
        self._connections += 1
        label = f"{what} {self._connections}".strip()
        return lambda direction, xml, raw: self.append(direction, label, xml, raw, clock())

    def append(
        self, direction: Direction, connection: str, xml: Element | str, raw: bytes, at: float
    ) -> None:
        """Redact one piece, which is `raw` on the wire, and keep it."""
        identity = id(xml)
        weight = _weight(raw)
        if weight > MAX_PIECE_WEIGHT:
            xml = f"<!-- left out: {len(raw)} bytes are too many to keep -->"
            weight = _weight(xml.encode())
        elif not isinstance(xml, str):
            xml = redacted(xml)
        traced = TracedStanza(self.numbering.next(), at, direction, connection, xml, identity)
        self.add(traced, weight)
        self.evict_beyond(self._capacity, self._max_weight)
        for listener in self._listeners:
            listener(traced)

    def number_of(self, stanza: Element) -> int:
        """Return the number of a received stanza; 0 if the trace keeps it no longer.

        No other object has the `id` of `stanza` as long as the caller holds it. Most often `stanza`
        came last, so the newest are compared first. Stanzas that came while a session began are
        read later.
        """
        for kept in reversed(self._records):
            if kept.identity == id(stanza):
                return kept.number
        return 0

    def listen(self, listener: Callable[[TracedStanza], None]) -> None:
        """Call `listener` with each piece from now on."""
        self._listeners.append(listener)


def _weight(raw: bytes) -> int:
    """Return the most bytes of memory that `raw` may take as an element."""
    characters = len(raw) if raw.isascii() and b"&#" not in raw else CHARACTER_WEIGHT * len(raw)
    return characters + NAME_WEIGHT * (1 + raw.count(b"<") + raw.count(b"="))


def redacted(element: Element) -> Element:
    """Return `element` without its secrets: itself if nothing in it may hold one, else a copy."""
    for part in element.iter():
        name = local(part.tag)
        if name in SUSPECTS or not ALWAYS_SECRET.isdisjoint(part.attrib):
            break
    else:
        return element
    clean = deepcopy(element)
    _redact(clean, in_secret_field=False)
    return clean


def _redact(element: Element, *, in_secret_field: bool) -> None:
    """Take the secrets out of an element; it recurses for each of at most `MAX_DEPTH` levels."""
    name = local(element.tag)
    always = ALWAYS_SECRET.intersection(element.keys())
    for attribute in (*always, SECRET_ATTRIBUTES.get(name, "")):
        if element.get(attribute):
            element.set(attribute, REDACTED)
    if (name in SECRETS or always) and (element.text or any(child.tail for child in element)):
        element.text = REDACTED
        for child in element:
            child.tail = None
    in_secret_field = in_secret_field or (name == "field" and _is_secret_field(element))
    if name == "value" and in_secret_field and element.text:
        element.text = REDACTED
    for child in element:
        _redact(child, in_secret_field=in_secret_field)


def _is_secret_field(field: Element) -> bool:
    var = field.get("var", "")
    if var in OPEN_FIELDS:
        return False
    # A client must not show `text-private` even while the user types it (XEP-0004, section 3.3).
    return field.get("type") == "text-private" or any(mark in var for mark in SECRET_FIELDS)
