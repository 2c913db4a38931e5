"""Parses the XML of a log: whole elements, the ends of streams, and what is cut off. Pure.

The text comes from logs, so it may have anything, and each step is linear in its length.
"""

import re
from collections.abc import Iterator
from itertools import islice
from xml.etree.ElementTree import Element, ParseError, SubElement, fromstring

from bridge.capture.escapes import NAMES
from bridge.capture.stanza import AROUND, FOOTER, HOLE
from bridge.wire.meaning import REMOVALS
from bridge.wire.names import (
    COMPRESS,
    CONDITIONS,
    HEADER,
    MUC_USER,
    SASL,
    SASL2,
    SM,
    STANZA_ERRORS,
    STREAM_ERROR,
    STREAM_ERRORS,
    STREAMS,
    TLS,
    codes_of,
    split,
)
from bridge.wire.xmlstream import MAX_NAMESPACE_BYTES

_WITHIN = frozenset({"", MUC_USER, SASL, STANZA_ERRORS, STREAM_ERRORS})
"""The namespaces of elements that stand in others only: alone, one is left of a torn stanza."""

MAX_ENTRY_CHARACTERS = 512 * 1024
"""The longest entry that we read; servers pass on stanzas of 256 to 512 kB."""

MAX_NAMES = 30_000
"""The most elements and attributes of a stanza; each may take a kilobyte of memory. A list of items
has fewer, even in the longest entry."""

MAX_DEPTH = 128
"""The most elements of a stanza inside one another. To write a page, a function calls itself for
each level. Clients and servers nest some twenty."""

LONG_REST = 1024
"""If the beginning of a stanza is longer, we do not read it a second time."""

MAX_READ_AGAIN = 8 * MAX_ENTRY_CHARACTERS
"""We read at most so many characters of a stanza again, if no tag ends in any of its parts."""

BOSH = "http://jabber.org/protocol/httpbind"
BOSH_BODY = f"{{{BOSH}}}body"
"""The tag of the element around stanzas over HTTP (XEP-0124)."""
FRAMING = "urn:ietf:params:xml:ns:xmpp-framing"
"""The namespace of the headers and ends of streams over WebSocket (RFC 7395, section 3)."""
_KEPT = frozenset(
    {SASL, SASL2, TLS, SM, STREAMS, COMPRESS, "urn:xmpp:sm:2", "jabber:server:dialback"}
)
"""The namespaces of other elements at the root of a stream: not of stanzas."""
_NAMELESS = frozenset({"message", "presence", "iq", "handshake", HOLE, FOOTER})
_OPEN = f"<s xmlns:stream='{STREAMS}' xmlns:db='jabber:server:dialback'>"
_DEFAULT = re.compile(r""" xmlns=(['"])(jabber:(?:client|server|component:accept))\1""")
"""The declarations that we take out, so that the tags of stanzas have no namespace."""
_LONG_NAMESPACE = re.compile(
    rf"""xmlns(?<=\sxmlns)[^=<>"'\s]*+\s*+=\s*+(?:"[^"]|'[^'])[^"']{{{MAX_NAMESPACE_BYTES}}}"""
)
"""Matches the declaration of a long namespace: ElementTree repeats it in each name."""
AROUND_CHARACTERS = 24
"""We quote at most so many characters on each side of a character that XML cannot have."""
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
"""Characters that XML 1.0 cannot have (section 2.2)."""
_REFERENCE = re.compile(r"&#(?:x([0-9a-fA-F]{1,6})|([0-9]{1,7}));")
_ATTRIBUTES = r"""[^<>"']*+(?:(?:"[^"<]*+"|'[^'<]*+')[^<>"']*+)*"""
"""The part of a tag behind its name. The repetition gives back: with `*+`, Python 3.11.2, which
Debian 12 has, goes on behind a failed part of it."""
_HEADER = re.compile(rf"<(?:stream:)?stream(?=[\s>]){_ATTRIBUTES}>")
TAG = re.compile(rf"<(/?)[A-Za-z_]{_ATTRIBUTES}>")
"""A whole tag. Its first group is a slash if the tag ends an element."""
LOST = "…"
"""Stands for the address of a stanza whose first tag is cut off before it."""
_LOGIN_DATA = re.compile(rf"<(?:auth|challenge|response|success|handshake)\b{_ATTRIBUTES}>\s*\w")
BEGINS_TAG = re.compile(r"<[/?!A-Za-z_]")
_CUT_TAG = re.compile(r"""\s*<([\w:-]+)((?:\s+[\w:]+=(?:"[^"<]*+"|'[^'<]*+'))*+)([^<>]*)$""")
"""The tag in which a log cuts a stanza off: its name, its whole attributes, and the rest."""
_CUT_NAMES = dict.fromkeys(("error", "stream:error"), ("text", *CONDITIONS)) | {
    "": ("stream:error", "stream:features", "stream:stream", "success", "starttls")
}
"""What a name that the log cuts off may be, by the element that it is in."""
_MARKUP = re.compile(r"(?<=<)[*`]+|(?<=[^\s>*`])[*`]+(?=/?>)|(?<=\s)[*`]+(?=[\w:]+=)")
"""Signs of Markdown around a name in a tag."""
_UNCLOSED = re.compile(r"""=(['"])([^'"<>=]*?)(?=\s[\w:]+=\1)""")
"""A value of an attribute without the quote behind it."""
_PLACEHOLDER = re.compile(
    r"""(?:(?<==["'])|(?<=[@/.]))<([\w -]+)>|<([A-Z][A-Z_ -]*|\d\w*|U\+\w+)>"""
)
"""Matches a placeholder that a person wrote for a name, in an attribute or in capitals, and what
`less` shows for a hidden character."""
_CURLY = re.compile(
    r"""(?<==)(?:[\u2018-\u201f]([^"'<>\u2018-\u201f]*)["'\u2018-\u201f]"""
    r"""|["']([^"'<>\u2018-\u201f]*)[\u2018-\u201f])"""
)
"""A value of an attribute, with the quotes that word processors put on either side or both."""
_START = re.compile(
    rf"<(?:\?xml\b|(?:stream:)*(?:{NAMES})(?=[\s/>]|\\/|$)(?!\s+\w+=[^'\"\\\u2018-\u201f])"
    r"|\\?/stream:stream>(?!\s+[A-Za-z])|(?<=b['\"]<)|(?<=<<\"<)"
    r"|[a-z-]+\s+xmlns=['\"]urn:ietf:params:xml:ns:xmpp-streams['\"])"
)
"""The beginning of an element of XMPP, or of anything in data of a socket. In the repr of an object
the first value may have no quotes."""
_NAMED = re.compile(
    r"(?:(?<=b['\"])|(?<=<<\"))<|<(?:\?|\\?/|stream:|(?:message|presence|iq)\b(?!>[^<\s\\])"
    r"|(?:stream|handshake)\b|(?:features|auth|challenge|response|success|failure)$"
    r"|failure>\s*(?:$|<(?:aborted|[a-z]+-[a-z-]+)\b))"
    r"|[^>]*xmlns="
)
"""An element whose name means nothing else, or that has a namespace, maybe in the next line."""
_NO_ELEMENT = ("<?", "<!", "</", "<stream")
"""Text with one of these beginnings is not read as an element."""


