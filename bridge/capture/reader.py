"""Reads a log of stanzas: lines in, stanzas out, with their places. Pure, and within bounds.

The reader passes over everything else, since logs have other lines too. If the log has only a part
of a stanza, the reader yields a hole, which may also hide other stanzas. So no rule can say that an
answer never came if the log may have lost it. What stands outside the logger's own place is a
stranger's words, and is passed over.
"""

import json
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Iterator
from contextlib import suppress
from io import BufferedReader, TextIOWrapper
from typing import Any
from weakref import proxy
from xml.etree.ElementTree import Element

from bridge.capture.directions import MAX_SHAPES, Directions, has_word
from bridge.capture.elements import elements_of
from bridge.capture.failures import Failure, Failures, is_unsent
from bridge.capture.fragments import Fragment, Fragments, Line
from bridge.capture.hearsay import TELLING, Hearsay
from bridge.capture.stanza import (
    CUT,
    DISCONNECTED,
    FAILURE,
    FOOTER,
    HOLE,
    MAX_EXCERPT,
    SAID,
    LogPlace,
    Stanza,
)
from bridge.capture.times import time_in
from bridge.newest import Newest
from bridge.wire.names import HEADER

MAX_LINE_BYTES = 2 * 1024 * 1024
"""The longest line that we read: the longest entry, with escapes."""

MAX_OBJECT_CHARACTERS = 128 * 1024
"""The longest JSON object over several lines; a result of `xmppTrace` has at most 45 kB."""

MAX_UNDECIDED = 30
"""After so many fragments we decide whether the log is a client's or a server's."""

MAX_UNDECIDED_CHARACTERS = 256 * 1024
"""The most characters of all these fragments."""

MAX_BEGIN = 16 * 1024
"""We look for the name of a library in so many characters."""

MAX_TORN = 2
"""If a place that is not the logger's own has at most so many entries, they are holes: the log may
have lost parts of their lines. With more entries, the program prints stanzas there."""

DAY_SECONDS = 24 * 60 * 60

LATE_SECONDS = 1
"""The lines of a log may be out of order by so much, if several threads write them."""

MIN_WRAPPED = 2
"""If so many lines are as long as the longest line, the log may be wrapped at this width."""

MIN_WIDTH = 40
"""Nobody wraps a log at fewer characters."""

REPEATED_WITHIN = 6
"""A logger that writes each stanza twice does so within so many fragments."""

MAX_TOKENS = 1_000
"""We remember the tokens of at most so many sessions."""

_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_BYTE_ORDER_MARK = "\ufeff"
_OBJECT = "{[ \t"
"""The first characters of a line that may begin a JSON object, or an array of objects."""
_AROUND_OBJECT = " \t,[]"
"""The characters that may stand around an object in an array."""
_MESSAGES = ("log", "MESSAGE", "message", "msg", "event")
"""The members of JSON objects that hold lines of output. Docker's json-file, `journalctl -o json`
and some loggers write such objects."""
_TIME = re.compile(r"[@_]*(?:time|.*timestamp|t|ts|asctime|date|datetime)", re.IGNORECASE)
"""The name of a member with the time."""
_LEVEL = re.compile(r"[@_]*(?:log_?)?(?:l|lvl|level(?:_?name)?|severity)=\w{1,12}$", re.IGNORECASE)
"""Matches the member that tells how severe an entry is. It shows whose words the entry has: a
program prints stanzas at another level than what people say."""
_SHORT = 40
"""The longest text of a member that may name the direction."""
_OURS = "{}"
"""The shape of the JSON of `log --stanzas`, `watch --stanzas` and `xmppTrace`: objects with
`direction`, `xml`, `at` and `connection`."""


