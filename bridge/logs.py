"""Writes the log that people read: prefixed lines on stderr or in a file, and nothing on stdout.

A client that does not read stderr must not stop the bridge: a line that does not fit into the
pipe is dropped and counted, never waited for.
"""

import errno
import fcntl
import logging
import os
import select
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from bridge.files import open_private
from bridge.text import counted, iso, one_line

PIPE_BUF = getattr(select, "PIPE_BUF", 512)
"""The number of bytes that a pipe takes without blocking if `poll` says that it can be written
(POSIX `write`)."""

QUIET = ("slixmpp", "asyncio", "dotenv", "aiodns", "httpx", "httpcore", "psycopg")
"""Libraries whose own logging is switched off: slixmpp's DEBUG lines hold passwords."""


READER_GONE = frozenset({errno.EPIPE, errno.EIO, errno.ECONNRESET})
"""The errors of writing to a reader that has left. That it has left is no failure."""

TIMED = {"timed": True}
"""The `extra` of a record whose lines already begin with a time, such as events of a room."""

APPENDING = os.O_WRONLY | os.O_APPEND

MAX_FILE_BYTES = 64 * 1024 * 1024
"""The largest size of the log's file. A full file is renamed to `name.1`, in place of the former
`name.1`."""


def lines_of(record: logging.LogRecord, prefix: str, *, traced: bool) -> list[str]:
    """Return the lines of `record` as `prefix text`; a warning or worse also has its level.

    A record with arguments is one line, whatever they hold. A record without arguments may have
    several. If it is `traced`, the traceback of its exception follows, with `| ` before each line.
    """
    level = f"{record.levelname}: " if record.levelno >= logging.WARNING else ""
    text = level + record.getMessage()
    lines = [text] if record.args else text.split("\n")
    if record.exc_info and traced:
        trace = logging.Formatter().formatException(record.exc_info)
        lines += [f"| {line}" for line in trace.split("\n")]
    return [f"{prefix} {one_line(line)}" for line in lines]


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
        """Write the lines of `record`; only a log at DEBUG gets tracebacks."""
        traced = self.level <= logging.DEBUG
        lines = "".join([f"{line}\n" for line in lines_of(record, self._prefix, traced=traced)])
        before = "\n" if self._torn else ""  # only the start of the last line was written
        if self._dropped:
            lost = counted(self._dropped, "line")
            before += f"{self._prefix} (dropped {lost}: stderr was full)\n"
        data = (before + lines).encode()
        sent = self._write(data)
        if sent:
            self._torn = data[sent - 1 : sent] != b"\n"
        if sent >= len(before):  # it is ASCII, a byte for each character
            self._dropped = 0
        self._dropped += data.count(b"\n", max(sent, len(before)))

    def _write(self, data: bytes) -> int:
        """Return how many bytes went out."""
        sent = 0
        try:
            while sent < len(data) and self._poll.poll(0):
                # Write whole lines; only a line that is longer than `PIPE_BUF` is divided.
                end = data.rfind(b"\n", sent, sent + PIPE_BUF) + 1 or sent + PIPE_BUF
                sent += os.write(self._descriptor, data[sent:end])
        except BlockingIOError:  # another process filled the pipe after `poll`
            return sent
        except OSError:
            # Stderr is gone: there is nowhere to report it.
            return len(data)
        return sent


