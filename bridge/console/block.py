"""Lines at the foot of a terminal that are drawn anew, under lines that stay. Pure."""

from collections.abc import Sequence

UP = "\x1b[{}A"
"""Moves the cursor up by so many lines (ECMA-48, CUU)."""

ERASE_BELOW = "\x1b[J"
"""Erases from the cursor to the end of the screen (ECMA-48, ED)."""


class Block:
    """What stands at the foot now, and how to replace it.

    A replacement is one piece, for one write, so that no terminal shows the half of it. One that
    changed its size in between has broken its lines anew, and nobody knows where the block begins:
    then it stays, and another is begun below.
    """

    def __init__(self) -> None:
        self._height = 0
        self._size = (0, 0)

    def drawn(self, above: Sequence[str], block: Sequence[str], size: tuple[int, int]) -> str:
        """Return what puts `above` in the block's place, for good, and a new `block` under it.

        It is to be written with a line break behind it, to a terminal of `size`: columns and
        lines. No line of `block` may be wider than that; of one that is too high the end is drawn.
        """
        # The cursor will stand below the block, and cannot go up to what is out of sight.
        block = block[max(0, len(block) - size[1] + 1) :]
        back = UP.format(self._height) + ERASE_BELOW if self._height and size == self._size else ""
        self._height, self._size = len(block), size
        return back + "\n".join([*above, *block])
