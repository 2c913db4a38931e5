"""The scripted edge: lines in, one answer a line out, and nothing else on stdout."""

import sys

from bridge.console import shapes
from bridge.console.arguments import Parameter
from bridge.console.edge import GREETING, LeftError
from bridge.console.lines import stdin_lines
from bridge.console.shapes import Answer
from bridge.log import complain

COMMENT = "#"
"""A line that begins so is for whoever reads the script."""


class Pipe:
    """Standard input and output, where nobody sits at both."""

    asks = False

    def __init__(self, *, json: bool = False) -> None:
        self._json = json
        self._lines = stdin_lines()

    def greet(self) -> None:
        """Say it on stderr: stdout carries answers only."""
        complain(GREETING)

    async def line(self) -> str:
        """Return the next line that is no comment."""
        async for line in self._lines:
            if not line.startswith(COMMENT):
                return line
        raise LeftError

    async def ask(self, parameter: Parameter) -> str:
        """Nobody is there to answer."""
        raise LeftError

    def show(self, answer: Answer) -> None:
        """Write the answer at once: whoever reads it may decide on the next line by it."""
        shown = shapes.for_program(answer) if self._json else shapes.for_pipe(answer)
        sys.stdout.write(f"{shown}\n")
        sys.stdout.flush()

    def tell(self, text: str) -> None:
        """Write news to stderr."""
        complain(text)

    def close(self) -> None:
        """Nothing is held."""
