"""Writes the live output of a command in a thread, so that the event loop never waits.

A pager that waits for a key, or a stopped terminal, would block the loop. Then Ctrl-C would have no
effect, and the server would get no answers, without which we do not stay in the room.
"""

import asyncio
import fcntl
import os
import select
import stat
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import TextIO

from bridge.logs import READER_GONE
from bridge.text import counted
from bridge.views.screen import Display, has_colour

MAX_WAITING_BYTES = 16_000_000
"""The most bytes that wait for a reader; a text beyond them is dropped, and counted."""

CLOSING_SECONDS = 1.0
"""How long `close` waits for a reader to take the last texts."""

USUAL_COLUMNS = 80
"""The width of a terminal that does not tell its width."""


def display_of(stream: TextIO) -> Display:
    """Return how lines are shown in a stream."""
    terminal = stream.isatty()

    def columns() -> int | None:
        with suppress(OSError):  # it hung up
            return os.get_terminal_size(stream.fileno()).columns or USUAL_COLUMNS
        return USUAL_COLUMNS

    coloured = has_colour(terminal=terminal, environ=os.environ)
    return Display(coloured, columns) if terminal else Display(coloured)


class Output:
    """Writes to stdout, and notices to stderr, in the order in which they were given."""

    def __init__(self, stdout: TextIO, stderr: TextIO | None, on_end: Callable[[], None]) -> None:
        """Without `stderr` there are no notices.

        `on_end` is called in the running loop when stdout cannot be written any more.
        """
        self._stdout = stdout.fileno()
        self._stderr = None if stderr is None else stderr.fileno()
        self._encoding = stdout.encoding
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[tuple[int, bytes] | None] = SimpleQueue()
        self._enqueued = 0
        self._written = 0
        """Bytes that the thread has written; only the thread changes it."""
        self._dropped = 0
        self.error: OSError | None = None
        """The error that ended the writing to stdout; None if its reader just left."""
        self._thread = Thread(target=self._write_all, name="output", daemon=True)
        self._thread.start()
        if _is_writing_end_of_pipe(self._stdout):  # `| head` may end while nothing is written
            self._loop.add_reader(self._stdout, self._end)

    def write(self, text: str) -> None:
        """Write `text` and a line break to stdout."""
        self._enqueue(self._stdout, text)

    def write_notice(self, text: str) -> None:
        """Write `text` and a line break to stderr."""
        if self._stderr is not None:
            self._enqueue(self._stderr, text)

    def close(self) -> None:
        """Write the texts that still wait, for `CLOSING_SECONDS` at most."""
        self._loop.remove_reader(self._stdout)
        self._queue.put(None)
        self._thread.join(CLOSING_SECONDS)

    def _enqueue(self, descriptor: int, text: str) -> None:
        data = f"{text}\n".encode(self._encoding, "backslashreplace")
        if self._enqueued - self._written + len(data) > MAX_WAITING_BYTES:
            self._dropped += 1
            return
        self._enqueued += len(data)
        if self._dropped:
            dropped, self._dropped = self._dropped, 0
            left = counted(dropped, "text")
            self.write_notice(f"[Client] WARNING: dropped {left}, since nobody read them")
        self._queue.put((descriptor, data))

    def _write_all(self) -> None:
        for descriptor, data in iter(self._queue.get, None):
            try:
                _write(descriptor, data)
            except OSError as error:
                if descriptor == self._stdout:
                    self.error = None if error.errno in READER_GONE else error
                    with suppress(RuntimeError):  # the loop ended before the thread did
                        self._loop.call_soon_threadsafe(self._end)
                    return
            self._written += len(data)

    def _end(self) -> None:
        self._loop.remove_reader(self._stdout)
        self._on_end()


def _write(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        try:
            left = left[os.write(descriptor, left) :]
        except BlockingIOError:  # another program made the descriptor non-blocking
            select.select((), (descriptor,), ())


def _is_writing_end_of_pipe(descriptor: int) -> bool:
    flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
    return stat.S_ISFIFO(os.fstat(descriptor).st_mode) and flags & os.O_ACCMODE == os.O_WRONLY
