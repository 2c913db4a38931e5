"""Defines the faults that can be requested, and decides whom a fault affects.

The name of a new fault goes into `FaultName`, and its effect into the method of
`bridge.sandbox.server.Sandbox` that handles what it changes: `_strike` (at once), `_is_silenced`
(delivery), `_disturbed` (reflections), `_to_room` (joining) or `_admitted` (login).
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
class SandboxFault:
    """A fault that affects the occupant `nickname` of `room`.

    An empty nickname means every occupant, an empty room every room.
    """

    name: str
    room: str = ""
    nickname: str = ""
    seconds: float = 0.0

    def hits(self, room: str, nickname: str) -> bool:
        """Return whether the fault affects the occupant `nickname` of `room`."""
        meant = ((self.room, room), (self.nickname, nickname))
        return all(mine.lower() in ("", theirs.lower()) for mine, theirs in meant)