def start_in(text: str) -> int | None:
    """Return where the leftmost element of XMPP begins; None if there is none."""
    if "<" in text:
        for start in _START.finditer(text):
            if _NAMED.match(text, start.start()):
                return start.start()
    return None


class Rest:
    """The beginning of a stanza whose end may follow in later data."""

    def __init__(self, text: str = "") -> None:
        self.text = text
        self.read_again = 0
        self._at = 0
        """How far we have read it."""
        self._depth = 0

    @property
    def is_too_long(self) -> bool:
        """Whether it takes more than we keep, or more work than we do."""
        return len(self.text) > MAX_ENTRY_CHARACTERS or self.read_again > MAX_READ_AGAIN

    def is_open(self, more: str) -> bool:
        """Add the text that follows; return whether the stanza surely goes on behind it."""
        self.text += more
        if len(self.text) < LONG_REST or self.text.lstrip().startswith(_NO_ELEMENT):
            return False
        for depth, end in depths(self.text, self._at, self._depth):
            self._at, self._depth = end, depth
            if depth <= 0:
                return False
        begin = self.text.find("<", self._at)
        self._at = len(self.text) if begin < 0 else begin
        self.read_again += len(self.text) - self._at
        return True


def elements_of(text: str) -> tuple[list[Element], str]:
    """Return the whole elements in a text, and the text behind the last of them.

    If that fails, the text is read without what people and web pages add to it.
    """
    read = _elements_in(text)
    if _is_read(read):
        return read
    pasted = _mended(text)
    if pasted != text and _is_read(again := _elements_in(pasted)):
        return again
    return read


def _mended(text: str) -> str:
    """Return a text without what people and web pages did to it."""
    text = _CURLY.sub(r'"\1\2"', _PLACEHOLDER.sub(r"&lt;\1\2&gt;", _MARKUP.sub("", text)))
    return _UNCLOSED.sub(r"=\1\2\1", text)


def _is_read(read: tuple[list[Element], str]) -> bool:
    elements, rest = read
    return not BEGINS_TAG.search(rest) and HOLE not in [each.tag for each in elements]


