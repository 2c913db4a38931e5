"""Standard input and output, claimed for MCP so that nothing else reads or writes there.

If a library prints, its output goes to stderr. A child process inherits an empty stdin. Reads, and
writes to pipes and sockets, never block the event loop. No thread is left waiting at exit.
"""

import asyncio
import fcntl
import os
import select
import stat
import sys
from collections.abc import AsyncIterator

from bridge.mcp.errors import McpError

READ_BYTES = 64 * 1024
"""The most bytes read in one turn of the event loop, so that other tasks run even if the pipe is
always full."""

MAX_UNSENT_BYTES = 4 * 1024 * 1024
"""The most bytes of output that may wait for the client to read them. With more, we read no further
input until all of them are sent."""


class StdioError(McpError):
    """Standard output is closed, so no reply could be sent."""


class Stdio:
    """The stdin and stdout that the process was started with."""

    def __init__(self, reading: int, writing: int) -> None:
        self._reading = reading
        self._writing = writing
        self._unsent = bytearray()
        self._writable = asyncio.Event()
        self._writable.set()
        self.broken = asyncio.Event()
        """Set when the client has closed its end and reads no more."""

    @classmethod
    def claim(cls) -> "Stdio":
        """Take descriptors 0 and 1; from here on 0 is empty and 1 is stderr.

        A closed stdin counts as an empty one. Raises `StdioError` if stdout is closed.
        """
        # If a descriptor was closed when the interpreter started, we leave it alone. Its number may
        # be in use again, for example by the event loop.
        if sys.__stdout__ is None:
            raise StdioError("stdout is closed, so no reply could be sent")
        stdout = _duplicate(1)
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(2 if sys.__stderr__ is not None else nothing, 1)
        if sys.__stdin__ is None:
            stdin = _duplicate(nothing)
        else:
            stdin = _reopened(_duplicate(0), os.O_RDONLY)
            os.dup2(nothing, 0)
        if nothing > 2:
            os.close(nothing)
        else:  # one of 0 to 2 was closed: keep it open for child processes too
            os.set_inheritable(nothing, True)
        return cls(stdin, _unblock(stdout))

    @property
    def is_terminal(self) -> bool:
        """Whether the input is a terminal, on which a person types."""
        return os.isatty(self._reading)

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the input until its end; pause while the client does not read our output."""
        async for chunk in read_chunks(self._reading):
            yield chunk
            await self.ready()

    async def ready(self) -> None:
        """If more than `MAX_UNSENT_BYTES` are unsent, wait until all of them are sent."""
        await self._writable.wait()

    def write(self, data: bytes) -> None:
        """Send `data` after everything written before; data that does not fit waits in memory."""
        if self.broken.is_set():
            return
        waiting = bool(self._unsent)
        self._unsent += data
        if not waiting:
            self._send()
        if len(self._unsent) > MAX_UNSENT_BYTES:
            self._writable.clear()

    async def flush(self) -> None:
        """Wait until everything written is sent, or the client has closed its end."""
        while self._unsent and not self.broken.is_set():
            self._writable.clear()
            await self._writable.wait()

    def close(self) -> None:
        """Close both descriptors; unsent data is lost."""
        self._break()
        os.close(self._writing)
        os.close(self._reading)

    def _send(self) -> None:
        try:
            while self._unsent:
                del self._unsent[: os.write(self._writing, self._unsent)]
        except BlockingIOError:
            asyncio.get_running_loop().add_writer(self._writing, self._send_on)
        except OSError:
            self._break()
        else:
            self._writable.set()

    def _send_on(self) -> None:
        asyncio.get_running_loop().remove_writer(self._writing)
        self._send()

    def _break(self) -> None:
        if self._unsent:
            asyncio.get_running_loop().remove_writer(self._writing)
        self._unsent.clear()
        self.broken.set()
        self._writable.set()


async def read_chunks(descriptor: int) -> AsyncIterator[bytes]:
    """Yield the data from a pipe, socket, terminal or file, without blocking the loop.

    The callback that reports input reads it at once, and only while the consumer awaits a chunk.
    """
    loop = asyncio.get_running_loop()
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    may_block = os.get_blocking(descriptor)
    listening = False

    def read() -> None:
        nonlocal listening
        if awaited.done():
            # The consumer awaits no chunk. The loop would call this again and again for the same
            # input.
            listening = False
            loop.remove_reader(descriptor)
        # If there is nothing, another process that shares the descriptor has taken the input.
        elif not may_block or poller.poll(0):
            try:
                awaited.set_result(os.read(descriptor, READ_BYTES))
            except BlockingIOError:
                return
            except OSError:  # a terminal that hung up
                awaited.set_result(b"")

    try:
        while True:
            awaited: asyncio.Future[bytes] = loop.create_future()
            if not listening:
                try:
                    loop.add_reader(descriptor, read)
                    listening = True
                except PermissionError:  # a regular file or /dev/null, which epoll does not take
                    loop.call_soon(read)
            if not (data := await awaited):
                return
            yield data
    finally:
        loop.remove_reader(descriptor)


def _duplicate(descriptor: int) -> int:
    """Return a duplicate with a number above 2, even if 0, 1 or 2 is free."""
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)


def _unblock(descriptor: int) -> int:
    """Return a descriptor for the same pipe or socket that does not block when full.

    Terminals and files stay as they are.
    """
    own = _reopened(descriptor, os.O_WRONLY)
    kind = os.fstat(own).st_mode
    if stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind):
        os.set_blocking(own, False)
    return own


def _reopened(descriptor: int, mode: int) -> int:
    """Return a descriptor for the same pipe that does not block, or else the given one as it is.

    `O_NONBLOCK` belongs to the open file, which our stderr or the user's shell may share. On Linux
    a pipe can be opened anew. Then the flag is ours alone.
    """
    if not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
        return descriptor
    try:
        own = os.open(f"/proc/self/fd/{descriptor}", mode | os.O_NONBLOCK)
    except OSError:  # not Linux, or the pipe is another user's, or has no reader
        return descriptor
    os.close(descriptor)
    return own