class FileHandler(logging.Handler):
    """Appends whole lines, each with its time, to a file for its owner alone.

    Other processes may append to the same file.
    """

    def __init__(self, prefix: str, path: Path, max_bytes: int = MAX_FILE_BYTES) -> None:
        """Open the file; raises `OSError` where it cannot be written safely."""
        super().__init__(logging.DEBUG)
        self._prefix = prefix
        self._path = path
        self._max_bytes = max_bytes
        self._descriptor = open_private(path, APPENDING)

    def emit(self, record: logging.LogRecord) -> None:
        """Append the lines of `record`."""
        began = "" if hasattr(record, "timed") else f" {iso(record.created)}"
        self.add(*lines_of(record, f"{self._prefix}{began}", traced=True))

    def report(self, line: str) -> None:
        """Append a line that has the prefix already."""
        self.add(f"{self._prefix} {iso(time.time())}{line.removeprefix(self._prefix)}")

    def add(self, *lines: str) -> bool:
        """Append lines as they are, and return whether that was done.

        If it fails they are lost: a log must not stop the bridge.
        """
        data = b"".join(line.encode() + b"\n" for line in lines)
        with suppress(OSError):
            if self._is_over(len(data)):
                with suppress(BlockingIOError):  # another process begins anew just now
                    self._begin_anew(len(data))
            return os.write(self._descriptor, data) == len(data)
        return False

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        super().close()

    def _is_over(self, more: int) -> bool:
        """Whether the file is full, or is not at its path any more: another process moved it."""
        held = os.fstat(self._descriptor)
        return held.st_size + more > self._max_bytes or not self._at(held)

    def _at(self, held: os.stat_result) -> bool:
        with suppress(FileNotFoundError):
            return os.path.samestat(held, self._path.lstat())
        return False

    def _begin_anew(self, more: int) -> None:
        """Rename the full file, unless another process has done so, and open the file at the path.

        Raises `BlockingIOError` while another process does so.
        """
        fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        held = os.fstat(self._descriptor)
        if held.st_size + more > self._max_bytes and self._at(held):
            try:
                self._path.replace(self._path.with_name(f"{self._path.name}.1"))
            except OSError:  # if it cannot be renamed, it is emptied
                os.ftruncate(self._descriptor, 0)
        full, self._descriptor = self._descriptor, open_private(self._path, APPENDING)
        os.close(full)  # and with it the lock


def open_log(prefix: str, level: str, path: Path | None = None) -> str | None:
    """Send this program's log, with `prefix` on each line, to stderr at `level`; all to `path`.

    Return a warning if `path` cannot be written.
    """
    root = logging.getLogger("bridge")
    # If descriptor 2 was closed when we started, another file of ours may have that number now.
    root.handlers = [StderrHandler(prefix) if sys.__stderr__ else logging.NullHandler()]
    root.handlers[0].setLevel(level)
    root.setLevel(level)
    root.propagate = False
    problem = None
    if path is not None:
        try:
            root.handlers.append(FileHandler(prefix, path))
            root.setLevel(logging.DEBUG)
        except OSError as error:
            why = error.strerror or error
            problem = f"BRIDGE_LOG_FILE leads to {str(path)!r}, which cannot be written: {why}"
    for name in QUIET:
        library = logging.getLogger(name)
        library.handlers = [logging.NullHandler()]
        library.propagate = False
    return problem


def complain(text: str) -> None:
    """Write plain lines for a person to stderr, whatever the level of the log."""
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(text + "\n")
    except OSError:
        # There is nowhere left to report it. The interpreter must not flush the stream at its
        # end: if that failed too, it would decide the exit code.
        sys.stderr = None


def report(line: str) -> None:
    """Write a line for a person to stderr and the log's file, whatever the level of the log."""
    complain(line)
    for handler in logging.getLogger("bridge").handlers:
        if isinstance(handler, FileHandler):
            handler.report(line)


def write_out(*pieces: str) -> OSError | None:
    """Write pieces of text and a line's end to stdout at once; return why that failed, if it did.

    After a failure `sys.stdout` is None: the interpreter would flush it at its end, and fail again.
    Characters that its encoding lacks are escaped.
    """
    if sys.stdout is None:
        return None
    try:
        for piece in (*pieces, "\n"):
            sys.stdout.buffer.write(piece.encode(sys.stdout.encoding, "backslashreplace"))
        sys.stdout.buffer.flush()
    except OSError as error:
        sys.stdout = None
        return error
    return None


def show(lines: Sequence[str]) -> bool:
    """Write lines to stdout at once, and return whether that went well; else complain."""
    return not complain_of(write_out("\n".join(lines)))


def complain_of(error: OSError | None) -> bool:
    """Write to stderr why stdout cannot be written; return False if that is no failure.

    It is no failure if the reader has left.
    """
    if error is None or error.errno in READER_GONE:
        return False
    complain(f"xmpp-bridge: stdout cannot be written: {error.strerror}")
    return True


def can_print() -> bool:
    """Whether there is a stdout; if not, complain."""
    if sys.stdout is None:
        complain("xmpp-bridge: stdout is closed, so that nothing could be shown")
    return sys.stdout is not None
