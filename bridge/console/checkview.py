"""A check as a person reads it: what each stage found, and how long it took. Pure."""

from collections.abc import Sequence
from statistics import median

from bridge.console.columns import broken
from bridge.console.paint import Paint
from bridge.escaping import one_line
from bridge.xmpp.report import CheckPhase, Report

NAME_WIDTH = 11
HEAD_WIDTH = NAME_WIDTH + len("FAILED") + len("99999.9 ms") + 3
"""Columns before what a stage found, or its bar."""

RUN_WIDTH = 6 + len("FAILED") + len("999999.9 ms") + 2
"""Columns before what broke one run of several."""

SPREAD_WIDTH = NAME_WIDTH + 9 + 14 + 14 + 2
"""Columns before the bar of a median."""

BAR_WIDTH = 40
"""Columns of the time axis, at most."""

PAGE = 80
"""Columns of what is not written to a terminal."""

MIN_BAR_WIDTH = 10
"""Columns of a time axis that still tells something; a terminal with fewer has no bars."""

CONTINUED = 2
"""Columns by which what belongs to the line above is indented."""

BLOCKS = "▏▎▍▌▋▊▉█"
"""An eighth of a column, two eighths, and so on."""


class CheckView:
    """Writes the stages of a check as lines for a terminal.

    The terminal breaks none of them itself, so that nothing a stranger wrote begins one.
    """

    def __init__(self, paint: Paint, columns: int | None = None, *, blocks: bool = True) -> None:
        """`columns` is the width of the terminal, None for no end; without `blocks`, bars are #."""
        self._paint = paint
        self._columns = columns
        self._blocks = blocks

    def title(self, room: str) -> list[str]:
        """Return what stands above it all."""
        return self._laid_out("", 0, f"Checking the way into {one_line(room)}", CONTINUED)

    def found(self, phase: CheckPhase) -> list[str]:
        """Return what a stage found, under one another where it is too long for a line."""
        return self._laid_out(self._head(phase), HEAD_WIDTH, phase.detail, HEAD_WIDTH)

    def bars(self, phases: Sequence[CheckPhase], under_way: str = "") -> list[str]:
        """Return a line a stage, each with a bar on a time axis that they share, and the axis.

        A stage that is still `under_way` has a line, too.
        """
        axis = self._axis(HEAD_WIDTH, [phase.ms for phase in phases])
        lines = [
            f"{self._head(phase)}  {self._verdict_colour(drawn, ok=phase.ok)}".rstrip()
            for phase, drawn in zip(phases, axis, strict=False)
        ]
        if under_way:
            lines.append(f"{under_way:<{NAME_WIDTH}}{self._paint.dim('...')}")
        return [*lines, *map(self._paint.dim, axis[len(phases) :])]

    def verdict(self, report: Report) -> list[str]:
        """Return the last lines: the outcome, and what to do."""
        return [*self._outcome(report.diagnosis, ok=report.ok), *self._advice([report])]

    def run(self, number: int, report: Report) -> list[str]:
        """Return how one run of several went."""
        head = f"{number:>4}  {self._mark(ok=report.ok)}{report.ms:>8.1f} ms"
        why = "" if report.ok else f"{report.phases[-1].name}: {report.diagnosis}"
        return self._laid_out(head, RUN_WIDTH, why, RUN_WIDTH)

    def spread(self, reports: Sequence[Report]) -> list[str]:
        """Return a line a stage with the median and the worst of several runs.

        The bars are the medians', on a time axis that they share.
        """
        taken = times_of(reports)
        axis = self._axis(SPREAD_WIDTH, [median(times) for times in taken.values()])
        lines = [f"{'':<{NAME_WIDTH}}{'passed':>9}{'median':>14}{'worst':>14}"]
        for (name, times), drawn in zip(taken.items(), axis, strict=False):
            passed = sum(
                phase.ok for report in reports for phase in report.phases if phase.name == name
            )
            count = f"{passed}/{len(reports)}"
            lines.append(
                f"{name:<{NAME_WIDTH}}{count:>9}{median(times):>11.1f} ms{max(times):>11.1f} ms"
                f"  {self._verdict_colour(drawn, ok=passed == len(reports))}".rstrip()
            )
        return [*lines, *map(self._paint.dim, axis[len(taken) :])]

    def outcome(self, reports: Sequence[Report], times: int) -> list[str]:
        """Return the last lines of as many of `times` runs as there were."""
        passed = sum(report.ok for report in reports)
        text = f"{passed} of {len(reports)} passed."
        if len(reports) < times:
            text += f" {times} were asked for, but to try this again would do harm."
        return [*self._outcome(text, ok=passed == len(reports)), *self._advice(reports)]

    def _outcome(self, text: str, *, ok: bool) -> list[str]:
        paint = self._paint.bold if ok else self._paint.red
        return list(map(paint, self._laid_out("", 0, text, CONTINUED)))

    def _advice(self, reports: Sequence[Report]) -> list[str]:
        """Return what to do after these runs, what failed first, each piece of advice once."""
        failed, passed = [], []
        for report in reports:
            for phase in report.phases:
                if not phase.ok:
                    failed.append(f"[{report.condition}] {phase.hint}".rstrip())
                elif phase.hint and phase.hint not in report.diagnosis:
                    passed.append(f"{phase.name}: {phase.hint}")
        return [
            line
            for text in dict.fromkeys([*failed, *passed])
            for line in self._laid_out("", 0, text, CONTINUED)
        ]

    def _head(self, phase: CheckPhase) -> str:
        return f"{phase.name:<{NAME_WIDTH}}{self._mark(ok=phase.ok)}{phase.ms:>8.1f} ms"

    def _mark(self, *, ok: bool) -> str:
        return self._verdict_colour("ok    " if ok else "FAILED", ok=ok)

    def _verdict_colour(self, text: str, *, ok: bool) -> str:
        return self._paint.green(text) if ok else self._paint.red(text)

    def _axis(self, indent: int, times: Sequence[float]) -> list[str]:
        """Return a bar for each time, and the axis; empty ones and none where there is no room."""
        columns = min(BAR_WIDTH, (self._columns or PAGE) - indent)
        if columns < MIN_BAR_WIDTH:
            return [""] * len(times)
        total = sum(times)
        bars = [
            bar(sum(times[:number]), ms, total, columns, blocks=self._blocks)
            for number, ms in enumerate(times)
        ]
        end = f"{total:.1f} ms"
        return [*bars, f"{'':<{indent}}0{end:>{columns - 1}}"]

    def _laid_out(self, head: str, used: int, text: str, indent: int) -> list[str]:
        """Return `text` behind a `head` of `used` columns with blanks, or under it."""
        start = head + "  " if head else ""
        if self._columns is None:
            return [f"{start}{text}".rstrip()]
        within = min(indent, self._columns // 2)
        first, *rest = broken(text, self._columns - used, max(self._columns - within, 2))
        return [f"{start}{first}".rstrip(), *(" " * within + line for line in rest)]


def times_of(reports: Sequence[Report]) -> dict[str, list[float]]:
    """Return the milliseconds that each stage took, in every run that came so far."""
    times: dict[str, list[float]] = {}
    for report in reports:
        for phase in report.phases:
            times.setdefault(phase.name, []).append(phase.ms)
    return times


def bar(began: float, ms: float, total: float, columns: int, *, blocks: bool = True) -> str:
    """Return a bar from `began`, `ms` long, on an axis of `total` milliseconds and `columns`.

    However short the time, there is a mark.
    """
    if total <= 0:
        began, total = 0.0, 1.0
    start = min(int(began / total * columns), columns - 1)
    length = round(ms / total * columns * len(BLOCKS))
    full, eighths = divmod(min(max(1, length), (columns - start) * len(BLOCKS)), len(BLOCKS))
    if not blocks:
        return " " * start + "#" * max(1, full)
    return " " * start + BLOCKS[-1] * full + (BLOCKS[eighths - 1] if eighths else "")
