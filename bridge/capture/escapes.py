"""Undoes how loggers and web pages write XML: with escapes, in quotes, without brackets. Pure."""

import html
import re
from collections.abc import Callable
from contextlib import suppress
from operator import itemgetter
from xml.sax.saxutils import escape, quoteattr

NAMES = (
    "message|presence|iq|stream|features|error|auth|challenge|response|success|failure|abort"
    "|starttls|proceed|authenticate|continue|next|enabled?|resumed?|failed|r|a|body|open|close"
    "|handshake|compress(?:ed)?|active|inactive|task-data"
)
"""The names of elements at the root of a stream, for patterns."""

_UNQUOTED = re.compile(r"""[^"'\\]*(?:\\/[^"'\\]*)*""")
_ESCAPED_QUOTE = re.compile(r"""(?<==)\\+(["'])""")
_DOUBLED = re.compile(r'=""[^"\s/>]')
"""A value of an attribute in a field of CSV (RFC 4180), which doubles quotes."""
_FIELD = re.compile(r'[^"]*(?:""[^"]*)*')
_ESCAPE = re.compile(
    r"\\(?:x\{([0-9a-fA-F]{1,6})\}|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|([0-7]{3})|(.))", re.DOTALL
)
_ESCAPE_OF_BYTE = re.compile(_ESCAPE.pattern.replace("|u(", "|(?!)("), re.DOTALL)
_BYTE = re.compile(r"\\(?:x[89a-f]|[23][0-7]{2})")
_LETTERS = dict(zip("nrtbfve0", "\n\r\t\b\f\v\x1b\0", strict=True))
_EATEN = re.compile(
    r"(?:(?<![<:/\w])(?=stream:(?:error|features)(?:<(?!/?stream:)|[^<>]*</stream:error>))"
    r"|^(?=stream:error$)|(?:^|(?<=>)|(?<=:error)|(?<=:features))(?=/stream:))"
    r"(/?stream:(?:error|features|stream))(?![>&])"
)
"""A tag of a stream whose brackets a web page took for its own."""


_CLARK = re.compile(r"(?<=[</\s])\{[^{}\s]*\}:(?=[A-Za-z_])")
"""A namespace in braces before the name of an element or an attribute, as Dino writes it."""
_BARE = re.compile(
    r"""^\s*(?=[^<]*['"](?:terminate|urn:ietf:params:xml:ns:xmpp-streams)['"])"""
    r"""([a-z-]+(?:\s+[\w:]+=(?:"[^"<]*"|'[^'<]*'))+)\s*/?>?\s*$"""
)
"""A tag of an error, or of the end of a session over HTTP, that stands alone without brackets."""


def mended(text: str) -> str:
    """Return `text` with the brackets of tags that a web page took for its own."""
    if "stream:" in text:
        text = _EATEN.sub(r"<\1>", text).replace("stream:stream:", "stream:")
    return _BARE.sub(r"<\1/>", text) if "<" not in text and " xmlns=" in text else text


def unbraced(text: str) -> str:
    """Return `text` without the namespaces before names: the declarations say the same."""
    return _CLARK.sub("", text) if "}:" in text else text


def unescaped(text: str, *, is_bytes: bool = False) -> str:
    """Return a text without the backslashes of Python, JSON, C or Erlang.

    If `is_bytes`, each escaped number stands for a byte of UTF-8, and no letter `u` is an escape.
    """
    if "\\" not in text:
        return text
    plain = (_ESCAPE_OF_BYTE if is_bytes else _ESCAPE).sub(_character, text)
    if is_bytes and _BYTE.search(text):
        with suppress(UnicodeEncodeError):
            return plain.encode("latin-1").decode(errors="replace")
    return plain


def _character(escape: re.Match[str]) -> str:
    long, two, four, octal, letter = escape.groups()
    if letter is not None:
        return _LETTERS.get(letter, letter)
    code = int(octal, 8) if octal else int(long or two or four, 16)
    return chr(code) if code < 0x110000 else "\ufffd"


_STRING = r'(?:<<)?"(?:[^"\\]|\\.)*"(?:>>)?|<<>>'
_TERM = re.compile(
    rf"(?:\{{:?xml(?:el|element|streamstart),|\#xmlel\{{name\s*=)\s*(?P<name>{_STRING}),"
    rf"\s*(?:attrs\s*=\s*)?\[(?P<attributes>(?:\{{(?:{_STRING}),\s*(?:{_STRING})\}},?\s*)*)\]"
    rf"(?:,\s*(?:children\s*=\s*)?(?P<children>\[)|\}})"
    rf"|\{{:?xmlcdata,\s*(?P<text>{_STRING})\}}|(?P<end>\]\}})"
)
"""A part of an element that Erlang or Elixir writes as a term."""
_PAIR = re.compile(rf"({_STRING}),\s*({_STRING})")


