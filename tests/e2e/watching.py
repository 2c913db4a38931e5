"""`xmpp-bridge watch`, or a like command, as a child process on a pipe or a terminal."""

import asyncio
import fcntl
import os
import pty
import signal
import struct
import subprocess
import termios
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

from tests.e2e.bridge_process import COMMAND, run_in

SECONDS = 60.0
"""Limit for whatever a test waits for."""

ENOUGH = 1 << 16


def shell(script: str, home: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run a command of ours in a shell, where `"$@"` stands for it."""
    return run_in(home, "/bin/bash", "-c", script, "bash", COMMAND, *arguments)


async def run(
    home: Path, environment: Mapping[str, str], command: str, *arguments: str
) -> tuple[int, str, str]:
    """Run a command of ours on pipes; return the exit code, stdout and stderr."""
    async with Watching(home, environment, *arguments, command=command) as running:
        return await running.ended(), running.out, running.err


class Watching:
    """One run of `watch`, or of another `command`, from `async with` to its end.

    It sees `environment`, PATH and an empty HOME, and nothing else of ours. With `columns` its
    stdout and stderr are a terminal that wide.
    """

    def __init__(
        self,
        home: Path,
        environment: Mapping[str, str],
        *arguments: str,
        command: str = "watch",
        columns: int | None = None,
    ) -> None:
        self._home = home
        self._environment = {"PATH": os.environ["PATH"], "HOME": str(home), **environment}
        self._arguments = (command, *arguments)
        self._columns = columns

        self._seen: dict[int, bytes] = {}
        self._out = self._err = -1
        self._open: set[int] = set()
        self._news = asyncio.Event()
        self._process: asyncio.subprocess.Process | None = None

    @property
    def out(self) -> str:
        """All of its stdout so far; on a terminal with its stderr."""
        return self._seen[self._out].decode().replace("\r\n", "\n")

    @property
    def err(self) -> str:
        return self._seen[self._err].decode().replace("\r\n", "\n")

    @property
    def running(self) -> bool:
        assert self._process is not None
        return self._process.returncode is None

    async def shows(self, text: str) -> None:
        await self._until(text, self._out)

    async def says(self, text: str) -> None:
        await self._until(text, self._err)

    def close_stdout(self) -> None:
        self._close(self._out)

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        # Not `send_signal`, which may take the exit code away from whoever waits for it.
        with suppress(ProcessLookupError):
            os.kill(self._process.pid, number)

    def press(self, keys: bytes) -> None:
        os.write(self._out, keys)

    async def ended(self, seconds: float = SECONDS) -> int:
        """Return the exit code, once it has ended by itself and all that it wrote is read."""
        assert self._process is not None
        try:
            async with asyncio.timeout(seconds):
                code = await self._process.wait()
                while self._open:
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise TimeoutError(f"not ended within {seconds:g} s\n{self._told()}") from None
        return code

    async def __aenter__(self) -> Self:
        self._home.mkdir(parents=True, exist_ok=True)
        if self._columns is None:
            self._out, stdout = os.pipe()
            self._err, stderr = os.pipe()
            theirs = {stdout, stderr}
        else:
            self._out, stdout = pty.openpty()
            self._err, stderr = self._out, stdout
            theirs = {stdout}
            fcntl.ioctl(stdout, termios.TIOCSWINSZ, struct.pack("HHHH", 25, self._columns, 0, 0))
        self._process = await asyncio.create_subprocess_exec(
            COMMAND,
            *self._arguments,
            stdin=asyncio.subprocess.DEVNULL if self._columns is None else stdout,
            stdout=stdout,
            stderr=stderr,
            cwd=self._home,
            env=self._environment,
            start_new_session=True,
            # A controlling terminal, so that its Ctrl-C is a signal.
            preexec_fn=None if self._columns is None else _take_terminal,
        )
        for descriptor in theirs:
            os.close(descriptor)
        for descriptor in {self._out, self._err}:
            self._seen[descriptor] = b""
            self._open.add(descriptor)
            asyncio.get_running_loop().add_reader(descriptor, self._read, descriptor)
        return self

    async def __aexit__(self, _: object, error: BaseException | None, *__: object) -> None:
        assert self._process is not None
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await self._process.wait()
        for descriptor in tuple(self._open):
            self._close(descriptor)
        if error is None:
            assert "Traceback" not in self._told(), self._told()
            assert "Exception" not in self._told(), self._told()
        else:
            error.add_note(self._told())

    def _read(self, descriptor: int) -> None:
        try:
            data = os.read(descriptor, ENOUGH)
        except OSError:  # the terminal's other end is closed
            data = b""
        if data:
            self._seen[descriptor] += data
        else:
            self._close(descriptor)
        self._news.set()

    def _close(self, descriptor: int) -> None:
        asyncio.get_running_loop().remove_reader(descriptor)
        os.close(descriptor)
        self._open.discard(descriptor)

    async def _until(self, text: str, descriptor: int) -> None:
        try:
            async with asyncio.timeout(SECONDS):
                while text not in self._seen[descriptor].decode("utf-8", "replace"):
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise TimeoutError(f"{text!r} did not come\n{self._told()}") from None

    def _told(self) -> str:
        return "\n".join(seen.decode("utf-8", "replace") for seen in self._seen.values())


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
