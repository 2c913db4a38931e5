"""How much room a text takes on a terminal, and how it is broken to fit. Pure.

A line that the terminal breaks by itself goes on at the left edge, where a stranger's words would
pass for a line of ours; so we break it first. Where terminals differ, a character counts as the
wider.
"""

import unicodedata

from wcwidth import wcwidth

TAB = "    "
"""What a tab becomes: how far it jumps depends on where it stands."""

EMOJI_STYLE = "\ufe0f"
"""The variation selector that makes a narrow symbol a wide emoji."""

TOO_NARROW = 20
"""Columns; a text that finds fewer beside its head begins on the next line."""


def width(text: str) -> int:
    """Return the columns that `text` takes; it has no line breaks, tabs or controls."""
    if text.isascii():
        return len(text)
    return sum(map(_width, text))


def padded(text: str, columns: int) -> str:
    """Return `text` with blanks up to so many columns; as it is where it has as many."""
    return text + " " * (columns - width(text))


def cut(text: str, columns: int) -> str:
    """Return as much of `text` as fits into so many columns, with a mark where it is not all."""
    if width(text) <= columns:
        return text
    used = 0
    for position, character in enumerate(text):
        used += _width(character)
        if used > columns - 1:
            return f"{text[:position]}…"
    raise AssertionError(text)


def broken(text: str, first: int, rest: int) -> list[str]:
    """Break `text` into a line of `first` columns and further ones of `rest`, at blanks if it can.

    A `first` that is too narrow stays empty.
    """
    if first < min(rest, TOO_NARROW):
        return ["", *broken(text, rest, rest)]
    lines: list[str] = []
    room, start = first, 0
    while (end := _fitting(text, start, room)) < len(text):
        blank = text.rfind(" ", start + 1, end + 1)
        lines.append(text[start : end if blank == -1 else blank])
        start = end if blank == -1 else blank + 1
        room = rest
    return [*lines, text[start:]]


def _fitting(text: str, start: int, columns: int) -> int:
    """Return the place of the first character that does not fit; one always does."""
    used = 0
    for position in range(start, len(text)):
        used += _width(text[position])
        if used > columns and position > start:
            return position
    return len(text)


def _width(character: str) -> int:
    if character == EMOJI_STYLE:
        return 1
    columns = wcwidth(character)
    if columns <= 0 and unicodedata.category(character) not in {"Mn", "Me", "Cf"}:
        # wcwidth joins spacing marks and jamo to what is before them; not every terminal does.
        return 2 if unicodedata.east_asian_width(character) == "W" else 1
    return columns
