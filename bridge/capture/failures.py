"""Finds in a log that the program failed: its exceptions, with the lines that lead to them. Pure.

In every language a trace is a run of lines, each with a file and a line in it. The line before or
after the run names the exception.
"""

import re
from collections import deque
from typing import NamedTuple
from xml.etree.ElementTree import Element, SubElement

from bridge.capture.times import time_in
from bridge.newest import Newest
from bridge.text import quoted
from bridge.wire.names import CONDITIONS, SASL, STREAM_ERROR

MAX_FRAME = 500
"""Characters of a line in which we look for a file: paths are shorter."""

MAX_OTHERS = 3
"""Other lines that may stand within a trace: headings, and below a frame its code."""

MAX_BEFORE = 4
"""Lines in which we look for the time of a trace: loggers write several before it."""

MAX_SAID = 64
"""We remember at most so many lines of strangers that may pass for a trace."""

MAX_LAST = 50
"""We look in so many lines behind the last stanza for the end of the connection."""

MAX_WARNED = 500
"""Lines of a log in which we look for a warning: it counts in an excerpt alone."""

MAX_WORDS = 200
"""Characters of the exception's own words that are kept."""

_UNNAMED = r"\.[^\s(]+\((?:SourceFile|Unknown Source|Native Method)"
"""What Java writes behind a class if it does not know the file."""

_FRAME = re.compile(
    r"(?:\bFile \"|\bat |\bfrom |\bin |#\d+ |\s|\()(?:file://(?:/(?=[A-Za-z]:))?)?"
    r"(?P<file>(?:[A-Za-z]:)?[^\s\"'()<>:]*[^\s\"'()<>:/\\](?:\.[A-Za-z]\w{0,5}|(?=\", line )"
    rf"|(?={_UNNAMED})))(?:\"?, line |:line |:|\(|{_UNNAMED}:?)"
    r"(?P<line>\d+\b|(?<=SourceFile)|(?<=Unknown Source)|(?<=Native Method))"
)
"""A file and a line of it, as in `File "bot.py", line 3`, `at f (file:///srv/bot.js:3:7)`,
`at Bot.f(Bot.java:3)`, `in C:\\bot.cs:line 3`, `#0 /srv/bot.php(3)`, `	/srv/bot.go:3 +0x1d`."""

_RUBY = re.compile(r"(?:^|\s)(?P<file>\S+\.rb):(?P<line>\d+):in ")
"""The innermost frame as Ruby writes it, in the line that names the exception."""

_IS_FRAME = re.compile(
    r"(?:\bFile \".*\", line \d|(?:^|[:\ufe55\]]\s)\W*at \S|^\s+from \S|#\d+ "
    r"|^\s+(?:\([^()]+\) )?\S+\.(?:go|rs|exs?|erl):\d|^\s+\S+\.rb:\d+:in [`'][^']*'$)"
)
"""What a line of a trace begins with or has, whatever a logger writes before it."""

_EXCEPTION = re.compile(
    r"(?:^|[\s:(\"'])(?P<name>(?:[A-Za-z_]\w*(?:\.|::|\$))*"
    r"(?:[A-Za-z_]\w*(?:Error|Exception|Fault|Timeout)(?=[:\s)]|$)|(?:Error|Exception)(?=: |\) )))"
    r"(?:(?:: ?|\) )(?P<words>.*))?"
)
"""An exception's name, and its words behind a colon, or as Elixir writes it, in parentheses."""
_PYTHON = "Traceback (most recent call last)"
"""Heads a trace of Python, whose last line names the exception, mostly at the same column."""
_NAMED = re.compile(r"(?P<name>[A-Za-z_][\w.]*)(?:: (?P<words>.*))?$")
_PANIC = re.compile(
    r"\b(?P<name>panic|panicked)(?: at [^\s']\S*)?(?:: ?| at '(?=.*', \S+:\d))(?P<words>.*)"
)
_STATED = re.compile(r"(?:^|: |[}('])([a-z]+(?:-[a-z]+)*)(?![\w-])")
_BEGINS = re.compile('Error|Exception|Fault|panic|most recent call last|File "')
"""What the first line of a trace has. Few other lines of a log have any of it."""

_LEVEL = re.compile(
    r"\b(?:ERR(?:OR)?|FATAL|SEVERE|CRITICAL)\b(?!\()|\[(?:error|fatal|critical)\]|\bE/\w"
)
"""What loggers write before an entry of level error."""

