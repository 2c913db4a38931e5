"""The check in a terminal: the stages as they complete, then what they come to."""

import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from statistics import median

from bridge.config import Configuration, Settings
from bridge.console.checkview import BLOCKS, CheckView
from bridge.console.output import Output
from bridge.console.paint import Paint, is_wanted
from bridge.escaping import one_line
from bridge.xmpp.probe import PhaseReport, Probe, Report


async def check(
    settings: Settings,
    first: PhaseReport,
    *,
    send: bool,
    as_json: bool,
    times: int,
    environ: Mapping[str, str],
) -> bool:
    """Check so many times, and write to stdout how it went; return whether every stage passed.

    `first` is the stage before the connection's: reading the settings.
    """
    stdout = sys.stdout
    output = Output(stdout.fileno(), None, lambda: None, encoding=stdout.encoding)
    paint = Paint(is_wanted(terminal=stdout.isatty(), environ=environ))
    columns = os.get_terminal_size(stdout.fileno()).columns if stdout.isatty() else None
    view = CheckView(paint, columns, blocks=_can_write(BLOCKS, stdout.encoding))
    checking = _Checking(settings, first, output.put, view)
    try:
        if as_json:
            return await checking.as_json(times, send=send)
        if times > 1:
            return await checking.often(times, send=send)
        return await checking.once(send=send)
    finally:
        output.close()


class _Checking:
    """Checks as often as it is told to, and writes how it goes."""

    def __init__(
        self, settings: Settings, first: PhaseReport, write: Callable[[str], None], view: CheckView
    ) -> None:
        self._probe = Probe(settings)
        self._settings = settings
        self._first = first
        self._write = write
        self._view = view

    async def once(self, *, send: bool) -> bool:
        """Check once; return whether every stage passed."""
        self._write(f"Checking the way into {one_line(self._settings.room)}")
        report = await self._run(send=send, drawn=True)
        self._write("")
        hint = report.phases[-1].hint if not report.ok else ""
        self._write(self._view.verdict(report.diagnosis, hint, ok=report.ok))
        for phase in report.phases:
            if phase.ok and phase.hint:
                self._write(f"{phase.name}: {phase.hint}")
        return report.ok

    async def often(self, times: int, *, send: bool) -> bool:
        """Check so many times; write the median and the worst of each stage."""
        reports = []
        for number in range(1, times + 1):
            report = await self._run(send=send, drawn=False)
            self._write(f"{number:>4}  {report.seconds * 1000:8.1f} ms  {report.diagnosis}")
            reports.append(report)
        self._write("")
        for line in self._view.spread([report.phases for report in reports]):
            self._write(line)
        return all(report.ok for report in reports)

    async def as_json(self, times: int, *, send: bool) -> bool:
        """Check so many times; write one object."""
        reports = [await self._probe.run(send=send) for _ in range(times)]
        runs = [self._told(report) for report in reports]
        self._write(json.dumps(runs[0] if times == 1 else {"runs": runs, **_spread(reports)}))
        return all(report.ok for report in reports)

    async def _run(self, *, send: bool, drawn: bool) -> Report:
        phases = [self._first]
        if drawn:
            self._write(self._view.found(self._first))

        def note(phase: PhaseReport) -> None:
            phases.append(phase)
            if drawn:
                self._write(self._view.found(phase))

        report = await self._probe.run(note, send=send)
        if drawn:
            self._write("")
            for line in self._view.bars(phases):
                self._write(line)
        return report

    def _told(self, report: Report) -> dict[str, object]:
        phases = [asdict(phase) for phase in (self._first, *report.phases)]
        return {
            "ok": report.ok,
            "phases": phases,
            "diagnosis": report.diagnosis,
            "condition": None if report.fault is None else report.fault.condition,
            "roomCreated": report.created,
            "ms": round(report.seconds * 1000, 3),
        }


def of_settings(configuration: Configuration, seconds: float) -> PhaseReport:
    """Return where the settings come from, and what is wrong with them."""
    found = [f"{one.path}: {one.reason}" for one in configuration.candidates]
    found += [f"warning: {one}" for one in configuration.warnings]
    found += [str(problem) for problem in configuration.problems]
    ok = configuration.settings is not None
    hint = "" if ok else "Mend what is named there."
    return PhaseReport(
        "settings",
        ok,
        round(seconds * 1000, 3),
        one_line("; ".join(found) or "from the environment alone"),
        hint,
    )


def _spread(reports: list[Report]) -> dict[str, object]:
    times: dict[str, list[float]] = {}
    for report in reports:
        for phase in report.phases:
            times.setdefault(phase.name, []).append(phase.ms)
    return {
        "medianMs": {name: round(median(taken), 3) for name, taken in times.items()},
        "worstMs": {name: max(taken) for name, taken in times.items()},
    }


def _can_write(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True
