"""The picture in the README: two commands as they look in a terminal, drawn from real output.

python -m docs.terminal    runs the commands and writes docs/terminal.svg anew
"""

import subprocess
import tempfile
from html import escape
from itertools import groupby
from pathlib import Path
from typing import TypeAlias

from tests.client.terminal import COLUMNS, Terminal
from tests.views.screen import Screen

PICTURE = Path(__file__).with_name("terminal.svg")
SAID = "is anybody here?"

COLUMN, ROW, MARGIN = 8, 17, 16
"""Pixels: the width of a character, the height of a line, and the space around the text."""

CLASSES = {"1": "bold", "2": "dim", "31": "red", "32": "green"}
"""The style of a character, by its SGR code (ECMA-48)."""

STYLE = (
    "rect{fill:#14181f}text{font:13.33px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;"
    "fill:#d5dae3;white-space:pre}.bold{font-weight:700;fill:#fff}.dim{fill:#8b93a1}"
    ".red{fill:#ff7b72}.green{fill:#56d364}"
)

Row: TypeAlias = list[tuple[str, str]]
"""One line: texts, each with its class; empty for plain text."""


class StyledScreen(Screen):
    """A screen that also knows the style of each character."""

    def __init__(self, columns: int) -> None:
        super().__init__(columns)
        self._class = ""
        self._classes: dict[tuple[int, int], str] = {}

    def rows(self) -> list[Row]:
        """Return what stands there, without the blanks at the end of a line."""
        return [
            [
                ("".join(character for character, _ in run), kind)
                for kind, run in groupby(
                    (
                        (character, self._classes.get((row, column), ""))
                        for column, character in enumerate(line)
                    ),
                    key=lambda each: each[1],
                )
            ]
            for row, line in enumerate(self.lines)
        ]

    def _put(self, character: str) -> None:
        super()._put(character)
        self._classes[self._row, self._column - 1] = self._class

    def _sequence(self, final: str, numbers: str) -> None:
        if final == "m":
            self._class = CLASSES.get(numbers, "")
        super()._sequence(final, numbers)


def record(home: Path) -> list[Row]:
    """Run both commands in a terminal, and return what it shows."""
    with Terminal(home, ["--sandbox"], command="check") as terminal:
        terminal.screen = checked = StyledScreen(COLUMNS)
        assert terminal.end() == 0
    with Terminal(home, ["--sandbox"], stderr=subprocess.DEVNULL) as terminal:
        terminal.screen = talked = StyledScreen(COLUMNS)
        terminal.prompts()
        terminal.type(f"{SAID}\r")
        terminal.shows(f"You said: {SAID}")
        terminal.prompts()
        terminal.type("/exit\r")
        assert terminal.end() == 0
    return [
        _typed("xmpp-bridge check --sandbox"),
        *_trimmed(checked.rows()),
        [],
        _typed("xmpp-bridge client --sandbox 2>/dev/null"),
        *_trimmed(talked.rows()),
    ]


def _typed(command: str) -> Row:
    return [("$ ", "dim"), (command, "bold")]


def _trimmed(rows: list[Row]) -> list[Row]:
    """Return `rows` without the empty ones at the end."""
    while rows and not rows[-1]:
        rows.pop()
    return rows


def svg(rows: list[Row]) -> str:
    """Return the picture of these lines."""
    width, height = COLUMNS * COLUMN + 2 * MARGIN, len(rows) * ROW + 2 * MARGIN
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size}>',
        "<title>xmpp-bridge check, then xmpp-bridge client, in a terminal</title>",
        f"<style>{STYLE}</style>",
        f'<rect width="{width}" height="{height}" rx="8"/>',
    ]
    for number, row in enumerate(rows):
        column, spans = 0, []
        for text, kind in row:
            attributes = f' class="{kind}"' if kind else ""
            # With its length, so that columns align whatever the font.
            spans.append(
                f'<tspan{attributes} x="{MARGIN + column * COLUMN}" '
                f'textLength="{len(text) * COLUMN}" lengthAdjust="spacingAndGlyphs">'
                f"{escape(text, quote=False)}</tspan>"
            )
            column += len(text)
        base = MARGIN + number * ROW + ROW - 4
        if spans:
            drawn.append(f'<text y="{base}" xml:space="preserve">{"".join(spans)}</text>')
    return "\n".join([*drawn, "</svg>", ""])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        PICTURE.write_text(svg(record(Path(home))), "utf-8")
