"""What a check found: how each of its phases went, and what that comes to."""

import time
from collections.abc import Callable

from bridge.escaping import one_line
from bridge.frozen import dataclass
from bridge.xmpp.faults import Fault, Place

MAX_DETAIL_CHARACTERS = 2_000
"""Of one phase: the names in a certificate and in a room are others' to choose."""

PHASES = (
    *("resolve", "connect", "tls", "sasl", "bind"),
    *("disco", "join", "occupants", "send", "leave"),
)
"""All phases, in order; `send` only when it is asked for."""

CREATED = "MUC_ROOM may have a typo."
"""What there is to do about a room that joining made."""


@dataclass(frozen=True)
class PhaseReport:
    """How one phase went. The texts are fit for one line, whoever wrote parts of them."""

    name: str
    ok: bool
    ms: float
    detail: str
    """What was found; with a failure its cause, too."""
    hint: str
    """What to do, naming the setting; empty where there is nothing to do."""


@dataclass(frozen=True)
class Report:
    """How a check went: its phases as far as it came, the failed one last."""

    place: Place
    phases: tuple[PhaseReport, ...]
    seconds: float
    fault: Fault | None
    """Why it ended early; None if it did not."""
    created: bool
    """Joining made the room."""
    others: int
    """How many others are in the room."""

    @property
    def ok(self) -> bool:
        """Whether every phase passed."""
        return self.fault is None

    @property
    def diagnosis(self) -> str:
        """Return the outcome in a sentence, or two."""
        if self.fault is not None:
            return one_line(self.fault.message)
        others = "nobody else" if not self.others else f"{self.others} other"
        if self.others:
            others += " occupant" if self.others == 1 else " occupants"
        worked = (
            f"Everything works: in the room {one_line(self.place.room)} with {others}, "
            f"{self.seconds:.2f} s in all."
        )
        if self.created:
            worked += f" The room did not exist before and was made by joining it: {CREATED}"
        return worked


class Minutes:
    """Takes down what is found in each phase as the check goes; `on_phase` gets each at its end."""

    def __init__(self, on_phase: Callable[[PhaseReport], None] | None) -> None:
        self._on_phase = on_phase
        self.phases: list[PhaseReport] = []
        self.phase = ""
        """The phase under way."""
        self._began = 0.0
        self._findings: list[str] = []

    def begin(self, phase: str) -> None:
        """Begin a phase; the one before has ended."""
        self.phase, self._began = phase, time.perf_counter()

    def find(self, finding: str) -> None:
        """Note what was found."""
        self._findings.append(finding)

    def end(self, *, ok: bool, hint: str, ms: float | None = None) -> None:
        """End the phase, which took `ms`, or has taken as long as it has until now."""
        detail = one_line("; ".join(self._findings), MAX_DETAIL_CHARACTERS)
        self._findings.clear()
        took = self.milliseconds() if ms is None else ms
        report = PhaseReport(self.phase, ok, took, detail, one_line(hint))
        self.phases.append(report)
        if self._on_phase is not None:
            self._on_phase(report)

    def milliseconds(self) -> float:
        """How long the phase has taken so far."""
        return round((time.perf_counter() - self._began) * 1000, 3)
