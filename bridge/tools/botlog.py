"""Reads the debug log of a bot, and returns what it says of the bot's stream in a room."""

import errno
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from bridge.capture.capture import Capture
from bridge.capture.examined import Examined
from bridge.capture.finding import Finding as Found
from bridge.capture.finding import Severity
from bridge.capture.reader import MAX_LINE_BYTES, LogReader
from bridge.capture.rooms import Room, RoomState
from bridge.capture.stanza import Stanza
from bridge.capture.times import time_in
from bridge.capture.verdict import BY_PROGRAM, NO_ERROR, explanation, verdict
from bridge.capture.waiting import PATIENCE_SECONDS
from bridge.recording.tapped import files_about, files_for, is_written
from bridge.text import iso, name_of, quoted
from bridge.tools.delivery import Delivery, has_seat
from bridge.xmpp.checks.evidence import Evidence, Finding, words_of
from bridge.xmpp.checks.questions import asks_of, left_out

MAX_LOG_BYTES = 16 << 20
"""Bytes that are read from the end of a log."""

OLD_SECONDS = 3_600.0
"""An error that is older does not explain what an occupant does who is in the room now."""

_DATED = 366 * 86_400
"""An earlier time has no date: `time_in` puts it at the beginning of 1970."""

UNSEEN = "not-yet-rejoined"
"""The cause of the note that the log ends before a client that came back asks for its rooms."""

LEFT = "left"
"""The cause of the note that the client itself left the room."""

NEVER_IN = frozenset({RoomState.ASKED, RoomState.REFUSED})
"""The states of a room into which a client has never come."""

MAX_SEATS = 3
"""Most occupants of other rooms that a finding names."""

MAX_TEXT = 300
"""Most characters of a log's path that a finding quotes."""