class LogReader:
    """Reads the lines of one log."""

    def __init__(self, file: str) -> None:
        self.lines = 0
        """How many lines were read."""
        self.stanzas = 0
        """How many stanzas were read whole."""
        self.begin = ""
        """The beginning of the log, which may name the library that wrote it."""
        self._file = file
        reader = proxy(self)  # else each would keep the other in memory
        self._fragments = Fragments(file, lambda begun: bool(reader.is_printed(begun)))
        self._directions = Directions()
        self._waiting: list[Fragment] = []
        """The fragments that came before it was known whether the log is a client's or a
        server's."""
        self._waiting_characters = 0
        self._is_decided = False
        self._said = Hearsay()
        self._latest: float | None = None
        """The time of the latest entry that nobody had said."""
        self._width, self._full = MIN_WIDTH, 0
        """The length of the longest line, and how many lines have it."""
        self._is_full = False
        """Whether the line before has this length, and the log may be wrapped there."""
        self._sessions = _Sessions()
        self._recent: Newest[tuple[str, str], tuple[str, bool | None]] = Newest(REPEATED_WITHIN)
        """The shape and the direction of the latest fragments, by session and text."""
        self._repeats: Newest[str, tuple[int, int]] = Newest(MAX_SHAPES)
        """How many fragments stood behind a shape, and how many of them repeat others."""
        self._failures = Failures()
        self._is_of_objects = False
        """Whether each line of the log is a JSON object with lines of the program's output."""
        self._object: list[Line] = []
        """The lines of a JSON object that goes on in the next line."""
        self._object_length = 0
        self._edge = ""
        """The blanks before the object's first and last lines."""

    @property
    def has_undirected(self) -> bool:
        """Whether stanzas were read of which only the stanza itself tells the direction."""
        return self._directions.has_undirected

    def read(self, file: BufferedReader) -> Iterator[Stanza]:
        """Read a file to its end; yield its stanzas, and the holes."""
        for line in _lines(file):
            yield from self.feed(line)
        yield from self.end()

    def feed(self, data: bytes) -> Iterable[Stanza]:
        """Read a line; return the stanzas that are surely whole by now, and the holes.

        Go through the result before you feed the next line: some stanzas are read only then.
        """
        self.lines += 1
        if len(data) >= MAX_LINE_BYTES:
            return [*self._taken(self._fragments.cut_off()), *self._taken([self._hole()])]
        try:
            line = data.decode()
        except UnicodeDecodeError:
            line = data.decode("latin-1")
        # If a log was emptied while a program wrote it, it begins with zeros.
        line = line.strip("\0\r\n")
        if "\x1b" in line:
            line = _COLOUR.sub("", line)
        was_full = self._is_full
        if was_full or len(line) >= self._width:
            self._measure(len(line))
        if len(self.begin) < MAX_BEGIN:
            line = line if self.begin else line.removeprefix(_BYTE_ORDER_MARK)
            self.begin += f"{line[:MAX_BEGIN]}\n"
        if not self._object and self._fragments.goes_on(line):
            return ()
        was_open = self._fragments.is_open
        # Within a stanza, a line of JSON is part of a message.
        may_be = "{" in line and (not was_open or self._is_of_objects)
        is_object = may_be and line[:1] in _OBJECT and line.lstrip(_AROUND_OBJECT)[:1] == "{"
        if is_object or self._object:
            return self._taken(self._read_json(line))
        if may_be and (members := _members_behind(line)) is not None:
            head, value = members
            return self._taken(self._read_members(value, (line,), "", head))
        joint = "" if was_full else "\n"
        fragments = self._fragments.feed(Line(line, self.lines, joint=joint))
        if was_open and not fragments:
            return ()
        failures, is_stanza = self._failures, fragments or self._fragments.is_open
        own = "" if was_open else line  # the rest of a stanza may be a stranger's words
        failure = failures.end(own, self.lines) if is_stanza else failures.feed(line, self.lines)
        if failure is not None:
            # A stanza in an exception's words has passed before.
            rest = () if is_stanza and failure.number == self.lines else fragments
            fragments = [*self._failed(failure), *rest]
        return self._taken(fragments) if fragments else ()

    def _measure(self, width: int) -> None:
        """Learn from a line's width whether the log may be wrapped, and go on in the next line."""
        if width >= self._width:
            self._full = self._full + 1 if width == self._width else 1
            self._width = width
        self._is_full = width == self._width and self._full >= MIN_WRAPPED

    def end(self) -> list[Stanza]:
        """Return the stanzas that the end of the log finishes or cuts off."""
        fragments = [*self._read_lines(), *self._fragments.end()]
        complaint, disconnected = self._failures.complaint, self._failures.disconnected
        if self.stanzas + len(self._waiting) <= MAX_EXCERPT:
            complaint = complaint or self._failures.warning
        if failure := self._failures.end():
            fragments += self._failed(failure)
        elif complaint or disconnected:
            place = LogPlace(self._file, complaint or disconnected, "")
            end = Element(FAILURE, {} if complaint else {DISCONNECTED: ""})
            fragments.append(Fragment(place, None, "", "", [end], "", (), False))
        return [*self._taken(fragments), *self._decide()]

    def _failed(self, failure: Failure) -> Iterator[Fragment]:
        element, stated = Element(FAILURE), failure.stated
        if failure.said:
            element = Element(HOLE, {SAID: str(failure.said)})
        elif stated is not None:
            element.append(stated)
        element.text = None if failure.said else failure.sentence
        place = LogPlace(self._file, failure.number, "")
        if not failure.said or stated is not None:
            yield Fragment(place, failure.seconds, "", "", [element], "", (), False)

    def _hole(self) -> Fragment:
        return self._fragments.hole(Line("", self.lines))

    def _taken(self, fragments: Iterable[Fragment]) -> list[Stanza]:
        """Return the stanzas of fragments, once it is known which side wrote the log."""
        stanzas = list[Stanza]()
        for fragment in fragments:
            admitted = self._admitted(fragment)
            if admitted is None or not admitted.elements:
                continue
            if self._is_decided:
                stanzas += self._directed(admitted)
                continue
            self._waiting.append(admitted)
            self._waiting_characters += len(admitted.text)
            if (
                len(self._waiting) >= MAX_UNDECIDED
                or self._waiting_characters >= MAX_UNDECIDED_CHARACTERS
            ):
                stanzas += self._decide()
        return stanzas

    def _decide(self) -> list[Stanza]:
        """Return the stanzas that waited."""
        self._is_decided = True
        self._sessions.believe(
            (each.session, self._directions.direction(each.shape, each.elements[0]))
            for each in self._waiting
            if each.shape not in {"", _OURS}
        )
        stanzas = [stanza for each in self._waiting for stanza in self._directed(each)]
        self._waiting = []
        return stanzas

    def _admitted(self, fragment: Fragment) -> Fragment | None:
        """Learn from a fragment, and return it; None if it repeats a stranger's words."""
        own = fragment.shape.rpartition("\n")[2]  # a line before it may be anybody's
        if is_unsent(own) and "error" not in fragment.text:
            return None
        if not fragment.shape and not fragment.text:  # a part that has no beginning
            line = "".join(fragment.written)
            rest = self._said.without(line)
            return fragment if rest == line or self._fragments.is_piece(rest) else None
        place = self._directions.place_of(fragment.shape)
        if said := self._printed(fragment):
            hole = Element(HOLE, {SAID: str(said)})
            return fragment._replace(elements=[hole]) if self._fits(fragment) else None
        self._latest = self._latest if fragment.seconds is None else fragment.seconds
        if fragment.is_row:
            return fragment
        self._failures.hear(self._said.hear(fragment), fragment.place.line)
        if not self._directions.is_own(place):
            is_rare = self._directions.times_met(place) <= MAX_TORN
            is_torn = is_rare and fragment.shape != _OURS
            return fragment._replace(elements=[Element(HOLE)]) if is_torn else None
        if fragment.sent is None:
            self._directions.learn(fragment.shape, fragment.session, fragment.elements)
        return fragment

    def _was_met(self, fragment: Fragment) -> bool:
        """Whether the logger wrote such an entry before."""
        if fragment.sent is None:
            return self._directions.was_met(fragment.shape)
        return self._directions.times_met(self._directions.place_of(fragment.shape)) > 0

    def _printed(self, fragment: Fragment) -> int:
        """Return the line in which somebody said what an entry prints; 0 if nobody did."""
        return self._said.line_of(fragment, was_met=self._was_met(fragment)) if self._said else 0

    def _fits(self, fragment: Fragment) -> bool:
        """Whether an entry may be the logger's own: it has its place, and its time is not past.

        Somebody may have known how the logger would write it.
        """
        is_torn = self._is_of_objects and fragment.shape.startswith("{")
        if not is_torn and not self._directions.is_near(fragment.shape):
            return False
        if fragment.seconds is None or self._latest is None:
            return fragment.seconds == self._latest
        # A log may have times of the day alone, and go on after midnight.
        return (fragment.seconds - self._latest + LATE_SECONDS) % DAY_SECONDS < DAY_SECONDS / 2

    def is_printed(self, begun: Fragment) -> bool:
        """Whether an entry that begins so, where none stood before, prints what somebody said."""
        return self._printed(begun) > 0 and not self._was_met(begun)

    def _directed(self, fragment: Fragment) -> Iterator[Stanza]:
        """Yield the stanzas of a fragment, each with its direction; what has none is a hole."""
        shape, sent = fragment.shape, fragment.sent
        first = fragment.elements[0]
        said = self._directions.direction(shape, first) if sent is None and shape else sent
        text = fragment.text.strip()
        if len(text) > _SHORT:
            count, repeats = self._repeats.get(shape, (0, 0))
            other, way = self._recent.get((fragment.session, text), (shape, said))
            is_repeat = other != shape and (said == way or None in {said, way})
            count, repeats = count + 1, repeats + is_repeat
            self._repeats.add(shape, (count, repeats))
            # No client begins a stream twice at once.
            is_header = first.tag == HEADER and is_repeat
            if is_header and next(reversed(self._recent)) == (fragment.session, text):
                return
            # An exception may quote a stanza that the log has already, with its direction.
            is_quoted = said is None or first.tag == HOLE
            if is_repeat and (is_quoted or 1 < repeats > count // 2):
                return
            self._recent.add((fragment.session, text), (shape, said))
        for element in fragment.elements:
            way = sent
            if way is None and element.tag != HOLE:
                is_known = element is first and shape
                way = said if is_known else self._directions.direction(shape, element)
                if way is None and element.tag == HEADER:
                    continue  # it is whole, so no stanza is lost
                if way is None:
                    element = Element(HOLE)
            elif way is None:
                way = said
            session: str | None = fragment.session
            if shape != _OURS:
                session = self._sessions.of(fragment.session, element, sent=bool(way))
            if session is None:
                continue
            self.stanzas += element.tag not in {HOLE, FAILURE}
            yield Stanza(bool(way), element, fragment.place, fragment.seconds, session)

    def _read_json(self, line: str) -> Iterator[Fragment]:
        """Read a line that is a JSON object, or belongs to an object over several lines."""
        text = line.strip(_AROUND_OBJECT)
        if text == "{":  # of objects within each other, the innermost is an entry
            yield from self._read_lines()
            self._edge = line[: -len(line.lstrip())]
        self._object.append(Line(line, self.lines))
        self._object_length += len(line)
        is_begun = text == "{" or len(self._object) > 1
        is_over = text == "}" and line.startswith(f"{self._edge}}}")
        if is_begun and not is_over and self._object_length <= MAX_OBJECT_CHARACTERS:
            return
        source = "\n".join(each.text for each in self._object)
        if (value := _object_in(source.strip(_AROUND_OBJECT))) is not None:
            self._object, self._object_length = [], 0
            yield from self._read_object(value, source)
        else:
            yield from self._read_lines()

    def _read_lines(self) -> Iterator[Fragment]:
        """Read the lines that looked like an object, and are none."""
        lines, self._object, self._object_length = self._object, [], 0
        for line in lines:
            yield from self._fragments.feed(line)
        if any('"xml"' in line.text for line in lines):
            yield self._hole()

    def _read_object(self, value: dict[str, Any], source: str) -> Iterator[Fragment]:
        result = value.get("structuredContent", value)
        items = result.get("entries", [result]) if isinstance(result, dict) else []
        is_ours = False
        for item in items if isinstance(items, list) else []:
            match item:
                case {"direction": "in" | "out" as direction, "xml": str(xml)}:
                    is_ours = True
                    yield from self._of_ours(item, direction == "out", xml, source)
        if is_ours:
            return
        yield from self._read_members(value, (source,), "")

    def _read_members(
        self, value: dict[str, Any], sources: tuple[str, ...], at: str, head: str = ""
    ) -> Iterator[Fragment]:
        """Read what a program wrote into the members of an object, or of objects in it.

        `head` stands before the object in its line.
        """
        members = dict[str, Any]()
        objects = [value]
        for each in objects:
            for key, member in each.items():
                members.setdefault(key, member)
            objects += (member for member in each.values() if isinstance(member, dict))
        texts = {name: text for name, text in members.items() if isinstance(text, str)}
        names = [name for name in _MESSAGES if name in texts]
        names.sort(key=lambda name: "<" not in texts[name])
        name = next((each for each in (*names, *texts) if "<" in texts[each]), None)
        name = name or next(iter(names), None)
        if name is None:
            return
        self._is_of_objects = True
        others = [f"{key}={text}" for key, text in texts.items() if key != name]
        head += "".join(f"{each} " for each in others if _LEVEL.match(each))
        short = [each for each in others if len(each) < _SHORT and "<" not in each]
        context = " ".join(sorted(short, key=has_word))
        at = next((str(members[key]) for key in members if _TIME.fullmatch(key)), at)
        written = texts[name].rstrip("\r\n")
        is_object = written.startswith("{") and not self._fragments.is_open
        if is_object and (inner := _object_in(written)) is not None:
            yield from self._read_members(inner, (*sources, written), at, head)
            return
        lines = written.split("\n")
        for number, text in enumerate(lines):
            line = Line(
                text if number else f"{head}{text}", self.lines, at, context, number > 0, sources
            )
            yield from self._fragments.feed(line)
        if len(lines) > 1:  # else a container may write each line of an entry into an object
            yield from self._fragments.cut_off()

    def _of_ours(
        self, item: dict[str, Any], sent: bool, xml: str, source: str
    ) -> Iterator[Fragment]:
        yield from self._fragments.cut_off()
        seconds, at = time_in(str(item.get("at", "")))
        session, place = str(item.get("connection", "")), LogPlace(self._file, self.lines, at)
        elements, rest = elements_of(xml)
        if "<" in rest or not elements:
            elements.append(Element(HOLE))
        if elements[0].tag == CUT:
            elements = [Element(FOOTER, {"cut": "true"})]
        yield Fragment(place, seconds, _OURS, session, elements, xml, (source,), sent)


class _Sessions:
    """Which streams of a log its tokens tell apart."""

    def __init__(self) -> None:
        self._believed: bool | None = None
        self._met: Newest[str, bool] = Newest(MAX_TOKENS)
        """The tokens that we met, and whether a client sent something with them."""
        self._same: Newest[str, str] = Newest(MAX_TOKENS)
        """The token of a stream's client, by the token of its server."""
        self._latest = ""
        """The token of the latest header that a client sent."""

    def believe(self, directed: Iterable[tuple[str, bool | None]]) -> None:
        """Decide whether the tokens name streams: each then has both directions."""
        entries = [*directed]
        numbers = [token for token, _ in entries if token.isdigit()]
        # Loggers write lengths in brackets, too. A connection has more than two entries.
        if 2 * len(set(numbers)) > len(numbers) > 2:
            self._believed = False
            return
        sides = set(entries)
        has_both = any(token and (token, not sent) in sides for token, sent in sides)
        has_none = any(not token for token, _ in sides)
        self._believed = has_both or not has_none

    def of(self, token: str, element: Element, *, sent: bool) -> str | None:
        """Return the session of an element; empty if the log does not tell its streams apart.

        None if it is the end of a stream of which a server's log has nothing else.
        """
        if not token or not self._believed:
            return ""
        if element.tag == HEADER and not sent and not self._met.get(token) and self._latest:
            # The server writes the stream in another process than it reads it.
            self._same.add(token, self._latest)
        if element.tag == HEADER:
            self._latest = token if sent else ""
        is_known = token in self._met
        self._met.add(token, sent or self._met.get(token, False))
        if element.tag == FOOTER and not (is_known or sent or token.isdecimal()):
            return None
        return self._same.get(token, token)


def _object_in(text: str) -> dict[str, Any] | None:
    """Return the JSON object that a text is; None if it is none."""
    with suppress(ValueError, RecursionError):
        value = json.loads(text, object_pairs_hook=_members)
        return value if isinstance(value, dict) else None
    return None


def _members_behind(line: str) -> tuple[str, dict[str, Any]] | None:
    """Return the text before an object that ends a line and has XML in it, and the object."""
    head = line.partition("{")[0]
    text = line[len(head) :].rstrip(_AROUND_OBJECT)
    if not text.endswith("}") or "<" in head or not any(map(text.__contains__, TELLING)):
        return None
    value = _object_in(text)
    return None if value is None else (head, value)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object; raise `ValueError` if it has parts of two, whose middle is lost."""
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError
    return members


def _lines(file: BufferedReader) -> Iterator[bytes]:
    """Yield the lines of a file; of a line that is too long, only the beginning."""
    if file.peek().startswith((BOM_UTF16_LE, BOM_UTF16_BE)):  # PowerShell's `>` writes that
        text = TextIOWrapper(file, "utf-16", errors="replace", newline="\n")
        while characters := text.readline(MAX_LINE_BYTES):
            yield characters.encode()
        text.detach()
    while line := file.readline(MAX_LINE_BYTES):
        yield line
        while len(line) == MAX_LINE_BYTES and not line.endswith(b"\n"):
            line = file.readline(MAX_LINE_BYTES)
