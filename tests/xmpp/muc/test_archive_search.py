import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias
from xml.etree.ElementTree import Element

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.xmpp.muc.archive import (
    MAX_PAGES,
    REQUEST_SECONDS,
    ArchiveError,
    ArchiveQuery,
    ArchiveResult,
)
from tests.support.memory import traced
from tests.xmpp.place import PLACE
from tests.xmpp.played_archive import (
    ROOM,
    Endless,
    Found,
    Lazy,
    Line,
    PlayedArchive,
    archive_of,
    find,
    paging,
    said,
    stamp,
)
from tests.xmpp.played_connection import refused

PATIENT = 600.0
Take: TypeAlias = Callable[[Element], bool]


async def search(
    archive: PlayedArchive,
    query: ArchiveQuery,
    limit: int = 1_000_000,
    seconds: float = PATIENT,
    *,
    sender: str = "",
) -> Found:
    connection, wanted = archive.connection, lambda it: sender in {"", it.sender}
    return await find(connection, ROOM, query, wanted=wanted, limit=limit, seconds=seconds)


lines = st.lists(
    st.builds(
        Line,
        st.sampled_from(["Wilma", "Fred", "wilma"]),
        st.sampled_from(["yes", "no", "Yes and no", "ÄRGER", ""]),
    ),
    max_size=30,
)


@st.composite
def archives(draw: st.DrawFn) -> PlayedArchive:
    second, result = 0, []
    for line in draw(lines):
        second += draw(st.integers(0, 2))
        result.append(replace(line, second=second))
    return PlayedArchive(result, most=draw(st.integers(1, 12)))


times = st.none() | st.integers(0, 40).map(stamp)
queries = st.builds(
    ArchiveQuery, start=times, end=times, backward=st.booleans(), most=st.integers(1, 12)
)


@given(
    archive=archives(),
    query=queries,
    limits=st.lists(st.integers(1, 8), min_size=1, max_size=40),
    unwanted=st.sampled_from(["", "no"]),
)
async def test_wherever_the_server_stops_all_is_found_once(
    archive: PlayedArchive, query: ArchiveQuery, limits: list[int], unwanted: str
) -> None:
    read: list[str] = []
    for limit in [*limits, 1_000]:
        page = await find(
            archive.connection, ROOM, query, wanted=lambda it: it.body != unwanted, limit=limit
        )
        ids = [result.id for result in page.results]
        assert len(ids) <= limit
        read = [*ids, *read] if query.backward else [*read, *ids]
        if not page.more:
            break
        assert page.next_id is not None
        query = replace(query, position=page.next_id)
    assert read == [
        f"id-{index}"
        for index, line in enumerate(archive.lines)
        if (query.start or "") <= stamp(line.second) <= (query.end or "9") and line.body != unwanted
    ]


@pytest.mark.parametrize("id_", ["a\x00b", "i" * 1_025])
@pytest.mark.parametrize("way", ["after", "before"])
async def test_an_id_that_no_archive_can_have_is_unknown(id_: str, way: str) -> None:
    archive = PlayedArchive([Line("Wilma", "yes")])
    query = (
        ArchiveQuery(position=id_) if way == "after" else ArchiveQuery(backward=True, position=id_)
    )
    with pytest.raises(ArchiveError, match="archive-position"):
        await search(archive, query)
    assert archive.queries == []


@dataclass
class Refusing(PlayedArchive):
    condition: str = ""

    async def collect(self, id_: str, to: str, payload: Element, take: Take) -> Element:
        raise refused(self.condition, "so it is")


@pytest.mark.parametrize(
    ("condition", "query", "message"),
    [
        ("service-unavailable", ArchiveQuery(), "keeps no archive"),
        ("feature-not-implemented", ArchiveQuery(), "keeps no archive"),
        ("forbidden", ArchiveQuery(), 'does not let us read its archive. It says: "so it is"'),
        ("item-not-found", ArchiveQuery(), 'refused to read from its archive. It says: "so it'),
        ("item-not-found", ArchiveQuery(position="gone"), "does not know the place in `since`"),
        (
            "item-not-found",
            ArchiveQuery(backward=True, position="gone"),
            "does not know the place in `since`",
        ),
        ("internal-server-error", ArchiveQuery(), "refused to read from its archive"),
    ],
)
async def test_a_refusal_is_told(condition: str, query: ArchiveQuery, message: str) -> None:
    archive = Refusing([], condition=condition)
    with pytest.raises(ArchiveError) as raised:
        await search(archive, query)
    assert message in raised.value.fault(PLACE).message


