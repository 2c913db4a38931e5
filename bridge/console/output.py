"""What a command that follows something writes, without keeping the event loop waiting.

A pager that stands still or a stopped terminal would stop the loop, and with it Ctrl-C and the
answers that keep us in the room; so a thread waits for them instead.
"""

import asyncio
import errno
import fcntl
import os
import select
import stat
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Lock, Thread

MAX_WAITING_BYTES = 16_000_000
"""Of what nobody has read yet; beyond, pieces are dropped whole, and counted."""

GOODBYE_SECONDS = 1.0
"""How long the last words may take to a reader who stands still."""

READER_GONE = frozenset({errno.EPIPE, errno.EIO, errno.ECONNRESET})
"""What writing fails with when nobody is left to read: not worth a word."""


USUAL_SIZE = os.terminal_size((80, 24))
"""Of a terminal that does not say how large it is."""


def terminal_size(descriptor: int) -> os.terminal_size:
    """Return how many columns and lines a terminal has now."""
    try:
        size = os.get_terminal_size(descriptor)
    except OSError:  # it hung up
        return USUAL_SIZE
    return os.terminal_size((size.columns or USUAL_SIZE.columns, size.lines or USUAL_SIZE.lines))


class Output:
    """The descriptors that are written to, in the order in which things were said."""

    def __init__(
        self,
        descriptor: int,
        beside: int | None,
        ended: Callable[[], None],
        *,
        encoding: str = "utf-8",
        max_waiting: int = MAX_WAITING_BYTES,
    ) -> None:
        """`descriptor` is for the matter, `beside` for words about it.

        `ended` is called in the running loop when the matter cannot be written any more.
        """
        self._encoding = encoding
        self._max_waiting = max_waiting
        self._descriptor = descriptor
        self._beside = beside
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[tuple[int, bytes] | asyncio.Event | None] = SimpleQueue()
        self._settled = asyncio.Event()
        self._lock = Lock()
        self._waiting = 0
        self._dropped = 0
        self.error: OSError | None = None
        """Why nothing can be written any more, unless the reader just left."""
        self._thread = Thread(target=self._write_all, name="output", daemon=True)
        self._thread.start()
        self._watching = _is_writing_end_of_pipe(descriptor)
        if self._watching:  # `| head` has seen enough, even if nothing more happens
            self._loop.add_reader(descriptor, self._end)

    def put(self, text: str) -> None:
        """Write one piece of the matter, as whole lines."""
        self._enqueue(self._descriptor, text)

    def say(self, text: str) -> None:
        """Write words about the matter, as whole lines."""
        if self._beside is not None:
            self._enqueue(self._beside, text)

    async def settled(self) -> None:
        """Return once all the matter is written, or cannot be any more; a reader has all the time.

        Nothing is put after that.
        """
        self._queue.put(self._settled)
        await self._settled.wait()

    def close(self) -> None:
        """Write what still waits, as far as somebody reads."""
        if self._watching:
            self._loop.remove_reader(self._descriptor)
        self._queue.put(None)
        self._thread.join(GOODBYE_SECONDS)

    def _enqueue(self, descriptor: int, text: str) -> None:
        data = f"{text}\n".encode(self._encoding, "backslashreplace")
        with self._lock:
            if self._waiting + len(data) > self._max_waiting:
                self._dropped += 1
                return
            self._waiting += len(data)
            dropped, self._dropped = self._dropped, 0
        if dropped and self._beside is not None:
            notice = f"[Client] WARNING: {dropped} pieces were dropped: nobody read on\n"
            self._queue.put((self._beside, notice.encode()))
        self._queue.put((descriptor, data))

    def _write_all(self) -> None:
        while (piece := self._queue.get()) is not None:
            if isinstance(piece, asyncio.Event):
                with suppress(RuntimeError):  # the loop ended before we did
                    self._loop.call_soon_threadsafe(piece.set)
                continue
            descriptor, data = piece
            try:
                _write(descriptor, data)
            except OSError as error:
                if descriptor == self._descriptor:
                    self.error = None if error.errno in READER_GONE else error
                    with suppress(RuntimeError):  # the loop ended before we did
                        self._loop.call_soon_threadsafe(self._end)
                    return
            with self._lock:
                self._waiting -= len(data)

    def _end(self) -> None:
        if self._watching:
            self._loop.remove_reader(self._descriptor)
            self._watching = False
        self._settled.set()
        self._ended()


def _write(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        try:
            left = left[os.write(descriptor, left) :]
        except BlockingIOError:  # another program made it so that it does not block
            _await_writable(descriptor)


def _await_writable(descriptor: int) -> None:
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    poll.poll()


def _is_writing_end_of_pipe(descriptor: int) -> bool:
    flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
    return stat.S_ISFIFO(os.fstat(descriptor).st_mode) and flags & os.O_ACCMODE == os.O_WRONLY
