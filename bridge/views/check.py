"""The check in a terminal: what each stage found, how long each took, and the outcome."""

import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import zip_longest
from statistics import median

from bridge.logs import complain, write_out
from bridge.settings.table import Configuration, Setting, Settings
from bridge.text import one_line
from bridge.views.monitoring import (
    Level,
    Limits,
    exposition,
    failures,
    plugin_line,
    plugin_result,
)
from bridge.views.output import READER_GONE, look_of
from bridge.views.screen import ERASE_LINE_ABOVE, Paint, hanging, moves_cursor
from bridge.xmpp.checks.probe import Probe
from bridge.xmpp.checks.report import CheckStage, Report, by_stage, expected_stages, unconfigured

NAME_WIDTH = 11
HEAD_WIDTH = NAME_WIDTH + len("FAILED") + len("99999.9 ms") + 3
"""Columns before what a stage found, or its bar."""

RUN_WIDTH = 6 + len("FAILED") + len("999999.9 ms") + 2
"""Columns before the reason why one run of several failed."""

SPREAD_WIDTH = NAME_WIDTH + 9 + 14 + 14 + 2
"""Columns before the bar of a median."""

BAR_WIDTH = 40
"""Columns of the time axis, at most."""

PIPE_COLUMNS = 80
"""Columns that a chart may take where no terminal limits them."""

MIN_BAR_WIDTH = 10
"""Columns of the shortest time axis that is worth drawing; with fewer there are no bars."""

PARAGRAPH_INDENT = 2
"""Columns by which the further lines of a paragraph are indented."""

BLOCKS = "▏▎▍▌▋▊▉█"
"""An eighth of a column, two eighths, and so on."""


