"""Faults on request: which there are, and whom each of them hits.

A new one goes into `FaultName`, and acts where `bridge.sandbox.server.Sandbox` asks for it:
`_strike` (at once), `_is_silenced` (delivery), `_disturbed` (reflections), `_to_room` (joining) or
`_admitted` (login).
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

FaultName: TypeAlias = Literal[
    "drop",
    "kick",
    "silence",
    "duplicate-nickname",
    "late-reflection",
    "lost-reflection",
    "refused-login",
]
FAULTS: tuple[str, ...] = get_args(FaultName)
"""The names of all faults."""

STRIKES = ("drop", "kick")
"""The faults that happen at once; the others last."""


@dataclass(frozen=True, eq=False)
class Fault:
    """A fault that hits the occupant `nickname` of `room`; where a name is empty, it hits any."""

    name: str
    room: str = ""
    nickname: str = ""
    seconds: float = 0.0

    def hits(self, room: str, nickname: str) -> bool:
        """Return whether the occupant `nickname` of `room` is meant."""
        meant = ((self.room, room), (self.nickname, nickname))
        return all(mine.lower() in ("", theirs.lower()) for mine, theirs in meant)
