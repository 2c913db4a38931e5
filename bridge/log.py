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

QUIET = ("slixmpp", "asyncio", "dotenv", "aiodns")
"""Libraries whose own words do not belong here: slixmpp's DEBUG lines hold passwords."""


class StderrHandler(logging.Handler):
    """Writes whole lines to descriptor 2, or drops them whole."""

    def __init__(self, prefix: str, descriptor: int = 2) -> None:
        super().__init__()
        self._prefix = prefix
        self._descriptor = descriptor
        self._dropped = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Write `record` as `[Prefix] text`, the level named where it is a warning or worse."""
        level = f"{record.levelname}: " if record.levelno >= logging.WARNING else ""
        line = f"{self._prefix} {level}{record.getMessage()}\n"
        if record.exc_info:
            line += logging.Formatter().formatException(record.exc_info) + "\n"
        if self._dropped:
            line = f"{self._prefix} ({self._dropped} lines were dropped: stderr was full)\n{line}"
        if self._write(line.encode("utf-8", "backslashreplace")):
            self._dropped = 0
        else:
            self._dropped += 1

    def _write(self, data: bytes) -> bool:
        poll = select.poll()
        try:
            poll.register(self._descriptor, select.POLLOUT)
            for start in range(0, len(data), PIPE_BUF):
                if not poll.poll(0):
                    # The start of a line is out already; its end must not join the next line.
                    return start > 0
                os.write(self._descriptor, data[start : start + PIPE_BUF])
        except OSError:
            # Nobody can be told that nobody listens.
            return True
        return True


def open_log(prefix: str, level: str) -> None:
    """Send this program's log to stderr at `level`, each line behind `prefix`."""
    root = logging.getLogger("bridge")
    root.handlers = [StderrHandler(prefix)]
    root.setLevel(level)
    root.propagate = False
    for name in QUIET:
        library = logging.getLogger(name)
        library.handlers = [logging.NullHandler()]
        library.propagate = False
        library.setLevel(logging.CRITICAL)


def complain(text: str) -> None:
    """Write plain lines for a person to stderr, whatever the level of the log."""
    if sys.stderr is not None:
        sys.stderr.write(text + "\n")
