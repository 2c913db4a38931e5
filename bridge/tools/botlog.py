"""Reads the debug log of a bot, and returns what it says of the bot's stream in a room."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median

from bridge.capture.capture import Capture
from bridge.capture.examined import Examined
from bridge.capture.reader import MAX_LINE_BYTES, LogReader
from bridge.capture.stanza import Stanza
from bridge.capture.times import time_in
from bridge.capture.verdict import explanation, verdict
from bridge.recording.tapped import files_about, is_written
from bridge.text import iso, quoted
from bridge.xmpp.checks.evidence import Evidence, Finding, list_of
from bridge.xmpp.checks.questions import asks_of, left_out

MAX_LOG_BYTES = 16 << 20
"""Bytes that are read from the end of a log."""

OLD_SECONDS = 3_600.0
"""An error that is older does not explain what an occupant does who is in the room now."""

_DATED = 366 * 86_400
"""An earlier time has no date: `time_in` puts it at the beginning of 1970."""

MAX_TEXT = 300
"""Most characters of a log's path that a finding quotes."""


class _Clock:
    """Compares the clock of a log with the room's, by the messages that both have."""

    def __init__(self, evidence: Evidence) -> None:
        ids = ((getattr(act.event, "id", None), act.at) for act in evidence.acts)
        self._heard = {id_: at for id_, at in ids if id_}
        self._ahead: list[float] = []

    def take(self, _examined: Examined, stanza: Stanza) -> None:
        """Take in a stanza of the log."""
        at = self._heard.get(stanza.element.get("id", ""))
        if at is not None and stanza.seconds is not None and stanza.element.tag == "message":
            self._ahead.append(at - stanza.seconds)

    def seconds_of(self, at: str) -> float | None:
        """Return a time of the log on the room's clock; None if that is unknown."""
        seconds, _ = time_in(at)
        if seconds is None or not (self._ahead or seconds > _DATED):
            return None
        return seconds + (median(self._ahead) if self._ahead else 0)


def stream(path: Path, evidence: Evidence) -> Finding:
    """Return what a bot's log says of its stream, as the finding `stream`; it may take seconds."""
    clock = _Clock(evidence)
    where = quoted(str(path), MAX_TEXT)
    try:
        streams = _read(path, evidence, clock)
    except OSError as error:
        hint = "BRIDGE_BOT_LOGS, or --log, names the file."
        return Finding(None, f"The log {where} cannot be read: {error.strerror}.", hint)
    ours = [each for each in streams if _is_of(each, evidence)]
    # A bot that failed before it joined named no room.
    ours = ours or [each for each in streams if not each.stream.rooms.by_jid]
    if ours:
        return _finding_of(path, ours, evidence, clock)
    seen = {it.nickname for each in streams for it in each.stream.rooms.by_jid.values()}
    others = f"; it names {list_of(sorted(seen)[:3])}" if seen else ""
    detail = f"The log {where} has no stream of {evidence.who} in {quoted(evidence.room)}"
    return Finding(None, f"{detail}{others}.", "Does it log stanzas, and is it the right file?")


def tapped(folder: Path, evidence: Evidence) -> tuple[Path, Finding] | None:
    """Return the file in which `tap` kept the occupant's stream in the room, and what it says.

    Return None if no file has it. This may take seconds.
    """
    for path in files_about(folder, evidence.room, evidence.nickname):
        clock = _Clock(evidence)
        with suppress(OSError):  # it was replaced just now
            until = evidence.now if is_written(path) else None
            streams = _read(path, evidence, clock, until)
            if ours := [each for each in streams if _is_of(each, evidence)]:
                return path, _finding_of(path, ours, evidence, clock)
    return None


def _finding_of(path: Path, ours: Sequence[Examined], evidence: Evidence, clock: _Clock) -> Finding:
    """Return what the occupant's streams, which are from a file, show to be wrong."""
    where = quoted(str(path), MAX_TEXT)
    findings = [finding for each in ours for finding in each.findings()]
    cause = explanation(findings)
    if cause is None and evidence.occupant is None:  # a note may say why it is not there
        cause = next((finding for finding in findings if finding.name == "join"), None)
    if cause is None:
        return Finding(None, f"The log {where} of {evidence.who}: {verdict(findings)}")
    seconds = clock.seconds_of(cause.place.at)
    when = cause.place.at if seconds is None else iso(seconds)
    at = f" at {when}" if when else ""
    line = f"line {cause.place.line} of " if cause.place.line else ""
    detail = f"n the stream of {evidence.who}{at} ({line}{where}), {cause.name}: {cause.message}"
    if seconds is not None and _is_over(seconds, evidence):
        return Finding(None, f"Earlier, o{detail}", cause.hint, remark=True)
    return Finding(False, f"O{detail}", cause.hint)


def _is_over(seconds: float, evidence: Evidence) -> bool:
    """Whether an error at this time is over, so that the log does not name it as the cause.

    The occupant is in the room, and has answered since, or the error is older than `OLD_SECONDS`.
    """
    asked = evidence.past.outcome
    answered = bool(evidence.answers) and asked is not None and seconds < asked.at
    old = evidence.now - seconds > OLD_SECONDS
    return evidence.occupant is not None and (answered or old)


def _read(
    path: Path, evidence: Evidence, clock: _Clock, until: float | None = None
) -> Sequence[Examined]:
    """Return the streams in the end of a log; raises `OSError`.

    With `until`, the log is complete up to this time: what had not come by then never came.
    """
    left = left_out(evidence, asks_of(evidence))
    command = left[-1].asks[-1].what if left else ""
    capture = Capture(command=command, nickname=evidence.nickname, observe=clock.take)
    reader = LogReader(path.name)
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - MAX_LOG_BYTES))
        if size > MAX_LOG_BYTES:
            file.readline(MAX_LINE_BYTES)  # the rest of a line
        while line := file.readline(MAX_LINE_BYTES):
            for stanza in reader.feed(line):
                capture.take(stanza)
    for stanza in reader.end():
        capture.take(stanza)
    if until is not None:
        capture.pause(until)
    capture.finish()
    return capture.streams


def _is_of(examined: Examined, evidence: Evidence) -> bool:
    """Whether a stream is the occupant's in the room."""
    seat = examined.stream.rooms.at(evidence.room)
    return seat is not None and evidence.nickname in {seat.nickname, seat.former_nickname}
