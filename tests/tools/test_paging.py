import asyncio
import threading

import pytest

from bridge.escaping import one_line
from bridge.mcp.toolset import ArgumentError
from bridge.tools import paging
from bridge.tools.paging import MAX_INLINE_COST, Gap, Page, TimeSlice, event_filter
from bridge.xmpp.events import MessageReceived, SubjectChanged
from bridge.xmpp.filter import EventFilter, Pattern
from bridge.xmpp.journal import Journal, Record

SAID = MessageReceived("room@rooms/W", "W", "x" * 1_000)


def _searching(instructions: int, where: list[str]) -> EventFilter:
    def search(text: str) -> bool:
        where.append(threading.current_thread().name)
        return text.startswith("x")

    return EventFilter(pattern=Pattern(search, instructions))


async def _matches(wanted: EventFilter) -> bool:
    return await TimeSlice().run(wanted.matches, SAID, wanted.cost(SAID))


async def test_a_short_search_is_done_at_once() -> None:
    where: list[str] = []
    assert await _matches(_searching(MAX_INLINE_COST // 1_000, where))
    assert where == [threading.current_thread().name]


async def test_long_searches_are_done_one_by_one_in_a_thread_of_their_own() -> None:
    where: list[str] = []
    filters = [_searching(MAX_INLINE_COST // 1_000 + 1, where) for _ in range(20)]
    assert all(await asyncio.gather(*map(_matches, filters)))
    assert len(where) == 20
    assert len(set(where)) == 1
    assert where[0].startswith("search")


@pytest.mark.parametrize(("more", "thread"), [(0, "MainThread"), (1, "search")])
async def test_a_page_is_read_in_that_thread_where_an_event_costs_too_much(
    more: int, thread: str
) -> None:
    where: list[str] = []
    wanted = _searching(MAX_INLINE_COST // 1_000 + more, where)
    journal = Journal("epoch")
    journal.append(SAID, 0)
    page: Page[int] = Page()
    await page.read(
        journal,
        "epoch-0",
        lambda record: record.number if wanted.matches(record.event) else None,
        lambda record: wanted.cost(record.event),
    )
    assert page.entries == [1]
    assert [one.partition("_")[0] for one in where] == [thread]


async def _turns(work: TimeSlice, pieces: int) -> int:
    """How many turns others had while so many pieces of work were done."""
    turns = 0

    async def ticking() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)  # once a turn

    ticks = asyncio.create_task(ticking())
    for _ in range(pieces):
        await work.run(str, 0, 0)
    ticks.cancel()
    return turns


async def test_others_get_their_turn_when_a_slice_is_over_and_not_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(paging, "SLICE_SECONDS", 60.0)
    assert await _turns(TimeSlice(), 10) == 0
    monkeypatch.setattr(paging, "SLICE_SECONDS", -1.0)
    assert await _turns(TimeSlice(), 10) == 10


def _number(record: Record) -> int:
    return record.number


async def _reading(journal: Journal, since: str | None) -> tuple["asyncio.Task[None]", Page[int]]:
    """Begin to read a page, until others have their turn after its first entry."""
    page: Page[int] = Page()
    reading = asyncio.create_task(page.read(journal, since, _number))
    while not page.entries:  # noqa: ASYNC110 - nobody tells of it
        await asyncio.sleep(0)
    return reading, page


async def test_what_is_evicted_before_a_page_has_come_to_it_is_left_to_the_next_as_a_gap(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(paging, "SLICE_SECONDS", -1.0)
    monkeypatch.setattr("bridge.xmpp.journal.BATCH", 1)
    journal = Journal("epoch", 3)
    for _ in range(3):
        journal.append(SubjectChanged(""), 0)
    reading, page = await _reading(journal, "epoch-0")
    for _ in range(3):
        journal.append(SubjectChanged(""), 0)
    await reading
    assert page.gap is None
    assert page.more is True
    seen = page.entries
    assert page.next == journal.cursor_of(seen[-1])
    rest: Page[int] = Page()
    await rest.read(journal, page.next, _number)
    assert rest.gap == Gap(seen[-1] + 1, 3, "evicted")
    assert rest.entries == [4, 5, 6]


async def test_what_is_evicted_before_the_newest_were_read_is_told_in_their_gap(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(paging, "SLICE_SECONDS", -1.0)
    monkeypatch.setattr("bridge.xmpp.journal.BATCH", 1)
    journal = Journal("epoch", 3)
    for _ in range(3):
        journal.append(SubjectChanged(""), 0)
    reading, page = await _reading(journal, None)
    for _ in range(3):
        journal.append(SubjectChanged(""), 0)
    await reading
    assert page.entries == [2, 3]  # it had come to the former of them
    assert page.gap == Gap(1, 1, "evicted")
    assert (page.more, page.next) == (False, "epoch-3")


async def test_what_is_wrong_with_a_pattern_is_told_in_one_line() -> None:
    with pytest.raises(ArgumentError) as refusal:
        await event_filter(kinds=None, sender=None, contains=None, pattern="[\u202e-\n]" * 9)
    assert one_line(refusal.value.message) == refusal.value.message
    assert "invalid character class range" in refusal.value.message