_WARNING = re.compile(r"\bWARN(?:ING)?\b(?!\()|\[warn(?:ing)?\]|\bW/\w|\swarn(?:\t|\s\s)")
"""What loggers write before a warning."""
_DISCONNECTED = re.compile(
    r"\b(?:connection|socket|stream)[\W_]{1,3}(?:was |is |has been )?(?:lost|closed|reset|broken)\b"
    r"|\b(?:disconnected|broken pipe|econnreset|eof)\b",
    re.IGNORECASE,
)
"""What programs write of a connection that has ended."""
_UNSENT = re.compile(
    r"\b(?:fail\w*|unable|cannot|could not|error) (?:to |while |when )?(?:send|writ(?:e|ing))",
    re.IGNORECASE,
)
"""What loggers write before a stanza that they could not send."""

_LIBRARY = re.compile(
    r"(?:site|dist)-packages|node_modules|[/\\]lib[/\\]python|^node:|^internal/|^<|\.cargo|/gems/"
)
"""Matches a file of a library: a program's author looks for a line of the program."""

_CUT = re.compile(r"^(?:Not)?Connect|Disconnected|BrokenPipe")
"""Matches an exception that a library raises because the connection has ended."""


def is_unsent(head: str) -> bool:
    """Whether a logger says before a stanza that it could not send it."""
    may_be = "send" in head or "writ" in head  # which is quick
    return may_be and _UNSENT.search(head) is not None


class Failure(NamedTuple):
    """An exception that the log shows."""

    name: str
    """Such as `KeyError`."""
    words: str
    """What the exception says: a stranger's words may be in it."""
    file: str
    """Empty if the log does not tell it."""
    line: int
    """0 if the log does not tell it."""
    number: int
    """In which line of the log it is named."""
    seconds: float | None = None
    """When it was raised, if no frame is the program's own: what passed then may be its cause. The
    program's own code may have waited before it failed."""
    said: int = 0
    """The line of the log in which somebody had said its frames; 0 if nobody had."""

    @property
    def stated(self) -> Element | None:
        """The error of the server that the exception passes on, if it does: of SASL, or a stream's.

        Libraries name the exception so, and write the condition before anything else, in quotes or
        parentheses, or behind a colon or a namespace.
        """
        named = [each for each in _STATED.findall(self.words) if each in CONDITIONS]
        is_of_stream = "Stream" in self.name or "Component" in self.name
        if not named or not (is_of_stream or "SASL" in self.name):
            return None
        error = Element(STREAM_ERROR if is_of_stream else f"{{{SASL}}}failure")
        SubElement(error, named[0])
        return error

    @property
    def sentence(self) -> str:
        """The part of a sentence that names it."""
        words = f" ({quoted(self.words)})" if self.words else ""
        where = f" in {quoted(self.file)}" if self.file else ""
        line = f", line {self.line}" if self.line else ""
        return f"{quoted(self.name)}{words}{where}{line}"


