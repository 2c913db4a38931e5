"""The edge at a terminal that can move no cursor (`TERM=dumb`): it edits the line itself."""

import asyncio
import sys

from bridge.console import shapes
from bridge.console.arguments import Parameter
from bridge.console.edge import GREETING, LEAVING, PROMPT, GivenUpError, LeftError
from bridge.console.interrupt import heeding
from bridge.console.lines import stdin_lines
from bridge.console.shapes import Answer


class Plain:
    """A terminal in its cooked mode, as editors and simple programs offer it."""

    asks = True

    def __init__(self) -> None:
        self._lines = stdin_lines()
        self._prompt = ""
        """What is waited behind just now."""
        self._next: asyncio.Task[str] | None = None

    def greet(self) -> None:
        """Say it."""
        self._write(f"{GREETING}\n")

    async def line(self) -> str:
        """Prompt, and return the next line."""
        return await self._typed(PROMPT)

    async def ask(self, parameter: Parameter) -> str:
        """Ask for an argument."""
        if parameter.description:
            self._write(f"  {shapes.gist(parameter.description)}\n")
        return await self._typed(parameter.question)

    def show(self, answer: Answer) -> None:
        """Show the answer as a person wants it."""
        self._write(f"{shapes.for_person(answer)}\n")

    def tell(self, text: str) -> None:
        """Show news on a line of their own, and prompt again; what is typed is still there."""
        self._write(f"\n{text}\n{self._prompt}" if self._prompt else f"{text}\n")

    def close(self) -> None:
        """Go on at the start of a line."""
        if self._next is not None:
            self._next.cancel()
        if self._prompt:
            self._write("\n")

    async def _typed(self, prompt: str) -> str:
        given_up = asyncio.Event()
        # A line that is waited for is waited for still after Ctrl-C: the terminal forgot its text.
        reading = self._next or asyncio.create_task(self._read())
        self._next = reading
        interruption = asyncio.create_task(given_up.wait())
        try:
            with heeding(given_up.set):
                self._write(prompt)
                self._prompt = prompt
                await asyncio.wait((reading, interruption), return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                self._write(f"\n{LEAVING}\n" if prompt == PROMPT else "\n")
                self._prompt = ""
                raise GivenUpError
            self._next = None
            line = reading.result()
            self._prompt = ""
            return line
        finally:
            interruption.cancel()

    async def _read(self) -> str:
        async for line in self._lines:
            return line
        raise LeftError

    def _write(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()
