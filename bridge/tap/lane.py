"""One direction of a stream as pieces of bytes, each with the element that it holds. Pure.

Joined, the pieces are what came, byte for byte. A stanza is held until it is whole.
"""

from collections.abc import Iterator
from typing import NamedTuple
from xml.etree.ElementTree import Element

from bridge.capture.elements import MAX_DEPTH, depths
from bridge.capture.stanza import FOOTER, HOLE
from bridge.wire.names import CLIENT, COMPONENT
from bridge.wire.xmlstream import DamagedElement, XmlStream, XmlStreamError
from bridge.wire.xmlwriter import written

MAX_HELD_BYTES = 256 * 1024
"""A stanza that is longer is passed on in parts, and not read. Servers refuse most stanzas above
this size, and what tap changes is far shorter."""


_CONTENT = {space.encode(): f"{{{space}}}" for space in (CLIENT, COMPONENT)}
"""The namespaces of stanzas (RFC 6120, section 4.8.2), and how their tags begin. The rules know
these tags without a namespace."""


class Piece(NamedTuple):
    """Some bytes that came, up to the end of an element."""

    raw: bytes
    element: Element | None
    """None for blanks between stanzas, and for each further part of a stanza that is too long. With
    its first part comes a `DamagedElement`."""


class StreamLane:
    """One direction, from its header on; a stream that begins anew gets a new lane."""

    def __init__(self) -> None:
        self._xml = XmlStream(max_bytes=MAX_HELD_BYTES, max_depth=MAX_DEPTH, unnamed=_CONTENT)
        self.held = bytearray()
        """What came of a stanza that is not whole yet."""
        self._is_long = False
        """Whether a part of the stanza under way was passed on, since it is too long."""
        self.unparsed = ""
        """Why what comes is no longer read, but only passed on; empty as long as it is read."""

    def feed(self, data: bytes) -> Iterator[Piece]:
        """Yield what is whole. Once the stream cannot be read, yield what comes as it is."""
        self.held += data
        if not (self.unparsed or self._xml.ended):
            try:
                for element in self._xml.feed(data):
                    raw = self._cut(len(self.held) - self._xml.unread)
                    yield Piece(raw, None if self._is_long else _plain(element, raw))
                    self._is_long = False
            except XmlStreamError as error:
                self.unparsed = error.condition
            if self._xml.ended:
                yield Piece(self._cut(len(self.held) - self._xml.unread), Element(FOOTER))
        if self.unparsed or self._xml.ended or self._xml.is_between or self._is_long:
            if self.held:
                yield Piece(self.rest(), None)
        elif len(self.held) > MAX_HELD_BYTES:
            self._is_long = True
            reason = f"it has more than {MAX_HELD_BYTES:,} bytes"
            yield Piece(self.rest(), DamagedElement(Element(HOLE), reason, "policy-violation"))

    def rest(self) -> bytes:
        """Return what is held, and hold it no longer."""
        return self._cut(len(self.held))

    def _cut(self, end: int) -> bytes:
        raw = bytes(self.held[:end])
        del self.held[:end]
        return raw


def _plain(element: Element, raw: bytes) -> Element:
    """Return an element without the namespaces of stanzas, which it may declare itself."""
    for space, begins in _CONTENT.items():
        if space in raw or element.tag.startswith(begins):
            for each in element.iter():
                each.tag = each.tag.removeprefix(begins)
    return element


def without(raw: bytes, element: Element, children: list[Element]) -> bytes:
    """Return the bytes of an element without these children; all other bytes stay as they are."""
    text = raw.decode()
    ends = [end for depth, end in depths(text) if depth == 1]
    spans = [*zip(element, ends, ends[1:], strict=False)]
    is_plain = len(ends) == len(element) + 1
    for child, begin, end in reversed(spans):
        if child in children:
            element.remove(child)
            text = text[:begin] + text[end:]
    # In a CDATA section, text may look like a tag.
    return (text if is_plain else written(element)).encode()