class CheckView:
    """Writes the stages of a check as lines for a terminal.

    None is wider than the terminal, so that nothing a stranger wrote begins a line.
    """

    def __init__(
        self, paint: Paint, columns: Callable[[], int | None], *, blocks: bool = True
    ) -> None:
        """`columns` returns how wide the terminal is now; None stands for no terminal.

        Without `blocks`, bars are #.
        """
        self._paint = paint
        self._columns = columns
        self._blocks = blocks

    def title(self, rooms: Sequence[str]) -> list[str]:
        """Return the title."""
        where = one_line(rooms[0]) if len(rooms) == 1 else f"{len(rooms)} rooms"
        return self._paragraph(f"Checking the way into {where}")

    def stage_lines(self, stage: CheckStage, former: CheckStage | None = None) -> list[str]:
        """Return lines with what a stage found, behind its name, its outcome and its time.

        If the `former` stage was not in the same of several rooms, its name stands above.
        """
        lines = self._hanging(self._head(stage), HEAD_WIDTH, stage.detail)
        return self._under_rooms(lines, [stage.room], None if former is None else former.room)

    def bars(self, stages: Sequence[CheckStage]) -> list[str]:
        """Return a line a stage, each with a bar on a time axis that they share, and the axis."""
        rows = [(self._head(stage), stage.ms, stage.ok) for stage in stages]
        return self._under_rooms(self._chart(HEAD_WIDTH, rows), [stage.room for stage in stages])

    def verdict(self, report: Report) -> list[str]:
        """Return the last lines: the outcome, and what to do."""
        return self._conclusion(report.diagnosis, [report])

    def run(self, number: int, report: Report) -> list[str]:
        """Return the outcome of one run of several, and why it failed."""
        head = f"{number:>4}  {self._mark(ok=report.ok)}{report.ms:>8.1f} ms"
        stages = [one.name for one in report.phases if not one.ok and one.room is None]
        why = "" if report.ok else ": ".join([*stages, report.diagnosis])
        return self._hanging(head, RUN_WIDTH, why)

    def spread(self, reports: Sequence[Report]) -> list[str]:
        """Return a line a stage with the median and the worst of several runs.

        The bars are the medians', on a time axis that they share.
        """
        rows, taken = [], by_stage(reports)
        for (name, _), stages in taken.items():
            passed = sum(stage.ok for stage in stages)
            count = f"{passed}/{len(reports)}"
            middle, worst = _middle_and_worst(stages)
            head = f"{name:<{NAME_WIDTH}}{count:>9}{middle:>11.1f} ms{worst:>11.1f} ms"
            rows.append((head, middle, passed == len(reports)))
        title = f"{'':<{NAME_WIDTH}}{'passed':>9}{'median':>14}{'worst':>14}"
        chart = self._chart(SPREAD_WIDTH, rows)
        return [title, *self._under_rooms(chart, [room for _, room in taken])]

    def outcome(self, reports: Sequence[Report], times: int) -> list[str]:
        """Return the last lines of several runs; `times` were asked for."""
        passed = sum(report.ok for report in reports)
        text = f"{passed} of {len(reports)} passed."
        if len(reports) < times:
            text += f" {times} were asked for, but to try this again would do harm."
        return self._conclusion(text, reports)

    def _conclusion(self, text: str, reports: Sequence[Report]) -> list[str]:
        """Return `text`, and what to do after these runs: failures first, each advice once."""
        paint = self._paint.bold if all(report.ok for report in reports) else self._paint.red
        lines = list(map(paint, self._paragraph(text)))
        failed, passed = [], []
        for report in reports:
            conditions = {one.room: one.condition for one in report.rooms or ()}
            for stage in report.phases:
                if not stage.ok:
                    condition = conditions.get(stage.room or "", report.condition)
                    failed.append(f"[{condition}] {stage.hint}".rstrip())
                elif stage.hint and stage.hint not in report.diagnosis:
                    passed.append(f"{stage.name}: {stage.hint}")
        for advice in dict.fromkeys([*failed, *passed]):
            lines += self._paragraph(advice)
        return lines

    def _under_rooms(
        self, lines: Sequence[str], rooms: Sequence[str | None], former: str | None = None
    ) -> list[str]:
        """Return `lines` with the name of a room before its first line, unless it is the `former`.

        `rooms` has the room of each line, None if it is not in one of several, or past its end.
        """
        shown: list[str] = []
        for line, room in zip_longest(lines, rooms[: len(lines)]):
            if room is not None and room != former:
                shown += map(self._paint.bold, self._paragraph(room))
            former = room
            shown.append(line)
        return shown

    def _head(self, stage: CheckStage) -> str:
        return f"{stage.name:<{NAME_WIDTH}}{self._mark(ok=stage.ok)}{stage.ms:>8.1f} ms"

    def _mark(self, *, ok: bool) -> str:
        return self._verdict_colour("ok    " if ok else "FAILED", ok=ok)

    def _verdict_colour(self, text: str, *, ok: bool) -> str:
        return self._paint.green(text) if ok else self._paint.red(text)

    def _chart(self, indent: int, rows: Sequence[tuple[str, float, bool]]) -> list[str]:
        """Return the heads of `rows`, each with a bar of its milliseconds, and the axis.

        Where there is no room for bars, there is no axis either.
        """
        columns = min(BAR_WIDTH, (self._columns() or PIPE_COLUMNS) - indent)
        if columns < MIN_BAR_WIDTH:
            return [head for head, _, _ in rows]
        total, began = sum(ms for _, ms, _ in rows), 0.0
        lines = []
        for head, ms, ok in rows:
            drawn = bar(began, ms, total, columns, blocks=self._blocks)
            lines.append(f"{head}  {self._verdict_colour(drawn, ok=ok)}")
            began += ms
        end = f"{total:.1f} ms"
        return [*lines, self._paint.dim(f"{'':<{indent}}0{end:>{columns - 1}}")]

    def _hanging(self, head: str, used: int, text: str) -> list[str]:
        first, *rest = hanging(f"{head}  ", used, text, used, self._columns())
        return [first.rstrip(), *rest]

    def _paragraph(self, text: str) -> list[str]:
        return hanging("", 0, text, PARAGRAPH_INDENT, self._columns())


def _middle_and_worst(stages: Sequence[CheckStage]) -> tuple[float, float]:
    """Return the median and the worst of the milliseconds of a stage."""
    times = [stage.ms for stage in stages]
    return median(times), max(times)


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


