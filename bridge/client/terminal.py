"""A terminal: line editing, history, completion, and events above the prompt, by prompt_toolkit.

Only this module and `completion` load prompt_toolkit. A file keeps what is typed at the prompt, for
the next session, and not what is typed in answer to a question. On a terminal that cannot move its
cursor (`TERM=dumb`, as in editors), prompt_toolkit offers no editing: it shows what is typed, and
we write the prompt again after each line of ours.
"""

import logging
import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from prompt_toolkit.application import create_app_session, get_app_or_none
from prompt_toolkit.completion import Completer, WordCompleter
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output.plain_text import PlainTextOutput
from prompt_toolkit.shortcuts import CompleteStyle, PromptSession
from prompt_toolkit.utils import is_dumb_terminal

from bridge.client import formatting
from bridge.client.arguments import SHOWN_CHARACTERS, Parameter
from bridge.client.client import ServerCatalogue
from bridge.client.completion import LineCompleter, possible_values
from bridge.client.errors import InputCancelledError, InvalidInputError
from bridge.client.formatting import Answer
from bridge.client.frontend import INSERTED
from bridge.files import make_folder, open_private, state_folder
from bridge.mcp.jsonrpc import Json
from bridge.settings.table import SECRETS, Configuration
from bridge.settings.values import Secret
from bridge.text import one_line
from bridge.views.output import display_of

PROMPT = "echo> "
CHAT_PROMPT = "say> "

LEAVING = "Ctrl-D leaves, and so does exit."
"""The answer to Ctrl-C at an empty prompt."""


_SECRET = re.compile(r"(?i)(pass(word|wd|phrase)?|secret|token|api_?key)\W{0,3}[=:]")
"""Finds a line that sets something secret, such as an argument of a tool."""

MAX_HISTORY_BYTES = 1 << 20
"""A longer file of what was typed begins anew: it is read at each start."""

log = logging.getLogger(__name__)


