"""What a terminal shows of the bytes that a program writes to it."""

import re

_PIECE = re.compile(
    r"\x1b\[(?P<private>\??)(?P<numbers>[0-9;]*)(?P<final>[@-~])"
    r"|\x1b(?P<escape>[=>78])"
    r"|(?P<control>[\x00-\x1f])"
    r"|(?P<text>[^\x00-\x1f]+)"
)
_SETS_MODES = frozenset("hlmqn")


class Screen:
    """Rows of characters and a cursor; it never scrolls, so that nothing is lost.

    A sequence it does not know is an error: what it would show could be wrong.
    """

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self._rows: list[list[str]] = [[]]
        self._row = 0
        self._column = 0
        self._rest = ""

    @property
    def lines(self) -> list[str]:
        return ["".join(row).rstrip() for row in self._rows]

    @property
    def cursor_line(self) -> str:
        """The line with the cursor, up to the cursor."""
        return "".join(self._rows[self._row][: self._column]).ljust(self._column)

    def feed(self, data: str) -> None:
        data = self._rest + data
        position = 0
        while position < len(data):
            piece = _PIECE.match(data, position)
            if piece is None:
                assert len(data) - position < 20, f"not understood: {data[position:]!r}"
                break
            position = piece.end()
            self._take(piece)
        self._rest = data[position:]

    def _take(self, piece: "re.Match[str]") -> None:
        if (text := piece["text"]) is not None:
            for character in text:
                self._put(character)
        elif (control := piece["control"]) is not None:
            self._control(control)
        elif piece["final"] is not None and not piece["private"]:
            self._sequence(piece["final"], piece["numbers"])
        elif piece["private"]:
            assert piece["final"] in _SETS_MODES, piece[0]

    def _put(self, character: str) -> None:
        if self._column == self._columns:
            self._go(self._row + 1, 0)
        row = self._rows[self._row]
        row.extend(" " * (self._column + 1 - len(row)))
        row[self._column] = character
        self._column += 1

    def _control(self, control: str) -> None:
        match control:
            case "\n":
                self._go(self._row + 1, self._column)
            case "\r":
                self._column = 0
            case "\x08":
                self._column = max(0, self._column - 1)
            case "\x07":
                pass
            case _:
                raise AssertionError(f"not understood: {control!r}")

    def _sequence(self, final: str, numbers: str) -> None:
        by = int(numbers) if numbers.isdigit() else 1
        match final:
            case "A":
                self._go(max(0, self._row - by), self._column)
            case "B":
                self._go(self._row + by, self._column)
            case "C":
                self._column = min(self._columns, self._column + by)
            case "D":
                self._column = max(0, self._column - by)
            case "K":
                del self._rows[self._row][self._column :]
            case "J":
                del self._rows[self._row][self._column :]
                del self._rows[self._row + 1 :]
            case _:
                assert final in _SETS_MODES, f"not understood: {final!r} {numbers!r}"

    def _go(self, row: int, column: int) -> None:
        while len(self._rows) <= row:
            self._rows.append([])
        self._row, self._column = row, column
