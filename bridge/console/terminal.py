"""The edge at a terminal: line editing, history, completion, news above the prompt."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import History, InMemoryHistory
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.shortcuts import CompleteStyle, PromptSession

from bridge.console import shapes
from bridge.console.arguments import Parameter
from bridge.console.completion import Candidate, Known, completions, values
from bridge.console.edge import GREETING, LEAVING, PROMPT, GivenUpError, LeftError
from bridge.console.history import Memory
from bridge.console.shapes import Answer
from bridge.escaping import one_line


class Terminal:
    """A terminal that can move its cursor."""

    asks = True

    def __init__(self, known: Known, memory: Memory) -> None:
        self._known = known
        output = _output()
        self._commands: PromptSession[str] = _session(
            output, _Completer(partial(completions, known=known)), _History(memory)
        )
        self._answers: PromptSession[str] = _session(output, None, InMemoryHistory())
        self._sessions = (self._commands, self._answers)

    def greet(self) -> None:
        """Say it."""
        self._above(GREETING)

    async def line(self) -> str:
        """Prompt, and return what was typed or pasted: perhaps several lines."""
        try:
            return await self._commands.prompt_async(_written(PROMPT))
        except GivenUpError:
            if not self._commands.default_buffer.text:
                self._above(LEAVING)
            raise

    async def ask(self, parameter: Parameter) -> str:
        """Ask for an argument."""
        if parameter.description:
            self._above(f"  {shapes.gist(parameter.description)}")
        return await self._answers.prompt_async(
            _written(parameter.question),
            completer=_Completer(lambda begun: values(parameter, self._known, begun)),
        )

    def show(self, answer: Answer) -> None:
        """Show the answer as a person wants it."""
        self._above(shapes.for_person(answer))

    def tell(self, text: str) -> None:
        """Show news above the line that is being typed."""
        self._above(text)

    def close(self) -> None:
        """End the prompt that stands, if one does."""
        for session in self._sessions:
            if session.app.is_running:
                session.app.exit(exception=LeftError())

    def _above(self, text: str) -> None:
        app = next((one.app for one in self._sessions if one.app.is_running), None)
        if app is None:
            sys.stdout.write(f"{text}\n")
            sys.stdout.flush()
            return
        # Not `run_in_terminal`: it leaves raw mode meanwhile, and keys pressed then are lost.
        app.renderer.erase()
        app.output.write_raw(f"{text}\n".replace("\n", "\r\n"))
        app.output.flush()
        app.invalidate()


class _Completer(Completer):
    """Our completions as the library wants them."""

    def __init__(self, complete: Callable[[str], Iterable[Candidate]]) -> None:
        self._complete = complete

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterator[Completion]:
        """Yield what may stand at the cursor."""
        del complete_event
        for one in self._complete(document.text_before_cursor):
            # What is shown goes to the terminal, and nicknames are chosen by strangers.
            yield Completion(one_line(one.text), -one.replaces)


class _History(History):
    """Our memory as the library wants it."""

    def __init__(self, memory: Memory) -> None:
        super().__init__()
        self._memory = memory

    def load_history_strings(self) -> Iterable[str]:
        """Return what is kept, newest first."""
        return [one_line(line) for line in reversed(self._memory.recall())]

    def store_string(self, string: str) -> None:
        """Keep a line."""
        self._memory.keep(string)


def _output() -> Vt100_Output:
    # The terminal is not asked where its cursor is: one that never answers would cost seconds.
    output = Vt100_Output.from_pty(
        sys.stdout,
        term=os.environ.get("TERM"),
        default_color_depth=ColorDepth.from_env(),
    )
    output.enable_cpr = False
    return output


def _session(
    output: Vt100_Output, completer: Completer | None, history: History
) -> "PromptSession[str]":
    return PromptSession(
        output=output,
        completer=completer,
        history=history,
        complete_while_typing=False,
        complete_style=CompleteStyle.READLINE_LIKE,
        enable_suspend=True,
        interrupt_exception=GivenUpError,
        eof_exception=LeftError,
    )


def _written(prompt: str) -> StyleAndTextTuples:
    # A blank at the end is written only where it has a style; programs that read what is shown
    # here look for the prompt as it stands.
    return [("fg:ansidefault", prompt)]
