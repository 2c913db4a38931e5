"""Finds XMPP wherever it stands in the lines of a log. Pure, and within bounds.

A fragment has no direction yet. It is what stands behind the logger's own text in an entry, written
raw or in one of a few ways of escaping, in one line or in several.
"""

import re
from collections.abc import Callable
from typing import NamedTuple
from xml.etree.ElementTree import Element

from bridge.capture import escapes
from bridge.capture.directions import (
    MAX_SHAPES,
    has_word,
    shape_of,
    text_before,
    ways_in,
    with_word,
)
from bridge.capture.elements import (
    BOSH_BODY,
    MAX_ENTRY_CHARACTERS,
    TAG,
    Rest,
    depths,
    elements_of,
    is_of_root,
    is_tag,
    is_whole,
    parsed,
    refusal_in,
    start_in,
    unwrapped,
)
from bridge.capture.formats import CONTAINER, DISCONNECTING, ROWS, TYPED
from bridge.capture.stanza import HOLE, LogPlace
from bridge.capture.times import time_in
from bridge.newest import Newest
from bridge.wire.names import ACK, ACK_REQUEST, SM

MAX_RESTS = 256
"""The data of at most so many streams may end within a stanza; with more, the oldest is lost."""

MAX_RESTS_CHARACTERS = 2 * MAX_ENTRY_CHARACTERS
"""The most characters of all these stanzas together."""

MAX_LOOKED = 16 * 1024 * 1024
"""We look through at most so many characters for the ends of stanzas that never end. Later a line
with an entry of its own ends such a stanza."""

MAX_BEHIND_TAG = 30
"""If so many lines stand behind a stanza's first tag, of which the first is an entry of its own,
the logger prints first tags, as Prosody does. We wait no longer for the stanza's end."""

MAX_MARKS = 64
"""We look for at most so many ends of a logger's text before data of a socket."""

MAX_MARK = 40
"""The most characters of such an end."""

MAX_TAGS = 2
"""If so many entries of a shape are first tags of stanzas, and none is whole, the logger prints
first tags alone there. We no longer wait for the ends of these stanzas."""

MAX_TAGS_AROUND = 64
"""The most elements that a logger or a web page has around its entries."""

_DECLARATION = re.compile(r"\s*<(?:\?xml[^<]*\?|!DOCTYPE[^<]*)>\s*$")
"""The beginning of a document, or of a stream whose header is in the next line."""
_REPRESENTED = re.compile(r"""<[\w:]+(?:\s+\w+=(?:'[^'<]*'|"[^"<]*"))*\s+\w+=(?:None\b|<\w+\.)""")
"""Python's repr of an object, with a value without quotes."""
_END = re.compile(r"</(?:message|presence|iq|stream:features|stream:error)>\W*$")
_STANZA = re.compile(r"<(?:message|presence|iq)\b")
_ROOT = re.compile(r"<((?:message|presence|iq|body)\b|stream:(?:features|error))")
_TORN = re.compile(r"""['"]\s*/?>\s*$""")
"""The end of a tag whose beginning is lost."""
_OWN_TAG = re.compile(r"<(/?)(?!message|presence|iq|stream)([A-Za-z_][\w.:-]*)[^<>]*>")
"""A tag that may be a logger's or a web page's own."""
_TELLING_TAGS = ("error", "failure", "success", SM)
"""What stands in a first tag that tells something by itself."""
_ATTRIBUTE = re.compile(r"[\w:]+=['\"]")
"""The beginning of an attribute."""
_REPR = re.compile(r"=None\b|=<| object at 0x|<class '")
"""Python's repr of an object."""
_OF_XMPP = re.compile(
    r"xmlns=.(?:jabber:|urn:xmpp:|urn:ietf:params:xml:ns:xmpp-|http://jabber\.org/)"
)
_HEAD_END = re.compile(r"[])}:|-] +(?!<)")
"""Where the logger's own text may end, if it repeats it within a tag."""
_BINARIES = ("b'", 'b"', '<<"')
_BINARY_END = re.compile(r'"(?:/utf8)?>>[^"]*$')
_GOES_ON = re.compile(r'"(?:/utf8)?>>|"\s*$')
"""The end of a binary of Erlang, or of its part in a line. Some write line breaks as they are."""
_BROKEN_BINARY = re.compile(r'"[^\S\n]*\n\s*"')
_ERLANG = '<<"'
_WRAPPER = re.compile(r"<([\w.:-]+)(?:\s[^<>]*)?>(<!\[CDATA\[)?[^<>]*$")
"""An element of the logger's own around what it logs."""
_ENDED = re.compile(r"<([\w.:-]+)(?:\s[^<>]*)?>[^<>]*</\1>")
"""An element of the logger's own before what it logs."""
_IN_PROSE = ("<stream:stream>", "<stream:error> is: ")
"""A tag in a sentence of the logger: of a header, and of an error on a stream to another server."""
_BRACKET = re.compile(r"""<(?![\d<"\s])|&lt;|\\u003[cC]|«""")
"""Where an element may begin, however it is written. Erlang's processes and binaries are none."""