async def check(
    settings: Settings,
    first: CheckStage,
    *,
    send: bool,
    form: str,
    times: int,
    limits: Limits,
    in_effect: Iterable[Setting],
) -> Level:
    """Check so many times, and write the outcome to stdout; return how things stand.

    `first` is the stage before the connection's: reading the settings. `form` is one of the formats
    of the command line. Where the outcome cannot be written, it is unknown. When nobody reads
    stdout any more, no further run is begun.
    """
    probe = Probe(settings)
    reports: list[Report] = []
    screen = _Screen(expected_stages(settings.rooms, send=send))

    async def run() -> AsyncIterator[Report]:
        """Check as often as asked for, but not after a refused password, which locks accounts."""
        while len(reports) < times and probe.may_repeat and not (reports and screen.error):
            reports.append(await probe.run(send=send))
            yield reports[-1]

    if form != "text":
        async for _ in run():
            pass
    elif times == 1:
        screen.put(screen.view.title(settings.rooms))
        screen.show_stage(first)
        reports.append(await probe.run(screen.show_stage, send=send))
        screen.show_verdict(reports[0])
    else:
        screen.put(screen.view.title(settings.rooms))
        screen.put([*screen.view.stage_lines(first), ""])
        async for report in run():
            screen.put(screen.view.run(len(reports), report))
        screen.put(["", *screen.view.spread(reports), ""])
        screen.put(screen.view.outcome(reports, times))
    level, reasons = limits.judge(reports, now := datetime.now(UTC))
    match form:
        case "text":
            told = reasons
        case "json":
            shown = _json(first, reports, times) | ({"warnings": reasons} if reasons else {})
            told = [json.dumps(shown | {"settings": [asdict(one) for one in in_effect]})]
        case "prometheus":
            told = exposition(settings.rooms, reports, now)
            reasons = [*failures(reports), *reasons]
        case "nagios":
            told = [plugin_result(reports, limits, now)]
    if told:
        screen.put(told)
    if reasons and level is Level.CRITICAL and form in {"json", "prometheus"}:
        # Whoever sees the exit code would look for the reason among stages that passed.
        complain("\n".join(f"xmpp-bridge: {reason}" for reason in reasons))
    if screen.error is not None and screen.error.errno not in READER_GONE:
        complain(f"xmpp-bridge: stdout cannot be written: {screen.error.strerror}")
        return Level.UNKNOWN
    return level


def show_unconfigured(configuration: Configuration, first: CheckStage, form: str) -> None:
    """Write the problems of the settings in the shape of any other check; as text, nothing."""
    report = unconfigured(configuration, first)
    match form:
        case "json":
            problems = [one_line(str(problem)) for problem in configuration.problems]
            shown = report.encode() | {"problems": problems}
            settings = [asdict(one) for one in configuration.in_effect.values()]
            write_out(json.dumps(shown | {"settings": settings}))
        case "prometheus":
            write_out("\n".join(exposition([""], [report], datetime.now(UTC))))
        case "nagios":
            write_out(plugin_line(Level.UNKNOWN, report.diagnosis))


class _Screen:
    """Writes lines to stdout; on a terminal, under them the stage that is under way."""

    def __init__(self, expected: Sequence[tuple[str, str | None]]) -> None:
        """`expected` has the name and the room of each stage of a check in which all goes well."""
        stdout = sys.stdout
        self.error: OSError | None = None
        """Why stdout cannot be written any more."""
        self._moves_cursor = moves_cursor(terminal=stdout.isatty(), environ=os.environ)
        blocks = stdout.encoding.lower().startswith("utf")
        self.view = CheckView(*look_of(stdout), blocks=blocks)
        self._expected = expected
        self._stages: list[CheckStage] = []
        self._erase = ""

    def put(self, lines: Sequence[str], under_way: str = "") -> None:
        """Write lines in the place of the stage that was under way, and under them the next."""
        erase, self._erase = self._erase, ""
        if under_way and self._moves_cursor:
            lines = [*lines, f"{under_way:<{NAME_WIDTH}}..."]
            self._erase = ERASE_LINE_ABOVE
        failed = write_out(erase + "\n".join(lines))
        self.error = self.error or failed

    def show_stage(self, stage: CheckStage) -> None:
        """Write what a stage found."""
        lines = self.view.stage_lines(stage, self._stages[-1] if self._stages else None)
        self._stages.append(stage)
        self.put(lines, self._after(stage))

    def _after(self, stage: CheckStage) -> str:
        """Return the name of the stage after `stage`; an empty one if it is the last."""
        for name, room in self._expected[self._expected.index((stage.name, stage.room)) + 1 :]:
            if stage.ok or (stage.room is not None and room != stage.room):
                return name
        return ""

    def show_verdict(self, report: Report) -> None:
        """Write the bars, and the outcome."""
        self.put(["", *self.view.bars(self._stages), "", *self.view.verdict(report)])


def _json(first: CheckStage, reports: Sequence[Report], times: int) -> dict[str, object]:
    """Return the reports of so many runs as JSON shows them, each preceded by `first`."""
    runs = [report.preceded_by(first).encode() | {"problems": []} for report in reports]
    if times == 1:
        return runs[0]
    taken = {
        " ".join(filter(None, name)): _middle_and_worst(stages)
        for name, stages in by_stage(reports).items()
    }
    return {
        "ok": all(report.ok for report in reports),
        "runs": runs,
        "medianMs": {stage: round(middle, 3) for stage, (middle, _) in taken.items()},
        "worstMs": {stage: worst for stage, (_, worst) in taken.items()},
    }
