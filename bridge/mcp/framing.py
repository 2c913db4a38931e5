"""Bytes to frames and back: newline-delimited JSON, and `Content-Length` headers. Pure.

Each message may use either; `Framer` tells them apart by its first byte, since JSON begins with
no letter and a header with nothing else. After rubbish it finds its way back at the next line.
"""

import re
from enum import Enum
from typing import NamedTuple

MAX_FRAME_BYTES = 16 * 1024 * 1024
"""The longest message read, in bytes: far above any call, far below what hurts."""

MAX_HEADER_BYTES = 8 * 1024
"""The longest block of headers, in bytes, as HTTP servers commonly have it."""

MAX_SKIPPED_BYTES = 1024 * 1024 * 1024
"""The longest body that is passed over as announced; a greater number is taken for rubbish, since
waiting for so much would be waiting for ever."""

# Compiled where it is used: most clients send none.
_HEADER = rb"\A[!#$%&'*+.^_`|~0-9A-Za-z-]+[ \t]*:"
_BOM = b"\xef\xbb\xbf"


class Framing(Enum):
    """How a message is set apart from the next."""

    LINES = "newline-delimited"
    HEADERS = "Content-Length"


_LINES = Framing.LINES  # to look a member up costs more in Python 3.11 than the line around it


class Frame(NamedTuple):
    """One whole message's bytes, and the framing its reply should use."""

    body: bytes
    framing: Framing = Framing.LINES


class FrameError(NamedTuple):
    """Bytes that were passed over, and why."""

    reason: str
    framing: Framing = Framing.LINES


def encode(frame: Frame) -> bytes:
    """Write `frame` in its framing."""
    if frame.framing is _LINES:
        return frame.body + b"\n"
    return b"Content-Length: %d\r\n\r\n%s" % (len(frame.body), frame.body)


class Framer:
    """Cuts a stream of bytes into frames, whatever the chunks it comes in.

    Holds at most `limit` bytes and one chunk.
    """

    def __init__(self, limit: int = MAX_FRAME_BYTES) -> None:
        self._limit = limit
        self._longest = limit + 1  # for the CR of a CRLF; `_line` looks at what is left without it
        self._buffer = bytearray()
        self._searched = 0
        self._skip = 0
        self._skip_line = False
        self._header_bytes = 0
        self._headers: list[bytes] | None = None
        self._length: int | None = None

    def feed(self, data: bytes) -> list[Frame | FrameError]:
        """Take the next bytes and return what they complete, in order."""
        self._buffer += data
        found: list[Frame | FrameError] = []
        while self._step(found):
            pass
        return found

    def end(self) -> list[Frame | FrameError]:
        """Say that no more bytes come: a last line needs no newline, a body cut short is lost."""
        found: list[Frame | FrameError] = []
        if self._length is None and self._buffer and not self._skip and not self._skip_line:
            found += self.feed(b"\n")
        if self._length is not None:
            missing = self._length - len(self._buffer)
            found.append(
                FrameError(
                    f"input ended {missing} bytes short of its Content-Length", Framing.HEADERS
                )
            )
        elif self._headers is not None:
            found.append(FrameError("input ended within headers", Framing.HEADERS))
        self._buffer.clear()
        return found

    def _step(self, found: list[Frame | FrameError]) -> bool:
        """Consume one thing from the buffer; False when more bytes are needed."""
        if self._skip:
            dropped = min(self._skip, len(self._buffer))
            del self._buffer[:dropped]
            self._skip -= dropped
            return self._skip == 0
        if self._length is not None:
            if len(self._buffer) < self._length:
                return False
            found.append(Frame(bytes(self._buffer[: self._length]), Framing.HEADERS))
            del self._buffer[: self._length]
            self._length = None
            return True
        end = self._buffer.find(b"\n", self._searched)
        if end < 0:
            self._bound_line(found)
            return False
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        self._searched = 0
        if self._skip_line:
            self._skip_line = False
        elif end > self._longest:
            self._refuse_line(found)
        else:
            self._line(line, found)
        return True

    def _bound_line(self, found: list[Frame | FrameError]) -> None:
        self._searched = len(self._buffer)
        if self._skip_line:
            self._buffer.clear()
            self._searched = 0
        elif self._searched > self._longest:
            self._refuse_line(found)
            self._skip_line = True
            self._buffer.clear()
            self._searched = 0

    def _refuse_line(self, found: list[Frame | FrameError]) -> None:
        found.append(FrameError(f"a line is longer than {self._limit} bytes"))
        self._headers = None

    def _line(self, line: bytes, found: list[Frame | FrameError]) -> None:
        line = line.removeprefix(_BOM).strip(b" \t\r")
        if self._headers is None and line[:8].lower() == b"content-" and re.match(_HEADER, line):
            self._headers = []
            self._header_bytes = 0
        if self._headers is not None:
            if not line:
                self._end_of_headers(self._headers, found)
                self._headers = None
            elif re.match(_HEADER, line):
                self._header_bytes += len(line)
                if self._header_bytes > MAX_HEADER_BYTES:
                    found.append(
                        FrameError(
                            f"headers are longer than {MAX_HEADER_BYTES} bytes", Framing.HEADERS
                        )
                    )
                    self._headers = None
                else:
                    self._headers.append(line)
            else:
                found.append(
                    FrameError("headers without the blank line that ends them", Framing.HEADERS)
                )
                self._headers = None
                self._line(line, found)
        elif not line:
            return
        elif len(line) > self._limit:
            self._refuse_line(found)
        else:
            found.append(Frame(line))

    def _end_of_headers(self, headers: list[bytes], found: list[Frame | FrameError]) -> None:
        values = {
            value.strip()
            for name, _, value in (header.partition(b":") for header in headers)
            if name.strip().lower() == b"content-length"
        }
        problem = None
        length = 0
        if not values:
            problem = "headers without a Content-Length"
        elif len(values) > 1:
            problem = "Content-Length is given more than once, with different values"
        else:
            text = values.pop()
            if not text.isdigit() or len(text) > 18:
                problem = "Content-Length is not a number of bytes"
            else:
                length = int(text)
                if length > self._limit:
                    problem = f"Content-Length is more than {self._limit} bytes"
                    self._skip = length if length <= MAX_SKIPPED_BYTES else 0
        if problem is not None:
            found.append(FrameError(problem, Framing.HEADERS))
        elif length == 0:
            found.append(FrameError("Content-Length is 0: there is no message", Framing.HEADERS))
        else:
            self._length = length
