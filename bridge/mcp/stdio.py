"""Descriptors 0 and 1, claimed for MCP so that nothing else can speak or listen there.

Whatever a library prints goes to stderr; a child process inherits an empty stdin. Reads and
writes never block the loop, and no thread is left waiting at exit.
"""

import asyncio
import fcntl
import os
import select
import stat
import sys
from collections import deque
from collections.abc import AsyncIterator

READ_BYTES = 64 * 1024
"""The most taken in one turn of the loop, so that a pipe full of calls starves nobody else."""

MAX_UNSENT_BYTES = 4 * 1024 * 1024
"""Replies waiting for a client that does not read; beyond it no further request is read."""


class StdioError(Exception):
    """There is no stdout to answer on."""


class Stdio:
    """Bytes in and out, over the descriptors the process was started with."""

    def __init__(self, reading: int | None, writing: int) -> None:
        self._reading = reading
        self._writing = writing
        self._unsent: deque[memoryview] = deque()
        self._unsent_bytes = 0
        self._writable = asyncio.Event()
        self._writable.set()
        self.broken = asyncio.Event()
        """Set when the client has closed its end: nobody reads any more."""

    @classmethod
    def claim(cls) -> "Stdio":
        """Take descriptors 0 and 1; from here on 0 is empty and 1 is stderr.

        A closed stdin is an empty one; raises `StdioError` when stdout is closed.
        """
        # A descriptor that was closed when the interpreter started may by now be something of
        # ours, such as the loop's own: then it is left alone.
        if sys.__stdout__ is None:
            raise StdioError("stdout is closed, so no answer could be read")
        outward = _duplicate(1)
        inward = None if sys.__stdin__ is None else _duplicate(0)
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(2 if sys.__stderr__ is not None else nothing, 1)
        if inward is not None:
            os.dup2(nothing, 0)
        if nothing > 2:
            os.close(nothing)
        else:  # it fills a gap that child processes would inherit
            os.set_inheritable(nothing, True)
        return cls(inward, _unblock(outward))

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield what comes in until its end, pausing while the client does not read replies."""
        if self._reading is not None:
            async for chunk in read_chunks(self._reading):
                yield chunk
                await self.ready()

    async def ready(self) -> None:
        """Wait while the client leaves more replies unread than `MAX_UNSENT_BYTES`."""
        await self._writable.wait()

    def write(self, data: bytes) -> None:
        """Send `data` after all that was written before; what does not fit waits in memory."""
        if self.broken.is_set() or not data:
            return
        if not self._unsent:
            try:
                sent = os.write(self._writing, data)
            except BlockingIOError:
                sent = 0
            except OSError:
                self._break()
                return
            if sent == len(data):
                return
            data = data[sent:]
            asyncio.get_running_loop().add_writer(self._writing, self._send_more)
        self._unsent.append(memoryview(data))
        self._unsent_bytes += len(data)
        if self._unsent_bytes > MAX_UNSENT_BYTES:
            self._writable.clear()

    async def flush(self) -> None:
        """Wait until all that was written is sent, or nobody reads any more."""
        while self._unsent and not self.broken.is_set():
            self._writable.clear()
            await self._writable.wait()

    def close(self) -> None:
        """Give the descriptors back."""
        self._break()
        os.close(self._writing)
        if self._reading is not None:
            os.close(self._reading)

    def _send_more(self) -> None:
        try:
            while self._unsent:
                head = self._unsent[0]
                sent = os.write(self._writing, head)
                self._unsent_bytes -= sent
                if sent < len(head):
                    self._unsent[0] = head[sent:]
                    return
                self._unsent.popleft()
        except BlockingIOError:
            return
        except OSError:
            self._break()
            return
        asyncio.get_running_loop().remove_writer(self._writing)
        self._writable.set()

    def _break(self) -> None:
        if self._unsent:
            asyncio.get_running_loop().remove_writer(self._writing)
        self._unsent.clear()
        self._unsent_bytes = 0
        self.broken.set()
        self._writable.set()


async def read_chunks(descriptor: int) -> AsyncIterator[bytes]:
    """Yield what comes from a pipe, socket, terminal or file, without blocking the loop."""
    now = select.poll()
    now.register(descriptor, select.POLLIN)
    while True:
        await _becomes_readable(descriptor)
        if not now.poll(0):
            # Another process that shares the descriptor took the bytes; this read would block.
            continue
        try:
            data = os.read(descriptor, READ_BYTES)
        except BlockingIOError:
            continue
        except OSError:  # a terminal that hung up
            return
        if not data:
            return
        yield data


async def _becomes_readable(descriptor: int) -> None:
    """Listen only as long as somebody waits: the loop spins on bytes that nobody takes."""
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    try:
        loop.add_reader(descriptor, readable.set)
    except PermissionError:  # a regular file or /dev/null, which epoll does not take
        await asyncio.sleep(0)  # others get their turn
        return
    try:
        await readable.wait()
    finally:
        loop.remove_reader(descriptor)


def _duplicate(descriptor: int) -> int:
    """Return a duplicate above the standard three, whichever of those are free."""
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)


def _unblock(descriptor: int) -> int:
    """Return a descriptor for the same pipe or socket that does not block when full.

    `O_NONBLOCK` belongs to the open file, which our stderr or the user's shell may share; a
    pipe can be opened anew on Linux, so that the flag is ours alone. Terminals and files stay
    as they are.
    """
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISFIFO(mode):
        try:
            own = os.open(f"/proc/self/fd/{descriptor}", os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # not Linux, or the pipe is another user's, or nobody reads
            os.set_blocking(descriptor, False)
        else:
            os.close(descriptor)
            return own
    elif stat.S_ISSOCK(mode):
        os.set_blocking(descriptor, False)
    return descriptor
