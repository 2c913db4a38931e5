"""A check as a person reads it: what each phase found, and how long it took. Pure."""

from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING

from bridge.console.columns import TOO_NARROW, broken
from bridge.console.paint import Paint

if TYPE_CHECKING:
    from bridge.xmpp.probe import PhaseReport

NAME_WIDTH = 11
HEAD_WIDTH = NAME_WIDTH + len("FAILED") + len("99999.9 ms") + 3
"""Columns before what a stage found, or its bar."""

BAR_WIDTH = 40
"""Columns of the time axis; with the rest of a line they fit into 80."""

BLOCKS = "▏▎▍▌▋▊▉█"
"""An eighth of a column, two eighths, and so on."""


class CheckView:
    """Writes the stages of a check as lines for a terminal."""

    def __init__(self, paint: Paint, columns: int | None = None, *, blocks: bool = True) -> None:
        """`columns` is the width of the terminal, None for no end; without `blocks`, bars are #."""
        self._paint = paint
        self._columns = columns
        self._blocks = blocks

    def found(self, phase: "PhaseReport") -> str:
        """Return what a stage found, under one another where it is too long for a line."""
        if self._columns is None:
            return f"{self._head(phase)}  {phase.detail}".rstrip()
        rest = max(self._columns - HEAD_WIDTH - 1, TOO_NARROW)
        lines = broken(phase.detail, rest, rest)
        return "\n".join([f"{self._head(phase)}  {lines[0]}".rstrip(), *map(_indented, lines[1:])])

    def bars(self, phases: "Sequence[PhaseReport]") -> list[str]:
        """Return a line a phase, each with a bar on a time axis that they share, and the axis."""
        total = sum(phase.ms for phase in phases)
        lines = []
        began = 0.0
        for phase in phases:
            drawn = bar(began, phase.ms, total, blocks=self._blocks)
            painted = self._paint.green(drawn) if phase.ok else self._paint.red(drawn)
            lines.append(f"{self._head(phase)}  {painted}")
            began += phase.ms
        end = f"{total:.1f} ms"
        lines.append(self._paint.dim(_indented(f"0{end:>{BAR_WIDTH - 1}}")))
        return lines

    def verdict(self, diagnosis: str, hint: str, *, ok: bool) -> str:
        """Return the last lines: the outcome, and what to do."""
        said = self._paint.bold(diagnosis) if ok else self._paint.red(diagnosis)
        return f"{said}\n{hint}" if hint else said

    def spread(self, runs: "Sequence[Sequence[PhaseReport]]") -> list[str]:
        """Return a line a phase with the median and the worst of several runs."""
        lines = [f"{'':<{NAME_WIDTH}}{'passed':>9}{'median':>14}{'worst':>14}"]
        for name in dict.fromkeys(phase.name for run in runs for phase in run):
            seen = [phase for run in runs for phase in run if phase.name == name]
            times = [phase.ms for phase in seen]
            passed = f"{sum(phase.ok for phase in seen)}/{len(runs)}"
            lines.append(
                f"{name:<{NAME_WIDTH}}{passed:>9}{median(times):>11.1f} ms{max(times):>11.1f} ms"
            )
        return lines

    def _head(self, phase: "PhaseReport") -> str:
        mark = self._paint.green("ok    ") if phase.ok else self._paint.red("FAILED")
        return f"{phase.name:<{NAME_WIDTH}}{mark}{phase.ms:>8.1f} ms"


def bar(began: float, ms: float, total: float, *, blocks: bool = True) -> str:
    """Return a bar from `began`, `ms` long, on an axis of `total` milliseconds."""
    scale = BAR_WIDTH / total if total > 0 else 0.0
    start = min(int(began * scale), BAR_WIDTH - 1)
    most = (BAR_WIDTH - start) * 8
    full, eighths = divmod(min(max(1, round(ms * scale * 8)), most), 8)
    if not blocks:
        return " " * start + "#" * max(1, full)
    return " " * start + BLOCKS[-1] * full + (BLOCKS[eighths - 1] if eighths else "")


def _indented(line: str) -> str:
    return " " * HEAD_WIDTH + line
