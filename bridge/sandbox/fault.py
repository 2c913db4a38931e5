"""Faults on request: which there are, and whom each of them hits."""

import math
from dataclasses import dataclass

STRIKES = ("drop", "kick")
"""Faults that happen at once, and with `seconds` again each time these are over."""

LASTING = ("silence", "duplicate-nickname", "lost-reflection", "refused-login")
"""Faults that last until they are ended, or for `seconds`."""

LATE = "late-reflection"
"""The fault that lasts until it is ended and has `seconds` as the delay."""


@dataclass(frozen=True, eq=False)
class Fault:
    """A fault of the occupant `nickname` of `room`; what is empty stands for any.

    Raises `ValueError` for a name that is unknown and for seconds that cannot be waited for.
    """

    name: str
    room: str = ""
    nickname: str = ""
    seconds: float | None = None

    def __post_init__(self) -> None:
        names = (*STRIKES, *LASTING, LATE)
        if self.name not in names:
            raise ValueError(f"there is no such fault; there are {', '.join(names)}")
        if self.seconds is None and self.name == LATE:
            raise ValueError(f"{LATE} takes seconds, the delay")
        if self.seconds is not None and not 0 < self.seconds < math.inf:
            raise ValueError("seconds must be a number above 0")

    def hits(self, room: str, nickname: str) -> bool:
        """Return whether the occupant `nickname` of `room` is meant."""
        wanted = ((self.room, room), (self.nickname, nickname))
        return all(mine.lower() in ("", theirs.lower()) for mine, theirs in wanted)
