"""Bytes to frames and back: newline-delimited JSON, and `Content-Length` headers. Pure.

Each message may use either: a line that is a header whose name begins with `Content-` opens a
block of headers, any other is a message. After malformed input reading goes on at the next line.
"""

import re
from enum import Enum
from typing import NamedTuple

MAX_FRAME_BYTES = 16 * 1024 * 1024
"""The longest message read, in bytes: far above any call, far below what hurts."""

MAX_HEADER_BYTES = 8 * 1024
"""The longest block of headers, in bytes, as HTTP servers commonly have it."""

MAX_SKIPPED_BYTES = 1024 * 1024 * 1024
"""The longest body that is skipped as announced. A greater number is taken for garbage, since
waiting for so many bytes would be waiting for ever."""

# Compiled where it is used: most clients send none.
_HEADER = rb"\A[!#$%&'*+.^_`|~0-9A-Za-z-]+[ \t]*:"
_BOM = b"\xef\xbb\xbf"


class Framing(Enum):
    """How a message is separated from the next."""

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


class Framer:
    """Cuts a stream of bytes into frames, whatever the chunks it comes in.

    Holds at most `limit` bytes and one chunk.
    """

    def __init__(self, limit: int = MAX_FRAME_BYTES) -> None:
        self._limit = limit
        self._longest_line = limit + 1  # for the CR of a CRLF; `_line` looks at the rest
        self._found: list[Frame | SkippedInput] = []
        self._buffer = bytearray()
        self._searched = 0  # bytes at the start of the buffer that hold no newline
        self._skip = 0  # bytes still to come of a body that was refused
        self._skip_line = False
        self._lengths: set[bytes] | None = None  # of the headers being read; None outside them
        self._header_bytes = 0
        self._length: int | None = None  # of the body being read

    def feed(self, data: bytes) -> list[Frame | SkippedInput]:
        """Take the next bytes and return what they complete, in order."""
        self._buffer += data
        while self._step():
            pass
        found, self._found = self._found, []
        return found

    def end(self) -> list[Frame | SkippedInput]:
        """Return what is left at the end of input: a last line, or what was cut short."""
        found: list[Frame | SkippedInput] = []
        if self._length is None and self._buffer and not self._skip and not self._skip_line:
            found = self.feed(b"\n")
        if self._length is not None:
            missing = self._length - len(self._buffer)
            self._refuse(f"input ended {missing} bytes short of its Content-Length")
        elif self._lengths is not None:
            self._refuse("input ended within headers")
        self._buffer.clear()
        return found + self._found

    def _step(self) -> bool:
        """Consume a body or a line from the buffer; False when more bytes are needed."""
        if self._skip:
            dropped = min(self._skip, len(self._buffer))
            del self._buffer[:dropped]
            self._skip -= dropped
            return self._skip == 0
        if self._length is not None:
            if len(self._buffer) < self._length:
                return False
            self._found.append(Frame(bytes(self._buffer[: self._length]), Framing.HEADERS))
            del self._buffer[: self._length]
            self._length = None
            return True
        end = self._buffer.find(b"\n", self._searched)
        if end < 0 and not self._skip_line and len(self._buffer) <= self._longest_line:
            self._searched = len(self._buffer)
            return False
        self._searched = 0
        if end < 0:
            if not self._skip_line:
                self._refuse_line()
            self._skip_line = True
            self._buffer.clear()
            return False
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        if self._skip_line:
            self._skip_line = False
        elif end > self._longest_line:
            self._refuse_line()
        else:
            self._line(line)
        return True

    def _line(self, line: bytes) -> None:
        line = line.removeprefix(_BOM).strip(b" \t\r")
        if self._lengths is None:
            if line[:8].lower() != b"content-" or not re.match(_HEADER, line):
                if len(line) > self._limit:
                    self._refuse_line()
                elif line:
                    self._found.append(Frame(line))
                return
            self._lengths, self._header_bytes = set(), 0
        self._header_bytes += len(line)
        if not line:
            self._end_headers(self._lengths)
        elif not re.match(_HEADER, line):
            self._refuse("headers without the blank line that ends them")
            self._line(line)
        elif self._header_bytes > MAX_HEADER_BYTES:
            self._refuse(f"headers are longer than {MAX_HEADER_BYTES} bytes")
        else:
            name, _, value = line.partition(b":")
            if name.strip().lower() == b"content-length":
                self._lengths.add(value.strip())

    def _end_headers(self, lengths: set[bytes]) -> None:
        self._lengths = None
        if not lengths:
            self._refuse("headers without a Content-Length")
        elif len(lengths) > 1:
            self._refuse("Content-Length is given more than once, with different values")
        elif not (text := lengths.pop()).isdigit() or len(text) > 18:
            self._refuse("Content-Length is not a number of bytes")
        elif (length := int(text)) > self._limit:
            self._refuse(f"Content-Length is more than {self._limit} bytes")
            self._skip = length if length <= MAX_SKIPPED_BYTES else 0
        elif length == 0:
            self._refuse("Content-Length is 0: there is no message")
        else:
            self._length = length

    def _refuse(self, reason: str, framing: Framing = Framing.HEADERS) -> None:
        self._lengths = None
        self._found.append(SkippedInput(reason, framing))

    def _refuse_line(self) -> None:
        self._refuse(f"a line is longer than {self._limit} bytes", Framing.LINES)
