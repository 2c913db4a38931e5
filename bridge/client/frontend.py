"""Frontends read lines and show answers: the protocol of all, and the frontend for a pipe."""

import sys
from collections.abc import AsyncIterator
from typing import Protocol

from bridge.client import formatting
from bridge.client.arguments import Parameter
from bridge.client.errors import OutputError
from bridge.client.formatting import Answer
from bridge.logs import complain, write_out
from bridge.mcp.jsonrpc import Json
from bridge.mcp.stdio import read_chunks

INSERTED = "\0"
"""Separates the lines of one command. No key types this character."""

COMMENT = "#"
"""The start of a line of a script that is a comment."""


class Frontend(Protocol):
    """Reads lines and shows answers, on a terminal or through a pipe."""

    interactive: bool
    """Whether a person can be asked for arguments."""

    async def ask(self, parameter: Parameter) -> dict[str, Json]:
        """Ask for an argument, or a field of a form; return it by its name, or an empty dict.

        Raises `InvalidInputError` if a script gives a wrong value, and the exceptions of `line`.
        """

    async def line(self) -> str:
        """Return what is typed next. If it has several lines, each is a command of its own.

        `INSERTED` separates the lines of one command. Raises `EOFError` at the end of input, and
        `InputCancelledError` after Ctrl-C.
        """

    def show(self, answer: Answer) -> None:
        """Show the answer to a command; raises `OutputError` where it cannot be written."""

    def tell(self, text: str) -> None:
        """Show one line, already escaped, and leave the line that is being typed as it is."""

    def close(self) -> None:
        """Stop reading lines."""


class Pipe:
    """The stdin and stdout of a script; each line of stdout is an answer."""

    interactive = False

    def __init__(self, *, json: bool = False) -> None:
        self._format = formatting.for_program if json else formatting.for_pipe
        self._lines = _stdin_lines()

    async def ask(self, parameter: Parameter) -> dict[str, Json]:
        """Write the question to stderr, and return the next line as the value.

        An empty line leaves out an argument that is not required.
        """
        self.tell(parameter.question.rstrip())
        text = await self.line()
        return {parameter.name: parameter.read(text)} if text or parameter.required else {}

    async def line(self) -> str:
        """Return the next line that is no comment."""
        async for line in self._lines:
            if not line.startswith(COMMENT):
                return line
        raise EOFError

    def show(self, answer: Answer) -> None:
        """Write the answer at once, since a script may choose its next line by it."""
        if error := write_out(self._format(answer)):
            raise OutputError(f"nobody reads the answers any more: {error.strerror}")

    def tell(self, text: str) -> None:
        """Write a line to stderr."""
        complain(text)

    def close(self) -> None:
        """Do nothing: there is no prompt."""


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