class Line(NamedTuple):
    """A line of a log, or of a text in one of its objects."""

    text: str
    number: int
    at: str = ""
    """The time of its object."""
    context: str = ""
    """The other members of its object."""
    is_further: bool = False
    """Whether other lines of its object stand before it."""
    sources: tuple[str, ...] = ()
    """The lines of its object, and of the text that is an object itself."""
    joint: str = "\n"
    """What joins it to the line before: a line's end, or nothing if the log is wrapped there."""


class Fragment(NamedTuple):
    """A part of an entry that is XMPP, or a hole."""

    place: LogPlace
    seconds: float | None
    shape: str
    """The logger's text before it; empty for a part of a stanza without a beginning."""
    session: str
    elements: list[Element]
    """Empty for a declaration of XML."""
    text: str
    """The XML of the fragment."""
    written: tuple[str, ...]
    """What a stranger would have to say to forge it: its entry up to the end of the XML, or an
    object that it is in."""
    sent: bool | None = None
    """Whether the client sent it, if the log says so in words that need not be learned."""
    is_row: bool = False
    """Whether words stand for it."""


class _Entry(NamedTuple):
    """Where a fragment begins."""

    place: LogPlace
    seconds: float | None
    shape: str
    session: str
    head: str | None
    """The logger's text before it; None if that is not in its line."""
    sources: tuple[str, ...]
    """The objects that it is in."""
    sent: bool | None = None
    meaning: Callable[[str], str] | None = None
    """What undoes the escapes of its further lines."""
    end: str = ""
    """What the logger writes behind it."""
    first: str = ""
    """The entry's first line, if the entry may go on in the next line."""

    def fragment(self, elements: list[Element], text: str) -> Fragment:
        own = () if self.head is None else (self.head + text, self.head + self.first)
        written = (*self.sources, *(own if self.first else own[:1]))
        return Fragment(*self[:4], elements, text, written, self.sent)

    def meant(self, text: str) -> str:
        """Return what a line of it means."""
        if (self.head or "").startswith("> "):  # a person quotes the log
            text = text.removeprefix("> ")  # a lone > may end a tag behind an arrow
        text = text if self.meaning is None else self.meaning(text)
        return text.rpartition(self.end)[0] if self.end and self.end in text else text

    def part(self, text: str) -> Fragment:
        """Return the stanzas before a stanza without its end, what that says already, and a hole.

        What follows its first line may be other entries.
        """
        whole, rest = elements_of(self.first)
        whole = [] if HOLE in [each.tag for each in whole] else whole
        at = len(self.first) - len(rest) if whole else 0
        refusal = refusal_in(text[at:]) or refusal_in(self.first[at:])
        # Of the bodies of BOSH, only requests have an `rid` (XEP-0124, section 7).
        entry = self._replace(sent=" rid=" in text) if text.startswith("<body ") else self
        kept = [inner for each in whole for inner in unwrapped(each)]
        return entry.fragment([*kept, *refusal, Element(HOLE)], text)


