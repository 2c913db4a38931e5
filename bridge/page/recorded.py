"""Makes the page of what was recorded: a part for each room, and one for each connection."""

from bisect import bisect_left
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from xml.etree.ElementTree import Element

from bridge.capture.elements import elements_of
from bridge.page.chronicle import MAX_WEIGHT, Chronicle, Course, Kind
from bridge.page.timeline import MAX_EVENTS, Timeline
from bridge.recording.recorded import Walk
from bridge.store.database import Recorded
from bridge.text import memory_of
from bridge.xmpp.model.events import decode
from bridge.xmpp.model.filter import EventFilter

STANZA_SECONDS = 1.0
"""Most seconds between a stanza and its event. The bridge notes one after the other, which takes a
while in a flood."""

ID_SECONDS = 60.0
"""Most seconds between a stanza and its event with the same id: a refusal may come late."""

ATTENDING = frozenset({"join", "leave", "nick", "role", "connection"})
"""The kinds of events that tell who was in a room."""

MAX_LOOKED_BACK = 20_000
"""Most events from before the beginning of the page that are read to know who was there."""


class StanzasBehind:
    """The newest recorded stanzas; finds the ones that belong to an event."""

    def __init__(self) -> None:
        self._kept: deque[tuple[Recorded, int]] = deque()
        """The stanzas, each with its weight."""
        self._weight = 0
        self._by_key: dict[tuple[str, str, str], list[Recorded]] | None = None

    def take(self, row: Recorded) -> None:
        """Keep a stanza, and give up the oldest beyond the limits."""
        weight = memory_of(row.event["xml"])
        self._kept.append((row, weight))
        self._weight += weight
        while len(self._kept) > 2 * MAX_EVENTS or self._weight > MAX_WEIGHT:
            self._weight -= self._kept.popleft()[1]

    def behind(self, row: Recorded) -> list[str]:
        """Return the XML of the stanzas of an event; a message of ours has two, out and back."""
        if self._by_key is None:
            self._by_key = {}
            for stanza, _ in self._kept:
                for element in elements_of(stanza.event["xml"])[0]:
                    for key in _keys_of(element, stanza.event["direction"]):
                        self._by_key.setdefault(key, []).append(stanza)
        xml = []
        for key in _keys_behind(row):
            candidates = self._by_key.get(key, [])
            # The store returned them in the order of their times.
            place = bisect_left(candidates, row.at, key=lambda each: each.at)
            beside = candidates[max(place - 1, 0) : place + 1]
            nearest = min(beside, key=lambda each: abs(each.at - row.at), default=None)
            most = ID_SECONDS if key[2] else STANZA_SECONDS
            if nearest is not None and abs(nearest.at - row.at) <= most:
                xml.append(nearest.event["xml"])
        return xml


class RecordedPage:
    """Collects recorded events, and makes the page of them."""

    def __init__(self, chronicle: Chronicle, filters: Sequence[EventFilter]) -> None:
        """List the events that any of the filters matches; without filters, all."""
        self._chronicle = chronicle
        self._filters = filters
        self._stanzas = StanzasBehind()
        self._courses: dict[str, Course] = {}
        self.has_events = False

    async def look_back(
        self, walk: Callable[..., Awaitable[Walk]], start: str | None, end: str | None
    ) -> None:
        """Read the stanzas between these times, and who was there at the start.

        Raises `StoreError`.
        """
        async for row in await walk(EventFilter(), stanzas=True, start=start, end=end):
            self._stanzas.take(row)
        rows: list[Recorded] = []
        if start is not None:
            async for row in await walk(EventFilter(ATTENDING), end=start, backward=True):
                rows.append(row)
                if len(rows) == MAX_LOOKED_BACK:
                    break
        for row in reversed(rows):
            self._attend(row, self._course(row), self._learn(row))

    def take(self, row: Recorded) -> None:
        """Take an event."""
        observer = self._learn(row)
        course = self._course(row)
        event = decode(row.event)
        listed = not self._filters or any(each.matches(event) for each in self._filters)
        self.has_events = self.has_events or listed
        stanzas = self._stanzas.behind(row) if listed else []
        self._chronicle.take(
            course,
            row.at,
            row.event,
            observer=observer,
            room=row.room,
            listed=listed,
            stanzas=stanzas,
        )
        if not row.room:
            self._attend(row, course, observer)

    def timeline(self, made_at: float) -> Timeline:
        """Return what the page shows, the rooms first. Call it once: it gives up what it kept."""
        self._stanzas = StanzasBehind()
        courses = [course for course in self._courses.values() if course.begin is not None]
        courses.sort(key=lambda course: course.kind, reverse=True)
        return self._chronicle.timeline("log", courses, made_at)

    def _learn(self, row: Recorded) -> str:
        """Learn the observer's names; return the observer as text, or "" for a shared event."""
        observer = row.observer
        self._chronicle.bridges.add(observer.nickname)
        names = {"jid": observer.account, "nick": observer.nickname}
        self._chronicle.words.learn(names, row.room)
        return "" if row.shared else str(observer)

    def _course(self, row: Recorded) -> Course:
        """Return the course of an event's room, or else of its connection."""
        kind: Kind = "room" if row.room else "connection"
        title = row.room or str(row.observer)
        return self._courses.setdefault(title, Course(kind, title))

    def _attend(self, row: Recorded, course: Course, observer: str) -> None:
        """Note who was in the rooms that an event is about: in all if it names none."""
        at = round(row.at * 1_000)
        for each in [course] if row.room else self._courses.values():
            if each.kind == "room":
                each.attendances[each.title].take(at, at, row.event, observer)
                each.end = max(each.end, at)


def _keys_of(element: Element, direction: str) -> set[tuple[str, str, str]]:
    """Return what a stanza may have in common with its event: kind, other side, id if known."""
    end = element.get("from" if direction == "in" else "to", "").casefold()
    kind = f"{direction} {element.tag}"
    return {(kind, end, ""), (kind, end, element.get("id", ""))}


def _keys_behind(row: Recorded) -> list[tuple[str, str, str]]:
    """Return the keys of the stanzas behind an event."""
    exact, room = row.event, row.room.casefold()
    sender, id_ = str(exact.get("from", room)).casefold(), exact.get("id", "")
    match exact:
        case {"kind": "gap" | "connection"}:
            return []
        case {"direction": "out"}:
            return [("out message", room, id_)]
        case {"kind": "error", "sender": str()}:
            return [("in message", sender, id_)]
        case {"kind": "message"} | {"kind": "error", "id": str()}:
            sent = [("out message", room, id_)] if id_ else []
            return [*sent, ("in message", sender, id_)]
        case {"kind": "error"}:
            return [("in presence", f"{room}/{row.observer.nickname.casefold()}", "")]
        case {"kind": "subject", "sender": str(nickname)}:
            return [("in message", f"{room}/{nickname.casefold()}", "")]
        case {"kind": "subject" | "config"}:
            return [("in message", room, "")]
    return [("in presence", sender, "")]
