"""Where lines are typed and answers shown: a pipe, or a terminal that cannot move its cursor."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Callable
from typing import Protocol

from bridge.console import formatting
from bridge.console.arguments import Parameter
from bridge.console.errors import InputCancelledError
from bridge.console.formatting import Answer
from bridge.logs import complain
from bridge.mcp.stdio import read_chunks

PROMPT = "echo> "
LEAVING = "Ctrl-D leaves, and so does exit."
"""Shown after Ctrl-C at an empty prompt."""

COMMENT = "#"
"""Begins a line of a script that is no command."""


class Frontend(Protocol):
    """A terminal, or a pipe."""

    @property
    def interactive(self) -> bool:
        """Whether a person is there, who can be asked for arguments and shown the room's events."""

    async def line(self) -> str:
        """Return what is typed next, perhaps several lines.

        Raises `EOFError` at the end of input, and `InputCancelledError` after Ctrl-C.
        """

    async def ask(self, parameter: Parameter) -> str:
        """Return what is typed for an argument; raises as `line` does."""

    def show(self, answer: Answer) -> None:
        """Show the answer to a command."""

    def tell(self, text: str) -> None:
        """Show one line, already escaped, without disturbing what is being typed."""

    def interrupt(self) -> bool:
        """Cancel what is being typed, as Ctrl-C does; return whether there was a prompt."""

    def close(self) -> None:
        """Stop reading lines."""


class Pipe:
    """Standard input and output of a script: one answer a line, and nothing else on stdout."""

    interactive = False

    def __init__(self, *, json: bool = False) -> None:
        self._format = formatting.for_program if json else formatting.for_pipe
        self._lines = _stdin_lines()

    async def line(self) -> str:
        """Return the next line that is no comment."""
        while (line := await _next(self._lines)).startswith(COMMENT):
            pass
        return line

    async def ask(self, parameter: Parameter) -> str:
        """Raise `EOFError`: nobody is there to answer."""
        raise EOFError

    def show(self, answer: Answer) -> None:
        """Write the answer at once: whoever reads it may choose the next line by it."""
        sys.stdout.write(f"{self._format(answer)}\n")
        sys.stdout.flush()

    def tell(self, text: str) -> None:
        """Write a line to stderr."""
        complain(text)

    def interrupt(self) -> bool:
        """Return False: there is no prompt."""
        return False

    def close(self) -> None:
        """Do nothing: there is no prompt."""


class DumbTerminal:
    """A terminal that can move no cursor (`TERM=dumb`), in its cooked mode, as editors have it."""

    interactive = True

    def __init__(self) -> None:
        self._lines = _stdin_lines()
        self._prompt = ""
        """The prompt that stands at the end of the output, if one does."""
        self._reading: asyncio.Task[str] | None = None
        self._interrupted = asyncio.Event()

    async def line(self) -> str:
        """Prompt, and return the next line."""
        return await self._typed(PROMPT)

    async def ask(self, parameter: Parameter) -> str:
        """Ask for an argument."""
        if parameter.description:
            self._write(f"  {formatting.first_line(parameter.description)}\n")
        return await self._typed(parameter.question)

    def show(self, answer: Answer) -> None:
        """Write the answer as a person reads it."""
        self._write(f"{formatting.for_person(answer)}\n")

    def tell(self, text: str) -> None:
        """Write a line, and prompt again; the terminal still has what was typed."""
        self._write(f"\n{text}\n{self._prompt}" if self._prompt else f"{text}\n")

    def interrupt(self) -> bool:
        """Give up the line that is being typed."""
        self._interrupted.set()
        return bool(self._prompt)

    def close(self) -> None:
        """Stop reading, and leave the cursor at the start of a line."""
        if self._reading is not None:
            self._reading.cancel()
        if self._prompt:
            self._write("\n")

    async def _typed(self, prompt: str) -> str:
        # After Ctrl-C the same line is waited for still, without the text: the terminal forgot it.
        self._reading = reading = self._reading or asyncio.create_task(_next(self._lines))
        self._interrupted.clear()
        interrupted = asyncio.create_task(self._interrupted.wait())
        self._write(prompt)
        self._prompt = prompt
        try:
            await asyncio.wait((reading, interrupted), return_when=asyncio.FIRST_COMPLETED)
        finally:
            interrupted.cancel()
        if not reading.done():
            self._write(f"\n{LEAVING}\n" if prompt == PROMPT else "\n")
            self._prompt = ""
            raise InputCancelledError
        self._reading = None
        line = reading.result()
        self._prompt = ""
        return line

    def _write(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()


async def _stdin_lines() -> AsyncIterator[str]:
    """Yield the lines of stdin, stripped; a closed stdin has none."""
    if sys.stdin is None:
        return
    rest = b""
    async for chunk in read_chunks(sys.stdin.fileno()):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line.decode("utf-8", "replace").strip()
    if rest:
        yield rest.decode("utf-8", "replace").strip()


async def _next(lines: AsyncIterator[str]) -> str:
    async for line in lines:
        return line
    raise EOFError


def call_on_termination(action: Callable[[int], object]) -> None:
    """Have SIGTERM call `action` with its number, and SIGHUP too unless it is ignored (`nohup`)."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            asyncio.get_running_loop().add_signal_handler(number, action, number)
