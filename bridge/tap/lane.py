"""One direction of a stream as pieces of bytes, each with the element that it holds. Pure.

Joined, the pieces are what came, byte for byte. A stanza is held until it is whole.
"""

from collections.abc import Iterator
from typing import NamedTuple
from xml.etree.ElementTree import Element
from xml.parsers.expat import ParserCreate

from bridge.capture.stanza import FOOTER
from bridge.wire.xmlstream import XmlStream, XmlStreamError

MAX_HELD_BYTES = 256 * 1024
"""A stanza that is longer is passed on in parts. Servers refuse most stanzas above this size, and
whatever has to be changed is far shorter."""

MAX_DEPTH = 128
"""Most levels of nested elements that the rules look at, as on the bridge's own stream."""

CHILD = 3
"""The depth of a child of the element, within the opening tag that the parser is given."""


class Piece(NamedTuple):
    """Some bytes that came, up to the end of an element."""

    raw: bytes
    element: Element | None
    """None for blanks between stanzas, and for a part of an element that is not whole."""


class StreamLane:
    """One direction, from its header on; a stream that begins anew gets a new lane."""

    def __init__(self) -> None:
        self._xml = XmlStream(max_bytes=MAX_HELD_BYTES, max_depth=MAX_DEPTH)
        self._held = bytearray()
        self.unparsed = ""
        """Why what comes is no longer read, but only passed on; empty as long as it is read."""

    @property
    def opening(self) -> bytes:
        """An opening tag with the namespaces of the header."""
        return self._xml.opening

    def feed(self, data: bytes) -> Iterator[Piece]:
        """Yield what is whole. Once the stream cannot be read, yield what comes as it is."""
        self._held += data
        if not (self.unparsed or self._xml.ended):
            try:
                for element in self._xml.feed(data):
                    yield Piece(self._cut(len(self._held) - self._xml.unread), element)
            except XmlStreamError as error:
                self.unparsed = error.condition
            if self._xml.ended:
                yield Piece(self._cut(len(self._held) - self._xml.unread), Element(FOOTER))
        is_passed_on = self.unparsed or self._xml.ended or self._xml.is_between
        if self._held and (is_passed_on or len(self._held) > MAX_HELD_BYTES):
            yield Piece(self.rest(), None)

    def rest(self) -> bytes:
        """Return what is held, and hold it no longer."""
        return self._cut(len(self._held))

    def _cut(self, end: int) -> bytes:
        raw = bytes(self._held[:end])
        del self._held[:end]
        return raw


def without(raw: bytes, opening: bytes, tags: frozenset[str]) -> tuple[bytes, set[str]]:
    """Return an element without its children of these tags, and the tags that were taken out.

    `opening` declares the namespaces of the stream. All other bytes stay as they are. Raises
    `ExpatError` for what is not well-formed.
    """
    parser = ParserCreate("utf-8", "}")
    depth, begin, is_over = 0, -1, False
    cuts: list[tuple[int, int]] = []
    taken: set[str] = set()

    def settle(*_: object) -> None:
        # Only the event behind an element tells where the element ends.
        nonlocal begin, is_over
        if is_over:
            cuts.append((begin, parser.CurrentByteIndex))
            begin, is_over = -1, False

    def start(name: str, attributes: object) -> None:
        nonlocal depth, begin
        settle()
        depth += 1
        if depth == CHILD and f"{{{name}" in tags:
            begin = parser.CurrentByteIndex
            taken.add(f"{{{name}")

    def end(name: str) -> None:
        nonlocal depth, is_over
        settle()
        is_over = depth == CHILD and begin >= 0
        depth -= 1

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.DefaultHandler = settle
    whole = b"%b%b</s>" % (opening, raw)
    parser.Parse(whole, True)
    for first, last in reversed(cuts):
        whole = whole[:first] + whole[last:]
    return whole[len(opening) : -len(b"</s>")], taken
