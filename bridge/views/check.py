"""The check in a terminal: what each stage found, how long each took, and the outcome."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from statistics import median

from bridge.logs import complain, write_out
from bridge.settings.table import Configuration
from bridge.text import one_line
from bridge.views import monitoring
from bridge.views.monitoring import Level, Limits
from bridge.views.output import complain_of, display_of
from bridge.views.screen import ERASE_LINE_ABOVE, Display, moves_cursor
from bridge.xmpp.checks.probe import probe
from bridge.xmpp.checks.report import CheckStage, Report, by_stage, expected_stages, unconfigured

NAME_WIDTH = 11
HEAD_WIDTH = NAME_WIDTH + len("FAILED") + len("99999.9 ms") + 3
"""Columns before what a stage found."""

RUN_WIDTH = 6 + len("FAILED") + len("999999.9 ms") + 2
"""Columns before the reason why one run of several failed."""


@dataclass(eq=False)
class CheckView:
    """Writes the stages of a check as lines for a terminal.

    Long lines are broken and indented here: if the terminal broke them, text that a stranger wrote
    could begin a line.
    """

    display: Display

    def title(self, rooms: Sequence[str]) -> list[str]:
        """Return the title."""
        where = one_line(rooms[0]) if len(rooms) == 1 else f"{len(rooms)} rooms"
        return self.display.paragraph(f"Checking the way into {where}")

    def stage_lines(self, stage: CheckStage, former: CheckStage | None = None) -> list[str]:
        """Return lines with the name, the outcome and the time of a stage, and what it found.

        If there are several rooms, a line with the name of the stage's room comes first, unless the
        `former` stage was in the same room.
        """
        head = f"{stage.name:<{NAME_WIDTH}}{self.display.mark(ok=stage.ok)}{stage.ms:>8.1f} ms"
        heading = self._heading(stage.room, former.room if former else None)
        return [*heading, *self._hanging(head, HEAD_WIDTH, stage.detail)]

    def verdict(self, report: Report) -> list[str]:
        """Return the last lines: the outcome, and what to do."""
        return self._conclusion(report.diagnosis, [report])

    def run(self, number: int, report: Report) -> list[str]:
        """Return the outcome of one run of several, and why it failed."""
        head = f"{number:>4}  {self.display.mark(ok=report.ok)}{report.ms:>8.1f} ms"
        stages = [stage.name for stage in report.phases if not stage.ok and stage.room is None]
        why = "" if report.ok else ": ".join([*stages, report.diagnosis])
        return self._hanging(head, RUN_WIDTH, why)

    def spread(self, reports: Sequence[Report]) -> list[str]:
        """Return a line for each stage, with the median and the worst time of several runs."""
        lines = [f"{'':<{NAME_WIDTH}}{'passed':>9}{'median':>14}{'worst':>14}"]
        former = None
        for (name, room), stages in by_stage(reports).items():
            passed = sum(stage.ok for stage in stages)
            middle, worst = _middle_and_worst(stages)
            head = f"{name:<{NAME_WIDTH}}{f'{passed}/{len(reports)}':>9}"
            head += f"{middle:>11.1f} ms{worst:>11.1f} ms"
            lines += [*self._heading(room, former), head]
            former = room
        return lines

    def outcome(self, reports: Sequence[Report], times: int) -> list[str]:
        """Return the last lines of several runs; `times` were asked for."""
        text = f"{sum(report.ok for report in reports)} of {len(reports)} passed."
        if len(reports) < times:
            text += f" {times} were asked for, but to try this again would do harm."
        # Servers may keep the room for a while, so that the later runs did not make it.
        text += next((report.remarks for report in reports if report.remarks), "")
        return self._conclusion(text, reports)

    def _conclusion(self, text: str, reports: Sequence[Report]) -> list[str]:
        """Return `text`, and what to do after these runs: failures first, each advice once."""
        paint = self.display.bold if all(report.ok for report in reports) else self.display.red
        failed, passed = [], []
        for report in reports:
            conditions = {room.room: room.condition for room in report.rooms or ()}
            for stage in report.phases:
                if not stage.ok:
                    condition = conditions.get(stage.room or "", report.condition)
                    failed.append(f"[{condition}] {stage.hint}".rstrip())
                elif stage.hint and stage.hint not in report.diagnosis:
                    passed.append(f"{stage.name}: {stage.hint}")
        lines = [*map(paint, self.display.paragraph(text))]
        for advice in dict.fromkeys([*failed, *passed]):
            lines += self.display.paragraph(advice)
        return lines

    def _heading(self, room: str | None, former: str | None) -> list[str]:
        """Return the name of a stage's room, unless the `former` stage was in the same room.

        The room is None if the stage belongs to no room, or there is only one.
        """
        if room in (None, former):
            return []
        return [*map(self.display.bold, self.display.paragraph(room))]

    def _hanging(self, head: str, used: int, text: str) -> list[str]:
        first, *rest = self.display.hanging(f"{head}  ", used, text, used)
        return [first.rstrip(), *rest]


def _middle_and_worst(stages: Sequence[CheckStage]) -> tuple[float, float]:
    """Return the median and the worst of the milliseconds of a stage."""
    times = [stage.ms for stage in stages]
    return median(times), max(times)


async def check(
    configuration: Configuration, first: CheckStage, parsed: argparse.Namespace
) -> Level:
    """Check as often as asked for, write the outcome to stdout, and return the service's level.

    `first` is the stage before the connection's: reading the settings. `parsed` has the options of
    the command line. If stdout cannot be written, the level is `UNKNOWN`. When nobody reads stdout
    any more, no further run is begun.
    """
    settings, send, form, times = configuration.settings, parsed.send, parsed.format, parsed.repeat
    assert settings is not None
    limits = Limits(parsed.warn, parsed.crit, parsed.cert_days)
    reports: list[Report] = []
    screen = _Screen(expected_stages(settings.rooms, send=send))
    view = screen.view
    say = screen.put if form == "text" else lambda lines: None
    show = screen.show_stage if form == "text" and times == 1 else lambda stage: None
    say(view.title(settings.rooms))
    show(first)
    if times > 1:
        say([*view.stage_lines(first), ""])
    # No further run after a refused password: servers lock accounts after several.
    while not reports or (len(reports) < times and reports[-1].may_repeat and not screen.error):
        reports.append(await probe(settings, show, send=send, must_exist=parsed.room_must_exist))
        if times > 1:
            say(view.run(len(reports), reports[-1]))
    if times > 1:
        say(["", *view.spread(reports), "", *view.outcome(reports, times)])
    else:
        say(["", *view.verdict(reports[0])])
    level, reasons = limits.judge(reports, now := datetime.now(UTC))
    match form:
        case "text":
            lines = reasons
        case "json":
            encoded = _json(first, reports, times) | ({"warnings": reasons} if reasons else {})
            lines = [json.dumps(encoded | _in_effect(configuration))]
        case "prometheus":
            lines = monitoring.exposition(settings.rooms, reports, now)
            reasons = [*monitoring.failures(reports), *reasons]
        case "nagios":
            lines = [monitoring.plugin_result(reports, limits, now)]
    if lines:
        screen.put(lines)
    if reasons and level is Level.CRITICAL and form in {"json", "prometheus"}:
        # The exit code says that something failed, though all stages may have passed: say why.
        complain("\n".join(f"xmpp-bridge: {reason}" for reason in reasons))
    return Level.UNKNOWN if complain_of(screen.error) else level


def show_unconfigured(configuration: Configuration, first: CheckStage, form: str) -> None:
    """Write the problems of the settings in the format of a check; as text, write nothing."""
    report = unconfigured(configuration, first)
    match form:
        case "json":
            problems = [one_line(str(problem)) for problem in configuration.problems]
            encoded = report.encode() | {"problems": problems} | _in_effect(configuration)
            write_out(json.dumps(encoded))
        case "prometheus":
            write_out("\n".join(monitoring.exposition([""], [report], datetime.now(UTC))))
        case "nagios":
            write_out(monitoring.plugin_line(Level.UNKNOWN, report.diagnosis))


def _in_effect(configuration: Configuration) -> dict[str, object]:
    return {"settings": [asdict(setting) for setting in configuration.in_effect.values()]}


class _Screen:
    """Writes lines to stdout. On a terminal, the last line names the stage that is under way."""

    def __init__(self, expected: Sequence[tuple[str, str | None]]) -> None:
        """`expected` has the name and the room of each stage of a check in which all goes well."""
        stdout = sys.stdout
        self.error: OSError | None = None
        """Why stdout cannot be written any more."""
        self._moves_cursor = moves_cursor(terminal=stdout.isatty(), environ=os.environ)
        self.view = CheckView(display_of(stdout))
        self._expected = expected
        self._former: CheckStage | None = None
        self._erase = ""

    def put(self, lines: Sequence[str], under_way: str = "") -> None:
        """Write lines in place of the stage that was under way, and `under_way` below them."""
        erase, self._erase = self._erase, ""
        if under_way and self._moves_cursor:
            lines = [*lines, f"{under_way:<{NAME_WIDTH}}..."]
            self._erase = ERASE_LINE_ABOVE
        problem = write_out(erase + "\n".join(lines))
        self.error = self.error or problem

    def show_stage(self, stage: CheckStage) -> None:
        """Write what a stage found, and which one comes next."""
        lines = self.view.stage_lines(stage, self._former)
        self._former = stage
        following = self._expected[self._expected.index((stage.name, stage.room)) + 1 :]
        if not stage.ok:  # the other stages of its room are left out, or all if it has none
            following = [each for each in following if stage.room not in (None, each[1])]
        self.put(lines, following[0][0] if following else "")


def _json(first: CheckStage, reports: Sequence[Report], times: int) -> dict[str, object]:
    """Return the reports of `times` runs as JSON shows them, each with the stage `first`."""
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
