"""Bytes to frames and back: newline-delimited JSON, and `Content-Length` headers. Pure.

Each message may use either. If a line is a header with a name that begins with `Content-`, it opens
a block of headers. Any other line is a message. After malformed input, reading goes on at the next
line.
"""

import re
from collections.abc import Generator
from enum import Enum
from typing import NamedTuple

MAX_FRAME_BYTES = 16 * 1024 * 1024
"""The longest message that we read, in bytes: far more than any call needs, and little enough to
keep in memory."""

MAX_HEADER_BYTES = 8 * 1024
"""The longest block of headers, in bytes: a common limit of HTTP servers."""

MAX_SKIPPED_BYTES = 1024 * 1024 * 1024
"""Most bytes that we skip of a body that is too long to read. A higher `Content-Length` counts as
garbage: that many bytes may never come."""

# `re` compiles these patterns when they are first used: most clients send no headers.
_HEADER = rb"\A[!#$%&'*+.^_`|~0-9A-Za-z-]+[ \t]*:"
_NEXT = rb"content-length:[ \t]{0,20}[0-9]{1,18}[ \t]{0,20}\r?\n"
"""The header of the next message, in lower case. JSON cannot contain it: a text in JSON has no line
end, and outside of texts JSON has no such word."""
_LONGEST_NEXT = 80
"""No match of `_NEXT` has more bytes."""
_BOM = b"\xef\xbb\xbf"

_BEGIN = rb"[^ \t\r\n]"
_IN_TEXT = rb'[^"\\]*+(?:\\.[^"\\]*+)*+'
"""The inside of a text. The match ends before a backslash that is the last byte so far."""
_BETWEEN = rb'[^"{}\[\]]*+'
"""The bytes between texts and brackets."""
_TOKEN = rb'(?:%b"%b"){,999}%b(["{}\[\]]|\Z)' % (_BETWEEN, _IN_TEXT, _BETWEEN)
"""Matches up to the next bracket, or up to the start of a text that does not end in the data, or
that is the thousandth. The number bounds the memory that `re` takes for the repetition. With `*+`
the repetition would take no memory, but Python 3.11.2, which Debian 12 has, then goes on behind a
failed part of it."""
_STEPS = {b"{": 1, b"[": 1, b"}": -1, b"]": -1}
"""The change of depth at a bracket, in levels."""


class Framing(Enum):
    """How a message is separated from the next one."""

    LINES = "newline-delimited"
    HEADERS = "Content-Length"


class Frame(NamedTuple):
    """One whole message's bytes, and the framing its reply should use."""

    body: bytes
    framing: Framing = Framing.LINES


class SkippedInput(NamedTuple):
    """Why bytes of the input were skipped."""

    reason: str
    framing: Framing = Framing.LINES


def encode(frame: Frame) -> bytes:
    """Write `frame` in its framing."""
    if frame.framing is Framing.LINES:
        return frame.body + b"\n"
    return b"Content-Length: %d\r\n\r\n%s" % (len(frame.body), frame.body)


class Nesting:
    """Finds the end of an object or array of JSON in one pass, by its brackets and texts alone."""

    def __init__(self) -> None:
        self.read = 0
        """How much of the data is read."""
        self.depth = 0
        """How many brackets are open; -1 if the data does not begin with a bracket."""
        self._in_text = False

    def end_in(self, data: bytes | bytearray, stop: int) -> int | None:
        """Read on, up to `stop`, and return where the value ends; None if it does not end there."""
        in_text, token = re.compile(_IN_TEXT, re.DOTALL), re.compile(_TOKEN, re.DOTALL)
        if self.depth == 0:
            first = re.compile(_BEGIN).search(data, self.read, stop)
            self.read = first.start() if first else stop
            if first and first[0] not in b"{[":
                self.depth = -1
        while self.depth >= 0 and self.read < stop:
            if self._in_text:
                text = in_text.match(data, self.read, stop)
                self.read = text.end() if text else stop
                if data[self.read : min(self.read + 1, stop)] != b'"':
                    break
                self._in_text = False
                self.read += 1
            for match in token.finditer(data, self.read, stop):
                self.read = match.end()
                self.depth += _STEPS.get(match[1], 0)
                if match[1] == b'"':
                    self._in_text = True
                    break
                if self.depth == 0:
                    return self.read
        return None