class Failures:
    """Reads the lines between the stanzas of a log."""

    def __init__(self) -> None:
        self._named: re.Match[str] | None = None
        """The exception that a line before the frames names, if it does."""
        self._number = 0
        """The number of that line."""
        self._frames: list[tuple[str, int]] = []
        """The first and the latest frame; of the program's own, if there are such."""
        self._column = -1
        """Where the heading of a trace of Python begins; -1 outside such a trace."""
        self._said = Newest[str, int](MAX_SAID)
        """Lines of strangers, and in which line of the log each was said."""
        self._said_in = 0
        """The line in which somebody had said all frames so far; 0 if nobody had said one."""
        self._before = deque[str](maxlen=MAX_BEFORE)
        """The latest lines up to the one in which the trace begins."""
        self._others = 0
        """How many other lines stand behind the latest frame, or the latest name."""
        self.complaint = 0
        """In which line the program logged an error since the latest stanza; 0 if it did not."""
        self._last = list[tuple[int, str]]()
        """The first `MAX_LAST` lines since the latest stanza, with their numbers."""
        self.warning = 0
        """The first line with a warning or an error; 0 if there is none."""

    @property
    def disconnected(self) -> int:
        """In which line since the latest stanza the connection seems to have ended; else 0."""
        return next((number for number, text in self._last if _DISCONNECTED.search(text)), 0)

    def hear(self, said: str, number: int) -> None:
        """Remember what a stranger said that looks like a trace: a program may print it."""
        if _BEGINS.search(said):
            for line in said.split("\n")[:MAX_SAID]:
                if words := line.strip()[:MAX_FRAME]:
                    self._said.add(words, number)

    def end(self, text: str = "", number: int = 0) -> Failure | None:
        """End the trace at hand, since a stanza follows; return its exception if it has one.

        Python may name the exception in the line of the stanza, `text`, since its words are one.
        """
        head, _, stanza = text[:MAX_FRAME].partition("<")
        self.complaint, self._last = 0, []
        if "error" not in stanza:
            self._weigh(head, number)
        named, at, innermost = self._named, self._number, 0
        if named is None:
            named = _EXCEPTION.search(head)
            at, innermost = number, -1
        if named is not None and self._frames:
            return self._ended(named, at, innermost)
        self._forget()
        return None

    def feed(self, text: str, number: int) -> Failure | None:
        """Read a line; return the exception whose trace has ended with it, or before it."""
        self._weigh(text[:MAX_FRAME], number)
        if not self._frames and self._named is None and not _BEGINS.search(text):
            self._before.append(text[:MAX_FRAME])
            return None
        text = text[:MAX_FRAME]
        if _IS_FRAME.search(text) and (frame := _FRAME.search(text)):
            self._add(frame, text)
            return None
        exception = _EXCEPTION.search(text) or _PANIC.search(text)
        if self._frames and self._column >= 0:
            exception = _NAMED.match(text, self._column) or exception
        if self._frames and self._named is None:
            if exception is not None:  # Python names the exception behind its innermost frame
                return self._ended(exception, number, innermost=-1)
        elif self._frames:
            failure = self.end()
            self._begin(exception, text, number)
            return failure
        elif exception is not None and self._column >= 0:  # of Twisted: it has no frames
            self._said_in, self._frames = self._saying(text), [("", 0)]
            return self._ended(exception, number)
        elif exception is not None or "most recent call last" in text:
            self._begin(exception, text, number)
            self._column = text.find(_PYTHON)
        self._others += 1
        if self._others > MAX_OTHERS:
            self._forget()
        return None

    def _weigh(self, text: str, number: int) -> None:
        """Remember the line of a logger if its level is an error's or a warning's."""
        is_error = _LEVEL.search(text) or is_unsent(text)
        self.complaint = number if is_error else self.complaint
        if len(self._last) < MAX_LAST:
            self._last.append((number, text))
        if not self.warning and number <= MAX_WARNED and (is_error or _WARNING.search(text)):
            self.warning = number

    def _begin(self, exception: re.Match[str] | None, text: str, number: int) -> None:
        self._named, self._number, self._others = exception, number, 0
        self._before.append(text)
        place = _FRAME if exception is not None and exception.re is _PANIC else _RUBY
        if exception is not None and (frame := place.search(text)):
            self._add(frame, text)

    def _forget(self) -> None:
        self._frames, self._named, self._column = [], None, -1

    def _add(self, frame: re.Match[str], text: str) -> None:
        said = self._saying(text)
        self._said_in = said if not self._frames else self._said_in and said
        frames = [*self._frames, (frame["file"], int(frame["line"][:9] or 0))]
        own = [each for each in frames if not _LIBRARY.search(each[0])]
        kept = own or frames
        self._frames, self._others = [kept[0], kept[-1]], 0

    def _saying(self, text: str) -> int:
        """Return in which line of the log somebody had said this; 0 if nobody had."""
        return next((number for words, number in self._said.items() if words in text), 0)

    def _ended(self, exception: re.Match[str], number: int, innermost: int = 0) -> Failure | None:
        file, line = self._frames[innermost]
        self._forget()
        words = (exception["words"] or "")[:MAX_WORDS]
        name = re.split(r"[.:]", exception["name"])[-1]
        is_of_library = _LIBRARY.search(file) is not None
        if is_of_library and _CUT.match(name):
            return None
        lines = reversed(self._before) if is_of_library else ()
        times = (time_in(text)[0] for text in lines)
        seconds = next((it for it in times if it is not None), None)
        return Failure(name, words, file, line, number, seconds, self._said_in)
