"""Collects what happened in rooms, on streams and in scenarios, and makes a timeline of it.

It keeps the newest events, so that a log of any size fits into memory.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Literal, NamedTuple, TypeAlias

from bridge import __version__
from bridge.capture.elements import elements_of
from bridge.capture.finding import Finding as StreamFinding
from bridge.capture.stanza import LogPlace
from bridge.capture.times import time_in
from bridge.capture.verdict import verdict
from bridge.page.attendance import Attendance
from bridge.page.folding import Folding
from bridge.page.pseudonyms import Pseudonyms
from bridge.page.standing import UNPROVEN, troubles
from bridge.page.timeline import MAX_EVENTS, Bar, Event, Finding, Hole, Lane, Part, Timeline, Zone
from bridge.text import listed, memory_of, one_line, quoted, seconds_of, visible
from bridge.wire.xmlwriter import written
from bridge.xmpp.checks.questions import is_unanswered, questions
from bridge.xmpp.model.events import decode
from bridge.xmpp.model.formatting import MAX_TEXT_CHARACTERS, format_event
from bridge.xmpp.model.journal import Record
from bridge.xmpp.model.room import put_out

MAX_BODY_CHARACTERS = 16_384
"""Most characters of a body or a stanza on a page. A text that is cut ends with its full length."""

MAX_WEIGHT = 8_000_000
"""Most bytes of memory that the texts of all kept events take together: 800 for each event. If
events are longer, fewer are kept."""

MAX_UNLISTED = 5_000
"""Most events of a part that are not listed, and count for its questions and its verdict only."""

MAX_NAMED = 3
"""Most parts that a title names."""

Kind: TypeAlias = Literal["room", "connection", "stream", "scenario"]


@dataclass(eq=False)
class Course:
    """One part of a page, while it is collected."""

    kind: Kind
    title: str
    outcome: str = ""
    verdict: str = ""
    findings: Sequence[StreamFinding] = ()
    holes: int = 0
    """How many stanzas the log has only in part."""
    attendances: defaultdict[str, Attendance] = field(
        default_factory=lambda: defaultdict(Attendance)
    )
    """Who was in each room; only a stream has several rooms."""
    stages: deque[Bar] = field(default_factory=lambda: deque(maxlen=MAX_EVENTS))
    gaps: deque[Hole] = field(default_factory=lambda: deque(maxlen=MAX_EVENTS))
    unlisted: deque["Noted"] = field(default_factory=lambda: deque(maxlen=MAX_UNLISTED))
    """The newest events that filters leave out."""
    begin: int | None = None
    end: int = 0
    _under_way: dict[str, tuple[str, int]] = field(default_factory=dict)
    """The stage that each observer has begun, and when."""

    def enter(self, at: int, stage: str, observer: str = "", fault: str = "") -> None:
        """End the stage under way, which failed if `fault` says why; begin `stage`, if any."""
        if not fault and stage and self.stage(observer) == stage:
            return
        if began := self._under_way.pop(observer, None):
            self.stages.append(Bar(*began, at, not fault, fault))
        if stage:
            self._under_way[observer] = stage, at

    def stage(self, observer: str = "") -> str:
        """Return the stage that is under way, if any."""
        return self._under_way.get(observer, ("", 0))[0]

    def finish(self) -> None:
        """End the stages that are still under way."""
        for observer in [*self._under_way]:
            self.enter(self.end, "", observer)


class Noted(NamedTuple):
    """An event that is kept for the page."""

    course: Course
    at: int
    room: str
    exact: Mapping[str, Any]
    place: LogPlace | None
    stanzas: tuple[str, ...]
    """Without secrets."""
    entering: bool
    """Whether the observer was still on its way into the room."""

    def record(self, number: int) -> Record | None:
        """Return the event as a record with this number; None if no other occupant sees it.

        On the page of a stream, what the client sent counts, and its reflection does not.
        """
        match self.exact, self.course.kind:
            case ({"kind": "stanza" | "gap"}, _) | ({"reflection": True}, "stream"):
                return None
            case {"direction": "out"}, kind if kind != "stream":
                return None
        exact = {**self.exact, "direction": "in"} if "direction" in self.exact else self.exact
        return Record(number, self.at / 1_000, decode(exact), self.room)


class Chronicle:
    """Everything that a page is made of."""

    def __init__(self, words: Pseudonyms, most: int = MAX_EVENTS) -> None:
        """Keep the newest `most` events, or fewer if their texts take over `MAX_WEIGHT`."""
        self.words = words
        self.bridges = set[str]()
        """The nicknames of the bridges that recorded."""
        self.left_out = 0
        """How many older events are left out."""
        self._most = min(most, MAX_EVENTS)
        self._kept: deque[tuple[Noted, int]] = deque()
        self._weight = 0

    def take(
        self,
        course: Course,
        seconds: float,
        exact: Mapping[str, Any],
        *,
        observer: str = "",
        room: str = "",
        listed: bool = True,
        place: LogPlace | None = None,
        stanzas: Iterable[str] = (),
    ) -> None:
        """Take an event in its exact form, or one of the kind `stanza`.

        If the event has a `room`, it changes who is there. If it is not `listed`, the page uses
        it for occupants, stages, gaps, questions and the verdict, but does not show it. `stanzas`
        are redacted.
        """
        at = round(seconds * 1_000)
        course.begin = at if course.begin is None else min(course.begin, at)
        course.end = max(course.end, at)
        self.words.learn(exact)
        kind = exact["kind"]
        entering = kind == "connection" or (kind == "stanza" and course.stage() != "")
        if room:
            entering = entering or course.attendances[room].is_entering
            course.attendances[room].take(at, course.begin, exact, observer)
        match exact:
            case {"kind": "connection", "phase": str(phase)}:
                stage = "" if phase in {"joined", "failed", "closed"} else phase
                fault = str(exact.get("text", "")) if "condition" in exact else ""
                course.enter(at, stage, observer, fault)
            case {"kind": "connection", "service": str()}:
                course.enter(at, "", observer)
            case {"kind": "gap", "from": str(begin), "to": str(end)}:
                course.begin = min(course.begin, _milliseconds(begin, at))
                span = _milliseconds(begin, at), _milliseconds(end, at)
                course.gaps.append(Hole(*span, format_event(exact)))
        if not listed:
            if "body" in exact:
                exact = {**exact, "body": exact["body"][:MAX_TEXT_CHARACTERS]}
            course.unlisted.append(Noted(course, at, room, exact, place, (), entering))
            return
        if self.words.on:
            for element in chain.from_iterable(elements_of(xml)[0] for xml in stanzas):
                self.words.learn_stanza(element)
        xml_texts = tuple(map(_bounded, stanzas))
        if not self.words.on and "body" in exact:
            exact = {**exact, "body": _bounded(exact["body"])}
        texts = [value for value in exact.values() if isinstance(value, str)]
        weight = sum(map(memory_of, [*texts, *xml_texts]))
        self._kept.append((Noted(course, at, room, exact, place, xml_texts, entering), weight))
        self._weight += weight
        while len(self._kept) > self._most or self._weight > MAX_WEIGHT:
            self._weight -= self._kept.popleft()[1]
            self.left_out += 1

    def timeline(
        self,
        source: Literal["log", "explain", "expect"],
        courses: Iterable[Course],
        made_at: float,
        *,
        zone: Zone = "utc",
        holes: int = 0,
    ) -> Timeline:
        """Return what the page shows of these courses; `made_at` is in seconds since the epoch.

        This empties the chronicle: the events are large, and the timeline holds them now.
        """
        number, parts, findings = 1, list[Part](), list[StreamFinding]()
        for course in courses:
            notes = [noted for noted, _ in self._kept if noted.course is course]
            parts.append(self._part(f"p{len(parts) + 1}", course, notes, number, zone))
            number += len(notes)
            findings += course.findings
        self._kept.clear()
        titles = [part.title for part in parts if part.kind != "connection"]
        title = listed(titles, MAX_NAMED, str)
        whose = f"This page has names and words of people: {title}. Pseudonyms: "
        notice = f"{whose}off (--pseudonyms replaces names, and messages by their length)."
        if self.words.on:
            notice = (
                f"{whose}on. Nicknames, addresses, hosts and ids are replaced one for one, and "
                "messages and texts of errors by their length. Subjects, reasons and status texts "
                "stay, but for the names. Not promised: that no other word there tells who it was."
            )
        return Timeline(
            source,
            title,
            round(made_at * 1_000),
            f"xmpp-debug-bridge {__version__}",
            zone,
            self.words.on,
            notice,
            tuple(parts),
            self.left_out,
            self._verdict(findings, holes) if source == "explain" else _summed_up(parts),
        )

    def _part(
        self, id_: str, course: Course, notes: Sequence[Noted], number: int, zone: Zone
    ) -> Part:
        begin = course.begin or 0
        if self.left_out:
            begin = min((noted.at for noted in notes), default=course.end)
        course.finish()
        lanes, lane_of = self._lanes(course, begin)
        by_name = {name: lanes[index] for (_, name), index in lane_of.items()}
        folding = Folding(self.bridges, by_name, begin, course.end)
        severities = {finding.place: finding.severity for finding in course.findings}
        events, by_place = list[Event](), dict[LogPlace | None, Event]()
        for noted in notes:
            severity = noted.place and severities.get(noted.place)
            lane = lane_of.get((noted.room, noted.exact.get("sender", "")))
            event = self._event(f"e{number + len(events)}", noted, lane, severity or "", zone)
            if not event.severity:
                folded = folding.of(noted.exact, noted.entering, course.stages, noted.at)
                event = replace(event, folded=folded)
            events.append(event)
            by_place[noted.place] = event
        findings = [self._finding(each, by_place.get(each.place)) for each in course.findings]
        findings += self._paired(course, notes, events, zone)
        spoke = {noted.exact.get("sender") for noted in notes if noted.exact["kind"] == "message"}
        for (_, name), index in lane_of.items():
            if name in folding.visitors - spoke:
                lanes[index] = replace(lanes[index], folded="bridge")
        text = self.words.file if course.kind == "scenario" else self.words.text
        return Part(
            id_,
            course.kind,
            one_line(text(course.title)),
            begin,
            max(course.end, begin),
            course.outcome,
            visible(self.words.text(course.verdict))
            or (self._verdict(course.findings, course.holes) if course.kind == "stream" else ""),
            tuple(lanes),
            tuple(events),
            tuple(self._bar(bar) for bar in course.stages if bar.to >= begin),
            tuple(
                replace(gap, text=one_line(self.words.text(gap.text, ours=True)))
                for gap in course.gaps
                if gap.to >= begin
            ),
            tuple(findings),
        )

    def _paired(
        self, course: Course, notes: Sequence[Noted], events: list[Event], zone: Zone
    ) -> list[Finding]:
        """Mark questions and answers among the events; return what stands out in a room."""
        findings = list[Finding]()
        gaps = [(gap.from_ / 1_000, gap.to / 1_000) for gap in course.gaps]
        begin = course.unlisted[0].at if len(course.unlisted) == MAX_UNLISTED else 0
        everything = [*enumerate(notes), *((None, it) for it in course.unlisted)]
        everything.sort(key=lambda placed: placed[1].at)
        for room, attendance in course.attendances.items():
            records, places = list[Record](), list[int | None]()
            for place, noted in everything:
                record = noted.record(len(records)) if noted.room == room else None
                if record is not None and noted.at >= begin:
                    records.append(record)
                    places.append(place)
            asked, end = questions(records), course.end / 1_000
            unanswered = [it for it in asked if is_unanswered(it, end, gaps)]
            for question in asked:
                place, answer = places[question.asked.number], question.answer
                if place is not None and answer is not None:
                    replied = places[answer.number]
                    id_ = "" if replied is None else events[replied].id
                    took = None if zone == "none" else _between(question.asked, answer)
                    events[place] = replace(events[place], answer=id_, answer_ms=took)
                elif place is not None and question in unanswered:
                    events[place] = replace(events[place], answered=False)
            if course.kind != "room":
                continue
            for trouble in troubles(room, attendance.here, records, asked, unanswered, end):
                place = places[trouble.at.number]
                message, hint = (one_line(self.words.text(it, ours=True)) for it in trouble[1:3])
                severity = "warning" if trouble.name in UNPROVEN else "error"
                at, id_ = round(trouble.at.at * 1_000), "" if place is None else events[place].id
                findings.append(Finding(trouble.name, severity, message, hint, "", at, id_))
        return findings

    def _lanes(self, course: Course, begin: int) -> tuple[list[Lane], dict[tuple[str, str], int]]:
        """Return the lanes, and the index of each by its room and nickname."""
        lanes, lane_of = list[Lane](), dict[tuple[str, str], int]()
        several = len(course.attendances) > 1
        for room, attendance in course.attendances.items():
            for nickname, lane in attendance.lanes(begin, self.words):
                lane_of[room, nickname] = len(lanes)
                name = f"{lane.name} in {one_line(self.words.jid(room))}" if several else lane.name
                lanes.append(replace(lane, name=name))
        return lanes, lane_of

    def _event(self, id_: str, noted: Noted, lane: int | None, severity: str, zone: Zone) -> Event:
        exact = self.words.event(noted.exact)
        if exact.get("meaning"):  # says the same to readers who do not know XMPP
            exact = {name: value for name, value in exact.items() if name != "codes"}
        body = exact.get("body", "")
        return Event(
            id_,
            noted.at,
            exact["kind"],
            _stanza_line(exact) if exact["kind"] == "stanza" else format_event(exact),
            lane,
            exact.get("direction", ""),
            visible(body),
            severity or _severity(noted.exact),
            self._where(noted.place),
            one_line(noted.place.at) if noted.place and zone != "utc" else "",
            tuple(map(self._stanza, noted.stanzas)),
        )

    def _stanza(self, xml: str) -> str:
        if not self.words.on:
            return visible(xml)
        elements, rest = elements_of(xml)
        if rest or any(element.tag.startswith("/") for element in elements):
            return self.words.body(xml)  # cut, or no XML
        return one_line("".join(written(self.words.stanza(element)) for element in elements))

    def _renamed(self, finding: StreamFinding) -> StreamFinding:
        text, place = self.words.text, finding.place
        return finding._replace(
            message=text(finding.message, ours=True),
            hint=text(finding.hint, ours=True),
            place=place._replace(file=self.words.file(place.file)),
        )

    def _finding(self, finding: StreamFinding, event: Event | None) -> Finding:
        renamed = self._renamed(finding)
        seconds = time_in(finding.place.at)[0]
        at = round(seconds * 1_000) if seconds is not None else finding.place.line or None
        return Finding(
            finding.name,
            finding.severity,
            one_line(renamed.message),
            one_line(renamed.hint),
            finding.clause,
            at if event is None else event.at,
            "" if event is None else event.id,
            self._where(finding.place),
        )

    def _verdict(self, findings: Iterable[StreamFinding], holes: int) -> str:
        """Return what `explain` says of these findings, with pseudonyms if they are on."""
        return one_line(verdict(map(self._renamed, findings), holes))

    def _bar(self, bar: Bar) -> Bar:
        name, detail = self.words.text(bar.name), self.words.text(bar.detail)
        return replace(bar, name=one_line(name), detail=one_line(detail, MAX_TEXT_CHARACTERS))

    def _where(self, place: LogPlace | None) -> str:
        if place is None or not place.file:
            return ""
        return f"{one_line(self.words.file(place.file))}:{place.line}"


def _between(asked: Record, answer: Record) -> int:
    """Return the milliseconds between two records."""
    return round(1_000 * answer.at) - round(1_000 * asked.at)


def _summed_up(parts: Sequence[Part]) -> str:
    """Return the verdict on several rooms and connections: what stands out most, and what to do."""
    rooms = [part for part in parts if part.kind == "room"]
    known = {finding.event for part in parts for finding in part.findings}
    worst = list[str]()
    for severity in ("error", "warning"):
        for part in rooms:
            where = f"{part.title}: " if len(rooms) > 1 else ""
            wrong = [it for it in part.findings if it.severity == severity]
            worst += [f"{where}{it.message} {it.hint}".rstrip() for it in wrong]
        for part in parts:
            bad = [it for it in part.events if it.severity == severity and it.id not in known]
            worst += [event.text for event in bad]
    if not worst:
        return "Nothing stands out."
    more = f" {len(worst) - 1} more stand out." if len(worst) > 1 else ""
    return f"{worst[0]}{more}"


def _bounded(text: str) -> str:
    """Return a text as a page has it: if it is too long, its beginning and its length."""
    if len(text) <= MAX_BODY_CHARACTERS:
        return text
    return f"{text[:MAX_BODY_CHARACTERS]}... ({len(text)} characters)"


def _severity(exact: Mapping[str, Any]) -> str:
    """Return how bad an event is; empty if it is no trouble."""
    match exact:
        case {"kind": "error"} | {"condition": str()} | {"kind": "stanza", "type": "error"}:
            return "error"
        case {"kind": "gap"}:
            return "note"
        case {"kind": "leave", "destroyed": True}:
            return "warning"
        case {"kind": "leave", "codes": codes} if put_out(codes):
            return "warning"
    return ""


def _stanza_line(exact: Mapping[str, Any]) -> str:
    """Return a line about a stanza: its name and type, the other side, and what is in it."""
    other = [f"{name} {quoted(exact[name])}" for name in ("from", "to") if name in exact]
    named = [exact["name"], exact.get("type", ""), *other]
    inside = ", ".join(exact.get("payload", ()))
    line = " ".join(word for word in named if word) + (f": {inside}" if inside else "")
    return one_line(line, MAX_TEXT_CHARACTERS)


def _milliseconds(time: str, default: int) -> int:
    seconds = seconds_of(time)
    return default if seconds is None else round(seconds * 1_000)
