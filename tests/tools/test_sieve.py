import asyncio
import threading

import pytest

from bridge.escaping import one_line
from bridge.mcp.toolset import ArgumentError
from bridge.tools.budget import SLICE_COST
from bridge.tools.sieve import Sieve, selected
from bridge.xmpp.events import MessageReceived
from bridge.xmpp.journal import Record
from bridge.xmpp.selection import Pattern, Selection

SAID = MessageReceived("room@rooms/W", "W", "x" * 1_000)


def _searching(instructions: int, where: list[str]) -> Sieve:
    def search(text: str) -> bool:
        where.append(threading.current_thread().name)
        return text.startswith("x")

    return Sieve(Selection(pattern=Pattern(search, instructions, search)))


async def test_a_short_search_is_done_at_once() -> None:
    where: list[str] = []
    assert await _searching(SLICE_COST // 1_000, where).takes(SAID)
    assert where == [threading.current_thread().name]


async def test_long_searches_are_done_one_by_one_in_a_thread_of_their_own() -> None:
    where: list[str] = []
    sieves = [_searching(SLICE_COST // 1_000 + 1, where) for _ in range(20)]
    assert all(await asyncio.gather(*(one.takes(SAID) for one in sieves)))
    assert len(where) == 20
    assert len(set(where)) == 1
    assert where[0].startswith("search")


@pytest.mark.parametrize(("more", "threads"), [(0, "MainThread"), (1, "search")])
async def test_many_texts_are_looked_through_at_once_where_one_as_long_would_be(
    more: int, threads: str
) -> None:
    where: list[str] = []
    # Two texts of a thousand characters, and line breaks.
    sieve = _searching(SLICE_COST // 2_002 + more, where)
    records = [Record(number, 0.0, SAID) for number in (1, 2)]
    assert await sieve.narrowed(records) == records
    assert {one.partition("_")[0] for one in where} == {threads}


async def test_what_is_wrong_with_a_pattern_is_told_in_one_line() -> None:
    with pytest.raises(ArgumentError) as refusal:
        await selected(kinds=None, sender=None, contains=None, pattern="[\u202e-\n]" * 9)
    assert one_line(refusal.value.message) == refusal.value.message
    assert "invalid character class range" in refusal.value.message
