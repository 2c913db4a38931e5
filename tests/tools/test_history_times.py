"""The times between which xmppHistory looks."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.mcp.errors import ArgumentError
from bridge.text import iso
from bridge.xmpp.model.events import (
    MessageReceived,
)
from bridge.xmpp.model.journal import Journal
from tests.tools.looking import bodies, page_of
from tests.tools.played import (
    LOGS,
    ROOM,
    Played,
    in_rooms,
)


async def test_oldest_in_place_of_a_cursor_begins_with_the_first_that_is_kept() -> None:
    played = Played(journal=Journal("epoch", 3))
    played.hear(*"abcde")
    page = await page_of(played, since="oldest", limit=2)
    assert (bodies(page), page["more"]) == (["c", "d"], True)
    assert page["gap"] == {"from": 1, "to": 2, "reason": "evicted"}
    assert bodies(await page_of(played, since=page["next"])) == ["e"]
    assert "gap" not in await page_of(Played(), since="oldest")


def _over_time(*times: float, capacity: int = 100) -> Played:
    """What was said at these times, in seconds since the epoch."""
    played = Played(journal=Journal("epoch", capacity))
    for at in times:
        played.publish(MessageReceived(f"{ROOM}/W", "W", f"{at:g}"), at=at)
    return played


@pytest.mark.parametrize(
    ("given_", "told", "next_", "more"),
    [
        ({"after": iso(3)}, "3 4 5 6", 6, False),
        ({"after": iso(3), "limit": 2}, "3 4", 4, True),
        ({"after": iso(2.001)}, "3 4 5 6", 6, False),
        ({"before": iso(3)}, "1 2 3", 3, False),
        ({"before": iso(3), "limit": 2}, "2 3", 3, True),
        ({"before": iso(0.5)}, "", 0, False),
        ({"after": iso(2), "before": iso(4)}, "2 3 4", 4, False),
        ({"after": iso(2), "before": iso(4), "limit": 2}, "2 3", 3, True),
        ({"since": "epoch-3", "after": iso(2), "before": iso(5)}, "4 5", 5, False),
        ({"since": "epoch-5", "before": iso(3)}, "", 5, False),
        ({"after": "1970-01-01T01:00:05+01:00"}, "5 6", 6, False),
    ],
)
async def test_times_pick_what_happened_from_then_on_or_until_then(
    given_: dict[str, object], told: str, next_: int, more: bool
) -> None:
    page = await page_of(_over_time(1, 2, 3, 4, 5, 6), **given_)
    assert bodies(page) == told.split()
    assert (page["next"], page["more"]) == (f"epoch-{next_}", more)


@given(
    st.lists(st.floats(0, 9), max_size=20),
    st.floats(0, 9),
    st.floats(0, 9),
    st.integers(1, 4),
    st.booleans(),
)
async def test_times_hold_as_entries_show_them_whatever_the_clock_did(
    times: list[float], after: float, before: float, limit: int, ends: bool
) -> None:
    played = _over_time(*times)
    span = {"after": iso(after)} | ({"before": iso(before)} if ends else {})
    told: list[str] = []
    page: dict[str, Any] = {"more": True}
    more: dict[str, object] = {}
    while page["more"]:
        page = await page_of(played, **span, **more, limit=limit)
        told += [one["at"] for one in page["entries"]]
        more = {"since": page["next"]}
    last = iso(before) if ends else "~"
    assert told == [iso(one) for one in times if iso(after) <= iso(one) <= last]
    newest = await page_of(played, before=iso(before), limit=limit)
    fitting = [iso(one) for one in times if iso(one) <= iso(before)]
    assert [one["at"] for one in newest["entries"]] == fitting[-limit:]
    assert newest["more"] is (len(fitting) > limit)


async def test_what_was_lost_before_the_time_asked_for_is_no_gap() -> None:
    played = _over_time(1, 2, 3, 4, 5, 6, capacity=3)
    assert "gap" not in await page_of(played, after=iso(4.5))
    lost = {"from": 1, "to": 3, "reason": "evicted"}
    assert (await page_of(played, after=iso(4)))["gap"] == lost
    assert (await page_of(played, before=iso(5)))["gap"] == lost


async def test_what_a_loud_room_lost_is_a_gap_though_a_quiet_one_is_whole() -> None:
    played = in_rooms(ROOM, LOGS)
    played.journal = Journal("epoch", 10)
    played.journal.share_among((ROOM, LOGS))
    played.publish(MessageReceived(f"{LOGS}/W", "W", "kept"), LOGS, at=1)
    for number in range(20):
        played.publish(MessageReceived(f"{ROOM}/W", "W", str(number)), at=5)
    page = await page_of(played, after=iso(3))
    assert page["gap"] == {"from": 1, "to": page["gap"]["to"], "reason": "evicted"}
    assert "gap" not in await page_of(played, after=iso(3), room=LOGS)


@pytest.mark.parametrize("name", ["before", "after"])
@pytest.mark.parametrize("text", ["yesterday", "2026-01-01T00:00:00", ""])
async def test_a_time_that_is_none_is_refused_with_what_to_do(name: str, text: str) -> None:
    with pytest.raises(ArgumentError, match=f"{name} is no time with a zone") as refusal:
        await page_of(Played(), **{name: text})
    assert "ISO 8601" in refusal.value.hint


async def test_a_cursor_of_the_archive_is_none_of_the_memory() -> None:
    with pytest.raises(ArgumentError, match="archive: true only"):
        await page_of(Played(), since="archive:1")
