"""Reads one XML stream (RFC 6120, section 4): bytes in, elements out, within limits. Pure.

The stream is divided into stanzas by its tags alone, and each stanza has its own parser. So a
stanza that a stranger filled with bad XML does no harm to other stanzas, and the memory for its
names is freed with its parser. Servers pass on XML that expat refuses, such as a namespace with
`}`, or a reserved namespace. We skip a stanza that we cannot read. Only an `XmlStreamError` ends
the stream.

If a tag in a stanza is malformed, the stanza ends at the closing tag with its own name, and we
count only tags with that name. A stranger's content is well-formed in itself, so it closes no more
elements than it opens. If a malformed tag may hide such a name, the stream ends: nothing within a
stanza may become a stanza.
"""

import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import ClassVar
from xml.etree.ElementTree import Element, ParseError, XMLParser
from xml.parsers.expat import ErrorString
from xml.parsers.expat.errors import XML_ERROR_TAG_MISMATCH, codes

from bridge.wire.errors import WireError

MAX_TOKEN_BYTES = 1024 * 1024
"""Most bytes of a tag with its attributes, or of a CDATA section. We scan an incomplete one again
when more data comes. Servers pass on stanzas of 256 to 512 kB, nearly all of which may be one
attribute."""

KEPT_TAG_BYTES = 4 * 1024
"""Most bytes that we keep of each part of a tag that is too long: its name, its common attributes,
and the incomplete attribute at its end."""

MAX_HEADER_BYTES = 16 * 1024
"""Most bytes of the stream's header, together with the bytes before it. Real headers have 300."""

MAX_DECLARED_BYTES = 512
"""Most bytes of the header's declarations of namespaces. We parse them again with each stanza, and
ElementTree may repeat a namespace in each name. Real headers have 100."""

MAX_NAMESPACE_BYTES = 256
"""Most bytes of a namespace. ElementTree repeats it in each of its names; real ones have up to
80."""

MAX_NAMES = 250_000
"""Most names of elements and attributes in a stanza; each takes up to 700 bytes of memory. A
listing of 80,000 rooms has that many. A stanza of 250 kB, which servers let pass, has at most
60,000."""

COMMON_ATTRIBUTES = (b"to", b"from", b"id", b"type")
"""We keep these attributes of a stanza that we cannot read. They say whose stanza it is (RFC 6120,
section 8.1)."""

_BLANKS = b" \t\r\n"
"""The bytes that may be between stanzas, as a keepalive (RFC 6120, section 4.6.1)."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""These bytes may precede everything else (RFC 3629, section 6)."""

# No group is possessive: Python before 3.11.5 matches possessive groups wrongly
# (python/cpython#106052).
_ATTRIBUTES = rb"""[^<>"']*+ (?: "[^"]*+" [^<>"']*+ | '[^']*+' [^<>"']*+ )*"""
_NAME_BEGINS = rb"(?= [A-Za-z_:\x80-\xff] )"

_TOKEN = re.compile(
    rb"""[^<]*+ < (?:
        / %b [^<>"'/]*+ > ()
        | %b [^<>"'/]*+ (?: "[^"<]*+" [^<>"'/]*+ | '[^'<]*+' [^<>"'/]*+ )* (?: /> () | > )
        | !\[CDATA\[ (?: [^>]* > )+? (?<= \]\]>) ()
        | (?: \? | ! (?: [^\[] | \[ [^C] ) ) ()
        | (?! ! ) %b (?: > | (?= < ) ) ()
    )"""
    % (_NAME_BEGINS, _NAME_BEGINS, _ATTRIBUTES),
    re.VERBOSE,
)
"""A tag or a CDATA section, with the text before it. The last matching group gives the kind of the
token."""

_WHOLE = re.compile(
    rb"""%b [^\s<>"'/=]++ (?: \s+ [^\s<>"'/=]++ \s*=\s* (?: "[^"]*+" | '[^']*+' ) )* \s* (/?) >"""
    % _NAME_BEGINS,
    re.VERBOSE,
)
"""Matches a malformed tag whose only fault is a `<` in the value of an attribute."""