def _elements_in(text: str) -> tuple[list[Element], str]:
    """Return the whole elements in a text as it is, and the text behind the last of them."""
    may_be_whole = text.endswith(">") and ("</" in text or "/>" in text)
    if may_be_whole and (whole := parsed(text)) is not None:
        return whole, ""
    elements: list[Element] = []
    at = 0
    while (begin := text.find("<", at)) >= 0:
        between = text[at:begin].strip()
        if elements and between and not BEGINS_TAG.search(text, begin):
            break
        if between and "\n" not in between:  # the log lost parts of two entries
            return [*elements, Element(HOLE)], ""
        if text.startswith(("<?", "<!"), begin):
            end = text.find(">", begin) + 1
            if not end:
                break
        elif text.startswith("</", begin):
            end = text.find(">", begin) + 1
            if not end:
                break
            # A parser may end a header that stands alone, and a library what it puts around.
            is_alone = bool(elements) and elements[-1].tag in {HEADER, FOOTER}
            if not is_alone and not text.startswith("</stream:stream", begin):
                return [*elements, Element(HOLE)], ""
            elements += [] if is_alone else [Element(FOOTER)]
        elif header := _HEADER.match(text, begin):
            end = header.end()
            tag = header[0].removesuffix(">").removesuffix("/")
            header_element = parsed(f"{tag}/>")
            if header_element is None:
                return [*elements, Element(HOLE)], ""
            elements += header_element
        else:
            end = next((end for depth, end in depths(text, begin) if depth <= 0), 0)
            if not end:
                break
            piece = text[begin:end]
            elements += parsed(piece) or [_hole_because(piece)]
        at = end
    return elements, text[at:]


def refusal_in(text: str) -> list[Element]:
    """Return the stanza that begins so and has no end, if its beginning shows a refusal.

    A refusal is an error, a failed login, or the presence of an occupant that was put out.
    """
    stack, end = list[str](), 0
    for tag in TAG.finditer(text):
        end = tag.end()
        if tag[1]:
            del stack[-1:]
        elif not tag[0].endswith("/>"):
            stack.append(re.split(r"[\s>]", tag[0][1:], maxsplit=1)[0])
    closed = "".join(f"</{name}>" for name in reversed(stack))
    cut = _CUT_TAG.match(text, end)
    whole = f"{text[:end]}{_closed(cut, ''.join(stack[-1:])) if cut else ''}{closed}"
    elements = (parsed(whole) or parsed(_mended(whole)) or []) if len(stack) <= MAX_DEPTH else []
    return [
        each
        for element in elements
        for each in unwrapped(element)
        if each.tag == STREAM_ERROR
        or split(each.tag)[1] in {"failure", "failed"}
        or (each.get("type") == "error" and each.tag in _NAMELESS)
        or (each.get("type") == "unavailable" and not REMOVALS.keys().isdisjoint(codes_of(each)))
    ]


def _closed(cut: re.Match[str], inside: str) -> str:
    """Return the element whose tag the log cuts off in the element `inside`."""
    name, attributes, rest = cut.groups()
    if not rest and not attributes:
        meant = [each for each in _CUT_NAMES.get(inside, ()) if each.startswith(name)]
        name = meant[0] if len(meant) == 1 else name
    if name in _NAMELESS and " from=" not in attributes:
        attributes += f" from='{LOST}'"
    if name == "failure" and SASL.startswith(rest.partition("=")[2][1:]):
        attributes = f" xmlns='{SASL}'"
    return f"<{name}{attributes}/>"


def is_whole(elements: list[Element], rest: str) -> bool:
    """Whether an entry's text is over with these elements."""
    if not elements or ("<" in rest and BEGINS_TAG.search(rest)):
        return False
    return elements[-1].tag != HOLE or bool(elements[-1].text)


def is_of_root(text: str) -> bool:
    """Whether a text has whole elements with namespaces that may stand at the root of a stream."""
    elements, rest = elements_of(text)
    return is_whole(elements, rest) and split(elements[0].tag)[0] not in _WITHIN


def is_tag(text: str) -> bool:
    """Whether a text has the first tag of an element, and no further tag nor data of a login."""
    tag = TAG.match(text)
    return tag is not None and "<" not in text[tag.end() :] and not _LOGIN_DATA.match(text)


def depths(text: str, begin: int = 0, depth: int = 0) -> Iterator[tuple[int, int]]:
    """Yield how many elements are open after each tag, and where the tag ends.

    At `begin`, `depth` elements are open.
    """
    for tag in TAG.finditer(text, begin):
        if tag[1]:
            depth -= 1
        elif not tag[0].endswith("/>"):
            depth += 1
        yield depth, tag.end()


