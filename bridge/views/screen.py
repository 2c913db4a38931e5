"""Text on a terminal: its width, line breaks and colours. Pure.

If a terminal breaks a long line, the rest begins at the left edge. There a stranger's words would
pass for a line of ours, so we break lines ourselves. If terminals differ in the width of a
character, the greater width counts.
"""

import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partialmethod
from zlib import crc32

from wcwidth import wcwidth

TAB = "    "
"""Replaces a tab, whose width would depend on its column."""

EMOJI_STYLE = "\ufe0f"
"""The variation selector that makes a narrow symbol a wide emoji."""

MIN_FIRST_COLUMNS = 20
"""If the first line of a text has fewer columns, the text begins on the next line."""

NICKNAME_COLOURS = (32, 33, 34, 35, 36, 92, 94, 95, 96)
"""ANSI colours that can be read on dark and on light; the two reds are kept for failures."""

ERASE_LINE_ABOVE = "\x1b[A\x1b[J"
"""Moves the cursor up by a line, and erases that line (ECMA-48, CUU and ED)."""


def moves_cursor(*, terminal: bool, environ: Mapping[str, str]) -> bool:
    """Whether output goes to a terminal that knows control sequences."""
    return terminal and environ.get("TERM", "") not in {"", "dumb"}


def has_colour(*, terminal: bool, environ: Mapping[str, str]) -> bool:
    """Whether to write colours: to a terminal that knows them, unless NO_COLOR is set."""
    return moves_cursor(terminal=terminal, environ=environ) and not environ.get("NO_COLOR")


def width(text: str) -> int:
    """Return the columns that `text` takes; it has no line breaks, tabs or controls."""
    return sum(map(_width, text))


def padded(text: str, columns: int) -> str:
    """Return `text`, filled with blanks up to `columns`; unchanged if it is that wide already."""
    return text + " " * (columns - width(text))


def cut(text: str, columns: int) -> str:
    """Return as much of `text` as fits into `columns`, with `…` at the end if it was cut."""
    if width(text) <= columns:
        return text
    return f"{text[: _fitting(text, 0, columns - 1)]}…"


def wrapped(text: str, first: int, rest: int) -> list[str]:
    """Break `text` into a line of `first` columns and others of `rest`, at blanks if possible.

    The first line stays empty if it is narrower than the others and than `MIN_FIRST_COLUMNS`.
    """
    if first < min(rest, MIN_FIRST_COLUMNS):
        return ["", *wrapped(text, rest, rest)]
    lines: list[str] = []
    columns, start = first, 0
    # Each line gets at least one character: a wide one may not fit into any line.
    while (end := max(_fitting(text, start, columns), start + 1)) < len(text):
        blank = text.rfind(" ", start + 1, end + 1)
        lines.append(text[start : end if blank == -1 else blank])
        start = end if blank == -1 else blank + 1
        columns = rest
    return [*lines, text[start:]]


@dataclass(frozen=True)
class Display:
    """Where lines are shown: whether they may have colours, and where they break."""

    coloured: bool
    columns: Callable[[], int | None] = lambda: None
    """Returns how wide the terminal is now; None means that there is no terminal."""

    def hanging(self, head: str, used: int, text: str, indent: int) -> list[str]:
        """Return `text` after a `head` that takes `used` columns, its further lines indented.

        Without a terminal, `text` breaks only at its own line breaks. A narrow terminal loses the
        layout, but a stranger's text still forges no line.
        """
        columns = self.columns()
        if columns is None:
            first, *rest = text.split("\n")
        else:
            indent = min(indent, columns // 2)
            further = max(columns - indent, 2)
            first, *rest = [
                piece
                for number, line in enumerate(text.replace("\t", TAB).split("\n"))
                for piece in wrapped(line, further if number else columns - used, further)
            ]
        return [head + first, *(" " * indent + line for line in rest)]

    def paragraph(self, text: str, indent: int = 2) -> list[str]:
        """Return `text` from the left edge on, its further lines indented."""
        return self.hanging("", 0, text, indent)

    def _in(self, code: int, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.coloured and text else text

    dim = partialmethod(_in, 2)
    """Return a text in the colour for texts that matter less."""
    bold = partialmethod(_in, 1)
    """Return a text in the colour of an outcome."""
    red = partialmethod(_in, 31)
    """Return a text in the colour of a failure."""
    green = partialmethod(_in, 32)
    """Return a text in the colour of success."""

    def mark(self, *, ok: bool | None) -> str:
        """Return in one width whether something went well; None means that it is not known."""
        return {True: self.green("ok    "), False: self.red("FAILED"), None: "?     "}[ok]

    def nickname(self, nickname: str, text: str) -> str:
        """Return `text` in the colour of this nickname, the same in every run."""
        number = crc32(nickname.encode("utf-8", "surrogatepass")) % len(NICKNAME_COLOURS)
        return self._in(NICKNAME_COLOURS[number], text)


def _fitting(text: str, start: int, columns: int) -> int:
    """Return the position of the first character that does not fit into `columns`."""
    used = 0
    for position in range(start, len(text)):
        used += _width(text[position])
        if used > columns:
            return position
    return len(text)


def _width(character: str) -> int:
    if character == EMOJI_STYLE:
        return 1
    columns = wcwidth(character)
    if columns <= 0 and unicodedata.category(character) not in {"Mn", "Me", "Cf"}:
        # wcwidth joins spacing marks and jamo to the character before; not every terminal does.
        return 2 if unicodedata.east_asian_width(character) == "W" else 1
    return columns