_SWALLOWED = re.compile(rb"<(?:[!?]|/?(?:[^\s/<>]*:)?(?:message|presence|iq)[\s/>])")
"""Matches text that no tag may contain: the tag of a stanza, or a construct that may contain such a
tag as text. If a tag contains it, the closing quote of a value before it may be missing."""

_OPENED = re.compile(rb"<[^\s<>\"'/!]+" + _ATTRIBUTES, re.VERBOSE)
"""The beginning of a tag, up to the opening quote of an incomplete value."""

_START, _END, _EMPTY, _CDATA, _RESTRICTED, _MALFORMED = None, 1, 2, 3, 4, 5
"""The kinds of tokens, by the `lastindex` of their match. `_RESTRICTED` is a comment, a processing
instruction or a declaration (RFC 6120, section 11.1). `_MALFORMED` is a tag with `<` in it, with a
stray `/`, or without a name; it may end before the next `<`."""

NAMELESS = "unreadable"
"""The tag of a `DamagedElement` for one malformed tag or more between two stanzas."""

_ATTRIBUTE = re.compile(rb"""(?<![^\s"'])([^\s=<>"'/]+)\s*=\s*("[^"]*"|'[^']*')""")
"""The name of an attribute, and its value in quotes. A match begins only after a blank or a quote.
If it were tried at each letter of a long name, it would take quadratic time."""

_NAMES = re.compile(rb"<(?!/)|=[ \t\r\n]*[\"']")
"""Matches once at each element, and once at each attribute."""

_TLS_RECORDS = (b"\x14", b"\x15", b"\x16", b"\x17")
"""The first bytes of TLS records (RFC 8446, section 5.1). XML may have none of them."""

_PROLOG = re.compile(rb"(?:\xef\xbb\xbf)?[ \t\r\n]*(?:<\?(?:[^>]*>)+?(?<=\?>)[ \t\r\n]*)*")
"""Matches everything that may precede the root's tag."""


class XmlStreamError(WireError):
    """The other side broke the rules of XMPP streams. We drop the rest of the stream."""

    condition: ClassVar[str]
    """The condition of the stream error for this violation (RFC 6120, section 4.9.3)."""


class NotWellFormedError(XmlStreamError):
    """The stream is not XML in UTF-8, its tags are unbalanced, or text is between stanzas."""

    condition = "not-well-formed"


class TlsRecordError(NotWellFormedError):
    """The other side speaks TLS: it sent a TLS record, often an alert."""


class RestrictedXmlError(NotWellFormedError):
    """The stream has a comment, a processing instruction or a document type (section 11.1)."""

    condition = "restricted-xml"


class StanzaTooLongError(XmlStreamError):
    """The header, its namespaces, or a tag exceed their limit."""

    condition = "policy-violation"


class DamagedElement(Element):
    """A stanza of which only the name and the common attributes can be read."""

    def __init__(self, readable: Element, reason: str, condition: str) -> None:
        super().__init__(readable.tag, readable.attrib)
        self.reason = reason
        """What is wrong with the stanza, in our own words or in expat's."""
        self.condition = condition
        """The stream error for a client that sends such a stanza (RFC 6120, section 4.9.3)."""


