"""Remembers what strangers said that a program may print as if it were XMPP. Pure."""

import html
import re
from collections.abc import Iterator
from typing import NamedTuple

from bridge.capture.escapes import mended, of_terms, unbraced, undoubled
from bridge.capture.formats import ROWS
from bridge.capture.fragments import Fragment
from bridge.capture.stanza import HOLE
from bridge.newest import Newest

MAX_SAID = 256
"""We remember at most so many of the texts of strangers that a program may print as XMPP."""

MAX_SAID_CHARACTERS = 256 * 1024
"""The most characters of all these texts: each entry outside the main place is sought in them."""

MIN_SAID = len("<stream:")
"""An entry without its end repeats somebody only if it has more than so many of the characters."""

_MARKS = {row.mark for row in ROWS}
TELLING = ("<", "&lt;", "xmlns=", ">", "\\u003", "«", "{xml", "{:xml", "#xml", *_MARKS)
"""What stands in a text that looks like XMPP."""
_PRINTABLE = ("CDATA", *TELLING[4:])
"""What a stanza has in which a stranger's text looks like XMPP, if the text is not escaped."""
_ENDS_TAG = re.compile(r"""['"]\s*/?>""")
"""The end of a tag, as a torn stanza has it."""
_REFERENCES = ("&lt;", "&#", "&amp;lt;", "&amp;#")
_MARKUP = re.compile("[<>]")
_ESCAPES = re.compile(r"""(?:\\[nrt]|[\\"'\s\u2018-\u201f]|&#10;)+""")


class _Text(NamedTuple):
    """What somebody said."""

    lines: list[str]
    """The lines that have XMPP in them, as they were said."""
    plain_lines: list[str]
    number: int
    """The line of the log in which it was said."""


class Hearsay(Newest[str, _Text]):
    """Texts of strangers that have XMPP in them, each by its form as `_plain` returns it."""

    def __init__(self) -> None:
        super().__init__(MAX_SAID)

    def hear(self, fragment: Fragment) -> str:
        """Remember what a stanza says that a program may print as if it were XMPP.

        Return the text in the stanza.
        """
        text, elements = fragment.text, fragment.elements
        words = "\n".join(["\n".join(each.itertext()) for each in elements])
        heard = words + "".join([each.get("from", "") for each in elements])
        is_telling = "xmlns=" in heard or (">" in heard and _ENDS_TAG.search(heard) is not None)
        is_escaped = "&" in text and any(map(text.__contains__, _REFERENCES))
        if not (is_telling or is_escaped or any(map(text.__contains__, _PRINTABLE))):
            return words
        for said in _texts_of(fragment):
            if any(map(said.__contains__, TELLING)):
                lines = [each for each in said.split("\n") if any(map(each.__contains__, TELLING))]
                it = _Text(lines, [*map(_plain, lines)], fragment.place.line)
                self.add(_plain(said)[:MAX_SAID_CHARACTERS], it)
        while sum(map(len, self)) > MAX_SAID_CHARACTERS:
            self.popitem(last=False)
        return words

    def line_of(self, fragment: Fragment, *, was_met: bool) -> int:
        """Return the line in which somebody said what an entry prints; 0 if nobody did.

        A program may print a part, such as the arguments of a command. So somebody said the whole
        entry; or an entry without its end begins with the end of what somebody said; or an entry
        in a place that was not met has what somebody said in it.
        """
        ways = [way for each in fragment.written if (way := _plain(each))]
        is_part = fragment.elements[-1:] != [] and fragment.elements[-1].tag == HOLE
        text = "" if fragment.is_row or was_met else _plain(fragment.text)
        for said, heard in self.items() if ways else ():
            for way in ways:  # a comprehension takes half as long again
                if way in said or (is_part and _goes_on(said, way)):
                    return heard.number
            if not was_met and _has(text, ways, said, heard, is_part=is_part):
                return heard.number
        return next(filter(None, map(self._line_of_parts, ways)), 0) if self else 0

    def _line_of_parts(self, way: str) -> int:
        """Return the line of the last of several messages that together are an entry; else 0."""
        number = 0
        while part := max(filter(way.startswith, self), key=len, default=""):
            way, number = way[len(part) :], self[part].number
        return 0 if way else number

    def without(self, line: str) -> str:
        """Return a line without what somebody said."""
        for said in self.values():
            for words in said.lines:
                line = line.replace(words, "")
        return line


def _texts_of(fragment: Fragment) -> Iterator[str]:
    """Yield what may be a stranger's words in a stanza, also in the parts that were not parsed."""
    for element in fragment.elements:
        for inner in element.iter():
            names = [value.partition("/")[2] for value in inner.attrib.values()]
            yield from (inner.text or "", inner.tail or "", *inner.attrib.values(), *names)
    if not all(map(len, fragment.elements)):  # their content may be too much, or torn
        yield from map(html.unescape, _MARKUP.split(fragment.text))


def _goes_on(said: str, way: str) -> bool:
    """Whether an entry begins with the end of what somebody said, which is enough for a refusal."""
    at = max(0, len(said) - len(way)) - 1  # no longer end can be its beginning
    while (at := said.find(way[: MIN_SAID + 1], at + 1)) >= 0:
        if way.startswith(said[at:]):
            return True
    return False


def _has(text: str, ways: list[str], said: str, heard: _Text, *, is_part: bool) -> bool:
    """Whether an entry with the XML `text`, if any, has in it what somebody said.

    The words of somebody who said only a beginning, or an end, hide no entry.
    """
    if text and text in said:
        return True
    if is_part:
        long = [line for line in heard.plain_lines if len(line) > MIN_SAID]
        return any(line in way for way in ways for line in long)
    rows = [way for way in ways if not text or text not in way]
    return any(way.endswith(line) for way in rows for line in heard.plain_lines)


def _plain(text: str) -> str:
    """Return a text as `Fragments` reads it, in one line, without blanks and quotes."""
    text = of_terms(undoubled(html.unescape(text)))
    lines = [mended(unbraced(of_terms(line))) for line in text.split("\n")]
    return "".join([_ESCAPES.sub("", line) for line in lines]).casefold()