def of_terms(text: str) -> str:
    """Return a line with XML for its first element that is a term; unchanged if it has no end."""
    names, xml, begin, end = list[str](), "", None, 0
    for part in _TERM.finditer(text) if "xml" in text else ():
        begin = part.start() if begin is None else begin
        if names and text[end : part.start()].strip(", \t"):
            return text
        end = part.end()
        if part["name"]:
            pairs = _PAIR.findall(part["attributes"])
            attributes = [f" {_string(key)}={quoteattr(_string(value))}" for key, value in pairs]
            xml += f"<{_string(part['name'])}{''.join(attributes)}>"
            names += [_string(part["name"])] if part["children"] else []
        elif part["text"]:
            xml += escape(_string(part["text"]))
        elif names:
            xml += f"</{names.pop()}>"
        if not names:
            return f"{text[:begin]}{xml}{text[part.end() :]}"
    return text


def _string(term: str) -> str:
    """Return the characters of a string of Erlang or Elixir."""
    return unescaped(term.strip("<>")[1:-1])


_WAYS: tuple[tuple[str, re.Pattern[str], Callable[[str], str]], ...] = (
    ("xml", re.compile(r"(?:\{:?|#)xml(?:el|element|streamstart)\W"), of_terms),
    *(
        (mark, re.compile(rf"{bracket}(?:stream:)*(?:{NAMES})(?={behind})"), meaning)
        for mark, bracket, behind, meaning in (
            ("&lt;", "&lt;", r"[\s/]|&gt;", html.unescape),
            ("\\u003", r"\\u003[cC]", r"[\s/\\]", unescaped),
            ("«", "«", r"[\s/»]", lambda text: text.translate(str.maketrans("«»", "<>"))),
            (" xmlns=", r"\(", " xmlns=", lambda text: text.translate(str.maketrans("()", "<>"))),
        )
    ),
)
"""Ways to write XML without its brackets: what to look for first, its beginning, its meaning."""


def way_of(text: str, *, has_raw: bool) -> Callable[[str], str] | None:
    """Return the meaning of a line in which XML is escaped; None if it has none.

    The way that begins first is the logger's: a stranger's words may be written in another. In a
    log that has raw XML, only terms are read: some libraries log so what they receive.
    """
    ways = [
        (begin.start(), meaning)
        for mark, pattern, meaning in _WAYS[: 1 if has_raw else None]
        if mark in text and (begin := pattern.search(text))
    ]
    return min(ways, key=itemgetter(0))[1] if ways else None


def opens_field(head: str, xml: str) -> bool:
    """Whether the text behind `head` is a field of CSV that goes on in the next line."""
    return '"' in head and _DOUBLED.search(xml) is not None and bool(_FIELD.fullmatch(xml))


def undoubled(text: str) -> str:
    """Return a text of a field of CSV without doubled quotes."""
    return text.replace('""', '"')


def unquoted(head: str, xml: str) -> tuple[str, str | None]:
    """Return the text behind `head` without quotes and escapes, and what stands behind its end.

    If the text is not quoted, the second is None.
    """
    if '"' in head and _DOUBLED.search(xml) and (field := _FIELD.match(xml)):
        return undoubled(field[0]), xml[field.end() :]
    behind = None
    while (escape := _escaped_quote(xml)) is not None:
        inner = _up_to(escape[1], xml)
        behind = xml[len(inner) :] if behind is None else behind
        xml = unescaped(inner)
    if behind is None and head[-1:] in {"'", '"'} and "\\" in xml:
        inner = _up_to(head[-1], xml)
        if inner.endswith(">") and xml.startswith(head[-1], len(inner)):
            return unescaped(inner), xml[len(inner) :]
    return xml, behind


def _escaped_quote(xml: str) -> re.Match[str] | None:
    """Return the first quote, with its backslashes, if it is an attribute's and escaped."""
    if "\\" not in xml:
        return None
    unquoted = _UNQUOTED.match(xml)
    end = unquoted.end() if unquoted else 0
    is_in_tag = xml.rfind("<", 0, end) > xml.rfind(">", 0, end)
    return _ESCAPED_QUOTE.match(xml, end) if is_in_tag else None


def _up_to(quote: str, text: str) -> str:
    """Return the text before the first quote without a backslash."""
    end = re.match(rf"(?:[^{quote}\\]|\\.)*", text)
    return end[0] if end else text
