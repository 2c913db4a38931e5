"""Reads a log of stanzas: lines in, stanzas out, with their places. Pure, and within bounds.

The reader passes over everything else, since logs have other lines too. If the log has only a part
of a stanza, the reader yields a hole, which may also hide other stanzas. So no rule can say that an
answer never came if the log may have lost it.
"""

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element, ParseError, fromstring

from bridge.capture.formats import FORMATS, JSON, Format
from bridge.capture.stanza import FOOTER, HOLE, LogPlace, Stanza
from bridge.capture.times import time_in
from bridge.wire.names import STREAMS
from bridge.wire.xmlstream import MAX_NAMESPACE_BYTES

MAX_ENTRY_CHARACTERS = 512 * 1024
"""The longest entry that we read; servers pass on stanzas of 256 to 512 kB."""

MAX_NAMES = 30_000
"""The most elements and attributes of a stanza; each may take a kilobyte of memory. A list of items
has fewer, even in the longest entry."""

MAX_LINE_BYTES = 2 * 1024 * 1024
"""The longest line that we read: the longest entry, with escapes."""

MAX_OBJECT_CHARACTERS = 128 * 1024
"""The longest JSON object over several lines; a result of `xmppTrace` has at most 45 kB."""

MAX_RESTS = 256
"""The data of at most so many streams may end within a stanza; with more, the oldest is lost."""

LONG_REST = 1024
"""If the beginning of a stanza is longer, we do not read it a second time."""

MAX_READ_AGAIN = 8 * MAX_ENTRY_CHARACTERS
"""We read at most so many characters of a stanza again, if no tag ends in any of its parts."""

MAX_RESTS_CHARACTERS = 2 * MAX_ENTRY_CHARACTERS
"""The most characters of all these stanzas together."""

_OPEN = f"<s xmlns:stream='{STREAMS}' xmlns:db='jabber:server:dialback'>"
_DEFAULT = re.compile(r""" xmlns=(['"])jabber:(?:client|server|component:accept)\1""")
"""We leave these declarations out, so that the tags of stanzas have no namespace."""
_LONG_NAMESPACE = re.compile(
    rf"""(?<=\s)xmlns[^=<>"'\s]*+\s*+=\s*+(?:"[^"]|'[^'])[^"']{{{MAX_NAMESPACE_BYTES}}}"""
)
"""ElementTree repeats a namespace in each of its names."""
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
"""Characters that XML 1.0 cannot have (section 2.2)."""
_REFERENCE = re.compile(r"&#(?:x([0-9a-fA-F]{1,6})|([0-9]{1,7}));")
_ATTRIBUTES = r"""[^<>"']*+(?:(?:"[^"<]*+"|'[^'<]*+')[^<>"']*+)*"""
"""The part of a tag behind its name. The repetition gives back: with `*+`, Python 3.11.2, which
Debian 12 has, goes on behind a failed part of it."""
_HEADER = re.compile(rf"<(?:stream:)?stream(?=[\s>]){_ATTRIBUTES}>")
_TAG = re.compile(rf"<(/?)[A-Za-z_]{_ATTRIBUTES}>")
_NO_ELEMENT = ("<?", "<!", "</", "<stream")
"""Text with one of these beginnings is not read as an element."""
_PIECE = re.compile(
    r"""<stream:\w | </[a-z] | /> | ['"]> | ^[^<]*>$""",
    re.VERBOSE,
)
"""Part of a tag. Outside of an entry it shows that the log lost the beginning of a stanza."""
_TAG_FIRST = re.compile(r"\s*</?[A-Za-z]")
_STANZA = re.compile(r"</?(?:message|iq|presence)\b")
"""Part of a stanza in the log of a server. Servers also log much else that looks like XML."""
_OTHER = re.compile(
    r"=None\b|=<| object at 0x|<class '"  # Python's repr of an object, of which aioxmpp logs many
    # Prosody also logs the first tags of stanzas.
    r"|\b(?:(?:Received|Sending)\[\w+\]|(?:[Cc]opying|[Aa]rchiving) stanza"
    r"|unhandled error \w+ \([^)]*\) from \w+): <"
)
"""Text that looks like a part of a stanza, but is none."""
_CONTAINER = re.compile(
    r"""^(?:\S+\ +\|\ (?=\s*<)                                       # docker compose
      | \d{4}-\d\d-\d\dT\S+\ (?:stdout|stderr)\ [FP]\               # Kubernetes
      | [A-Z][a-z]{2}\ [\ \d]\d\ \d\d:\d\d:\d\d\ \S+\ [^\s:]+:\     # journald, syslog
    )""",
    re.VERBOSE,
)
"""The text that containers and journald put in front of each line of a program's output."""
_BYTE_ORDER_MARK = "\ufeff"
_MARKS = [(mark, format_) for format_ in FORMATS for mark in format_.marks]
_MESSAGES = ("log", "MESSAGE", "message", "msg", "event")
"""The members of JSON objects that hold lines of output. Docker's json-file, `journalctl -o json`
and some loggers write such objects."""
_TIMES = ("time", "timestamp", "@timestamp", "ts", "asctime")
"""The members with the time."""
_STAMPED = re.compile(
    r"\W?(?:[A-Z]{4,8}\b|status |\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d|[A-Z][a-z]{2} [ \d]\d )"
)
"""The beginning of a line of other output between the lines of an entry."""


