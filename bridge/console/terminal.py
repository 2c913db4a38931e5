"""A terminal that can move its cursor: line editing, history, completion, events above the prompt.

Only this module and what it imports for it (`completion`, `history`) load prompt_toolkit.
"""

import os
import sys

from prompt_toolkit.application import Application
from prompt_toolkit.completion import Completer, WordCompleter
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import History
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.shortcuts import CompleteStyle, PromptSession

from bridge.console import formatting
from bridge.console.arguments import Parameter
from bridge.console.client import ServerCatalogue
from bridge.console.completion import LineCompleter, possible_values
from bridge.console.errors import InputCancelledError
from bridge.console.formatting import Answer
from bridge.console.frontend import LEAVING, PROMPT
from bridge.console.history import LineHistory, history_path
from bridge.text import one_line


class Terminal:
    """The frontend for a person at a terminal, on prompt_toolkit."""

    interactive = True

    def __init__(self, catalogue: ServerCatalogue) -> None:
        self._catalogue = catalogue
        # The terminal is not asked where its cursor is: one that never answers would cost seconds.
        output = Vt100_Output.from_pty(
            sys.stdout,
            term=os.environ.get("TERM"),
            default_color_depth=ColorDepth.from_env(),
        )
        output.enable_cpr = False
        self._commands = _session(
            output, LineCompleter(catalogue), LineHistory(history_path(os.environ))
        )
        self._arguments = _session(output)
        self._sessions = (self._commands, self._arguments)

    async def line(self) -> str:
        """Prompt, and return what was typed or pasted: perhaps several lines."""
        try:
            return await self._commands.prompt_async(_styled(PROMPT), handle_sigint=False)
        except InputCancelledError:
            if not self._commands.default_buffer.text:
                self.tell(LEAVING)
            raise

    async def ask(self, parameter: Parameter) -> str:
        """Ask for an argument, with its possible values as completions."""
        if parameter.description:
            self.tell(f"  {formatting.first_line(parameter.description)}")
        values = possible_values(parameter.name, parameter, self._catalogue)
        return await self._arguments.prompt_async(
            _styled(parameter.question),
            completer=WordCompleter([*map(one_line, values)], ignore_case=True, sentence=True),
            handle_sigint=False,
        )

    def show(self, answer: Answer) -> None:
        """Write the answer as a person reads it."""
        self.tell(formatting.for_person(answer))

    def tell(self, text: str) -> None:
        """Write lines above the line that is being typed."""
        app = self._running_app()
        if app is None:
            sys.stdout.write(f"{text}\n")
            sys.stdout.flush()
            return
        # Not `run_in_terminal`: it leaves raw mode meanwhile, and keys pressed then are lost.
        app.renderer.erase()
        app.output.write_raw(f"{text}\n".replace("\n", "\r\n"))
        app.output.flush()
        app.invalidate()

    def interrupt(self) -> bool:
        """Give up the line that is being typed; Ctrl-C in raw mode is a key, and no signal."""
        return self._end_prompt(InputCancelledError())

    def close(self) -> None:
        """End the prompt that stands, if one does."""
        self._end_prompt(EOFError())

    def _end_prompt(self, exception: Exception) -> bool:
        app = self._running_app()
        if app is not None and not app.is_done:
            app.exit(exception=exception)
        return app is not None

    def _running_app(self) -> "Application[str] | None":
        return next((one.app for one in self._sessions if one.app.is_running), None)


def _session(
    output: Vt100_Output, completer: Completer | None = None, history: History | None = None
) -> "PromptSession[str]":
    return PromptSession(
        output=output,
        completer=completer,
        history=history,
        complete_while_typing=False,
        complete_style=CompleteStyle.READLINE_LIKE,
        enable_suspend=True,
        interrupt_exception=InputCancelledError,
    )


def _styled(prompt: str) -> StyleAndTextTuples:
    # A blank at the end is written only where it has a style; programs that read what is shown
    # here look for the prompt as it stands.
    return [("fg:ansidefault", prompt)]
