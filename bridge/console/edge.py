"""Where a person, or a script, meets the console."""

from typing import Protocol

from bridge.console.arguments import Parameter
from bridge.console.shapes import Answer

GREETING = 'Connected! Type a message or "help" for commands.'
PROMPT = "echo> "
LEAVING = "Ctrl-D leaves, and so does exit."
"""Said after Ctrl-C at an empty prompt."""


class LeftError(Exception):
    """Nothing more is typed: the end of input, or Ctrl-D."""


class GivenUpError(Exception):
    """Ctrl-C while something was typed."""


class Edge(Protocol):
    """A terminal, or a pipe."""

    @property
    def asks(self) -> bool:
        """Whether arguments can be asked for."""

    def greet(self) -> None:
        """Say that lines are taken from now on."""

    async def line(self) -> str:
        """Return the next line; raises `LeftError`, and `GivenUpError` after Ctrl-C."""

    async def ask(self, parameter: Parameter) -> str:
        """Return what is typed for an argument; raises as `line` does."""

    def show(self, answer: Answer) -> None:
        """Show what came of a line."""

    def tell(self, text: str) -> None:
        """Show one line of news, already fit for a terminal, without disturbing what is typed."""

    def close(self) -> None:
        """Stop taking lines."""