class Framer:
    """Cuts a stream of bytes, which may come in any chunks, into frames.

    Holds at most `limit` bytes and one chunk.
    """

    def __init__(self, limit: int = MAX_FRAME_BYTES) -> None:
        self._limit = limit
        self._frames: list[Frame | SkippedInput] = []
        self._buffer = bytearray()
        self._in_headers = False
        self._length = 0  # of the body being read
        self._reading = self._read()
        next(self._reading)

    def feed(self, data: bytes) -> list[Frame | SkippedInput]:
        """Take the next bytes and return what they complete, in order."""
        self._buffer += data
        next(self._reading)
        frames, self._frames = self._frames, []
        return frames

    def end(self) -> list[Frame | SkippedInput]:
        """Return the rest at the end of input: a last line, or a message that was cut short."""
        frames = self.feed(b"\n") if self._buffer and not self._length else []
        if self._length:
            missing = self._length - len(self._buffer)
            self._refuse(f"input ended {missing} bytes short of its Content-Length")
        elif self._in_headers:
            self._refuse("input ended within headers")
        self._buffer.clear()
        return frames + self._frames

    def _read(self) -> Generator[None, None, None]:
        """Find the frames in the buffer. All generators here yield when they need more bytes."""
        while True:
            line = yield from self._line()
            while line:
                if line[:8].lower() == b"content-" and re.match(_HEADER, line):
                    line = yield from self._message(line)
                elif line[-1:].isdigit() and (
                    begun := re.search(_NEXT, line[-_LONGEST_NEXT:].lower() + b"\n")
                ):
                    # The Content-Length of a body was too small. This line is the rest of that
                    # body, followed by the header of the next message.
                    at = max(0, len(line) - _LONGEST_NEXT) + begun.start()
                    self._refuse(f"{at} bytes more than the Content-Length before them counts")
                    line = line[at:]
                else:
                    self._frames.append(Frame(line))
                    break

    def _line(self) -> Generator[None, None, bytes | None]:
        """Take a line without its end and the blanks around it; None if it is too long."""
        searched, too_long = 0, False
        most = self._limit + 1  # for the CR of a CRLF
        while (end := self._buffer.find(b"\n", searched)) < 0:
            if len(self._buffer) > most and not too_long:
                too_long = True
                self._refuse_line()
            if too_long:
                self._buffer.clear()
            searched = len(self._buffer)
            yield
        line = bytes(self._buffer[:end]).removeprefix(_BOM).strip(b" \t\r")
        del self._buffer[: end + 1]
        if not too_long and (end > most or len(line) > self._limit):
            too_long = True
            self._refuse_line()
        return None if too_long else line

    def _message(self, line: bytes | None) -> Generator[None, None, bytes | None]:
        """Take headers, of which `line` is the first, and their body.

        Return the line that came in place of a header, if any.
        """
        lengths, size = set[bytes](), 0
        while line:
            size += len(line)
            if not re.match(_HEADER, line):
                self._refuse("headers without the blank line that ends them")
                return line
            if size > MAX_HEADER_BYTES:
                self._refuse(f"headers are longer than {MAX_HEADER_BYTES} bytes")
                return None
            name, _, value = line.partition(b":")
            if name.strip().lower() == b"content-length":
                lengths.add(value.strip())
            self._in_headers = True
            line = yield from self._line()
            self._in_headers = False
        if line is not None:
            yield from self._body(lengths)
        return None

    def _body(self, lengths: set[bytes]) -> Generator[None, None, None]:
        """Take the body of a message with these values of `Content-Length`."""
        text = lengths.pop() if len(lengths) == 1 else b""
        if not text.isdigit() or len(text) > 18:
            self._refuse("headers without a Content-Length that is one number of bytes")
        elif (length := int(text)) > self._limit:
            self._refuse(f"Content-Length is more than {self._limit} bytes")
            if length <= MAX_SKIPPED_BYTES:
                end = yield from self._end_of_body(length, kept=False)
                del self._buffer[:end]
        else:
            self._length = length
            end = yield from self._end_of_body(length, kept=True)
            self._length = 0
            if end:
                self._frames.append(Frame(bytes(self._buffer[:end]), Framing.HEADERS))
            else:
                self._refuse("headers without a message")
            del self._buffer[:end]

    def _end_of_body(self, length: int, *, kept: bool) -> Generator[None, None, int]:
        """Wait for a body, and return how many bytes at the start of the buffer belong to it.

        A body has `length` bytes. It has fewer in two cases: its object or array is complete
        before, or the header of the next message begins among the bytes. So after a wrong length,
        reading goes on in the right place. Without `kept`, the body is dropped as it comes in, and
        only its last bytes are in the buffer.
        """
        searched, nesting = 0, Nesting()
        while True:
            end = nesting.end_in(self._buffer, min(length, len(self._buffer)))
            if header := re.search(_NEXT, self._buffer[searched : end or length].lower()):
                return searched + header.start()
            if end is not None or len(self._buffer) >= length:
                return end or length
            searched = max(0, len(self._buffer) - _LONGEST_NEXT)
            if not kept:
                del self._buffer[:searched]
                nesting.read -= searched
                length, searched = length - searched, 0
            yield

    def _refuse(self, reason: str, framing: Framing = Framing.HEADERS) -> None:
        self._frames.append(SkippedInput(reason, framing))

    def _refuse_line(self) -> None:
        self._refuse(f"a line is longer than {self._limit} bytes", Framing.LINES)