class XmlStream:
    """The other side's stream, from its header to its end.

    A stanza with more than `max_bytes`, or nested deeper than `max_depth`, is skipped, however long
    it is. Servers may turn 100 kB into 100 MB and more, since they write a namespace with each of
    its names.

    If the header's default namespace is one of `unnamed`, the tags of its elements leave it out.
    """

    def __init__(self, *, max_bytes: int, max_depth: int, unnamed: Collection[bytes] = ()) -> None:
        self.ended = False
        """Whether the other side has ended its stream in good order."""
        self.raw = b""
        """The bytes of the last element; for a skipped stanza, only its opening tag."""
        self._max_bytes = max_bytes
        self._max_depth = max_depth
        self._unnamed = unnamed
        self._data = bytearray()
        """The bytes that have come, and whose elements were not yielded yet."""
        self._at = 0
        """How far the tokens in `_data` were read."""
        self._begin = 0
        """Where the stanza under way begins in `_data`."""
        self._opened = 0
        """Where the opening tag of the stanza under way ends in `_data`."""
        self._reason = ""
        """Why the stanza under way is skipped; empty if it is read."""
        self._condition = ""
        """The stream error for a client that sends such a stanza."""
        self._own = b""
        """The name of the stanza under way, if a tag in it is malformed. Then we count only
        elements with this name."""
        self._last_tag = ""
        """The tag of the last element: of several `NAMELESS` ones in a row, we yield the first."""
        self._depth = 0
        """How many elements are open, including the root. If `_own` is set, we count only some of
        them."""
        self._name = b""
        """The name in the header's tag; empty before the header has come."""
        self._prefix = b""
        """An opening tag with the namespaces of the header; each stanza is parsed inside of it."""

    @property
    def unread(self) -> int:
        """How many of the bytes that have come follow the last token, or the end."""
        return len(self._data) - self._at

    @property
    def is_between(self) -> bool:
        """Whether the stream is open, and no element of it has begun."""
        return self._depth == 1 and not self._data

    def feed(self, data: bytes) -> Iterator[Element]:
        """Yield the stream's header and each element in it, as soon as its last byte has come.

        Raises `XmlStreamError` for the first violation, after the elements before it.
        """
        if self.ended:
            return
        self._data += data
        if not self._name:
            header = self._read_header()
            if header is None:
                return
            yield header
        if b">" in data or b"<" in data:
            yield from self._read_tokens()
        if self._depth == 1:
            del self._data[: self._at]
            self._data, self._at = self._data.lstrip(_BLANKS), 0
            if not b"<".startswith(self._data[:1]):
                raise NotWellFormedError
        elif self._depth:
            self._trim()
        opened = self._data.find(b"<", self._at)
        if self._depth and opened >= 0:
            self._check_incomplete(opened, len(data))
        # In a skipped stanza, we cut a long tag sooner, so that we scan it less often.
        longest = MAX_TOKEN_BYTES // 16 if self._reason else MAX_TOKEN_BYTES
        if 0 <= opened < len(self._data) - 1 - longest:
            self._cut_tag(opened)

    def _read_header(self) -> Element | None:
        """Return the root without its content; None while its tag is incomplete."""
        data = bytes(self._data)
        if data.startswith(_TLS_RECORDS):
            raise TlsRecordError
        begin = _check_prolog(data)
        token = _TOKEN.match(data, begin)
        self._at = len(data) if token is None else token.end()
        if self._at > MAX_HEADER_BYTES:
            raise StanzaTooLongError
        if token is None or token.lastindex == _RESTRICTED:  # incomplete `<?xml ... ?>`
            return None
        if token.lastindex not in {_START, _EMPTY}:
            raise NotWellFormedError
        self.ended = token.lastindex == _EMPTY
        self._depth = 0 if self.ended else 1
        self.raw = tag = data[begin : self._at]
        self._name = _name_of(tag)
        declared = [pair for pair in _attributes(tag) if _is_namespace(pair[0])]
        named = (
            each for each in declared if each[0] != b"xmlns" or each[1][1:-1] not in self._unnamed
        )
        self._prefix = b"<s%b>" % b"".join(b" %b=%b" % pair for pair in named)
        if len(self._prefix) - len(b"<s>") > MAX_DECLARED_BYTES:
            raise StanzaTooLongError
        # The encoding is UTF-8, whatever the declaration says (RFC 6120, section 11.6).
        parser = XMLParser(encoding="utf-8")  # noqa: S314 - entities have been refused
        try:
            parser.feed(data[: self._at] + (b"</%b>" % self._name) * self._depth)
            header: Element = parser.close()
        except ParseError:
            raise NotWellFormedError from None
        return header

    def _read_tokens(self) -> Iterator[Element]:
        data, at, depth = self._data, self._at, self._depth
        while depth and (token := _TOKEN.match(data, at)) is not None:
            kind, start, at = token.lastindex, at, token.end()
            if depth == 1:
                self._begin, self._opened = data.index(b"<", start), at
                if self._begin > start or kind in {_END, _CDATA}:
                    self._check_between(kind, start, at)
            if kind == _RESTRICTED:
                raise RestrictedXmlError
            if kind == _MALFORMED and start > self._begin and not self._own:
                if self._reason:  # the tags before are not kept
                    raise NotWellFormedError
                # Read the stanza from its beginning again, by its name.
                self._own = _name_of(bytes(data[self._begin : self._opened]))
                at, depth = self._begin, 1
                continue
            if kind == _MALFORMED or self._own:
                depth += self._opens(kind, bytes(data[start:at]))
            elif kind == _END:
                depth -= 1
            else:
                if kind != _CDATA and (at - start > MAX_NAMESPACE_BYTES or depth > self._max_depth):
                    self._check_limits(bytes(data[data.index(b"<", start) : at]), depth)
                if kind is _START:
                    depth += 1
            if depth == 1:
                self._at, self._depth = at, depth
                element, before = self._finished(), self._last_tag
                self._last_tag = element.tag
                if not element.tag == before == NAMELESS:  # a flood of `<>` is reported once
                    yield element
        self._at, self._depth, self.ended = at, depth, not depth

    def _check_between(self, kind: int | None, start: int, at: int) -> None:
        """Refuse tokens that may not be between stanzas, and closing tags other than the root's."""
        text, end = self._data[start : self._begin], self._data[self._begin + 2 : at - 1]
        refused = end.rstrip(_BLANKS) != self._name if kind == _END else kind == _CDATA
        if refused or text.strip(_BLANKS):
            raise NotWellFormedError

    def _check_incomplete(self, opened: int, new: int) -> None:
        """Refuse the incomplete tag at `opened` if a quote in it was not closed.

        We search only its `new` bytes, and enough bytes before them for a name.
        """
        begin = max(opened + 1, len(self._data) - new - len("</presence>"))
        if not self._data.startswith(b"<![CDATA[", opened) and _SWALLOWED.search(self._data, begin):
            raise NotWellFormedError

    def _opens(self, kind: int | None, token: bytes) -> int:
        """Return how many more elements with the stanza's name are open behind a token.

        Raises `NotWellFormedError` if a malformed tag may have opened or closed one.
        """
        text, _, tag = token.partition(b"<")
        if kind == _MALFORMED:
            self._skip("a tag in it is not well-formed", NotWellFormedError.condition)
            whole = _WHOLE.fullmatch(tag)
            if _SWALLOWED.search(tag) or not (whole or (self._own or b"=") not in tag):
                raise NotWellFormedError
            if not (self._own or whole):  # without an attribute, it begins no stanza of a stranger
                self._opened = self._begin
                return 0
            self._own = self._own or _name_of(b"<" + tag)
            kind = _START if whole and not whole[1] else _EMPTY
        elif b">" in text:  # the rest of a tag, which may have opened or closed one
            raise NotWellFormedError
        if kind == _END:
            return -(_name_of(tag) == self._own)
        return int(kind is _START and _name_of(b"<" + tag) == self._own)

    def _check_limits(self, tag: bytes, depth: int) -> None:
        """Skip the stanza under way if `tag` is nested too deep or has too long a namespace."""
        if depth > self._max_depth:
            self._skip(f"its elements are nested more than {self._max_depth} deep")
        elif any(
            _is_namespace(name) and len(value) - len("''") > MAX_NAMESPACE_BYTES
            for name, value in _attributes(tag)
        ):
            self._skip(f"a namespace in it has more than {MAX_NAMESPACE_BYTES} bytes")

    def _skip(self, reason: str, condition: str = StanzaTooLongError.condition) -> None:
        """Skip the stanza under way; the first reason counts."""
        if not self._reason:
            self._reason, self._condition = reason, condition

    def _trim(self) -> None:
        """Forget the bytes before the stanza under way; if it is skipped, its content too."""
        data = self._data
        del data[: self._begin]
        self._at, self._opened = self._at - self._begin, self._opened - self._begin
        self._begin = 0
        if len(data) > self._max_bytes:
            self._skip(f"it has more than {self._max_bytes:,} bytes")
        if self._reason:
            token = data.find(b"<", self._at)
            end = len(data) if token < 0 else token
            if self._own and b">" in data[self._at : end]:
                raise NotWellFormedError
            del data[self._opened : end]
            self._at = self._opened

    def _cut_tag(self, opened: int) -> None:
        """Cut an incomplete tag to its name, common attributes and last bytes; skip its stanza."""
        known = _OPENED.match(self._data, opened)
        if not self._depth or known is None:  # a CDATA section, which no server writes
            raise StanzaTooLongError
        tag, value = known[0], bytes(self._data[known.end() :])
        name, *parts = re.split(rb"[\s\"']", tag)
        common = b"".join(b" %b=%b" % pair for pair in _attributes(tag) if _is_common(pair))
        end = b"".join(parts[-1:])
        if len(value) > KEPT_TAG_BYTES:
            end, value = b"x=", value[:1]
        kept = name[:KEPT_TAG_BYTES], common, end[-KEPT_TAG_BYTES:], value
        self._data[opened:] = b"%b%b %b%b" % kept
        self._skip(f"a tag in it has more than {MAX_TOKEN_BYTES:,} bytes")

    def _finished(self) -> Element:
        """Return the stanza that ends at `_at`; it has no tail."""
        self.raw = data = bytes(self._data[self._begin : self._at])
        if len(data) > self._max_bytes:
            self._skip(f"it has more than {self._max_bytes:,} bytes")
        elif len(data) > MAX_NAMES and sum(1 for _ in _NAMES.finditer(data)) > MAX_NAMES:
            self._skip(f"it has more than {MAX_NAMES:,} names")
        if not self._reason:
            try:
                return self._parsed(data)
            except ParseError as error:
                if error.code == codes[XML_ERROR_TAG_MISMATCH]:
                    raise NotWellFormedError from None
                refused = f"its XML is refused by the parser: {ErrorString(error.code)}"
                self._skip(refused, NotWellFormedError.condition)
        reason, self._reason, self._own = self._reason, "", b""
        self.raw = tag = bytes(self._data[self._begin : self._opened])
        if not tag:
            return DamagedElement(Element(NAMELESS), reason, self._condition)
        name, given = _name_of(tag), dict(_attributes(tag.replace(b"<", b"&lt;")))
        if self._opened < self._at and _name_of(data[data.rindex(b"<") + 1 :]) != name:
            raise NotWellFormedError
        common = (b" %b=%b" % (key, given[key]) for key in COMMON_ATTRIBUTES if key in given)
        for opening in (b"".join((name, *common)), name):
            with suppress(ParseError):
                return DamagedElement(self._parsed(b"<%b/>" % opening), reason, self._condition)
        raise NotWellFormedError

    def _parsed(self, data: bytes) -> Element:
        """Return the only element in `data`; raises `ParseError`."""
        parser = XMLParser()  # noqa: S314 - within an element nothing can be declared that expands
        parser.feed(b"%b%b</s>" % (self._prefix, data))
        (element,) = parser.close()
        return element