class Fragments:
    """Finds the fragments in the lines of one log."""

    def __init__(self, file: str, is_printed: Callable[[Fragment], bool] = lambda _: False) -> None:
        """`is_printed` tells whether an entry that begins so is no logger's, but printed words."""
        self._file = file
        self._is_printed = is_printed
        self._open: _Entry | None = None
        """The latest entry, if it may go on in the next line."""
        self._rest = Rest()
        """What was read of the open entry."""
        self._binary: list[str] = []
        """The lines of the open entry, if it is a binary of Erlang."""
        self._entries: list[Line] = []
        """The lines since the first within the open entry that looks like an entry of its own."""
        self._header: Line | None = None
        """The line before within the open entry, if it has no tag: it may head an entry."""
        self._looked = 0
        self._rests: dict[tuple[str, str], Rest] = {}
        """The stanzas that may go on in the socket's next data, by shape and session."""
        self._marks: dict[str, set[str]] = {}
        """The shapes of entries with a socket's data, by the end of the logger's text."""
        self._last_tag = ""
        """What stands in the last line of the open entry; empty if that is not known."""
        self._length = 0
        """The characters of the open entry before that line, or of its binary."""
        self._whole = Newest[str, None](MAX_SHAPES)
        """The shapes of entries that were whole."""
        self._tags = Newest[str, int](MAX_SHAPES)
        """How many entries of each shape had the first tag only."""
        self._is_of_server = False
        """Whether an entry named its session, as the logs of servers do."""
        self._telling = {ACK, ACK_REQUEST}
        """The elements whose first tag tells enough: after a refused login, also a success."""
        self._around = Newest[str, None](MAX_TAGS_AROUND)
        """The elements that began in lines without XMPP."""
        self._previous = ""
        """The line before, if it has no XML."""
        self._has_raw = self._is_escaped = False
        """Whether the first stanza was raw; whether it was escaped."""

    def feed(self, line: Line) -> list[Fragment]:
        """Read a line; return the fragments that are surely whole by now, and the holes."""
        text = escapes.unbraced(line.text)
        is_bare = " xmlns=" in text and "<" not in text
        if is_bare or ("stream:" in text and not _STANZA.search(text)):
            is_in_stanza = self._open is not None and not self._rest.text.startswith("<stream:")
            text = text if is_in_stanza else escapes.mended(text)
        line = line if text is line.text else line._replace(text=text)
        fragments, lines = list[Fragment](), [line]
        while lines:
            each = lines.pop()
            fragments += self._begin(each) if self._open is None else self._go_on(each)
            if self._entries and self._open is None:
                lines += reversed(self._entries)
                self._entries = []
        return fragments

    @property
    def is_open(self) -> bool:
        """Whether the latest entry may go on in the next line."""
        return self._open is not None

    def goes_on(self, text: str) -> bool:
        """Add a line of the open entry, if that is quickly seen; return whether it was added.

        It is an indented tag behind a tag, with text and its end tag or without, and not the last
        tag of the entry. Most lines of an entry are.
        """
        entry = self._open
        if entry is None or entry.meaning is not None or entry.end or not self._last_tag:
            return False
        if not text[:1].isspace() and not (text := _without_container(text))[:1].isspace():
            return False
        text = escapes.unbraced(text)
        tag, before = text.lstrip(), self._rest.text
        # Only its end tag may follow.
        behind = tag.find("<", 1)
        is_alone = behind < 0 or (tag.startswith("</", behind) and tag.count("<") == 2)
        if not is_alone or tag[:1] != "<" or self._last_tag in tag or self._entries or self._binary:
            return False
        if not before.endswith(">") or len(before) + len(text) >= MAX_ENTRY_CHARACTERS:
            return False
        self._rest.text = f"{before}\n{text}"
        return True

    def cut_off(self) -> list[Fragment]:
        """Return what is left of the open entry, since something else begins."""
        fragments = list[Fragment]()
        while self._open is not None:
            fragments += self._give_up()
            entries, self._entries = self._entries, []
            for line in entries:
                fragments += self.feed(line)
        return fragments

    def end(self) -> list[Fragment]:
        """Return the fragments that the end of the log finishes or cuts off."""
        fragments = self.cut_off()
        begun = [key for key, rest in self._rests.items() if rest.text.strip()]
        return fragments + [self.hole(Line("", 0), *key) for key in begun]

    def hole(self, line: Line, shape: str = "", session: str = "") -> Fragment:
        """Return a hole at a line."""
        place = LogPlace(self._file, line.number, "")
        return Fragment(place, None, shape, session, [Element(HOLE)], "", (line.text,))

    def _begin(self, line: Line) -> list[Fragment]:
        """Read a line that does not go on with an entry."""
        text = _without_container(line.text)
        if self._marks and (data := self._data_in(line, text)) is not None:
            return data
        if "<" in text[:2] and _DECLARATION.match(text):
            return []
        start, meaning = start_in(text), None
        if start is not None:
            self._has_raw = not self._is_escaped
        elif (meaning := escapes.way_of(text, has_raw=self._has_raw)) is not None:
            self._is_escaped = not self._has_raw
            line = line._replace(sources=(*line.sources, text))
            text = meaning(text)
            start = start_in(text)
        previous, self._previous = self._previous, ""
        if start is None:
            self._previous = text_before(previous, text)
            return self._without_xml(line, text, previous)
        row = DISCONNECTING.search(text) if "Disconnecting" in text else None
        start = row.end() if row else start
        head = text[:start]
        if TYPED in head or text.startswith(_IN_PROSE, start):
            return []
        head = with_word(line.context, previous, head)
        entry = self._entry(line, head, text[start:])
        if row is not None:
            entry = entry._replace(sent=False, sources=(*entry.sources, text))
        xml = f"<stream:error><{row[1]}/></stream:error>" if row and row[1] else text[start:]
        if row is None and "<" in head and (wrapper := _WRAPPER.search(_ENDED.sub("", head))):
            entry = entry._replace(end="]]>" if wrapper[2] else f"</{wrapper[1]}>")
            xml = entry.meant(xml)
        if meaning is not None:
            entry = entry._replace(meaning=meaning)
        return self._read(entry, xml, head)

    def _entry(self, line: Line, head: str, xml: str = "") -> _Entry:
        container = None if head and line.text.startswith(head) else CONTAINER.match(line.text)
        seconds, at = time_in(f"{container[0]}{head}" if container else head)
        # Most heads differ in the time alone.
        shape, session = shape_of(head.replace(at, "#", 1) if at else head, xml)
        if seconds is None and line.at:
            seconds, at = time_in(line.at)
        self._is_of_server = self._is_of_server or session.lstrip("0123456789") != ""
        place = LogPlace(self._file, line.number, at)
        own = None if line.context and "\n" in head else head
        shape = f"\n{shape}" if line.is_further else shape
        return _Entry(place, seconds, shape, session, own, line.sources)

    def _without_xml(self, line: Line, text: str, previous: str) -> list[Fragment]:
        """Read a line without XML: it may stand for the end of a stream, or be a part of one."""
        for row in ROWS:
            if row.mark in text and (match := row.pattern.search(text)):
                entry = self._entry(line, text[: match.start()])._replace(sent=row.sent)
                fragment = entry.fragment(elements_of(row.xml)[0], row.xml)
                return [fragment._replace(written=(*line.sources, text), is_row=True)]
        if bracket := _BRACKET.search(text):
            head = with_word(line.context, previous, text[: bracket.start()])
            entry, xml = self._entry(line, head), text[bracket.start() :]
            if entry.shape in self._whole:  # its only tag is damaged, or has an unusual name
                is_odd = is_of_root(escapes.unquoted(head, xml)[0])
                return self._read(entry, xml, head) if is_odd else [entry.part(xml)]
        return [self.hole(line)] if self.is_piece(text) else []

    def is_piece(self, text: str) -> bool:
        """Whether a line without the beginning of XMPP is a part of a stanza."""
        if ">" not in text and "xmlns=" not in text:
            return False
        is_piece = bool(_END.search(text) or _OF_XMPP.search(text))
        # Servers log much else that looks like XML.
        if not is_piece and not self._is_of_server and not _REPR.search(text):
            text = _OWN_TAG.sub(self._foreign, text).replace("</stream:stream>", "")
            is_torn = _TORN.search(TAG.sub("", text)) is not None
            is_piece = is_torn or any(depth < 0 for depth, _ in depths(text))
        return is_piece

    def _foreign(self, tag: re.Match[str]) -> str:
        """Return a tag, or nothing if it ends an element that began in a line without XMPP."""
        if tag[1] and tag[2] in self._around:
            return ""
        self._around.add(tag[2], None)
        return tag[0]

    def _read(self, entry: _Entry, xml: str, head: str) -> list[Fragment]:
        """Read what begins behind the logger's text `head`."""
        is_erlang = head.endswith(_ERLANG)
        if head.endswith(_BINARIES) and (not is_erlang or _GOES_ON.search(xml)):
            mark = " ".join(head[-MAX_MARK:].rsplit(" ", 2)[-2:])
            if len(self._marks) < MAX_MARKS:
                for quote in '"' if is_erlang else "'\"":
                    self._marks.setdefault(f"{mark[:-1]}{quote}", set()).add(entry.shape)
            return self._of_data(entry, xml, mark)
        if escapes.opens_field(head, xml):
            entry = entry._replace(meaning=escapes.undoubled)
            xml = escapes.undoubled(xml)
        xml, behind = escapes.unquoted(head, xml)
        root = _ROOT.match(xml)
        last_tag = f"</{root[1]}" if root else ""
        is_begun = root is not None and last_tag not in xml and "/>" not in xml
        elements, rest = ([], xml) if is_begun else elements_of(xml)
        if is_whole(elements, rest):
            is_new = entry.shape not in self._whole and any(map(len, elements))
            if is_new and not self._is_printed(entry.fragment(elements, xml)):
                self._whole.add(entry.shape, None)
            entry = _with_tail(entry, rest if behind is None else behind)
            return self._fragments(entry, elements, xml[: len(xml) - len(rest)])
        if behind is not None:
            return [entry.fragment([*elements, *refusal_in(rest), Element(HOLE)], xml)]
        if _REPRESENTED.match(xml):
            return []
        if self._is_printed(begun := entry.fragment([Element(HOLE)], xml)):
            return [begun]
        prints_tags = self._tags.get(entry.shape, 0) >= MAX_TAGS
        if prints_tags and entry.shape not in self._whole and is_tag(xml):
            return self._of_tag(entry, xml)
        self._open, self._rest = entry._replace(first=xml), Rest()
        self._length, self._header = 0, None
        self._rest.is_open(xml)
        self._last_tag = last_tag
        return []

    def _go_on(self, line: Line) -> list[Fragment]:
        """Read a line that may go on with the open entry."""
        text, rest = _without_container(line.text), self._rest
        text = self._opened().meant(text)
        if self._binary:
            return self._go_on_with_binary(line, text)
        is_in_tag = rest.text.rfind("<") > rest.text.rfind(">")
        if is_in_tag:
            text = text[self._repeated(line, text) :]
        head, _, tag = (text, "", "") if text.startswith("<!--") else text.partition("<")
        words = head.strip()
        start = start_in(text) if "<" in tag or words else None
        if self._is_escaped and start is None and self._begins_escaped(line, text):
            start = len(text)
        header, self._header = self._header, line if words and not tag else None
        may_be_headed = tag and not words and not self._entries
        if may_be_headed and header:
            headed = self._entry(line, with_word("", header.text, head))
            if headed.shape in self._whole:  # entries that were whole began so
                self._length, self._entries = len(rest.text) - len(header.text) - 1, [header]
        may_repeat = start is None and words and tag
        if may_repeat and shape_of(head)[0].strip() == self._opened().shape.strip():
            text = text.removeprefix(head)  # the logger repeats its own text in each line
        looks = start is not None and text[:start].strip() != ""
        looks = looks and not (is_in_tag and _TORN.search(text[:start]))
        if looks and (is_in_tag or self._looked > MAX_LOOKED):
            self._entries.append(line)
            return self._give_up()
        if looks or self._entries:
            self._length = self._length or len(rest.text)
            self._entries.append(line)
            self._looked += len(text)
        if looks and len(self._entries) > MAX_BEHIND_TAG and is_tag(rest.text[: self._length]):
            return self._give_up()
        if self._last_tag and self._last_tag not in text and not is_in_tag:
            rest.text += f"{line.joint}{text}"
            return self._give_up() if rest.is_too_long else []
        joint = _between(rest.text, text) if is_in_tag else line.joint
        if rest.is_open(joint + text) or rest.is_too_long:
            return self._give_up() if rest.is_too_long else []
        elements, left = elements_of(rest.text)
        is_bad = HOLE in [each.tag for each in elements]
        if is_bad and self._entries:
            return self._give_up()
        if not is_whole(elements, left) and not is_bad:
            return []
        entry, self._open = _with_tail(self._opened(), left), None
        self._looked -= sum([len(each.text) for each in self._entries])
        self._entries = []
        self._whole.add(entry.shape, None)
        return self._fragments(entry, elements, rest.text)

    def _begins_escaped(self, line: Line, text: str) -> bool:
        """Whether an escaped entry begins as others did that were whole."""
        meaning = escapes.way_of(text, has_raw=False)
        plain = "" if meaning is None else meaning(text)
        at = start_in(plain)
        return at is not None and self._entry(line, plain[:at]).shape in self._whole

    def _repeated(self, line: Line, text: str) -> int:
        """Return the length of the logger's own text that it repeats before a part of a tag."""
        shape = self._opened().shape
        ends = [each.end() for each in _HEAD_END.finditer(text[: len(shape) + MAX_MARK])]
        own = [it for it in ends if shape.startswith(self._entry(line, text[:it]).shape)]
        return own[-1] if own else 0

    def _go_on_with_binary(self, line: Line, text: str) -> list[Fragment]:
        entry = self._opened()
        self._length += len(text) + 1
        is_part = text.lstrip().startswith('"') and not any(mark in text for mark in self._marks)
        if not is_part or self._length > MAX_ENTRY_CHARACTERS:
            self._entries.append(line)
            return self._give_up()
        self._binary.append(text)
        if not _BINARY_END.search(text):
            return []
        xml, self._open, self._binary = "\n".join(self._binary), None, []
        return self._of_data(entry, _BROKEN_BINARY.sub("", xml), _ERLANG)

    def _opened(self) -> _Entry:
        if self._open is None:
            raise ValueError("no entry is open")
        return self._open

    def _give_up(self) -> list[Fragment]:
        """Return what is left of the open entry, whose end the log does not have."""
        entry, self._open = self._opened(), None
        if self._binary:
            data, self._binary = "\n".join(self._binary), []
            return [entry.part(escapes.unescaped(data, is_bytes=True))]
        text = self._rest.text[: self._length or None]
        if text.strip().endswith("?>"):  # the declaration of XML, alone
            return [entry.fragment([], text)]
        if is_tag(text):
            self._tags.add(entry.shape, self._tags.get(entry.shape, 0) + 1)
            if entry.shape not in self._whole:
                return self._of_tag(entry, text)
        return [entry.part(text)]

    def _of_tag(self, entry: _Entry, text: str) -> list[Fragment]:
        """Read an entry of a logger that prints first tags alone; keep what these tell.

        An acknowledgement has no more than a tag. The tag of a refusal tells that it is one, unless
        the logger also prints whole stanzas of this direction: these tell more.
        """
        if not any(map(text.__contains__, _TELLING_TAGS)):
            return []
        tags = parsed(f"{text[: text.index('>')]}/>") or []
        kept = [each for each in tags if each.tag in self._telling]
        tells = not self._whole and (" from=" in text or "failure" in text)
        others = {way for shape in self._whole for way in ways_in(shape)}
        tells |= has_word(entry.shape) and others.isdisjoint(ways_in(entry.shape))
        if tells and not kept:
            kept = refusal_in(text)
            self._telling |= {each.tag.replace("failure", "success") for each in kept}
        return [entry.fragment([each], text) for each in kept]

    def _data_in(self, line: Line, text: str) -> list[Fragment] | None:
        """Read the data of a socket, which may begin anywhere in an element."""
        places = [(at, mark) for mark in self._marks if (at := text.find(mark)) >= 0]
        if not places:
            return None
        at, mark = min(places)
        at += len(mark)
        if shape_of(text[:at])[0] not in self._marks[mark]:
            return None
        return self._of_data(self._entry(line, text[:at]), text[at:], mark)

    def _of_data(self, entry: _Entry, xml: str, mark: str) -> list[Fragment]:
        """Read the data of a socket behind a mark, up to the quote that ends it."""
        if mark.endswith(_ERLANG):
            end = _BINARY_END.search(xml)
            if end is None and xml.rstrip().endswith('"'):  # it goes on in the next line
                self._open, self._binary, self._length = entry, [xml], len(xml)
                return []
            end_at = end.start() if end else -1
        else:
            end_at = xml.rfind(mark[-1])
        if end_at < 0:
            return [entry.part(escapes.unescaped(xml, is_bytes=True))]
        return self._join(entry, escapes.unescaped(xml[:end_at], is_bytes=True))

    def _join(self, entry: _Entry, text: str) -> list[Fragment]:
        """Return the stanzas that end in a socket's data; keep the beginning of another stanza."""
        key = entry.shape, entry.session
        rest = self._rests.pop(key, None) or Rest()
        was_begun = bool(rest.text.strip())
        if not was_begun and "<" not in text:
            return []  # a keepalive, or a stranger's words
        elements = list[Element]()
        if not rest.is_open(text):
            elements, text_left = elements_of(rest.text)
            rest = rest if len(text_left) == len(rest.text) else Rest(text_left)
        if was_begun and not elements and (whole := parsed(text)):
            # This stanza is whole by itself, so the log lost the end of the stanza before.
            elements, rest = [Element(HOLE), *whole], Rest()
        fragments = self._fragments(entry, elements, text) if elements else []
        if rest.is_too_long:
            fragments.append(entry.fragment([Element(HOLE)], ""))
        elif rest.text:
            self._rests[key] = rest
            length = sum(len(each.text) for each in self._rests.values())
            if len(self._rests) > MAX_RESTS or length > MAX_RESTS_CHARACTERS:
                oldest = next(iter(self._rests))
                if self._rests.pop(oldest).text.strip():
                    fragments.append(self.hole(Line("", entry.place.line), *oldest))
        return fragments

    def _fragments(self, entry: _Entry, elements: list[Element], xml: str) -> list[Fragment]:
        """Return the fragment with these elements, without what is no XMPP."""
        if (body := elements[0]).tag == BOSH_BODY:
            entry = entry._replace(sent=body.get("rid") is not None)
        kept = [inner for each in elements for inner in unwrapped(each)]
        return [entry.fragment(kept, xml)] if kept else []


def _without_container(text: str) -> str:
    """Return a line without what a container or journald put in front of it."""
    container = None if text[:1].isspace() else CONTAINER.match(text)
    return text if container is None else text[container.end() :]


def _with_tail(entry: _Entry, tail: str) -> _Entry:
    """Return an entry, with the text behind it if only that has a word for the direction.

    The line before may be the program's own, so the text behind goes first.
    """
    *_, own = entry.shape.split("\n")
    if tail and not has_word(own) and has_word(tail := _BINARY_END.sub("", tail)):
        return entry._replace(shape=f"{own}\n{shape_of(tail)[0]}")
    return entry


def _between(text: str, further: str) -> str:
    """Return what belongs between a text that ends within a tag and its next line."""
    is_closed = text[-1:] in {"'", '"'} and text[-2:-1] != "="
    is_name = re.fullmatch("[a-z:-]+", text[text.rfind("<") + 1 :]) is not None
    return "\n" if is_closed or (is_name and _ATTRIBUTE.match(further)) else ""