class _Clock:
    """Compares the clock of a log with the room's, by the messages that both have."""

    def __init__(self, evidence: Evidence) -> None:
        ids = ((getattr(act.event, "id", None), act.at) for act in evidence.acts)
        self._heard = {id_: at for id_, at in ids if id_}
        self._ahead: list[float] = []
        self._last = ""
        self.heard = ""
        """The body of the last message that the client received."""

    def take(self, _examined: Examined, stanza: Stanza) -> None:
        """Take in a stanza of the log."""
        self._last = stanza.place.at
        if not stanza.sent and stanza.element.tag == "message":
            self.heard = stanza.element.findtext("body") or self.heard
        at = self._heard.get(stanza.element.get("id", ""))
        if at is not None and stanza.seconds is not None and stanza.element.tag == "message":
            self._ahead.append(at - stanza.seconds)

    def seconds_of(self, at: str) -> float | None:
        """Return a time of the log on the room's clock; None if that is unknown."""
        seconds, _ = time_in(at)
        if seconds is None or not (self._ahead or seconds > _DATED):
            return None
        return seconds + (sorted(self._ahead)[len(self._ahead) // 2] if self._ahead else 0)

    @property
    def ends(self) -> float | None:
        """When the log ends, on the room's clock; None if they have no message in common."""
        return self.seconds_of(self._last) if self._ahead else None


class _BotLog:
    """What a capture says of an occupant's streams, and of the bridge's last message on them."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._clock = _Clock(evidence)
        self.delivery = Delivery(evidence)
        """What came of the bridge's last message."""
        self._goes_on = False
        """Whether the file is still written."""

    def streams_of(self, path: Path, until: float | None = None) -> Sequence[Examined]:
        """Return the streams in the end of a log; raises `OSError`.

        With `until`, the log is complete up to this time: what had not come by then never came.
        """
        evidence, self._goes_on = self._evidence, until is not None
        command = self.delivery.body
        if not command and (left := left_out(evidence, asks_of(evidence))):
            command = left[-1].asks[-1].what
        capture = Capture(command=command, nickname=evidence.nickname, observe=self._observe)
        reader = LogReader(path.name)
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe or a device may have no end
            raise OSError(errno.EINVAL, "it is no regular file")
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - MAX_LOG_BYTES))
            if size > MAX_LOG_BYTES:
                file.readline(MAX_LINE_BYTES)  # the rest of a line
            for stanza in reader.read(file):
                capture.take(stanza)
        # A log that has the bridge's message is written as things happen.
        if (until := until if until is not None else self.delivery.now) is not None:
            capture.pause(until)
        capture.finish()
        return capture.streams

    def finding(self, path: Path, ours: Sequence[Examined], did: str) -> Finding:
        """Return what the occupant's streams, which are from a file, show to be wrong.

        `did` says what came of the bridge's message.
        """
        evidence, where = self._evidence, quoted(str(path), MAX_TEXT)
        findings = [finding for each in ours for finding in each.findings()]
        lasting = [each for each in findings if not self._is_over(each, findings)]
        cause = explanation(lasting) or explanation(findings)
        words = verdict(it for it in findings if it.cause != LEFT)
        if cause is None and evidence.occupant is None:  # it may say why the occupant is not there
            whys = [it for it in findings if it.name == "join" or it.severity is Severity.WARNING]
            cause = next((it for it in reversed(whys) if it.name in {"join", "removed"}), None)
            if cause and cause.cause == LEFT and words != NO_ERROR:
                cause = None  # the program may have left since it failed
        if cause is None and (came := self.delivery.line):
            failed = (it for it in findings if it.cause == "failed" and it.place.line > came)
            cause = next(failed, None)
        is_gone = evidence.status.connected and evidence.occupant is None
        is_cut_short = is_gone and not ours[-1].stream.client.ended
        if cause is None and not did and is_cut_short and not self._goes_on:
            heard = self._clock.heard
            after = f" after {words_of(heard)}, the last message in it" if heard else ""
            did = f"The log {where} ends{after}, and the client did not leave: did the program die?"
        if cause is None:
            log = f"The log {where} of {evidence.who}: {words}"
            is_told = words != NO_ERROR and _is_missed(evidence)  # such as that its program failed
            detail = f"{did} {log}".strip() if is_told or not did else did
            return Finding(None, detail, remark=bool(did) or is_told)
        seconds = self._clock.seconds_of(_last(cause, findings).place.at)
        when = cause.place.at if seconds is None else iso(seconds)
        at = f" at {when}" if when else ""
        line = f"line {cause.place.line} of " if cause.place.line else ""
        detail = f"n the stream of {evidence.who}{at} ({line}{where}), {cause.name}: "
        detail += cause.message
        more = UNSEEN if cause.name == "ended" else "failed" * (cause.cause in BY_PROGRAM)
        if notes := [it for it in findings if it.cause == more]:
            detail += f" {notes[-1].message}"
        if did and not (cause.cause == "silent" and self.delivery.is_ignored):
            detail += f" {did}"
        if self._is_over(cause, findings):
            return Finding(None, f"Earlier, o{detail}", cause.hint, remark=True)
        return Finding(False, f"O{detail}", cause.hint)

    def what_came(self, ours: Sequence[Examined]) -> str:
        """Return whether the log has the bridge's message, and what the client did then.

        Return an empty text if that is not known: the log may not have come so far yet.
        """
        outcome, asked, ends = self.delivery.sentence(), self._evidence.past.heard, self._clock.ends
        if outcome or not self.delivery.body or asked is None or ends is None:
            return outcome
        if ends - asked.at >= PATIENCE_SECONDS:
            return self.delivery.sentence(ours)
        if ends > asked.at or self._evidence.now - asked.at < PATIENCE_SECONDS:
            return ""
        outcome = f"The log ends at {iso(ends)}, and {words_of(self.delivery.body)} was said later"
        if ours[-1].stream.client.ended:
            return f"{outcome}: the program has not connected again."
        heard = self._clock.heard
        since = f" since {words_of(heard)}, the last message in it" if heard else ""
        return f"{outcome}: the program may hang{since}, or be cut off, or write another log."

    def _is_over(self, error: Found, findings: Sequence[Found]) -> bool:
        """Whether an error is over, so that the log does not name it as the cause.

        The occupant is in the room, and the error is older than `OLD_SECONDS`, or the occupant has
        answered since. An answer does not end what goes on, such as cuts at a period.
        """
        evidence, asked = self._evidence, self._evidence.past.outcome
        last = _last(error, findings)
        seconds = self._clock.seconds_of((last.newest or last.place).at)
        if seconds is None or evidence.occupant is None:
            return False
        answered = bool(evidence.answers) and asked is not None and seconds < asked.at
        is_old = evidence.now - seconds > OLD_SECONDS
        return is_old or (answered and error.cause != "period")

    def _observe(self, examined: Examined, stanza: Stanza) -> None:
        self._clock.take(examined, stanza)
        self.delivery.take(examined, stanza)


