"""What was said since, from the archive: page by page, each once, and as what it was."""

from collections.abc import Callable
from typing import cast
from xml.etree.ElementTree import Element, SubElement

import pytest

from bridge.store.clock import Instant
from bridge.text import seconds_of
from bridge.wire import names
from bridge.xmpp.link import stanzas
from bridge.xmpp.link.connection import Connection
from bridge.xmpp.model.events import Event, MessageReceived, Source, SubjectChanged
from bridge.xmpp.muc import archive
from bridge.xmpp.muc.catching_up import OVERLAP_SECONDS, CatchingUp
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


def result(
    content: str = "<body>one</body>", sender: str = f"{ROOM}/Wilma", id_: str = "id-0"
) -> Element:
    made = result_of("q", id_, LINES[0])
    message = made.find(f".//{{{names.CLIENT}}}message")
    assert message is not None
    message.set("from", sender)
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
    assert [paging(each, "after") for each in played.queries] == [None, "id-1"]
    assert {paging(each, "max") for each in played.queries} == {str(archive.PAGE)}
    assert {asked_for(each)["start"] for each in played.queries} == {START}


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
    if not page[0]:
        ended = await archive_of(cast(Connection, Pages(page))).page(archive.ArchiveQuery())
        assert ended.complete


async def test_neither_subjects_nor_results_that_forward_nothing_are_told() -> None:
    empty = result()
    empty.clear()
    SubElement(empty, "nothing")
    ids = f"<stanza-id xmlns='urn:xmpp:sid:0' by='{ROOM}' id='true'/>"
    given = [result("<subject>Ships</subject>"), empty, result(f"<body>x</body>{ids}")]
    (told,) = await since(Pages((given, end_of([], complete=True))))
    assert isinstance(told, MessageReceived)
    assert told.stanza_id == "true"  # so that nothing is told twice


def _read(
    content: str, sender: str = f"{ROOM}/Wilma", id_: str = "7"
) -> archive.ArchiveResult | None:
    return archive.read_result(result(content, sender, id_), room=ROOM, own=f"{ROOM}/Me")


def test_a_subject_that_was_set_is_told_with_who_set_it_and_when() -> None:
    told = (SubjectChanged("Ships", "Wilma"),)
    read = _read("<subject>Ships</subject>")
    assert read == archive.ArchiveResult("7", "1970-01-02T00:00:01Z", told)


def test_what_is_no_message_to_read_still_counts_for_paging() -> None:
    strangers = (_read("<body>x</body>", sender=each) for each in ("w@example", "o@muc/Wilma", "@"))
    for it in (_read(""), _read("<store xmlns='urn:xmpp:hints'/>"), *strangers):
        assert it == archive.ArchiveResult("7", "1970-01-02T00:00:01Z", ())


def test_the_real_jid_is_told_where_the_archive_adds_it_and_only_it() -> None:
    def added(jid: str) -> str:
        return f"<x xmlns='{names.MUC_USER}'><item jid='{jid}'/></x>"

    for xml, jid in (
        (added("Wilma@EXAMPLE/Home"), "wilma@example/Home"),
        (f"<x xmlns='{names.MUC_USER}'><item role='none'/></x>", None),
        (added("@"), None),
        (added("boss@example") + added("wilma@example"), None),
        ("", None),
    ):
        read = _read(f"<body>x</body>{xml}")
        assert read is not None
        (event,) = read.events
        assert isinstance(event, MessageReceived)
        assert event.jid == jid


def test_ids_that_cannot_be_paged_from_are_none() -> None:
    longest = "\u00e9" * (archive.MAX_ID_BYTES // 2)
    for id_, is_one in ((longest, True), (f"{longest}x", False), ("", False)):
        assert (_read("<body>x</body>", id_=id_) is not None) is is_one


def test_a_result_names_its_archive_and_its_query() -> None:
    message = parsed(f"<message from='{ROOM}'/>")
    message.append(result_of("q", "1", Line("Wilma", "yes")))
    for sender in (ROOM, f"{ROOM}/Wilma", "wilma@example"):
        message.set("from", sender)
        read = stanzas.archive_result(message)
        assert read is not None
        assert read[:2] == (sender, "q")
    message.set("from", "@")
    assert stanzas.archive_result(message) is None
    assert stanzas.archive_result(parsed(f"<message from='{ROOM}'><body/></message>")) is None


@pytest.mark.parametrize(
    ("at", "within"),
    [
        ("2026-01-01T10:00:00.499999Z", False),
        ("2026-01-01T10:00:00.500000Z", True),
        ("2026-01-01T11:00:00.600000+01:00", True),
        ("2026-01-01T10:00:01.250000Z", True),
        ("2026-01-01T10:00:01.250001Z", False),
        # In whole seconds: it may have come before the bound, and after it.
        ("2026-01-01T10:00:00Z", True),
        ("2026-01-01T09:59:59Z", False),
        ("2026-01-01T10:00:02Z", False),
        # Without a time, it is the archive's word that counts.
        (None, True),
        ("yesterday", True),
        ("2026-01-01T10:00:00", True),
    ],
)
def test_a_result_outside_the_bounds_is_dropped(at: str | None, within: bool) -> None:
    query = archive.ArchiveQuery("2026-01-01T10:00:00.500Z", "2026-01-01T10:00:01.250Z")
    assert query.admits(at) is within


@pytest.mark.parametrize(
    ("end", "requested"),
    [
        ("2026-01-01T10:00:01.250Z", "2026-01-01T10:00:01.250001Z"),
        ("2026-01-01T10:00:01.999999Z", "2026-01-01T10:00:02Z"),
        ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"),
    ],
)
def test_a_microsecond_more_is_requested_since_a_server_may_leave_the_end_out(
    end: str, requested: str
) -> None:
    assert asked_for(archive.ArchiveQuery(end=end).payload("q"))["end"] == requested


@pytest.mark.parametrize("ahead", [0.0, 3_600.0, -3_600.0])
def test_what_was_missed_is_asked_for_by_the_clock_as_it_is_now(ahead: float) -> None:
    catching_up, now = CatchingUp("r@muc"), Instant.now()
    catching_up.heard_until = Instant.of(now - 300.0 + ahead, now.steady - 300.0)
    asked = seconds_of(catching_up.since())
    assert asked == pytest.approx(float(now) - 300.0 - OVERLAP_SECONDS, abs=5)
