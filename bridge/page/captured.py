"""Makes the page of a capture: a part for each stream, with its stanzas as events."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from weakref import WeakKeyDictionary
from xml.etree.ElementTree import Element

from bridge.capture.examined import Examined
from bridge.capture.rooms import RoomState
from bridge.capture.stanza import FOOTER, HOLE, Stanza
from bridge.capture.stream import Stream
from bridge.page.chronicle import Chronicle, Course
from bridge.page.timeline import Hole, Timeline, Zone
from bridge.wire import names
from bridge.wire.xmlwriter import written
from bridge.xmpp.link.from_slixmpp import prepared
from bridge.xmpp.link.trace import redacted
from bridge.xmpp.model.events import MessageSent, encode
from bridge.xmpp.muc.reading import read

NAMELESS = "an account that the log does not name"

PIECES = {
    names.HEADER: "stream header",
    FOOTER: "end of the stream",
    HOLE: "a part of the log cannot be read",
}
"""What the page calls a header, an end and a hole, which are no stanzas."""

FAILURES = frozenset(
    f"{{{namespace}}}failure" for namespace in (names.SASL, names.SASL2, names.TLS)
)
"""The tags of the elements that end a stage."""

_HAS_ZONE = re.compile(r"(?:Z|[+-]\d\d:?\d\d)$|^1\d{9}")
"""Matches a time with its zone, or the seconds since the epoch."""


class CapturedPage:
    """Collects the stanzas of a capture, and makes the page of them."""

    def __init__(self, chronicle: Chronicle, is_wanted: Callable[[Stream], bool]) -> None:
        """Prepare to take stanzas; only streams for which `is_wanted` is true get on the page."""
        self._chronicle = chronicle
        self._is_wanted = is_wanted
        self._courses = WeakKeyDictionary[Examined, Course]()
        """What the page shows of each stream that the capture has not dropped."""
        self._has_times: bool | None = None
        """Whether the first stanza has a time. If so, a later one without a time gets the time of
        the stanza before it."""
        self._has_zones = True
        self._seconds = 0.0
        self._file, self._line, self._lines_before = "", 0, 0

    def take(self, examined: Examined, stanza: Stanza) -> None:
        """Take a stanza, after `examined.stream` has taken it."""
        stream, words = examined.stream, self._chronicle.words
        if not self._is_wanted(stream):
            return
        course = self._courses.setdefault(examined, Course("stream", ""))
        seconds = self._time(stanza)
        at = round(seconds * 1_000)
        for room in stream.rooms.by_jid.values():
            words.learn({"nick": room.nickname}, room.jid)
        words.learn({"jid": stream.client.account})
        stage, fault = _stage(stream), _fault(stanza)
        if fault or stage != course.stage():
            course.enter(at, stage, fault=fault)
        element = stanza.element
        if element.tag == HOLE:
            course.gaps.append(Hole(at, at, f"{PIECES[HOLE]} {element.text or ''}".rstrip()))
        xml = [] if element.tag in PIECES else [written(redacted(element))]
        address = names.lower_bare(element.get("to" if stanza.sent else "from", ""))
        for exact in _events(stream, stanza):
            self._chronicle.take(
                course,
                seconds,
                exact,
                listed=exact["kind"] != "connection" or exact.get("phase") == "joining",
                place=stanza.place,
                stanzas=xml,
                room="" if exact["kind"] == "stanza" else address,
            )

    def timeline(self, streams: Iterable[Examined], made_at: float, holes: int = 0) -> Timeline:
        """Return what the page shows of these streams."""
        courses = []
        for examined in streams:
            if course := self._courses.get(examined):
                course.findings, course.holes = examined.findings(), examined.stream.holes
                course.title = names.lower_bare(examined.stream.client.account) or NAMELESS
                courses.append(course)
        zone: Zone = "utc" if self._has_zones else "unknown"
        return self._chronicle.timeline(
            "explain", courses, made_at, zone=zone if self._has_times else "none", holes=holes
        )

    def _time(self, stanza: Stanza) -> float:
        """Return the time of a stanza in seconds; in a log without times, its line / 1,000."""
        place = stanza.place
        if place.at and not _HAS_ZONE.search(place.at):
            self._has_zones = False
        if self._has_times is None:
            self._has_times = stanza.seconds is not None
        if self._has_times:
            self._seconds = self._seconds if stanza.seconds is None else stanza.seconds
            return self._seconds
        if place.file != self._file:
            self._lines_before, self._file = self._lines_before + self._line, place.file
        self._line = place.line
        return (self._lines_before + self._line) / 1_000


def _events(stream: Stream, stanza: Stanza) -> Iterator[Mapping[str, Any]]:
    """Yield the events of a stanza in their exact form; if it makes none, the stanza itself."""
    element = stanza.element
    direction = "out" if stanza.sent else "in"
    room = stream.rooms.at(element.get("to" if stanza.sent else "from", ""))
    body = element.findtext("body") or ""
    if room is not None and room.state is not RoomState.REFUSED:
        if stanza.sent and element.tag == "presence" and room.state is RoomState.ASKED:
            yield {"kind": "connection", "phase": "joining"}
            return
        if stanza.sent and body and element.get("type") == "groupchat":
            sent = MessageSent(f"{room.jid}/{room.nickname}", room.nickname, body, "")
            yield {**encode(sent), "id": element.get("id", "")}
            return
        if not stanza.sent:
            jid = prepared(room.jid) or room.jid
            own = prepared(f"{jid}/{room.nickname}") or ""
            exacts = [encode(event) for event in read(_in_client(element), room=jid, own=own)]
            if any(exact.get("self") and exact["kind"] == "join" for exact in exacts):
                # Only the attendance uses these two. The page does not list them.
                exacts.insert(0, {"kind": "connection", "sender": room.nickname})
                exacts.append({"kind": "connection", "phase": "joined"})
            yield from exacts
            if exacts:
                return
    exact = {
        "kind": "stanza",
        "direction": direction,
        "name": PIECES.get(element.tag) or names.local(element.tag),
        "payload": [_described(child) for child in element],
        "body": body,
    }
    exact |= {name: value for name in ("type", "from", "to") if (value := element.get(name))}
    yield {name: value for name, value in exact.items() if value}


def _described(child: Element) -> str:
    if child.tag == "error":
        return names.condition_of(child)[0]
    namespace, name = names.split(child.tag)
    return f"{name} ({namespace})" if namespace else child.tag


def _in_client(element: Element) -> Element:
    """Return a copy of `element` in `jabber:client`, the namespace that a capture leaves out."""
    made = Element(
        element.tag if element.tag.startswith("{") else f"{{{names.CLIENT}}}{element.tag}"
    )
    made.attrib, made.text, made.tail = element.attrib, element.text, element.tail
    made.extend(map(_in_client, element))
    return made


def _stage(stream: Stream) -> str:
    """Return the stage that the client has reached on its way into its rooms.

    Empty if it is inside, if it is gone, or if the log lacks the beginning of the stream.
    """
    if stream.client.ended:
        return ""
    if not stream.login.authenticated:
        if stream.login.tried:
            return "authenticating"
        if stream.login.began_tls:
            return "securing"
        return "connecting" if stream.login.headers or stream.client.is_complete else ""
    if not stream.client.bound:
        return "binding"
    asked = any(room.state is RoomState.ASKED for room in stream.rooms.by_jid.values())
    return "joining" if asked else ""


def _fault(stanza: Stanza) -> str:
    """Return the condition with which a stage failed; empty if the stanza ends no stage."""
    element = stanza.element
    if stanza.sent:
        return ""
    if element.tag == "presence" and element.get("type") == "error":
        return names.error_of(element).condition
    return names.condition_of(element)[0] if element.tag in FAILURES else ""
