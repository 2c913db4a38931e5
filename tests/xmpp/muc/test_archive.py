from collections.abc import Callable
from typing import cast
from xml.etree.ElementTree import Element

from bridge.xmpp.link import stanzas
from bridge.xmpp.link.connection import Connection
from bridge.xmpp.model.events import MessageReceived, Source
from bridge.xmpp.muc import archive
from tests.xmpp.elements import parsed
from tests.xmpp.played_archive import archive_of

ROOM = "lobby@conference.example"
OWN = f"{ROOM}/Me"
START = "2026-01-01T00:00:00.000Z"


def _result(number: int, nickname: str = "Wilma", ids: str = "") -> Element:
    return parsed(
        f"<result xmlns='urn:xmpp:mam:2' queryid='q' id='archived-{number}'>"
        "<forwarded xmlns='urn:xmpp:forward:0'>"
        f"<delay xmlns='urn:xmpp:delay' stamp='2026-01-01T00:00:{number:02}Z'/>"
        f"<message xmlns='jabber:client' type='groupchat' id='m{number}'"
        f" from='{ROOM}/{nickname}'><body>line {number}</body>{ids}</message>"
        "</forwarded></result>"
    )


def _fin(last: str | None, *, complete: bool) -> Element:
    page = f"<last>{last}</last>" if last else ""
    done = " complete='true'" if complete else ""
    return parsed(
        f"<iq type='result'><fin xmlns='urn:xmpp:mam:2'{done}>"
        f"<set xmlns='http://jabber.org/protocol/rsm'>{page}</set></fin></iq>"
    )


class Pages:
    """A room's archive, a page an answer."""

    def __init__(self, *pages: tuple[list[Element], Element]) -> None:
        self.asked: list[Element] = []
        self._pages = pages

    async def collect(
        self, id_: str, to: str, payload: Element, take: Callable[[Element], bool]
    ) -> Element:
        assert to == ROOM
        assert payload.get("queryid") == id_
        self.asked.append(payload)
        results, end = self._pages[len(self.asked) - 1]
        assert all(take(result) for result in results)
        return end

    async def told(self) -> list[MessageReceived]:
        events = [event async for event in archive_of(cast(Connection, self)).since(START)]
        return [event for event in events if isinstance(event, MessageReceived)]


def _after(payload: Element) -> str | None:
    return payload.findtext(f"{{{archive.RSM}}}set/{{{archive.RSM}}}after")


async def test_pages_are_asked_for_one_after_the_other_until_all_is_told() -> None:
    pages = Pages(
        ([_result(1), _result(2)], _fin("archived-2", complete=False)),
        ([_result(3)], _fin("archived-3", complete=True)),
    )
    told = await pages.told()
    assert [one.body for one in told] == ["line 1", "line 2", "line 3"]
    assert [_after(one) for one in pages.asked] == [None, "archived-2"]
    assert all(START in stanzas.xml_of(one) for one in pages.asked)
    assert all(f"<max>{archive.PAGE}</max>" in stanzas.xml_of(one) for one in pages.asked)


async def test_what_is_told_is_marked_as_archived_with_its_time_and_id() -> None:
    (told,) = await Pages(([_result(1)], _fin("archived-1", complete=True))).told()
    assert told == MessageReceived(
        f"{ROOM}/Wilma",
        "Wilma",
        "line 1",
        id="m1",
        stanza_id="archived-1",
        delayed_from="2026-01-01T00:00:01.000Z",
        source=Source.ARCHIVE,
    )


async def test_the_rooms_own_stanza_id_is_kept_so_that_nothing_is_told_twice() -> None:
    ids = f"<stanza-id xmlns='urn:xmpp:sid:0' by='{ROOM}' id='true'/>"
    (told,) = await Pages(([_result(1, ids=ids)], _fin(None, complete=True))).told()
    assert told.stanza_id == "true"


async def test_what_we_said_ourselves_is_our_own() -> None:
    (told,) = await Pages(([_result(1, "Me")], _fin(None, complete=True))).told()
    assert told.own


async def test_an_empty_page_is_the_end_whether_it_says_so_or_not() -> None:
    pages = Pages(([], _fin(None, complete=False)))
    assert await pages.told() == []
    assert len(pages.asked) == 1
    again = cast(Connection, Pages(([], _fin(None, complete=False))))
    assert (await archive_of(again).page(archive.ArchiveQuery())).complete


async def test_an_archive_that_does_not_go_on_is_left() -> None:
    page = [_result(1)], _fin("archived-1", complete=False)
    pages = Pages(page, page)
    await pages.told()
    assert len(pages.asked) == 2


async def test_an_answer_without_an_end_is_the_end() -> None:
    assert len(await Pages(([_result(1)], parsed("<iq type='result'/>"))).told()) == 1


async def test_catching_up_leaves_former_subjects_alone() -> None:
    result = _result(1)
    message = result.find(f".//{{{stanzas.CLIENT}}}message")
    assert message is not None
    message.remove(message[0])
    message.append(parsed("<subject>Ships</subject>"))
    pages = Pages(([result, _result(2)], _fin(None, complete=True)))
    told = [one async for one in archive_of(cast(Connection, pages)).since(START)]
    assert [type(one) for one in told] == [MessageReceived]


async def test_a_result_that_forwards_nothing_tells_nothing() -> None:
    empty = parsed("<result xmlns='urn:xmpp:mam:2' queryid='q' id='1'/>")
    assert await Pages(([empty], _fin(None, complete=True))).told() == []