class Terminal:
    """The frontend for a person at a terminal, on prompt_toolkit."""

    interactive = True

    def __init__(
        self,
        catalogue: ServerCatalogue,
        *,
        history: History,
        json: bool = False,
        chat: bool = False,
    ) -> None:
        """`history` keeps the commands. In a `chat` what is typed is said in the room."""
        self._catalogue = catalogue
        self._prefix = CHAT_PROMPT if chat else PROMPT
        self._display = display_of(sys.stdout)
        for_person = partial(formatting.for_person, display=self._display)
        self._format = formatting.for_program if json else for_person
        # The terminal is not asked where its cursor is: one that never answers would cost seconds.
        os.environ["PROMPT_TOOLKIT_NO_CPR"] = "1"
        os.environ["TERM"] = os.environ.get("TERM") or "dumb"
        plain = PlainTextOutput(sys.stdout) if is_dumb_terminal() else None
        with create_app_session(output=plain):
            completer = LineCompleter(catalogue, chat=chat)
            self._commands = _session(completer, history, self._keys())
            self._arguments = _session()
        self._has_inserted = False
        """Whether the person has pressed Alt-Enter in the command that is being typed."""
        self._prompt = ""
        """The prompt in front of the line that is being typed."""

    async def line(self) -> str:
        """Prompt, and return what was typed or pasted, which may have several lines.

        If the person pressed Alt-Enter, all lines are one command.
        """
        self._has_inserted = False
        try:
            typed = await self._typed(self._commands, self._prefix)
            return typed.replace("\n", INSERTED) if self._has_inserted else typed
        except InputCancelledError:
            if not self._commands.default_buffer.text:
                self.tell(LEAVING)
            raise

    async def ask(self, parameter: Parameter) -> dict[str, Json]:
        """Ask until the argument is valid or left out; return it by its name."""
        if parameter.description:
            self.tell(f"  {formatting.first_line(parameter.description)}")
        values = [one_line(value) for value in possible_values(parameter, self._catalogue)]
        self._arguments.completer = WordCompleter(values, ignore_case=True, sentence=True)
        while True:
            text = (await self._typed(self._arguments, parameter.question)).strip()
            if not text and not parameter.required:
                return {}
            try:
                if text:
                    return {parameter.name: parameter.read(text)}
            except InvalidInputError as error:
                self.tell(f"  {error}")
            else:
                name = one_line(parameter.name, SHOWN_CHARACTERS)
                self.tell(f"  {name} is required; Ctrl-C gives it up")

    def show(self, answer: Answer) -> None:
        """Write the answer for a person, or as JSON if `--json` was given."""
        self._write(self._format(answer))

    def tell(self, text: str) -> None:
        """Write lines above the line that is being typed, broken at words."""
        self._write("\n".join(self._display.paragraph(text)))

    def _write(self, text: str) -> None:
        app = get_app_or_none()
        lines = f"{text}\n"
        if app is not None and is_dumb_terminal():
            lines = f"\n{text}\n{self._prompt}{app.current_buffer.text}"
        elif app is not None:
            # Not `run_in_terminal`: it leaves raw mode meanwhile, and keys pressed then are lost.
            app.renderer.erase()
            app.invalidate()
        sys.stdout.write(lines)
        sys.stdout.flush()

    def close(self) -> None:
        """End the prompt, if there is one."""
        app = get_app_or_none()
        if app is not None and not app.is_done:
            app.exit(exception=EOFError())

    def _keys(self) -> KeyBindings:
        """Return the keys of the prompt besides those that prompt_toolkit has."""
        keys = KeyBindings()

        @keys.add("escape", "enter")
        def insert_line(event: KeyPressEvent) -> None:
            event.current_buffer.insert_text("\n")
            self._has_inserted = True

        return keys

    async def _typed(self, session: "PromptSession[str]", prompt: str) -> str:
        self._prompt = prompt
        # prompt_toolkit writes a blank at the end only if it has a style, and programs that drive
        # this terminal look for the whole prompt.
        styled: StyleAndTextTuples = [("fg:ansidefault", prompt)]
        # On a dumb terminal, prompt_toolkit writes the prompt before it changes the mode. A program
        # that types as soon as it sees the prompt would be too early.
        with session.input.raw_mode():
            return await session.prompt_async(styled, handle_sigint=False)


def _session(
    completer: Completer | None = None,
    history: History | None = None,
    keys: KeyBindings | None = None,
) -> "PromptSession[str]":
    return PromptSession(
        key_bindings=keys,
        history=history,
        completer=completer,
        complete_while_typing=False,
        complete_style=CompleteStyle.READLINE_LIKE,
        enable_suspend=True,
        interrupt_exception=InputCancelledError,
    )


class TypedLines(FileHistory):
    """A file of what was typed, without commands that seem to have a secret in them."""

    def __init__(self, path: Path, secrets: Sequence[str]) -> None:
        """Nothing that has one of the `secrets` in it is kept."""
        super().__init__(path)
        self._path = path
        self._secrets = secrets

    def store_string(self, string: str) -> None:
        """Append a command to the file. If that fails, the history has it until the client ends."""
        if not (_SECRET.search(string) or any(secret in string for secret in self._secrets)):
            with suppress(OSError):
                _make(self._path)
                super().store_string(string)


def history_of(configuration: Configuration) -> History:
    """Return the history of the prompt; without a file if none can be used."""
    values = [configuration.loaded[name] for name in SECRETS]
    secrets = [value.reveal() for value in values if isinstance(value, Secret)]
    try:
        path = state_folder(os.environ) / "history"
        make_folder(path.parent)
        _make(path)
    except OSError as error:
        log.warning("what was typed is not kept: %s", error)
        return InMemoryHistory()
    return TypedLines(path, secrets)


def _make(path: Path) -> None:
    """Make the file if it is missing, and empty it if it is too long."""
    with os.fdopen(open_private(path, os.O_RDWR), "r+b") as file:
        if os.fstat(file.fileno()).st_size > MAX_HISTORY_BYTES:
            file.truncate(0)
