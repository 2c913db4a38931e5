"""The check in a terminal: what each stage found, how long each took, and the outcome."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from statistics import median

from bridge.logs import complain, complain_of, write_out
from bridge.mcp.jsonrpc import Object
from bridge.settings.table import Configuration
from bridge.text import one_line
from bridge.views import monitoring, results
from bridge.views.monitoring import Level, Limits
from bridge.views.output import display_of
from bridge.views.screen import ERASE_LINE_ABOVE, Display, moves_cursor
from bridge.xmpp.checks.probe import probe
from bridge.xmpp.checks.report import (
    SETTINGS,
    CheckStage,
    Report,
    by_stage,
    expected_stages,
    unconfigured,
)


def title(rooms: Sequence[str], display: Display) -> list[str]:
    """Return the title of a check."""
    where = one_line(rooms[0]) if len(rooms) == 1 else f"{len(rooms)} rooms"
    return display.paragraph(f"Checking the way into {where}")


def run_lines(number: int, report: Report, display: Display) -> list[str]:
    """Return the outcome of one run of several, and why it failed."""
    stages = [stage.name for stage in report.phases if not stage.ok and stage.room is None]
    why = "" if report.ok else ": ".join([*stages, report.diagnosis])
    named = {"name": f"run {number}", "ok": report.ok, "ms": report.ms, "detail": why}
    return results.row(named, display)


def spread(reports: Sequence[Report], display: Display) -> list[str]:
    """Return a line for each stage, with the median and the worst time of several runs."""
    width = results.NAME_WIDTH
    lines = [f"{'':<{width}}{'passed':>9}{'median':>14}{'worst':>14}"]
    former = None
    for (name, room), stages in by_stage(reports).items():
        passed = sum(stage.ok for stage in stages)
        middle, worst = _middle_and_worst(stages)
        head = f"{name:<{width}}{f'{passed}/{len(reports)}':>9}"
        head += f"{middle:>11.1f} ms{worst:>11.1f} ms"
        lines += [*results.heading(room, former, display), head]
        former = room
    return lines


def several_outcome(reports: Sequence[Report], times: int, display: Display) -> list[str]:
    """Return the last lines of several runs; the user asked for `times` runs."""
    text = f"{sum(report.ok for report in reports)} of {len(reports)} passed."
    if len(reports) < times:
        text += f" {times} were asked for, but to try this again would do harm."
    # Servers may keep the room for a while, so that the later runs did not make it.
    text += next((report.remarks for report in reports if report.remarks), "")
    return results.outcome(text, [report.encode() for report in reports], display)


def _middle_and_worst(stages: Sequence[CheckStage]) -> tuple[float, float]:
    """Return the median and the worst time of a stage, in milliseconds."""
    times = [stage.ms for stage in stages]
    return median(times), max(times)


async def check(
    configuration: Configuration, first: CheckStage, parsed: argparse.Namespace
) -> Level:
    """Check as often as asked for, write the outcome to stdout, and return the service's level.

    `first` is the stage before the connection's: reading the settings. `parsed` has the options of
    the command line. If stdout cannot be written, the level is `UNKNOWN`, and no further run
    begins.
    """
    settings, send, form, times = configuration.settings, parsed.send, parsed.format, parsed.repeat
    assert settings is not None
    limits = Limits(parsed.warn, parsed.crit, parsed.cert_days)
    reports: list[Report] = []
    screen = _Screen(expected_stages(settings.rooms, send=send))
    display = screen.display
    say = screen.put if form == "text" else lambda lines: None
    show = screen.show_stage if form == "text" and times == 1 else lambda stage: None
    say(title(settings.rooms, display))
    show(first)
    if times > 1:
        say([*results.stage(vars(first), {}, display), ""])
    # No further run after a refused password: servers lock accounts after several.
    while not reports or (len(reports) < times and reports[-1].may_repeat and not screen.error):
        reports.append(await probe(settings, show, send=send, must_exist=parsed.room_must_exist))
        if times > 1:
            say(run_lines(len(reports), reports[-1], display))
    if times > 1:
        say(["", *spread(reports, display), "", *several_outcome(reports, times, display)])
    else:
        whole = reports[0].preceded_by(first)
        say(["", *results.outcome(whole.diagnosis, [whole.encode()], display)])
    level, reasons = limits.judge(reports, now := datetime.now(UTC))
    match form:
        case "text":
            lines = reasons
        case "json":
            encoded = _json(configuration, first, reports, times)
            encoded |= {"warnings": reasons} if reasons else {}
            lines = [json.dumps(encoded | _in_effect(configuration))]
        case "prometheus":
            lines = monitoring.exposition(settings.rooms, reports, now)
            reasons = [*monitoring.failures(reports), *reasons]
        case "nagios":
            lines = [monitoring.plugin_result(reports, limits, now)]
    if lines:
        screen.put(lines)
    if reasons and level is Level.CRITICAL and form in {"json", "prometheus"}:
        # The exit code says that something failed, and the stages may all have passed. Say why.
        complain("\n".join(f"xmpp-bridge: {reason}" for reason in reasons))
    return Level.UNKNOWN if complain_of(screen.error) else level


def show_unconfigured(configuration: Configuration, first: CheckStage, form: str) -> None:
    """Write the problems of the settings in the format of a check; as text, write nothing."""
    report = unconfigured(configuration, first)
    match form:
        case "json":
            encoded = report.encode() | _problems(configuration) | _in_effect(configuration)
            write_out(json.dumps(encoded))
        case "prometheus":
            write_out("\n".join(monitoring.exposition([""], [report], datetime.now(UTC))))
        case "nagios":
            write_out(monitoring.plugin_line(Level.UNKNOWN, report.diagnosis))


def _problems(configuration: Configuration) -> dict[str, object]:
    return {"problems": [one_line(str(problem)) for problem in configuration.problems]}


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
        self.display = display_of(stdout)
        self._expected = expected
        self._former: Object = {}
        self._erase = ""

    def put(self, lines: Sequence[str], under_way: str = "") -> None:
        """Write lines in place of the stage that was under way, and `under_way` below them."""
        erase, self._erase = self._erase, ""
        if under_way and self._moves_cursor:
            lines = [*lines, f"{under_way:<{results.NAME_WIDTH}}..."]
            self._erase = ERASE_LINE_ABOVE
        problem = write_out(erase + "\n".join(lines))
        self.error = self.error or problem

    def show_stage(self, stage: CheckStage) -> None:
        """Write what a stage found, and which one comes next."""
        lines = results.stage(vars(stage), self._former, self.display)
        self._former = vars(stage)
        following = self._expected[self._expected.index((stage.name, stage.room)) + 1 :]
        if not stage.ok and stage.name != SETTINGS:
            # The other stages of its room are left out, or all if it has none.
            following = [each for each in following if stage.room not in (None, each[1])]
        self.put(lines, following[0][0] if following else "")


def _json(
    configuration: Configuration, first: CheckStage, reports: Sequence[Report], times: int
) -> dict[str, object]:
    """Return the reports of `times` runs as JSON shows them, each with the stage `first`."""
    problems = _problems(configuration)
    runs = [report.preceded_by(first).encode() | problems for report in reports]
    if times == 1:
        return runs[0]
    taken = {
        " ".join(filter(None, name)): _middle_and_worst(stages)
        for name, stages in by_stage(reports).items()
    }
    return {
        "ok": first.ok and all(report.ok for report in reports),
        "runs": runs,
        "medianMs": {stage: round(middle, 3) for stage, (middle, _) in taken.items()},
        "worstMs": {stage: worst for stage, (_, worst) in taken.items()},
    }
