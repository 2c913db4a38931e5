"""The check in a terminal: what each stage found, how long each took, and the outcome."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict
from statistics import median
from typing import cast

from bridge.console.output import Output, terminal_size
from bridge.console.screen import Footer, Paint, hanging, has_colour, moves_cursor
from bridge.escaping import one_line
from bridge.log import complain
from bridge.mcp.schema import render
from bridge.settings.table import Configuration, Setting, Settings
from bridge.xmpp.probe import Probe
from bridge.xmpp.report import PHASES, SETTINGS, CheckPhase, Report, unconfigured

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
        return self._paragraph(f"Checking the way into {one_line(room)}")

    def found(self, phase: CheckPhase) -> list[str]:
        """Return what a stage found, under one another where it is too long for a line."""
        return self._hanging(self._head(phase), HEAD_WIDTH, phase.detail)

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
        return self._hanging(head, RUN_WIDTH, why)

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
        return list(map(paint, self._paragraph(text)))

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
            line for text in dict.fromkeys([*failed, *passed]) for line in self._paragraph(text)
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

    def _hanging(self, head: str, used: int, text: str) -> list[str]:
        first, *rest = hanging(f"{head}  ", used, text, used, self._columns)
        return [first.rstrip(), *rest]

    def _paragraph(self, text: str) -> list[str]:
        return hanging("", 0, text, CONTINUED, self._columns)


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


async def check(
    settings: Settings,
    first: CheckPhase,
    *,
    send: bool,
    as_json: bool,
    times: int,
    environ: Mapping[str, str],
    in_effect: Iterable[Setting],
) -> bool:
    """Check so many times, and write to stdout how it went; return whether every stage passed.

    `first` is the stage before the connection's: reading the settings. Whatever cannot be written
    counts as not passed. When nobody reads stdout any more, no further run is begun.
    """
    unread = asyncio.Event()
    probe = Probe(settings)
    reports: list[Report] = []

    async def run(on_phase: Callable[[CheckPhase], None] | None = None) -> Report | None:
        """Check once more, if all goes on: not after a refused password, which locks accounts."""
        if len(reports) == times or not probe.may_repeat or (reports and unread.is_set()):
            return None
        reports.append(await probe.run(on_phase, send=send))
        return reports[-1]

    async with _stdout(unread.set) as output:
        if as_json:
            while await run():
                pass
            shown = _json(first, reports, times) | {"settings": _listed(in_effect)}
            output.write(json.dumps(shown))
        else:
            screen = _Screen(output, environ)
            screen.put(screen.view.title(settings.room))
            if times == 1:
                await _run_once(screen, first, run, send=send)
            else:
                screen.put([*screen.view.found(first), ""])
                while report := await run():
                    screen.put(screen.view.run(len(reports), report))
                screen.put(["", *screen.view.spread(reports), ""])
                screen.put(screen.view.outcome(reports, times))
    if output.error is not None:
        complain(f"xmpp-bridge: stdout cannot be written: {output.error.strerror}")
    return all(report.ok for report in reports) and output.error is None


async def show_unconfigured(configuration: Configuration, first: CheckPhase) -> None:
    """Write as JSON that the settings do not do, in the shape of any other check."""
    problems = [one_line(str(problem)) for problem in configuration.problems]
    shown = _object(unconfigured(configuration, first), problems)
    async with _stdout(lambda: None) as output:
        output.write(json.dumps(shown | {"settings": _listed(configuration.in_effect.values())}))


class _Screen:
    """Writes lines to stdout; on a terminal that can move its cursor, with a footer under them."""

    def __init__(self, output: Output, environ: Mapping[str, str]) -> None:
        stdout = sys.stdout
        self._output = output
        self._descriptor = stdout.fileno()
        self._terminal = stdout.isatty()
        self._moves_cursor = moves_cursor(terminal=self._terminal, environ=environ)
        self._paint = Paint(has_colour(terminal=self._terminal, environ=environ))
        self._blocks = _can_encode(BLOCKS, stdout.encoding)
        self._footer = Footer()

    @property
    def view(self) -> CheckView:
        """The view for the terminal as wide as it is now."""
        columns = terminal_size(self._descriptor).columns if self._terminal else None
        return CheckView(self._paint, columns, blocks=self._blocks)

    def put(self, lines: Sequence[str], footer: Sequence[str] = ()) -> None:
        """Write lines in the place of the footer, and a new footer under them."""
        columns, rows = terminal_size(self._descriptor) if self._moves_cursor else (0, 0)
        if columns < HEAD_WIDTH + MIN_BAR_WIDTH:  # the terminal would break lines itself
            footer = ()
        self._output.write(self._footer.replaced(lines, footer, (columns, rows)))


async def _run_once(
    screen: _Screen,
    first: CheckPhase,
    run: Callable[[Callable[[CheckPhase], None]], Awaitable[Report | None]],
    *,
    send: bool,
) -> None:
    """Write what each stage found, and under it the bars as far as the check has come."""
    stages = [SETTINGS, *(one for one in PHASES if send or one != "send"), ""]
    phases: list[CheckPhase] = []

    def note(phase: CheckPhase) -> None:
        phases.append(phase)
        under_way = stages[len(phases)] if phase.ok else ""
        screen.put(screen.view.found(phase), ["", *screen.view.bars(phases, under_way)])

    note(first)
    if report := await run(note):
        screen.put(["", *screen.view.bars(phases), "", *screen.view.verdict(report)])


def _json(first: CheckPhase, reports: Sequence[Report], times: int) -> dict[str, object]:
    """Return the reports of so many runs as JSON shows them, each preceded by `first`."""
    runs = [_object(report.preceded_by(first)) for report in reports]
    if times == 1:
        return runs[0]
    taken = times_of(reports)
    return {
        "ok": all(report.ok for report in reports),
        "runs": runs,
        "medianMs": {name: round(median(each), 3) for name, each in taken.items()},
        "worstMs": {name: max(each) for name, each in taken.items()},
    }


def _object(report: Report, problems: Sequence[str] = ()) -> dict[str, object]:
    """Return the report as JSON shows it, with the `problems` of the settings."""
    return cast(dict[str, object], render(report)) | {"problems": list(problems)}


def _listed(in_effect: Iterable[Setting]) -> list[dict[str, str]]:
    return [asdict(one) for one in in_effect]


@asynccontextmanager
async def _stdout(ended: Callable[[], None]) -> AsyncIterator[Output]:
    """Write to stdout without dropping anything: there is no more than was asked for."""
    stdout = sys.stdout
    output = Output(stdout.fileno(), None, ended, encoding=stdout.encoding, max_waiting=sys.maxsize)
    try:
        yield output
        await output.flush()
    finally:
        output.close()


def _can_encode(text: str, encoding: str) -> bool:
    with suppress(UnicodeEncodeError):
        return bool(text.encode(encoding))
    return False
