"""Colour on a terminal, where one is wanted. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from zlib import crc32

NICKNAME_COLOURS = (32, 33, 34, 35, 36, 92, 94, 95, 96)
"""ANSI colours that can be read on dark and on light; both reds are for what went wrong."""


def is_wanted(*, terminal: bool, environ: Mapping[str, str]) -> bool:
    """Whether to paint: on a terminal that can, and unless somebody said no (no-color.org)."""
    return can_move(terminal=terminal, environ=environ) and not environ.get("NO_COLOR")


def can_move(*, terminal: bool, environ: Mapping[str, str]) -> bool:
    """Whether this is a terminal that knows more than letters: it moves its cursor, for one."""
    return terminal and environ.get("TERM", "") not in {"", "dumb"}


@dataclass(frozen=True)
class Paint:
    """Puts colour around a text, or leaves it as it is."""

    on: bool

    def dim(self, text: str) -> str:
        """For what is said by the way."""
        return self._in("2", text)

    def bold(self, text: str) -> str:
        """For what counts."""
        return self._in("1", text)

    def red(self, text: str) -> str:
        """For what went wrong."""
        return self._in("31", text)

    def green(self, text: str) -> str:
        """For what went well."""
        return self._in("32", text)

    def nickname(self, nickname: str, text: str) -> str:
        """In the colour of this nickname, the same in every run."""
        number = crc32(nickname.encode("utf-8", "surrogatepass")) % len(NICKNAME_COLOURS)
        return self._in(str(NICKNAME_COLOURS[number]), text)

    def _in(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.on and text else text