def _name_of(tag: bytes) -> bytes:
    """Return the name in an opening tag, as it is written."""
    return re.split(rb"[\s/>]", tag[1:], maxsplit=1)[0]


def _attributes(tag: bytes | bytearray) -> list[tuple[bytes, bytes]]:
    """Return the names of the attributes in a tag, and their values in quotes."""
    return _ATTRIBUTE.findall(tag)


def _is_namespace(name: bytes) -> bool:
    """Whether the attribute of this name declares a namespace."""
    return name == b"xmlns" or name.startswith(b"xmlns:")


def _is_common(attribute: tuple[bytes, bytes]) -> bool:
    """Whether this is one of the `COMMON_ATTRIBUTES`, with at most `KEPT_TAG_BYTES`."""
    return attribute[0] in COMMON_ATTRIBUTES and len(attribute[1]) <= KEPT_TAG_BYTES


def _check_prolog(data: bytes) -> int:
    """Return where the root's tag begins.

    A DTD could only be before the root. We refuse it, and with it entities.
    """
    prolog = _PROLOG.match(data)
    end = prolog.end() if prolog else 0
    rest = data[end:]
    if rest.startswith(b"<!"):
        raise RestrictedXmlError
    if not (rest.startswith(b"<") or _BYTE_ORDER_MARK.startswith(rest)):
        raise NotWellFormedError
    return end
