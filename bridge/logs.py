"""Writes the log that people read: prefixed lines on stderr, and nothing on stdout.

A client that does not read stderr must not stop the bridge: a line that does not fit into the
pipe is dropped and counted, never waited for.
"""

import logging
import os
import select
import sys

from bridge.text import one_line

PIPE_BUF = getattr(select, "PIPE_BUF", 512)
"""Bytes that a pipe found writable takes without blocking (POSIX `write`)."""

QUIET = ("slixmpp", "asyncio", "dotenv", "aiodns", "httpx", "httpcore")
"""Libraries whose own logging is switched off: slixmpp's DEBUG lines hold passwords."""


class StderrHandler(logging.Handler):
    """Writes whole lines to descriptor 2, or drops them whole."""

    def __init__(self, prefix: str, descriptor: int = 2) -> None:
        super().__init__()
        self._prefix = prefix
        self._descriptor = descriptor
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)
        self._dropped = 0
        self._torn = False

    def emit(self, record: logging.LogRecord) -> None:
        """Write each line of `record` as `[Prefix] text`, a warning or worse with its level.

        A record with arguments is one line, whatever they hold; one without may have several. The
        traceback of an exception, which only a log of everything has, follows behind `| `.
        """
        level = f"{record.levelname}: " if record.levelno >= logging.WARNING else ""
        text = level + record.getMessage()
        shown = [text] if record.args else text.split("\n")
        if record.exc_info and self.level <= logging.DEBUG:
            trace = logging.Formatter().formatException(record.exc_info)
            shown += [f"| {line}" for line in trace.split("\n")]
        lines = "".join([f"{self._prefix} {one_line(line)}\n" for line in shown])
        before = "\n" if self._torn else ""  # the start of a line is out; this must not join it
        if self._dropped:
            before += f"{self._prefix} ({self._dropped} lines were dropped: stderr was full)\n"
        data = (before + lines).encode()
        sent = self._write(data)
        if sent:
            self._torn = data[sent - 1 : sent] != b"\n"
        if sent >= len(before):  # which is ASCII
            self._dropped = 0
        self._dropped += data.count(b"\n", max(sent, len(before)))

    def _write(self, data: bytes) -> int:
        """Return how many bytes went out."""
        sent = 0
        try:
            while sent < len(data) and self._poll.poll(0):
                # Whole lines, as far as they are none longer than this.
                end = data.rfind(b"\n", sent, sent + PIPE_BUF) + 1 or sent + PIPE_BUF
                sent += os.write(self._descriptor, data[sent:end])
        except BlockingIOError:  # another process filled the pipe after `poll`
            return sent
        except OSError:
            # There is nobody left to report it to.
            return len(data)
        return sent


def open_log(prefix: str, level: str) -> None:
    """Send this program's log to stderr at `level`, each line behind `prefix`."""
    root = logging.getLogger("bridge")
    # Descriptor 2, if it was closed when we started, may by now be something else of ours.
    root.handlers = [StderrHandler(prefix) if sys.__stderr__ else logging.NullHandler()]
    root.handlers[0].setLevel(level)
    root.setLevel(level)
    root.propagate = False
    for name in QUIET:
        library = logging.getLogger(name)
        library.handlers = [logging.NullHandler()]
        library.propagate = False
        library.setLevel(logging.CRITICAL)


def complain(text: str) -> None:
    """Write plain lines for a person to stderr, whatever the level of the log."""
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(text + "\n")
    except OSError:
        # There is nobody left to report it to. Without the stream, no flush fails when the
        # interpreter ends, which would become the exit code.
        sys.stderr = None


def write_out(text: str) -> OSError | None:
    """Write lines to stdout at once; return why that failed, if it did.

    There is no stdout after that: it would be flushed once more at the end, and fail again.
    Characters that its encoding lacks are escaped.
    """
    if sys.stdout is None:
        return None
    try:
        sys.stdout.buffer.write(f"{text}\n".encode(sys.stdout.encoding, "backslashreplace"))
        sys.stdout.buffer.flush()
    except OSError as error:
        sys.stdout = None
        return error
    return None


def can_print() -> bool:
    """Whether there is a stdout; if not, complain."""
    if sys.stdout is None:
        complain("xmpp-bridge: stdout is closed, so that nothing could be shown")
    return sys.stdout is not None