def _hole_because(piece: str) -> Element:
    """Return the hole for an element that cannot be parsed, with the reason if it is no XML."""
    hole = Element(HOLE)
    if _takes_too_much(piece):
        # The stanza is whole, so it hides no other stanza.
        tag = TAG.match(piece)
        alone = parsed(f"{tag[0].rstrip('/>')}/>") if tag else None
        return alone[0] if alone else hole
    hole.text = "XML that is not well-formed"
    begin = end = _fault_in(piece)
    for match in (*islice(_FORBIDDEN.finditer(piece), 1), *_REFERENCE.finditer(piece)):
        six, ten = match.groups() if match.re is _REFERENCE else (f"{ord(match[0]):x}", None)
        code = int(six or "0", 16) or int(ten or 0)
        if code < 0x110000 and _FORBIDDEN.match(chr(code)):
            hole.text = f"the character U+{code:04X}, which XML cannot have"
            begin, end = match.span()
            break
    name, closed, before = piece[:begin].rpartition("<")[2].partition(">")
    if closed and name.startswith("body"):  # in other elements may stand secrets
        behind = piece[end:][:AROUND_CHARACTERS].partition("<")[0]
        hole.set(AROUND, before[-AROUND_CHARACTERS:] + piece[begin:end] + behind)
    return hole


def _fault_in(piece: str) -> int:
    """Return where the parser finds the XML of an element at fault."""
    try:
        fromstring(f"{_OPEN}\n{piece}</s>")  # noqa: S314 - as in `parsed`
    except ParseError as error:
        line, column = error.position
        return sum(len(each) + 1 for each in piece.split("\n")[: line - 2]) + column
    except ValueError:
        pass
    return 0


def _takes_too_much(text: str) -> bool:
    """Whether a text is too deep, or takes memory as elements: by long namespaces or many names."""
    if len(text) > MAX_NAMES and text.count("<") - text.count("</") + text.count("=") > MAX_NAMES:
        return True
    if text.count("/") > MAX_DEPTH and any(depth > MAX_DEPTH for depth, _ in depths(text)):
        return True
    return _LONG_NAMESPACE.search(text) is not None


def parsed(text: str) -> list[Element] | None:
    """Return the elements of a text; None if the text has anything else."""
    if len(text) > MAX_NAMESPACE_BYTES and _takes_too_much(text):
        return None
    try:
        # Within an element, no entity can be declared.
        root = fromstring(f"{_OPEN}{_DEFAULT.sub('', text)}</s>")  # noqa: S314
    except (ParseError, ValueError):
        return None
    elements: list[Element] = list(root)
    if elements and elements[0].tag == HEADER and (kind := _DEFAULT.search(text)):
        elements[0].set("xmlns", kind[2])
    for between in (root.text, *[element.tail for element in elements]):
        if between and not between.isspace():
            return None
    return elements


def unwrapped(element: Element) -> Iterator[Element]:
    """Yield what an element at the root of an entry is for the stream; nothing if it is no XMPP."""
    namespace, name = split(element.tag)
    if namespace == FRAMING:
        yield Element(HEADER, element.attrib) if name == "open" else Element(FOOTER)
    elif namespace == BOSH:
        yield from _in_body(element)
    elif element.tag == HEADER and len(element):  # a whole stream in one entry
        yield Element(HEADER, element.attrib)
        for child in element:
            yield from unwrapped(child)
        yield Element(FOOTER)
    elif element.tag == f"{{{STREAM_ERRORS}}}error":  # some servers write it so
        element.tag = STREAM_ERROR
        yield element
    elif namespace == STREAM_ERRORS and name in CONDITIONS:
        # A web page took `<stream:error>` around it for a tag of its own.
        error = Element(STREAM_ERROR)
        error.append(element)
        yield error
    elif element.tag == "failure" and not CONDITIONS.isdisjoint(each.tag for each in element):
        element.tag = f"{{{SASL}}}failure"  # some loggers leave namespaces out
        yield element
    elif namespace in _KEPT or element.tag in _NAMELESS:
        yield element


def _in_body(body: Element) -> Iterator[Element]:
    """Yield what is in a `<body>` of BOSH (XEP-0124, sections 7, 13 and 17)."""
    if len(body) == 0 and ("rid" in body.attrib) != ("sid" in body.attrib) and not body.get("type"):
        given = {"to": body.get("to"), "from": body.get("from"), "id": body.get("sid")}
        yield Element(HEADER, {key: value for key, value in given.items() if value})
    for child in body:
        for inner in child.iter():
            inner.tag = inner.tag.removeprefix(f"{{{BOSH}}}")
        yield from unwrapped(child)
    condition = body.get("condition", "")
    if condition or body.get("type") == "terminate":
        if condition and body.get("rid") is None:
            error = Element(STREAM_ERROR)
            name, text = (condition, None) if condition in CONDITIONS else ("text", condition)
            SubElement(error, f"{{{STREAM_ERRORS}}}{name}").text = text
            yield error
        yield Element(FOOTER)
