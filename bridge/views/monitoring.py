"""The check as a probe: limits, a monitoring plugin's line, and Prometheus' text format. Pure.

The Monitoring Plugins development guidelines define the line, its performance data and the exit
codes. https://prometheus.io/docs/instrumenting/exposition_formats defines the text format. `check`
and `show_unconfigured` of `bridge.views.check` choose among the formats that `bridge.arguments`
lists.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from math import floor
from statistics import median

from bridge.text import counted, one_line
from bridge.xmpp.checks.report import Report, by_stage

MAX_LINE_BYTES = 800
"""The most bytes of a plugin's text: NRPE passes on 1,024 bytes, performance data included."""

_SPECIAL = re.compile("[|<>]")
"""What ends the text of a plugin's line, and what web interfaces take for HTML."""


class Level(IntEnum):
    """The state of a service; the number is the exit code of a plugin."""

    OK = 0
    WARNING = 1
    CRITICAL = 2
    UNKNOWN = 3


@dataclass(frozen=True)
class Limits:
    """The limits beyond which a check that passed counts as a warning, or as critical."""

    warn_ms: int | None
    crit_ms: int | None
    cert_days: int

    def judge(self, reports: Sequence[Report], now: datetime) -> tuple[Level, list[str]]:
        """Return the level after these runs, and a sentence for each limit that they exceed.

        A room that only the check made is a warning too. The diagnosis names it.
        """
        reasons: list[str] = []
        level = Level.WARNING if any(report.created for report in reports) else Level.OK
        days = days_left(reports, now)
        # If the server's certificate was refused because it has expired, the diagnosis says so.
        refused = reports[-1].condition == "certificate-verify-failed" and (days or 0) < 0
        if days is not None and days < self.cert_days and not refused:
            level = Level.WARNING
            left = f"The certificate expires in {counted(floor(days), 'day')}"
            reasons.append(f"{left}, limit {self.cert_days} (--cert-days).")
        ms = median(report.ms for report in reports)
        took = f"{ms:.0f} ms" if len(reports) == 1 else f"a median of {ms:.0f} ms"
        if self.crit_ms is not None and ms >= self.crit_ms:
            level = Level.CRITICAL
            reasons.append(f"Too slow: {took}, limit {self.crit_ms} ms (--crit).")
        elif self.warn_ms is not None and ms >= self.warn_ms:
            level = Level.WARNING
            reasons.append(f"Slow: {took}, limit {self.warn_ms} ms (--warn).")
        return level if all(report.ok for report in reports) else Level.CRITICAL, reasons


def days_left(reports: Sequence[Report], now: datetime) -> float | None:
    """Return for how many days the server's certificate is valid; None if no check saw it."""
    seen = [expires for report in reports if (expires := report.certificate_expires) is not None]
    return (seen[-1] - now).total_seconds() / 86_400 if seen else None


def plugin_line(level: Level, text: str, performance: str = "") -> str:
    """Return the one line of a monitoring plugin."""
    plain = _SPECIAL.sub(lambda it: f"\\u{{{ord(it[0]):X}}}", one_line(text))
    if len(encoded := plain.encode()) > MAX_LINE_BYTES:
        plain = encoded[:MAX_LINE_BYTES].decode(errors="ignore") + "..."
    return f"XMPP {level.name} - {plain}" + (f" | {performance}" if performance else "")


def plugin_result(reports: Sequence[Report], limits: Limits, now: datetime) -> str:
    """Return the line on these runs: the first failure, or else the last success."""
    level, reasons = limits.judge(reports, now)
    failed = [report for report in reports if not report.ok]
    if len(reports) > 1:
        reasons.append(f"{len(reports) - len(failed)} of {len(reports)} passed.")
    diagnosis = reports[-1].diagnosis
    if failed:
        diagnosis = failures(failed)[0]
    elif level is not Level.OK:
        diagnosis = diagnosis.replace("Everything works", "All stages passed", 1)
    seconds = median(report.ms for report in reports) / 1000
    warn, crit = ("" if ms is None else ms / 1000 for ms in (limits.warn_ms, limits.crit_ms))
    performance = f"time={seconds:.3f}s;{warn};{crit};0"
    if (days := days_left(reports, now)) is not None:
        performance += f" certificate_days={floor(days)};{limits.cert_days}:"
    return plugin_line(level, " ".join([*reasons, diagnosis]), performance)


def failures(reports: Sequence[Report]) -> list[str]:
    """Return for each run that failed: the stage, the condition, why, and what to do."""
    lines = []
    for report in reports:
        if failed := [stage for stage in report.phases if not stage.ok]:
            what = f"{failed[0].name} failed [{report.condition}]"
            lines.append(f"{what}: {report.diagnosis} {failed[0].hint}".rstrip())
    return list(dict.fromkeys(lines))


def exposition(rooms: Sequence[str], reports: Sequence[Report], now: datetime) -> list[str]:
    """Return the lines with the metrics of these runs, the times as medians.

    The stages of the connection are repeated for each room, since every room depends on them.
    """
    labels = {room: f"room={_label(room)}" for room in rooms}
    up = {labels[room]: float(all(_is_up(room, report) for report in reports)) for room in rooms}
    seconds = {
        f'{labels[room]},stage="{stage}"': median(run.ms for run in runs) / 1000
        for room in rooms
        for (stage, place), runs in by_stage(reports).items()
        if place in {None, one_line(room)}
    }
    days = days_left(reports, now)
    left = {} if days is None else dict.fromkeys(labels.values(), days)
    created = {name for report in reports for name in report.created}
    made = {labels[room]: float(one_line(room) in created) for room in rooms}
    lines = []
    for name, meaning, samples in (
        ("up", "Whether every stage on the way into the room passed.", up),
        ("seconds", "How long a stage took.", seconds),
        ("room_created", "Whether only the check made the room, by joining it.", made),
        ("certificate_days", "Days until the server's certificate expires.", left),
    ):
        if samples:
            metric = f"xmpp_bridge_check_{name}"
            lines += [f"# HELP {metric} {meaning}", f"# TYPE {metric} gauge"]
            lines += [f"{metric}{{{where}}} {value:.6g}" for where, value in samples.items()]
    return lines


def _is_up(room: str, report: Report) -> bool:
    if report.rooms is None:
        return report.ok
    return any(checked.ok for checked in report.rooms if checked.room == one_line(room))


def _label(value: str) -> str:
    """Return the value of a label, in its quotation marks."""
    return json.dumps(one_line(value), ensure_ascii=False)