def stream(path: Path, evidence: Evidence) -> Finding:
    """Return what a bot's log says of its stream, as the finding `stream`; it may take seconds."""
    reading = _BotLog(evidence)
    where = quoted(str(path), MAX_TEXT)
    try:
        streams = reading.streams_of(path)
    except OSError as error:
        hint = "BRIDGE_BOT_LOGS, or --log, names the file."
        return Finding(None, f"The log {where} cannot be read: {error.strerror}.", hint)
    ours = [each for each in streams if has_seat(each, evidence, former=True)]
    # A bot that failed before it joined named no room, or no nickname in it.
    ours = ours or [each for each in streams if not any(it.nickname for it in _seats([each]))]
    if ours:
        return reading.finding(path, ours, reading.what_came(ours))
    seats = _seats(streams)
    seen = [*dict.fromkeys(f"{name_of(seat.nickname)} in {quoted(seat.jid)}" for seat in seats)]
    others = f"; it has {', '.join(seen[:MAX_SEATS])}" if seen else ""
    detail = f"The log {where} has no stream of {evidence.who} in {quoted(evidence.room)}{others}."
    hint = "Does it log stanzas, and is it the right file?"
    name = evidence.nickname
    theirs = [it for it in streams if any(seat.is_under(name) for seat in _seats([it]))]
    cause = explanation([finding for each in theirs for finding in each.findings()])
    if cause is not None and cause.name == "join" and evidence.occupant is None:
        return Finding(False, f"{detail} {cause.message}", cause.hint)
    if seats:
        hint = "Let the program join this room, under this nickname, or look at the right file."
    return Finding(None, detail, hint, remark=_is_missed(evidence))


def tapped(folder: Path, evidence: Evidence) -> tuple[Path, Finding] | None:
    """Return the file in which `tap` kept the occupant's stream in the room, and what it says.

    If no stream is the occupant's, and nobody in the room has the nickname, a client may be meant
    that `tap` was told is for the room, and that never came into any. Return None if no file has
    either. This may take seconds.
    """
    is_absent = evidence.occupant is None
    for path in files_about(folder, evidence.room, evidence.nickname):
        reading = _BotLog(evidence)
        with suppress(OSError):  # it was replaced just now
            until = evidence.now if is_written(path) else None
            streams = reading.streams_of(path, until)
            if ours := [each for each in streams if has_seat(each, evidence, former=True)]:
                # An occupant who is there may have come in past a tap that has ended.
                known = streams if until is not None or is_absent else ()
                return path, reading.finding(path, ours, reading.delivery.sentence(known))
    for path in files_for(folder, evidence.room) if is_absent else ():
        with suppress(OSError):
            until = evidence.now if is_written(path) else None
            is_new = until is not None or evidence.now - path.stat().st_mtime < OLD_SECONDS
            streams = _BotLog(evidence).streams_of(path, until) if is_new else ()
            if streams and all(it.state in NEVER_IN for it in _seats(streams)):
                return path, _outside(path, streams)
    return None


def _outside(path: Path, streams: Sequence[Examined]) -> Finding:
    """Return what is wrong with a client of the room that never came into any."""
    findings = [finding for each in streams for finding in each.findings()]
    cause = explanation(findings)
    asked = "It was not let in." if _seats(streams) else "It has not asked to join."
    why = f"{cause.name}: {cause.message}" if cause else asked
    why += " It is not connected now." if streams[-1].stream.client.ended else ""
    who = f"Behind tap, the client in {quoted(path.name)} should be in this room by its settings"
    return Finding(None, f"{who}, and never was. {why}", cause.hint if cause else "", remark=True)


def _seats(streams: Sequence[Examined]) -> list[Room]:
    """Return the rooms that a client asked to join on its streams."""
    return [seat for each in streams for seat in each.stream.rooms.by_jid.values()]


def _is_missed(evidence: Evidence) -> bool:
    """Whether the occupant is not there, or has not answered the bridge."""
    return evidence.occupant is None or evidence.is_silent


def _last(error: Found, findings: Sequence[Found]) -> Found:
    """Return the last end of a stream if streams end at a period, or else the error itself."""
    return [it for it in findings if it.name == "ended"][-1] if error.cause == "period" else error
