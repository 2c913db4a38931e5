"""Reads one XML stream (RFC 6120, section 4): bytes in, elements out, within limits. Pure.

expat 2.6 and later, and Debian 12's patched 2.5.0, put off an incomplete token until more bytes
have come, and only some Pythons can tell it not to. So the parser is fed whole tokens only, and
an unfinished one is held back here.
"""

import re
from collections.abc import Iterator
from typing import ClassVar, cast
from xml.etree.ElementTree import Element, ParseError, XMLPullParser

_BLANKS = b" \t\r\n"
"""What may stand between stanzas, as a keepalive (RFC 6120, section 4.6.1)."""

_QUOTES = (b'"', b"'")

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""What may stand before everything else (RFC 3629, section 6)."""

_WHOLE_TAGS = re.compile(
    rb"""(?: [^<]* < (?![!?]) [^>"']* (?: "[^"]*" [^>"']* | '[^']*' [^>"']* )* > )*""", re.VERBOSE
)
"""Any number of tags, each with the text before it. An attribute's value may have `>` in it."""

_SECTION = re.compile(rb"<(?:!--|!\[CDATA\[|\?)")
"""What begins a comment, a CDATA section or a processing instruction."""

_UNDECIDED = re.compile(rb"<(?:!(?:-|\[(?:C(?:D(?:A(?:TA?)?)?)?)?)?)?\Z")
"""A beginning that can still become one of these, or a tag."""

_CLOSING = {
    b"<": re.compile(rb"[<>\"']"),
    b'"': re.compile(rb'[<"]'),
    b"'": re.compile(rb"[<']"),
    b"<!--": re.compile(rb"-->"),
    b"<![CDATA[": re.compile(rb"\]\]>"),
    b"<?": re.compile(rb"\?>"),
}
"""By what was opened: what closes it or, in a tag, opens an attribute's value.

`<` within a tag is never well-formed; the parser is given it at once, to say so."""

_ENCODING = re.compile(rb"<\?xml\s[^>]*?\sencoding\s*=\s*[\"']([^\"']*)[\"']")


class XmlStreamError(Exception):
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
        self._tokens = _Tokens()
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
        self._parser.feed(self._tokens.feed(data))
        try:
            # Events of other kinds, which the type allows for, were not asked for.
            for event, element in cast("Iterator[tuple[str, Element]]", self._parser.read_events()):
                if event == "start":
                    yield from self._start(element)
                else:
                    yield from self._end(element)
                if self.ended:
                    return
        except ParseError:
            raise NotWellFormedError from None
        if self._depth == 1:
            self._tokens.drop_blanks()
        if self._since_element > self._max_bytes:
            raise StanzaTooLongError

    def _start(self, element: Element) -> Iterator[Element]:
        self._depth += 1
        if self._root is None:
            self._root = element
            yield element
        elif self._depth > self._max_depth + 1:  # and the root
            raise StanzaTooLongError
        elif self._depth == 2:
            self._check_between()

    def _end(self, element: Element) -> Iterator[Element]:
        self._depth -= 1
        if self._depth == 1:
            self._since_element = 0
            behind, element.tail = element.tail, None
            yield element
            _expect_blanks(behind)
            self._last = element
            assert self._root is not None
            self._root.clear()  # it would keep every element
        elif self._depth == 0:
            self._check_between()
            self.ended = True

    def _check_between(self) -> None:
        """Refuse text between stanzas, and take the blanks behind an element off it."""
        assert self._root is not None
        _expect_blanks(self._root.text if self._last is None else self._last.tail)
        if self._last is not None:
            self._last.tail = None
            self._last = None


def _expect_blanks(text: str | None) -> None:
    if text and text.strip(_BLANKS.decode()):
        raise NotWellFormedError


class _Tokens:
    """Splits off the bytes up to the last whole tag, comment, CDATA section or instruction."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._whole = 0
        """Up to where `_held` is whole tokens."""
        self._seen = 0
        """Up to where `_held` was scanned, so that no byte of a long token is scanned twice."""
        self._opened = b""
        """What began the unfinished token, or the unfinished value in it; empty in text."""
        self._in_prolog = True

    def feed(self, data: bytes) -> bytes:
        """Return the whole tokens that were not returned before; hold back the rest."""
        self._held += data
        while self._opened or self._open():
            closing = _CLOSING[self._opened].search(self._held, self._seen)
            if closing is None:
                self._seen = max(self._seen, len(self._held) - 2)  # two of three may have come
                break
            self._seen = closing.end()
            if closing[0] not in _QUOTES:
                self._opened = b""
                self._whole = self._seen
            elif self._opened in _QUOTES:
                self._opened = b"<"
            else:
                self._opened = closing[0]
        whole = bytes(self._held[: self._whole])
        del self._held[: self._whole]
        self._seen -= self._whole
        self._whole = 0
        return whole

    def drop_blanks(self) -> None:
        """Forget the text held back between stanzas; raises `NotWellFormedError` if not blank."""
        end = self._held.find(b"<")
        text = self._held if end < 0 else self._held[:end]
        if text.strip(_BLANKS):
            raise NotWellFormedError
        self._seen -= len(text)
        del self._held[: len(text)]

    def _open(self) -> bool:
        """Find the next token that is not whole; return whether there is one."""
        if self._in_prolog:
            self._check_prolog()
        elif (end := _end_of_tags(self._held, self._seen)) > self._seen:
            self._seen = self._whole = end
        start = self._held.find(b"<", self._seen)
        if start < 0:
            self._seen = self._seen if self._in_prolog else len(self._held)
            return False
        section = _SECTION.match(self._held, start)
        if section is None and _UNDECIDED.match(self._held, start):
            self._seen = start
            return False
        self._opened = b"<" if section is None else section[0]
        self._seen = start + len(self._opened)
        self._in_prolog = self._in_prolog and section is not None
        return True

    def _check_prolog(self) -> None:
        """Refuse a DTD, and what makes the parser read something else than UTF-8.

        Only there can a DTD stand, and with it entities. `<` and NUL begin UTF-16 for expat.
        """
        text, opening, rest = bytes(self._held[self._seen :]).partition(b"<")
        del self._held[self._seen : self._seen + len(text) - len(text.lstrip(_BLANKS))]
        text = text.strip(_BLANKS)
        if rest.startswith(b"!"):
            raise RestrictedXmlError
        partly = not opening and _BYTE_ORDER_MARK.startswith(text)
        if not (partly or text in {b"", _BYTE_ORDER_MARK}) or rest.startswith(b"\0"):
            raise NotWellFormedError
        encoding = _ENCODING.search(self._held, 0, self._seen)
        if encoding and encoding[1].lower() != b"utf-8":  # RFC 6120, section 11.6
            raise NotWellFormedError


def _end_of_tags(data: bytearray, start: int) -> int:
    """Return where the whole tags end that begin at `start`, each with the text before it."""
    found = _WHOLE_TAGS.match(data, start)
    assert found is not None  # no tag at all is a match, too
    return found.end()