async def test_a_room_that_says_nothing_of_an_archive_is_not_asked() -> None:
    archive = PlayedArchive([Line("Wilma", "yes")], features=["http://jabber.org/protocol/muc"])
    with pytest.raises(ArchiveError, match="archive-missing"):
        await search(archive, ArchiveQuery())
    assert archive.queries == []


async def test_of_thousands_of_messages_what_is_not_wanted_is_not_kept() -> None:
    archive = Lazy(Endless(1_500, characters=5_000))
    with traced() as memory:
        result = await search(archive, ArchiveQuery(backward=True), sender="Fred")
        _, peak = memory()
    assert [each.id for each in result.results] == ["id-0", "id-1000"]
    assert (result.more, len(archive.queries)) == (False, 15)
    assert peak < 3 * 1024 * 1024, peak  # two pages and a bit, of fifteen


async def test_a_search_ends_after_its_pages_and_says_where_to_go_on() -> None:
    archive = Lazy(Endless(MAX_PAGES * 2 + 1))
    first = await search(archive, ArchiveQuery(most=2))
    assert len(archive.queries) == MAX_PAGES
    assert (len(first.results), first.more, first.next_id) == (1_000, True, "id-999")
    rest = await search(archive, ArchiveQuery(most=2, position=first.next_id))
    assert ([each.id for each in rest.results], rest.more) == (["id-1000"], False)


@pytest.mark.parametrize("backward", [False, True])
async def test_a_search_ends_where_there_is_no_more_room(*, backward: bool) -> None:
    played = PlayedArchive([Line("Wilma", str(number)) for number in range(9)], most=3)
    kept: list[str] = []

    async def keep(result: ArchiveResult) -> bool:
        if len(kept) == 5:
            return False
        kept.append(result.id)
        return True

    query = ArchiveQuery(backward=backward)
    searched = await archive_of(played.connection).search(query, keep, limit=9, seconds=PATIENT)
    assert kept == [f"id-{8 - number if backward else number}" for number in range(5)]
    assert searched == (kept[-1], True)


async def test_a_page_of_long_messages_is_asked_for_again_in_parts() -> None:
    archive = PlayedArchive([Line("Wilma", "x" * 2_500_000)] * 4)
    result = await search(archive, ArchiveQuery(backward=True), limit=3)
    assert [each.id for each in result.results] == ["id-1", "id-2", "id-3"]
    asked = [paging(each, "max") for each in archive.queries]
    assert asked[:6] == ["100", "50", "25", "12", "6", "3"]


NINE = [Line("Wilma", str(number)) for number in range(9)]


class Stuck(PlayedArchive):
    answers = 0

    async def collect(self, id_: str, to: str, payload: Element, take: Take) -> Element:
        if len(self.queries) == self.answers:
            await asyncio.Event().wait()
        return await super().collect(id_, to, payload, take)


@pytest.mark.parametrize(
    ("sender", "answers", "bodies", "next_id"),
    [("", 3, ["0", "1", "2", "3", "4", "5"], "id-5"), ("Barney", 2, [], "id-3")],
)
async def test_a_search_whose_time_is_up_tells_what_it_has_and_where_to_go_on(
    sender: str, answers: int, bodies: list[str], next_id: str
) -> None:
    archive = Stuck(NINE, most=2)
    archive.answers = answers
    result = await search(archive, ArchiveQuery(), seconds=0.2, sender=sender)
    assert (said(result.results), result.more, result.next_id) == (bodies, True, next_id)


async def test_no_answer_at_all_fails_and_one_answer_has_a_deadline_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(ArchiveError, match="archive-silent"):
        await search(Stuck(NINE), ArchiveQuery(), seconds=0.05)
    assert REQUEST_SECONDS < 50
    monkeypatch.setattr("bridge.xmpp.muc.archive.REQUEST_SECONDS", 0.05)
    archive = Stuck(NINE, most=2)
    with pytest.raises(ArchiveError, match="archive-silent"):
        await search(archive, ArchiveQuery(), seconds=50)
    archive.answers, archive.queries = 1, []
    result = await search(archive, ArchiveQuery(), seconds=50)
    assert (said(result.results), result.more) == (["0", "1"], True)


async def test_an_archive_that_goes_in_a_circle_is_left() -> None:
    class Circle(PlayedArchive):
        async def collect(self, id_: str, to: str, payload: Element, take: Take) -> Element:
            if paging(payload, "after") == "id-5":
                payload = ArchiveQuery(most=2, position="id-1").payload(id_)
            return await super().collect(id_, to, payload, take)

    archive = Circle(NINE[:8], most=2)
    result = await search(archive, ArchiveQuery())
    assert said(result.results) == ["0", "1", "2", "3", "4", "5"]
    assert not result.more
    assert len(archive.queries) == 4
