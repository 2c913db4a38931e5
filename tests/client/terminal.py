"""A command in a pseudo-terminal, most often the client, and what a person does and sees."""

import codecs
import fcntl
import os
import pty
import re
import signal
import subprocess
import termios
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from select import select
from time import monotonic
from typing import IO, Self

from tests.e2e.bridge_process import COMMAND
from tests.views.screen import Screen

GREETING = 'Connected! Type a message or "help" for commands.'
SECONDS = 60.0
"""Limit for one whole run; the greeting waits 10 s for the room at most."""
ENOUGH = 1 << 16
COLUMNS = 100


ECHOING = ("--", COMMAND, "serve", "--sandbox")
"""The client of a bridge in its sandbox, where a line is echoed: no chat."""


class Terminal:
    """A person's place: keys go in, a screen comes out.

    stderr goes to the same terminal unless `stderr` says otherwise.
    """

    def __init__(
        self,
        home: Path,
        arguments: Sequence[str],
        environment: Mapping[str, str] | None = None,
        *,
        command: str = "client",
        term: str = "xterm",
        columns: int = COLUMNS,
        stdin: int | None = None,
        stderr: "IO[bytes] | int | None" = None,
    ) -> None:
        self.seen = ""
        """What was written and not yet asked for."""
        self.written = ""
        """All that was ever written."""
        self.screen = Screen(columns)
        is_chat = "--sandbox" in arguments and "--" not in arguments and command == "client"
        self.prompt = "say> " if is_chat else "echo> "
        """What stands before what is typed."""
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._controller, terminal = pty.openpty()
        termios.tcsetwinsize(terminal, (40, columns))
        self.modes_before = self.modes
        self.process = subprocess.Popen(
            [COMMAND, command, *arguments],
            stdin=terminal if stdin is None else stdin,
            stdout=terminal,
            stderr=terminal if stderr is None else stderr,
            cwd=home,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(home),
                "TERM": term,
                **(environment or {}),
            },
            start_new_session=True,
            # As a login does it, so that Ctrl-C is a signal.
            preexec_fn=lambda: fcntl.ioctl(1, termios.TIOCSCTTY, 0),
        )
        os.close(terminal)

    @property
    def modes(self) -> list[object]:
        """The attributes of the terminal: raw, cooked, with echo or without (POSIX `termios`)."""
        return termios.tcgetattr(self._controller)

    def hang_up(self) -> None:
        """Close the window."""
        os.close(self._controller)
        self._controller = os.open(os.devnull, os.O_RDWR)

    def clear(self) -> None:
        """Forget what was written so far."""
        self.seen = self.written = ""
        self.screen = Screen(COLUMNS)

    def type(self, keys: str) -> None:
        """Press these keys."""
        os.write(self._controller, keys.encode())

    def until(self, text: str) -> str:
        """Return all that was written up to and with this text."""
        self._wait(lambda: text in self.seen, f"{text!r} did not come")
        before, _, self.seen = self.seen.partition(text)
        return before + text

    def shows(self, text: str) -> None:
        """Return once a line on the screen holds this text."""
        self._wait(
            lambda: any(text in line for line in self.screen.lines), f"{text!r} is not shown"
        )

    def tells(self, event: str) -> None:
        """Return once the news, and not only the server's log, tell of this event."""
        news = re.compile(rf"\d{{4}}-\S+Z {re.escape(event)}")
        self._wait(
            lambda: any(news.match(line) for line in self.screen.lines), f"no news of {event!r}"
        )

    def prompts(self, typed: str = "") -> None:
        """Return once the cursor stands behind the prompt and what is typed there."""
        self.asks(f"{self.prompt}{typed}")

    def asks(self, question: str) -> None:
        """Return once the cursor stands behind this question."""
        self._wait(lambda: self.screen.cursor_line == question, f"no {question!r} at the cursor")

    def ends_with(self, question: str) -> None:
        """Return once the screen ends with this question, in however many lines."""
        wanted = "".join(question.split())
        self._wait(
            lambda: "".join("".join(self.screen.lines).split()).endswith(wanted),
            f"no {question!r} at the end",
        )

    def end(self) -> int:
        """Return the exit code, once it has ended by itself."""
        deadline = monotonic() + SECONDS
        while self._read(deadline - monotonic()):
            pass
        return self.process.wait(SECONDS)

    def close(self) -> None:
        """End it, if it has not ended."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self._controller)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *why: object) -> None:
        self.close()

    def _wait(self, satisfied: Callable[[], bool], complaint: str) -> None:
        deadline = monotonic() + SECONDS
        while not satisfied():
            if not self._read(deadline - monotonic()):
                shown = "\n".join(self.screen.lines)
                raise AssertionError(f"{complaint}: {self.seen!r}\n{shown}")

    def _read(self, seconds: float) -> bool:
        if seconds <= 0 or not select([self._controller], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self._controller, ENOUGH)
        except OSError:  # the terminal's other end is closed
            return False
        text = self._decode(data)
        self.screen.feed(text)
        self.written += text
        self.seen += text.replace("\r\n", "\n")
        return bool(data)
