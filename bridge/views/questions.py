"""Asks a person at the terminal, one line an answer.

Words of strangers stand above a question, in lines that are broken here, and never within it.
Ctrl-C raises `KeyboardInterrupt`, and Ctrl-D `EOFError`. A character that the terminal's encoding
lacks raises `UnicodeError`.
"""

import sys
from contextlib import suppress
from getpass import getpass

from bridge.logs import write_out
from bridge.text import one_line
from bridge.views.output import display_of

with suppress(ImportError):  # some builds of Python lack it
    import readline  # noqa: F401 - it makes `input` edit lines, and write the prompt to stdout


def is_possible() -> bool:
    """Whether a person can be asked: both stdin and stdout are a terminal."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))


def say(text: str, *, failed: bool = False) -> None:
    """Show a paragraph, broken into lines."""
    display = display_of(sys.stdout)
    lines = display.paragraph(one_line(text))
    write_out("\n".join(map(display.red, lines) if failed else lines))


def ask(question: str, default: str = "", *, secret: bool = False) -> str:
    """Return the line that is typed, or the default if it is empty; a `secret` is not shown."""
    usual = f" [{'***' if secret else one_line(default)}]" if default else ""
    typed = (getpass if secret else input)(f"{question}{usual}: ")
    return (typed if secret else typed.strip()) or default


def agrees(question: str, *, default: bool) -> bool:
    """Return whether the answer is yes; `default` is what an empty line means."""
    while (answer := ask(f"{question} (y/n)", "ny"[default]).lower()) not in {"y", "n"}:
        say("Please answer y or n.")
    return answer == "y"
