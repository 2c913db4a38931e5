"""Reads one XML stream (RFC 6120, section 4): bytes in, elements out, within limits. Pure.

expat 2.6 and later, and Debian 12's patched 2.5.0, put off an incomplete token until more bytes
have come, and only some Pythons can tell it not to. So the parser is fed whole tokens only, and
an unfinished one is held back here.
"""

import re
from collections.abc import Iterator
from typing import ClassVar, cast
from xml.etree.ElementTree import Element, ParseError, XMLPullParser

from bridge.wire.errors import WireError

MAX_TOKEN_BYTES = 1024 * 1024
"""Of a tag with its attributes, a comment, a CDATA section or a processing instruction: while it is
not whole it is scanned again with all that comes. Servers pass on stanzas of 256 to 512 kB, all of
which may be one attribute."""

_BLANKS = b" \t\r\n"
"""What may stand between stanzas, as a keepalive (RFC 6120, section 4.6.1)."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""What may stand before everything else (RFC 3629, section 6)."""

# No group is possessive: Python before 3.11.5 matches such a one wrongly (python/cpython#106052).
_WHOLE_TOKENS = re.compile(
    rb"""(?: [^<]*+ < (?:
        !-- (?: [^>]* > )+? (?<= -->)
        | !\[CDATA\[ (?: [^>]* > )+? (?<= \]\]>)
        | \? (?: [^>]* > )+? (?<= \?>)
        | (?! !-- | !\[CDATA\[ | \?) [^<>"']*+ (?: "[^"]*+" [^<>"']*+ | '[^']*+' [^<>"']*+ )* [<>]
    ) )*""",
    re.VERBOSE,
)
"""Any number of comments, CDATA sections, processing instructions and tags, each with the text
before it. An attribute's value may have `>` in it. `<` within a tag is never well-formed: the
parser is given it at once, to say so."""

_PROLOG = re.compile(rb"(?:\xef\xbb\xbf)?[ \t\r\n]*(?:<\?(?:[^>]*>)+?(?<=\?>)[ \t\r\n]*)*")
"""What stands before the root's tag."""

_ENCODING = re.compile(rb"<\?xml\s[^>]*?\sencoding\s*=\s*[\"']([^\"']*)[\"']")


class XmlStreamError(WireError):
    """The other side broke the rules of XMPP streams; what follows in the stream is dropped."""

    condition: ClassVar[str]
    """The condition of the stream error for it (RFC 6120, section 4.9.3)."""


class NotWellFormedError(XmlStreamError):
    """The stream is not XML in UTF-8, or has text between stanzas."""

    condition = "not-well-formed"


class RestrictedXmlError(NotWellFormedError):
    """The stream declares a document type, whose entities can expand (section 11.1)."""

    condition = "restricted-xml"


class StanzaTooLongError(XmlStreamError):
    """An element is longer or deeper than its limit."""

    condition = "policy-violation"


class XmlStream:
    """The other side's stream, from its header to its end.

    An element has at most `max_bytes`, to within one call of `feed`, and `max_depth` levels.
    """

    def __init__(self, *, max_bytes: int, max_depth: int) -> None:
        self.ended = False
        """Whether the other side has ended its stream in good order."""
        self._max_bytes = max_bytes
        self._max_depth = max_depth
        self._held = b""
        """What has come of a token that is not whole yet, with the text before it."""
        self._parser: XMLPullParser[Element] = XMLPullParser(("start", "end"))
        self._root: Element | None = None
        self._last: Element | None = None
        self._depth = 0
        self._since_element = 0

    def feed(self, data: bytes) -> Iterator[Element]:
        """Yield the stream's header and each element in it, as soon as its last byte has come.

        Raises `XmlStreamError` for the first violation, after the elements before it.
        """
        if self.ended:
            return
        self._since_element += len(data)
        self._parser.feed(self._whole_tokens(data))
        try:
            # Events of other kinds, which the type allows for, were not asked for.
            for event, element in cast("Iterator[tuple[str, Element]]", self._parser.read_events()):
                if event == "start":
                    self._depth += 1
                    if self._root is None:
                        self._root = element
                        yield element
                    elif self._depth == 2:
                        self._check_between()
                    elif self._depth > self._max_depth + 1:  # and the root
                        raise StanzaTooLongError
                    continue
                self._depth -= 1
                if self._depth == 1:
                    self._since_element = 0
                    behind, element.tail = element.tail, None
                    yield element
                    element.tail, self._last = behind, element
                    cast("Element", self._root).clear()  # it would keep every element
                elif self._depth == 0:
                    self._check_between()
                    self.ended = True
                    return
        except ParseError:
            raise NotWellFormedError from None
        if self._depth == 1:
            self._held = self._held.lstrip(_BLANKS)
            if not b"<".startswith(self._held[:1]):
                raise NotWellFormedError
        unfinished = len(self._held.partition(b"<")[2])
        if self._since_element > self._max_bytes or unfinished > MAX_TOKEN_BYTES:
            raise StanzaTooLongError

    def _whole_tokens(self, data: bytes) -> bytes:
        """Return the whole tokens that were not returned before; hold back the rest."""
        self._held += data
        if self._root is None:
            _check_prolog(self._held)
        more = b">" in data or b"<" in data
        found = _WHOLE_TOKENS.match(self._held) if more else None
        end = found.end() if found else 0
        whole, self._held = self._held[:end], self._held[end:]
        return whole

    def _check_between(self) -> None:
        """Refuse text between stanzas, and take the blanks behind an element off it."""
        if self._last is None:
            text = cast("Element", self._root).text
        else:
            text, self._last.tail = self._last.tail, None
        if text and text.strip(_BLANKS.decode()):
            raise NotWellFormedError


def _check_prolog(data: bytes) -> None:
    """Refuse a DTD, and what makes the parser read something else than UTF-8.

    Only there can a DTD stand, and with it entities. `<` and NUL begin UTF-16 for expat.
    """
    found = _PROLOG.match(data)
    end = found.end() if found else 0
    rest = data[end:]
    if rest.startswith(b"<!"):
        raise RestrictedXmlError
    if rest.startswith(b"<\0") or not (rest.startswith(b"<") or _BYTE_ORDER_MARK.startswith(rest)):
        raise NotWellFormedError
    encoding = _ENCODING.search(data, 0, end)
    if encoding and encoding[1].lower() != b"utf-8":  # RFC 6120, section 11.6
        raise NotWellFormedError