def _is_piece(line: str) -> bool:
    """Whether a line ends an element that it does not begin."""
    if any(depth < 0 for depth, _ in _depths(line)):
        return True
    # The log may have lost the prefix of a whole element with a namespace.
    return "xmlns=" in line or _PIECE.search(_TAG.sub("", line)) is not None


def _is_begun(rest: str) -> bool:
    """Whether the rest of an entry is part of a stanza."""
    return rest.lstrip().startswith("<") or _PIECE.search(rest) is not None


class _Entry(NamedTuple):
    """A piece that a log says was sent or received at once, as far as we have read it."""

    format: Format
    session: str
    sent: bool
    text: list[str]
    """The lines of the entry, the first without the prefix."""
    place: LogPlace
    seconds: float | None


class _Rest:
    """The beginning of a stanza at the end of a socket's data."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.read_again = 0
        self._at = 0
        """How far we have read it."""
        self._depth = 0

    def is_open(self, more: str) -> bool:
        """Add the text that follows; return whether the stanza surely goes on behind it."""
        self.text += more
        if len(self.text) < LONG_REST or self.text.lstrip().startswith(_NO_ELEMENT):
            return False
        for tag in _TAG.finditer(self.text, self._at):
            self._at = tag.end()
            self._depth += -1 if tag[1] else not tag[0].endswith("/>")
            if self._depth <= 0:
                return False
        begin = self.text.find("<", self._at)
        self._at = len(self.text) if begin < 0 else begin
        self.read_again += len(self.text) - self._at
        return True


class LogReader:
    """Reads the lines of one log."""

    def __init__(self, file: str) -> None:
        self.lines = 0
        """How many lines were read."""
        self.formats: dict[str, int] = {}
        """How many stanzas were read in each format, by its name."""
        self._file = file
        self._open: _Entry | None = None
        """The latest entry, if it may go on in the next line."""
        self._length = 0
        """The characters of the open entry."""
        self._is_of_server = False
        """Whether the latest entry named its session, as the logs of servers do."""
        self._rests: dict[tuple[str, bool], _Rest] = {}
        """The stanzas that may go on in the socket's next data, by session and direction."""
        self._is_of_objects = False
        """Whether each line of the log is a JSON object with lines of the program's output."""
        self._at = ""
        """The time in this object."""
        self._object: list[str] = []
        """The lines of a JSON object that goes on in the next line."""
        self._object_length = 0

    def feed(self, data: bytes) -> Iterable[Stanza]:
        """Read a line; return the stanzas that are surely whole by now, and the holes.

        Go through the result before you feed the next line: some stanzas are read only then.
        """
        self.lines += 1
        if len(data) >= MAX_LINE_BYTES:
            return [*self._close(), self._hole()]
        try:
            line = data.decode()
        except UnicodeDecodeError:
            line = data.decode("latin-1")
        # If a log was emptied while a program wrote it, it begins with zeros.
        line = line.strip("\0\r\n")
        if self.lines == 1:
            line = line.removeprefix(_BYTE_ORDER_MARK)
        if "\x1b" in line:
            line = _COLOUR.sub("", line)
        # Within a stanza, a line of JSON is part of a message.
        may_be_object = self._open is None or self._is_of_objects
        if self._object or (may_be_object and line.startswith("{")):
            return self._read_json(line)
        return self._read_line(line)

    def end(self) -> list[Stanza]:
        """Return the stanzas that the end of the log finishes or cuts off."""
        captured = self._close()
        if self._object:
            captured.append(self._hole())
            self._forget_object()
        captured += [self._hole(*key) for key, rest in self._rests.items() if rest.text.strip()]
        self._rests.clear()
        return captured

    def _read_line(self, line: str) -> list[Stanza]:
        # A tag at the beginning of a line has no direction in front of it.
        is_xml = _TAG_FIRST.match(line) is not None
        match, format_ = (None, FORMATS[0]) if is_xml else self._begun(line)
        # Within a stanza, a line in another format is part of a message.
        if match is None or (self._open is not None and format_ is not self._open.format):
            return self._continue(line, is_xml)
        before = self._close()
        session = words["session"] or "" if "session" in (words := match.groupdict()) else ""
        self._is_of_server = session != ""
        seconds, at = time_in(line[: match.start("word")])
        if seconds is None and self._at:
            seconds, at = time_in(self._at)
        place = LogPlace(self._file, self.lines, at)
        # slixmpp writes the prefix twice.
        xml = words["xml"].replace("stream:stream:", "stream:")
        xml = format_.means.get(words["word"], xml)
        entry = _Entry(format_, session, words["word"] in format_.sent, [xml], place, seconds)
        captured = self._whole(entry)
        if captured is None:
            self._open, self._length = entry, len(xml)
            return before
        return before + captured

    def _begun(self, line: str) -> tuple[re.Match[str] | None, Format]:
        """Return the match of the entry that a line begins, and its format."""
        match, format_, end = None, FORMATS[0], len(line)
        for mark, each in _MARKS:
            # The first match in the line counts: behind it, a body may look like any format.
            if line.find(mark, 0, end) >= 0 and (other := each.pattern.search(line, 0, end)):
                if match is not None:  # its match goes on behind `end`
                    other = each.pattern.search(line)
                if other is not None:
                    match, format_, end = other, each, other.start("word")
        return match, format_

    def _whole(self, entry: _Entry) -> list[Stanza] | None:
        """Return the stanzas of an entry of one line; None if it goes on in the next line."""
        text = entry.text[0]
        if entry.format.raw:
            try:
                return self._of_socket(entry, entry.format.unescaped(text))
            except ValueError:
                return None
        elements, rest = elements_of(text)
        if rest or not elements or (elements[-1].tag == HOLE and not elements[-1].text):
            return None
        return self._captured(entry, elements)

    def _continue(self, line: str, is_xml: bool) -> list[Stanza]:
        """Read a line that begins no entry; it `is_xml` if it begins with a tag."""
        if self._open is None:
            if "<" not in line and ">" not in line and "xmlns=" not in line:
                return []
            is_piece = _STANZA.search(line) or (not self._is_of_server and _is_piece(line))
            return [self._hole()] if is_piece and not _OTHER.search(line) else []
        if not is_xml:
            line = _CONTAINER.sub("", line, count=1)
        if is_xml or not _STAMPED.match(line):
            self._open.text.append(line)
            self._length += len(line) + 1
            if self._length > MAX_ENTRY_CHARACTERS:
                session, sent = self._open.session, self._open.sent
                self._open = None
                return [self._hole(session, sent)]
        return []

    def _close(self) -> list[Stanza]:
        """Return the stanzas of the open entry, since another entry begins."""
        entry, self._open = self._open, None
        if entry is None:
            return []
        try:
            text = entry.format.unescaped("\n".join(entry.text))
        except ValueError:
            return [self._hole(entry.session, entry.sent, entry.place)]
        if entry.format.raw:
            return self._of_socket(entry, text)
        elements, rest = elements_of(text)
        captured = self._captured(entry, elements)
        if _is_begun(rest):
            captured.append(self._hole(entry.session, entry.sent, entry.place))
        return captured

    def _of_socket(self, entry: _Entry, text: str) -> list[Stanza]:
        """Return the stanzas that end in a socket's data; keep the beginning of another stanza."""
        key = entry.session, entry.sent
        rest = self._rests.pop(key, None) or _Rest("")
        was_begun = bool(rest.text.strip())
        elements = list[Element]()
        if not rest.is_open(text):
            elements, text_left = elements_of(rest.text)
            rest = rest if len(text_left) == len(rest.text) else _Rest(text_left)
        if was_begun and not elements and (whole := _parsed(text)):
            # This stanza is whole by itself, so the log lost the end of the stanza before.
            elements, rest = [Element(HOLE), *whole], _Rest("")
        captured = self._captured(entry, elements)
        if len(rest.text) > MAX_ENTRY_CHARACTERS or rest.read_again > MAX_READ_AGAIN:
            captured.append(self._hole(*key, entry.place))
        elif rest.text:
            self._rests[key] = rest
            length = sum(len(each.text) for each in self._rests.values())
            if len(self._rests) > MAX_RESTS or length > MAX_RESTS_CHARACTERS:
                oldest = next(iter(self._rests))
                if self._rests.pop(oldest).text.strip():
                    captured.append(self._hole(*oldest))
        return captured

    def _captured(self, entry: _Entry, elements: list[Element]) -> list[Stanza]:
        name = entry.format.name
        whole = len(elements) - [element.tag for element in elements].count(HOLE)
        self.formats[name] = self.formats.get(name, 0) + whole
        _, session, sent, _, place, seconds = entry
        return [Stanza(sent, element, place, seconds, session) for element in elements]

    def _hole(self, session: str = "", sent: bool = False, place: LogPlace | None = None) -> Stanza:
        place = place or LogPlace(self._file, self.lines, "")
        return Stanza(sent, Element(HOLE), place, None, session)

    def _read_json(self, line: str) -> Iterable[Stanza]:
        """Read a line that is a JSON object, or belongs to one."""
        self._object.append(line)
        self._object_length += len(line)
        value = None
        if len(self._object) == 1 or line == "}":
            with suppress(ValueError, RecursionError):
                value = json.loads("\n".join(self._object), object_pairs_hook=_members)
        if isinstance(value, dict):
            self._forget_object()
            return self._read_object(value)
        if self._object[0] != "{":
            self._forget_object()
            captured = self._read_line(line)
            if '"xml"' in line:
                captured.append(self._hole())
            return captured
        # A brace at the left edge ends the object. Another object would be parsed from its
        # beginning.
        if line == "}" or self._object_length > MAX_OBJECT_CHARACTERS:
            self._forget_object()
            return [self._hole()]
        return []

    def _forget_object(self) -> None:
        self._object.clear()
        self._object_length = 0

    def _read_object(self, value: dict[str, Any]) -> Iterator[Stanza]:
        texts = (value.get(name) for name in _MESSAGES if "xml" not in value)
        if text := next((text for text in texts if isinstance(text, str)), ""):
            self._is_of_objects = True
            self._at = next((str(value[name]) for name in _TIMES if name in value), "")
            for line in text.rstrip("\r\n").split("\n"):
                yield from self._read_line(line)
            return
        yield from self._close()
        result = value.get("structuredContent", value)
        items = result.get("entries", [result]) if isinstance(result, dict) else []
        for item in items if isinstance(items, list) else []:
            match item:
                case {"direction": str(direction), "xml": str(xml)}:
                    seconds, at = time_in(str(item.get("at", "")))
                    session, sent = str(item.get("connection", "")), direction == "out"
                    place = LogPlace(self._file, self.lines, at)
                    elements, rest = elements_of(xml)
                    yield from self._captured(
                        _Entry(_OURS, session, sent, [], place, seconds), elements
                    )
                    if _is_begun(rest):
                        yield self._hole(session, sent, place)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object; raise `ValueError` if it has parts of two, whose middle is lost."""
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError
    return members


_OURS = Format(JSON, (), re.compile("(?!)"), frozenset())


def elements_of(text: str) -> tuple[list[Element], str]:
    """Return the whole elements in a text, and the text behind the last of them."""
    if text.endswith(">") and (whole := _parsed(text)) is not None:
        return whole, ""
    elements: list[Element] = []
    at = 0
    while (begin := text.find("<", at)) >= 0:
        between = text[at:begin].strip()
        if between and "\n" not in between:  # two entries of which the log lost parts
            return [*elements, Element(HOLE)], ""
        if text.startswith(("<?", "<!"), begin):
            end = text.find(">", begin) + 1
            if not end:
                break
        elif text.startswith("</", begin):
            end = text.find(">", begin) + 1
            if not end:
                break
            if not text.startswith("</stream:stream", begin):
                return [*elements, Element(HOLE)], ""
            elements.append(Element(FOOTER))
        elif header := _HEADER.match(text, begin):
            end = header.end()
            tag = header[0].removesuffix(">").removesuffix("/")
            header_element = _parsed(f"{tag}/>")
            if header_element is None:
                return [*elements, Element(HOLE)], ""
            elements += header_element
        else:
            end = _end_of_element(text, begin)
            if not end:
                break
            piece = text[begin:end]
            elements += _parsed(piece) or [_hole_because(piece)]
        at = end
    return elements, text[at:]


def _end_of_element(text: str, begin: int) -> int:
    """Return the end of the element that begins at `begin`; 0 if it does not end."""
    return next((end for depth, end in _depths(text, begin) if depth <= 0), 0)


def _depths(text: str, begin: int = 0) -> Iterator[tuple[int, int]]:
    """Yield how many elements are open after each tag, and where the tag ends."""
    depth = 0
    for tag in _TAG.finditer(text, begin):
        if tag[1]:
            depth -= 1
        elif not tag[0].endswith("/>"):
            depth += 1
        yield depth, tag.end()


def _hole_because(piece: str) -> Element:
    """Return the hole for an element that cannot be parsed, with the reason if it is no XML."""
    hole = Element(HOLE)
    if _takes_memory(piece):
        return hole
    hole.text = "XML that is not well-formed"
    forbidden = _FORBIDDEN.search(piece)
    codes = [ord(forbidden[0])] if forbidden else []
    codes += [int(six or "0", 16) or int(ten or 0) for six, ten in _REFERENCE.findall(piece)]
    for code in codes:
        if code < 0x110000 and _FORBIDDEN.match(chr(code)):
            hole.text = f"the character U+{code:04X}, which XML cannot have"
            break
    return hole


def _takes_memory(text: str) -> bool:
    """Whether a text would take much more memory as elements: by long namespaces or many names."""
    if len(text) > MAX_NAMES:
        names = text.count("<") - text.count("</") + text.count("=")
        if names > MAX_NAMES:
            return True
    return _LONG_NAMESPACE.search(text) is not None


def _parsed(text: str) -> list[Element] | None:
    """Return the elements of a text; None if the text has anything else."""
    if len(text) > MAX_NAMESPACE_BYTES and _takes_memory(text):
        return None
    try:
        # Within an element, no entity can be declared.
        root = fromstring(f"{_OPEN}{_DEFAULT.sub('', text)}</s>")  # noqa: S314
    except (ParseError, ValueError):
        return None
    elements: list[Element] = list(root)
    for between in (root.text, *[element.tail for element in elements]):
        if between and not between.isspace():
            return None
    return elements
