"""What was said since, from the archive: page by page, each once, and as what it was."""

from collections.abc import Callable
from typing import cast
from xml.etree.ElementTree import Element, SubElement

import pytest

from bridge.xmpp.link import stanzas
from bridge.xmpp.link.connection import Connection
from bridge.xmpp.model.events import Event, MessageReceived, Source
from bridge.xmpp.muc import archive
from tests.xmpp.elements import parsed
from tests.xmpp.played_archive import (
    ROOM,
    Line,
    PlayedArchive,
    archive_of,
    asked_for,
    end_of,
    paging,
    result_of,
)

START = "1970-01-02T00:00:00.000Z"
LINES = [Line("Wilma", "one", 1), Line("Wilma", "two", 2), Line("Me", "three", 3)]


class Pages:
    """An archive that gives these pages, one an answer, whatever is asked."""

    def __init__(self, *pages: tuple[list[Element], Element]) -> None:
        self.asked = 0
        self._pages = pages

    async def collect(
        self, id_: str, to: str, payload: Element, take: Callable[[Element], bool]
    ) -> Element:
        results, end = self._pages[self.asked]
        self.asked += 1
        for result in results:
            result.set("queryid", id_)
            assert take(result)
        return end


def result(content: str = "<body>one</body>") -> Element:
    """A result that holds a message with this in it."""
    made = result_of("q", "id-0", LINES[0])
    message = made.find(f".//{{{stanzas.CLIENT}}}message")
    assert message is not None
    message[:] = list(parsed(f"<message>{content}</message>"))
    return made


async def since(connection: object) -> list[Event]:
    return [event async for event in archive_of(cast(Connection, connection)).since(START)]


async def test_pages_are_asked_for_one_after_the_other_until_all_is_told() -> None:
    played = PlayedArchive(LINES, most=2)
    told = await since(played)
    assert told == [
        MessageReceived(
            f"{ROOM}/{line.sender}",
            line.sender,
            line.body,
            stanza_id=f"id-{number}",
            delayed_from=f"1970-01-02T00:00:0{line.second}.000Z",
            source=Source.ARCHIVE,
            own=line.sender == "Me",
        )
        for number, line in enumerate(LINES)
    ]
    assert [paging(one, "after") for one in played.queries] == [None, "id-1"]
    assert {paging(one, "max") for one in played.queries} == {str(archive.PAGE)}
    assert {asked_for(one)["start"] for one in played.queries} == {START}


async def test_the_rooms_own_stanza_id_is_kept_so_that_nothing_is_told_twice() -> None:
    ids = f"<body>x</body><stanza-id xmlns='urn:xmpp:sid:0' by='{ROOM}' id='true'/>"
    (told,) = await since(Pages(([result(ids)], end_of([], complete=True))))
    assert isinstance(told, MessageReceived)
    assert told.stanza_id == "true"


@pytest.mark.parametrize(
    ("end", "asked"),
    [
        (end_of([], complete=False), 1),
        (parsed("<iq type='result'/>"), 1),
        (end_of(["id-0"], complete=False), 2),
    ],
    ids=["an empty page", "no end", "no progress"],
)
async def test_an_archive_that_does_not_go_on_is_left(end: Element, asked: int) -> None:
    page = [result()] if end.find(f".//{{{archive.RSM}}}last") is not None else [], end
    pages = Pages(page, page)
    await since(pages)
    assert pages.asked == asked


async def test_an_empty_page_is_the_end_whether_it_says_so_or_not() -> None:
    pages = cast(Connection, Pages(([], end_of([], complete=False))))
    assert (await archive_of(pages).page(archive.ArchiveQuery())).complete


async def test_neither_subjects_nor_results_that_forward_nothing_are_told() -> None:
    empty = result()
    empty.clear()
    SubElement(empty, "nothing")
    given = [result("<subject>Ships</subject>"), empty, result()]
    (told,) = await since(Pages((given, end_of([], complete=True))))
    assert isinstance(told, MessageReceived)
