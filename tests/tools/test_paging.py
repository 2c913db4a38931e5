import asyncio
import threading
from collections.abc import Awaitable, Iterator
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.mcp.errors import ArgumentError
from bridge.text import one_line
from bridge.tools import paging
from bridge.tools.entries import json_size
from bridge.tools.paging import MAX_INLINE_COST, Page, TimeSlice, event_filter
from bridge.xmpp.model.events import MessageReceived, SubjectChanged
from bridge.xmpp.model.filter import EventFilter, Pattern
from bridge.xmpp.model.journal import Journal, Record

SAID = MessageReceived("room@rooms/W", "W", "x" * 1_000)


class _Costly(Pattern):
    """Finds an `x`, and claims to have so many instructions."""

    def __init__(self, instructions: int) -> None:
        super().__init__("^x")
        self.instructions = instructions


class _Meeting(_Costly):
    """A costly one that notes whether another search is under way meanwhile."""

    def __init__(self, place: threading.Barrier, met: list[str]) -> None:
        super().__init__(MAX_INLINE_COST // 1_000 + 1)
        self._place = place
        self._met = met

    def is_in(self, text: str) -> bool:
        with suppress(threading.BrokenBarrierError):
            self._place.wait(0.1)
            self._met.append(text)
        return super().is_in(text)


async def _matches(pattern: Pattern) -> bool:
    wanted = EventFilter(pattern=pattern)
    return await TimeSlice().run(wanted.matches, SAID, wanted.cost(SAID))


async def test_no_two_long_searches_are_under_way_at_once() -> None:
    place, met = threading.Barrier(2), list[str]()
    assert all(await asyncio.gather(*(_matches(_Meeting(place, met)) for _ in range(20))))
    assert place.broken  # each came there alone
    assert not met


@pytest.mark.parametrize(("more", "waits"), [(0, False), (1, True)])
async def test_others_get_their_turn_during_a_search_that_costs_too_much(
    monkeypatch: pytest.MonkeyPatch, more: int, waits: bool
) -> None:
    monkeypatch.setattr(paging, "SLICE_SECONDS", 60.0)
    wanted = EventFilter(pattern=_Costly(MAX_INLINE_COST // 1_000 + more))
    journal = Journal("epoch")
    journal.append(SAID, 0)
    page: Page[int] = Page()
    reading = page.read(
        journal,
        "epoch-0",
        lambda record: record.number if wanted.matches(record.event) else None,
        lambda record: wanted.cost(record.event),
    )
    assert (await _turns(reading) > 0) is waits
    assert page.entries == [1]


@pytest.mark.parametrize("spare", [0, -1])
def test_what_fills_the_page_to_the_byte_is_on_it_and_what_is_longer_is_not(spare: int) -> None:
    both = {"a": "xy"}
    page: Page[dict[str, str]] = Page(size=json_size(both) + spare)
    page.fold = lambda entries, _: (0, both) if entries else None
    assert page.add({"a": "x"})
    assert page.add({"a": "y"}) is (spare == 0)
    assert page.entries == [both if spare == 0 else {"a": "x"}]
    page = Page(size=2 * json_size(both) + len(", ") + spare)
    assert page.add(both)
    assert page.add(both) is (spare == 0)


async def _turns(work: Awaitable[object]) -> int:
    """How many turns others had while the work was done."""
    turns = 0

    async def ticking() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)  # once a turn

    ticks = asyncio.create_task(ticking())
    await work
    ticks.cancel()
    return turns


async def _pieces(work: TimeSlice, pieces: int) -> None:
    for _ in range(pieces):
        await work.run(str, 0, 0)


async def test_others_get_their_turn_when_a_slice_is_over_and_not_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(paging, "SLICE_SECONDS", 60.0)
    assert await _turns(_pieces(TimeSlice(), 10)) == 0
    monkeypatch.setattr(paging, "SLICE_SECONDS", -1.0)
    assert await _turns(_pieces(TimeSlice(), 10)) == 10


def _number(record: Record) -> int:
    return record.number


LOBBY, LOGS = ROOMS = ("lobby@rooms", "logs@rooms")
EVENTS = st.lists(st.sampled_from([*ROOMS, LOGS, LOGS, ""]), max_size=20)
"""The rooms of events, one of them noisy; the connection's have none."""


class _Busy:
    """A journal in which events come while a page of it is read."""

    def __init__(self, capacity: int, rooms: tuple[str, ...], events: list[str]) -> None:
        self.journal = Journal("epoch", capacity)
        self.journal.share_among(rooms)
        self.rooms: list[str] = []
        """Of all events, in order: the first has the number 1."""
        self.happen(events)

    def happen(self, rooms: list[str]) -> None:
        for room in rooms:
            self.rooms.append(room)
            self.journal.append(SubjectChanged(""), 0, room)

    def numbers(self, room: str | None) -> list[int]:
        return [number for number, each in enumerate(self.rooms, 1) if room in {None, each}]

    async def read(
        self, room: str | None, since: str | None, limit: int | None, arrivals: Iterator[list[str]]
    ) -> Page[int]:
        """Return a page; before each event that it looks at, others come."""
        page: Page[int] = Page(limit)

        async def happening() -> None:
            for rooms in arrivals:
                self.happen(rooms)
                await asyncio.sleep(0)  # until the page looks at the next

        others = asyncio.create_task(happening())
        await page.read(self.journal.of(room), since, _number)
        others.cancel()
        return page


BUSY = st.builds(_Busy, st.integers(1, 10), st.sampled_from([(), ROOMS[:1], ROOMS]), EVENTS)
ARRIVALS = st.lists(st.lists(st.sampled_from(ROOMS), max_size=4), max_size=20).map(iter)


@pytest.fixture
def _many_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paging, "SLICE_SECONDS", -1.0)


@pytest.mark.usefixtures("_many_turns")
@given(
    BUSY, ARRIVALS, st.sampled_from([None, *ROOMS, ""]), st.none() | st.integers(1, 4), st.data()
)
async def test_pages_of_all_rooms_or_one_have_each_event_once_or_say_that_it_is_lost(
    busy: _Busy,
    arrivals: Iterator[list[str]],
    room: str | None,
    limit: int | None,
    data: st.DataObject,
) -> None:
    start = data.draw(st.integers(0, len(busy.rooms)))
    seen: list[int] = []
    lost: set[int] = set()
    page: Page[int] = Page()
    page.next, page.more = f"epoch-{start}", True
    while page.more:
        newest, since = len(busy.rooms), page.next
        page = await busy.read(room, since, limit, arrivals)
        seen += page.entries
        if page.gap is not None:
            span = range(page.gap["from"], page.gap["to"] + 1)
            kept = [each.number for each in busy.journal.of(room)]
            evicted = [each for each in busy.numbers(room) if each in span and each not in kept]
            assert evicted
            assert evicted[-1] == page.gap["to"]
            lost.update(span)
        assert page.next != since or not page.more
    assert seen == sorted(set(seen))
    due = [number for number in busy.numbers(room) if start < number <= newest]
    assert set(due) - set(seen) <= lost
    assert set(seen) <= set(due)
    assert page.next == f"epoch-{newest}"


@pytest.mark.usefixtures("_many_turns")
@given(BUSY, ARRIVALS, st.sampled_from([None, *ROOMS, ""]))
async def test_the_newest_of_all_rooms_or_one_are_on_the_page_or_in_its_gap(
    busy: _Busy, arrivals: Iterator[list[str]], room: str | None
) -> None:
    newest = len(busy.rooms)
    page = await busy.read(room, None, None, arrivals)
    due = [number for number in busy.numbers(room) if number <= newest]
    missing = [number for number in due if number not in page.entries]
    assert page.entries == [number for number in due if number not in missing]
    assert page.more is False
    if page.gap is None:
        assert not missing
    else:
        assert page.gap["from"] == 1
        assert missing[-1] <= page.gap["to"]


async def test_what_is_wrong_with_a_pattern_is_told_in_one_line() -> None:
    with pytest.raises(ArgumentError) as refusal:
        await event_filter(None, None, None, "[\u202e-\n]" * 9)
    assert one_line(refusal.value.message) == refusal.value.message
    assert "invalid character class range" in refusal.value.message
