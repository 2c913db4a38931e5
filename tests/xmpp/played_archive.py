"""A room's archive that is made up as it is asked for, in place of a connection to one."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import cast, overload
from xml.etree.ElementTree import Element, SubElement

from bridge.wire.names import CLIENT, DATA_FORMS, DELAY, DISCO_INFO, MAM, StanzaError
from bridge.xmpp.link.connection import Connection, TooManyResultsError
from bridge.xmpp.link.from_slixmpp import prepared
from bridge.xmpp.link.stanzas import IqError
from bridge.xmpp.model.events import MessageReceived
from bridge.xmpp.muc.archive import FORWARD, RSM, ArchiveQuery, ArchiveResult, RoomArchive

ROOM = "lobby@conference.example"


@dataclass(frozen=True)
class Line:
    sender: str
    body: str
    second: int = 0


@dataclass
class PlayedArchive:
    """Answers as XEP-0313 and XEP-0059 have it, but for what a test has it do."""

    lines: Sequence[Line]
    most: int = 1_000
    """Results it gives at a time, however many are asked for."""
    features: Sequence[str] = (MAM,)
    """What the room says that it can do."""
    queries: list[Element] = field(default_factory=list)

    @property
    def connection(self) -> Connection:
        return cast(Connection, self)

    async def request(self, type_: str, to: str, payload: Element) -> Element:
        assert (type_, to, payload.tag) == ("get", ROOM, f"{{{DISCO_INFO}}}query")
        iq = Element(f"{{{CLIENT}}}iq")
        query = SubElement(iq, f"{{{DISCO_INFO}}}query")
        for name in self.features:
            SubElement(query, f"{{{DISCO_INFO}}}feature", {"var": name})
        return iq

    async def collect(
        self, id_: str, to: str, payload: Element, take: Callable[[Element], bool]
    ) -> Element:
        assert to == ROOM
        assert payload.get("queryid") == id_
        self.queries.append(payload)
        lines = self._found(asked_for(payload))
        most = min(int(paging(payload, "max") or self.most), self.most)
        after, before = paging(payload, "after"), paging(payload, "before")
        if (after or before) and self._index(after or before or "") >= len(self.lines):
            raise IqError(StanzaError("item-not-found"))
        if before is not None:
            left = lines[: bisect_left(lines, self._index(before))] if before else lines
            given = left[-most:]
        else:
            left = lines[bisect_right(lines, self._index(after)) :] if after else lines
            given = left[:most]
        for index in given:
            if not take(result_of(id_, self._id(index), self.lines[index])):
                raise TooManyResultsError
        return end_of([*map(self._id, given)], complete=len(given) == len(left))

    def _found(self, fields: dict[str, str]) -> Sequence[int]:
        assert set(fields) <= {"FORM_TYPE", "start", "end"}
        start, end = fields.get("start", "")[:19], fields.get("end", "9")[:19]
        if fields.keys() <= {"FORM_TYPE"}:
            return range(len(self.lines))
        times = [stamp(line.second)[:19] for line in self.lines]
        return [index for index, time in enumerate(times) if start <= time <= end]

    def _id(self, index: int) -> str:
        return f"id-{index}"

    def _index(self, id_: str) -> int:
        return int(id_.removeprefix("id-"))


@dataclass(frozen=True)
class Endless(Sequence[Line]):
    """Very many lines, none of which is there before it is looked at."""

    length: int
    characters: int = 500

    def __len__(self) -> int:
        return self.length

    @overload
    def __getitem__(self, index: int) -> Line: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Line]: ...
    def __getitem__(self, index: int | slice) -> Line | Sequence[Line]:
        assert isinstance(index, int)
        return Line(
            "Fred" if index % 1_000 == 0 else "Wilma", f"line {index} {'x' * self.characters}"
        )


class Lazy(PlayedArchive):
    """Finds its way without looking through everything."""

    def _found(self, fields: dict[str, str]) -> Sequence[int]:
        del fields
        return range(len(self.lines))


def archive_of(connection: Connection, room: str = ROOM) -> RoomArchive:
    return RoomArchive(connection, prepared(room) or room, f"{room}/Me")


def result_of(query: str, id_: str, line: Line) -> Element:
    result = Element(f"{{{MAM}}}result", {"queryid": query, "id": id_})
    forwarded = SubElement(result, f"{{{FORWARD}}}forwarded")
    SubElement(forwarded, f"{{{DELAY}}}delay", {"stamp": stamp(line.second)})
    message = SubElement(
        forwarded, f"{{{CLIENT}}}message", {"from": f"{ROOM}/{line.sender}", "type": "groupchat"}
    )
    SubElement(message, f"{{{CLIENT}}}body").text = line.body
    return result


def end_of(ids: Sequence[str], *, complete: bool) -> Element:
    iq = Element(f"{{{CLIENT}}}iq", {"type": "result"})
    fin = SubElement(iq, f"{{{MAM}}}fin", {"complete": "true"} if complete else {})
    page = SubElement(fin, f"{{{RSM}}}set")
    if ids:
        SubElement(page, f"{{{RSM}}}first").text = ids[0]
        SubElement(page, f"{{{RSM}}}last").text = ids[-1]
    return iq


def stamp(second: int) -> str:
    """A time on the second day of 1970."""
    return f"1970-01-02T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}Z"


def asked_for(payload: Element) -> dict[str, str]:
    return {
        each.get("var", ""): each.findtext(f"{{{DATA_FORMS}}}value") or ""
        for each in payload.iterfind(f"{{{DATA_FORMS}}}x/{{{DATA_FORMS}}}field")
    }


def paging(payload: Element, name: str) -> str | None:
    return payload.findtext(f"{{{RSM}}}set/{{{RSM}}}{name}")


@dataclass(frozen=True)
class Found:
    results: tuple[ArchiveResult, ...]
    next_id: str | None
    more: bool


async def find(
    connection: Connection,
    room: str,
    query: ArchiveQuery,
    *,
    wanted: Callable[[MessageReceived], bool] = lambda _: True,
    limit: int = 1_000_000,
    seconds: float = 600.0,
) -> Found:
    """Search an archive for messages that are wanted, and keep them all."""
    kept: list[ArchiveResult] = []

    async def keep(result: ArchiveResult) -> bool | None:
        if not any(isinstance(each, MessageReceived) and wanted(each) for each in result.events):
            return None
        kept.append(result)
        return True

    asked = archive_of(connection, room)
    searched = await asked.search(query, keep, limit=limit, seconds=seconds)
    return Found(tuple(kept[::-1] if query.backward else kept), *searched)


def said(results: Sequence[ArchiveResult]) -> list[str]:
    return [
        event.body
        for each in results
        for event in each.events
        if isinstance(event, MessageReceived)
    ]
