"""Shows what was found on the streams of a log: as lines for a person, or as one JSON object. Pure.

A line of the log is named by its file and number, so that an editor can go there.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from bridge.capture.examined import Examined
from bridge.capture.finding import Finding, Severity
from bridge.capture.stanza import Stanza
from bridge.capture.verdict import verdict
from bridge.text import one_line, visible_within
from bridge.views.screen import Display
from bridge.wire.names import lower_bare

COLOURS = {Severity.ERROR: Display.red, Severity.WARNING: Display.bold, Severity.NOTE: Display.dim}


def lines_of(streams: Iterable[Examined], display: Display, *, everything: bool) -> list[str]:
    """Return the lines for a person, without the verdict; with `everything`, notes too."""
    lines = []
    for examined in streams:
        serious = [each for each in examined.findings() if each.severity is not Severity.NOTE]
        findings = examined.findings() if everything else serious
        stream = examined.stream
        rooms = {room.jid: None for room in stream.rooms.by_jid.values()}
        who = stream.client.account or "an account that the log does not name"
        where = f" in {', '.join(rooms)}" if rooms else ""
        times = " to ".join(at for at in (_at(stream.first), _at(stream.ending.last)) if at)
        lines.append(one_line(f"{who}{where}{f', {times}' if times else ''}"))
        for finding in findings:
            severity = COLOURS[finding.severity](display, finding.severity)
            lines += [f"  {severity} {finding.sentence}", f"    {finding.advice}"]
        if not findings:
            lines.append("  nothing wrong was found")
    return lines


def as_json(streams: Iterable[Examined], verdict_: str, holes: int) -> Iterator[str]:
    """Yield the pieces of one line of ASCII with everything, without empty values.

    Each stream is a piece of its own. A thousand streams in one text would take much more memory.
    """
    result = {"verdict": verdict_} | ({"holes": holes} if holes else {})
    yield json.dumps(visible_within(result))[:-1] + ', "streams": ['
    for number, each in enumerate(streams):
        yield ", " * bool(number) + json.dumps(visible_within(_stream_as_json(each)))
    yield "]}"


def _stream_as_json(examined: Examined) -> dict[str, Any]:
    stream, findings = examined.stream, examined.findings()
    result = {
        "account": lower_bare(stream.client.account),
        "rooms": list({room.jid: None for room in stream.rooms.by_jid.values()}),
        "from": _at(stream.first),
        "to": _at(stream.ending.last),
        "verdict": verdict(findings, stream.holes),
        "holes": stream.holes,
        "findings": [_finding_as_json(finding) for finding in findings],
    }
    return {name: value for name, value in result.items() if value}


def _finding_as_json(finding: Finding) -> dict[str, Any]:
    names = ("name", "severity", "message", "hint", "clause")
    result = {name: getattr(finding, name) for name in names} | finding.place._asdict()
    return {name: value for name, value in result.items() if value}


def _at(stanza: Stanza | None) -> str:
    return stanza.place.at if stanza else ""
