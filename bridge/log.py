"""The log that people read: prefixed lines on stderr, and nothing of it ever on stdout.

A client that does not drain stderr must not stop the bridge: a line that does not fit into the
pipe is dropped and counted, never waited for.
"""

import logging
import os
import select
import sys

PIPE_BUF = getattr(select, "PIPE_BUF", 512)
"""Bytes that a pipe found writable takes without blocking (POSIX `write`)."""

QUIET = ("slixmpp", "asyncio", "dotenv", "aiodns", "httpx", "httpcore")
"""Libraries whose own words do not belong here: slixmpp's DEBUG lines hold passwords."""


class StderrHandler(logging.Handler):
    """Writes whole lines to descriptor 2, or drops them whole."""

    def __init__(self, prefix: str, descriptor: int = 2) -> None:
        super().__init__()
        self._prefix = prefix
        self._descriptor = descriptor
        self._dropped = 0
        self._torn = False

    def emit(self, record: logging.LogRecord) -> None:
        """Write `record` as `[Prefix] text`, the level named where it is a warning or worse."""
        level = f"{record.levelname}: " if record.levelno >= logging.WARNING else ""
        line = f"{self._prefix} {level}{record.getMessage()}\n"
        if record.exc_info:
            line += logging.Formatter().formatException(record.exc_info) + "\n"
        if self._dropped:
            line = f"{self._prefix} ({self._dropped} lines were dropped: stderr was full)\n{line}"
        if self._torn:  # the start of a line is out; this one must not join it
            line = f"\n{line}"
        data = line.encode("utf-8", "backslashreplace")
        if sent := self._write(data):
            self._torn = sent < len(data)
            self._dropped = int(self._torn)
        else:
            self._dropped += 1

    def _write(self, data: bytes) -> int:
        """Return how many bytes went out."""
        poll = select.poll()
        poll.register(self._descriptor, select.POLLOUT)
        sent = 0
        try:
            while sent < len(data) and poll.poll(0):
                sent += os.write(self._descriptor, data[sent : sent + PIPE_BUF])
        except BlockingIOError:  # somebody else filled what `poll` saw empty
            return sent
        except OSError:
            # Nobody can be told that nobody listens.
            return len(data)
        return sent


def open_log(prefix: str, level: str) -> None:
    """Send this program's log to stderr at `level`, each line behind `prefix`."""
    root = logging.getLogger("bridge")
    # Descriptor 2, if it was closed when we started, may by now be something else of ours.
    root.handlers = [StderrHandler(prefix) if sys.__stderr__ else logging.NullHandler()]
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
        # Nobody can be told that nobody listens; nor need a flush at the end fail, and be the exit
        # code.
        sys.stderr = None
