from collections.abc import Callable
from typing import cast
from xml.etree.ElementTree import Element

import pytest

from bridge.xmpp import archive, mam, stanzas
from bridge.xmpp.connection import Connection
from bridge.xmpp.events import MessageReceived, Source, SubjectChanged
from tests.xmpp.elements import parsed

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
        self.occupant = OWN
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
        events = [event async for event in archive.since(cast(Connection, self), ROOM, START)]
        return [event for event in events if isinstance(event, MessageReceived)]


def _after(payload: Element) -> str | None:
    return payload.findtext(f"{{{mam.RSM}}}set/{{{mam.RSM}}}after")


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
        delayed_from="2026-01-01T00:00:01Z",
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
    assert (await archive.page(again, ROOM, archive.ArchiveQuery())).complete


async def test_an_archive_that_does_not_go_on_is_left() -> None:
    page = [_result(1)], _fin("archived-1", complete=False)
    pages = Pages(page, page)
    await pages.told()
    assert len(pages.asked) == 2


async def test_an_answer_without_an_end_is_the_end() -> None:
    assert len(await Pages(([_result(1)], parsed("<iq type='result'/>"))).told()) == 1


def _read(xml: str, *, sender: str = f"{ROOM}/Wilma", id_: str = "7") -> mam.Archived | None:
    result = parsed(
        f"<result xmlns='urn:xmpp:mam:2' queryid='q' id='{id_}'>"
        "<forwarded xmlns='urn:xmpp:forward:0'>"
        "<delay xmlns='urn:xmpp:delay' stamp='2026-01-01T00:00:00Z'/>"
        f"<message xmlns='jabber:client' type='groupchat' from='{sender}'>{xml}</message>"
        "</forwarded></result>"
    )
    return mam.read_archived(result, room=ROOM, own=OWN)


def test_a_subject_that_was_set_is_told_with_who_set_it_and_when() -> None:
    found = _read("<subject>Ships</subject>")
    assert found == mam.Archived(
        "7",
        "2026-01-01T00:00:00Z",
        f"{ROOM}/Wilma",
        None,
        (SubjectChanged("Ships", "Wilma"),),
    )


async def test_catching_up_leaves_former_subjects_alone() -> None:
    result = _result(1)
    message = result.find(f".//{{{stanzas.CLIENT}}}message")
    assert message is not None
    message.remove(message[0])
    message.append(parsed("<subject>Ships</subject>"))
    pages = Pages(([result, _result(2)], _fin(None, complete=True)))
    told = [one async for one in archive.since(cast(Connection, pages), ROOM, START)]
    assert [type(one) for one in told] == [MessageReceived]


@pytest.mark.parametrize(
    "nothing",
    [
        "",
        "<store xmlns='urn:xmpp:hints'/>",
    ],
)
def test_what_is_no_message_to_read_still_counts_for_paging(nothing: str) -> None:
    found = _read(nothing)
    assert found is not None
    assert (found.id, found.events) == ("7", ())


def test_nobody_outside_the_room_has_said_anything_in_it() -> None:
    for sender in ("wilma@example", "other@conference.example/Wilma", "@"):
        found = _read("<body>I am here</body>", sender=sender)
        assert found is not None
        assert (found.occupant, found.events) == (ROOM, ())


def test_the_real_jid_is_told_where_the_archive_adds_it_and_only_it() -> None:
    def added(jid: str) -> str:
        return f"<x xmlns='{stanzas.MUC_USER}'><item jid='{jid}'/></x>"

    for xml, jid in (
        (added("Wilma@EXAMPLE/Home"), "wilma@example/Home"),
        (f"<x xmlns='{stanzas.MUC_USER}'><item role='none'/></x>", None),
        (added("@"), None),
        (added("boss@example") + added("wilma@example"), None),
        ("", None),
    ):
        found = _read(f"<body>x</body>{xml}")
        assert found is not None
        assert found.jid == jid


def test_ids_that_cannot_be_paged_from_are_none() -> None:
    assert _read("<body>x</body>", id_="i" * mam.MAX_ID_BYTES) is not None
    assert _read("<body>x</body>", id_="i" * (mam.MAX_ID_BYTES + 1)) is None
    assert _read("<body>x</body>", id_="\u00e9" * (mam.MAX_ID_BYTES // 2)) is not None
    assert _read("<body>x</body>", id_="\u00e9" * (mam.MAX_ID_BYTES // 2 + 1)) is None
    assert _read("<body>x</body>", id_="") is None


async def test_a_result_that_forwards_nothing_tells_nothing() -> None:
    empty = parsed("<result xmlns='urn:xmpp:mam:2' queryid='q' id='1'/>")
    assert await Pages(([empty], _fin(None, complete=True))).told() == []


def test_results_come_from_the_rooms_archive_only() -> None:
    message = parsed(f"<message from='{ROOM}'/>")
    message.append(_result(1))
    found = mam.archived(message, ROOM)
    assert found is not None
    assert found[0] == "q"
    for sender in (f"{ROOM}/Wilma", "wilma@example", ""):
        message.set("from", sender)
        assert mam.archived(message, ROOM) is None
    assert mam.archived(parsed(f"<message from='{ROOM}'><body>x</body></message>"), ROOM) is None
