import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.mcp.errors import ArgumentError
from bridge.text import visible
from bridge.tools import paging
from bridge.xmpp.model.events import (
    Event,
    MessageReceived,
    MessageSent,
    OccupantJoined,
    SubjectChanged,
)
from bridge.xmpp.model.journal import Journal
from tests.tools.looking import bodies, page_of
from tests.tools.played import (
    ROOM,
    Played,
)

LARGE = 45_000
"""The largest page that may be asked for."""
SIZES = (2_000, 9_000, 45_000)


def _event(shape: tuple[str, str, str, bool]) -> Event:
    kind, nickname, text, own = shape
    occupant = f"{ROOM}/{nickname}"
    match kind:
        case "join":
            return OccupantJoined(occupant, nickname, "participant", "none", status=text)
        case "subject":
            return SubjectChanged(text, nickname)
        case "out":
            return MessageSent(occupant, nickname, text, "m")
        case _:
            return MessageReceived(occupant, nickname, text, own=own)


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["message", "message", "join", "subject", "out"]),
        st.sampled_from(["Wilma", "Fred", "McpDebug"]),
        st.sampled_from(["ping", "Pong 12", "pong", "", "x" * 20_000, "\u202e" * 9_000]),
        st.booleans(),
    ).map(_event),
    max_size=40,
)
FILTERS = st.fixed_dictionaries(
    {},
    optional={
        "from": st.sampled_from(["Wilma", f"{ROOM}/Fred", "nobody"]),
        "contains": st.sampled_from(["PONG", "x", "zzz"]),
        "pattern": st.sampled_from([r"(?i)p[io]ng", r"\d+$", "."]),
        "kinds": st.lists(
            st.sampled_from(["message", "join", "subject", "gap"]), min_size=1, unique=True
        ),
    },
)


@given(EVENTS, FILTERS, st.integers(1, 50), st.integers(1, 40))
async def test_a_page_has_what_a_look_at_each_event_would_have_found(
    events: list[Event], filters: dict[str, Any], limit: int, capacity: int
) -> None:
    played = Played(journal=Journal("epoch", capacity))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paging, "SLICE_SECONDS", -1.0)  # others get their turn after each event
        for event in events:
            played.publish(event)
        matching = await paging.event_filter(
            sender=filters.get("from"),
            kinds=filters.get("kinds"),
            contains=filters.get("contains"),
            pattern=filters.get("pattern"),
        )
        wanted = [f"epoch-{one.number}" for one in played.journal if matching.matches(one.event)]
        newest = await page_of(played, limit=limit, **filters)
        oldest = await page_of(played, since=played.journal.oldest, limit=limit, **filters)
    told = [one["cursor"] for one in newest["entries"]]
    assert told == wanted[len(wanted) - len(told) :]
    assert newest["more"] is (len(told) < len(wanted))
    told = [one["cursor"] for one in oldest["entries"]]
    assert told == wanted[: len(told)]
    assert oldest["more"] is (len(told) < len(wanted))


@pytest.mark.parametrize("size", SIZES)
async def test_a_body_that_is_longer_than_a_page_is_cut_to_fill_it(size: int) -> None:
    played = Played(journal=Journal("0" * 8))
    played.hear("before", "\u00e9" * 8_190, "after")  # as JSON 49,140 bytes
    page = await page_of(played, since="00000000-1", maxBytes=size, detail="full")
    entry = page["entries"][0]
    assert (entry["truncated"], entry["bodyBytes"]) == (True, 16_380)
    assert len(json.dumps(page)) > size - 600
    assert page["more"] is True
    rest = await page_of(played, since=page["next"], maxBytes=size)
    assert bodies(page)[1:] + bodies(rest) == ["after"]


async def test_an_entry_that_has_no_room_beside_others_is_whole_on_the_next_page() -> None:
    played = Played()
    played.hear("a" * 4_000, "b" * 6_000)
    first = await page_of(played, since="epoch-0", detail="full")
    second = await page_of(played, since=first["next"], detail="full")
    assert bodies(first) + bodies(second) == ["a" * 4_000, "b" * 6_000]


@pytest.mark.parametrize(
    ("cursor", "why"),
    [("yesterday", "look like"), ("epoch-4", "ahead"), ("", "look like"), ("epoch-1\n", "look")],
)
async def test_a_cursor_that_is_none_is_refused_with_what_to_do(cursor: str, why: str) -> None:
    played = Played()
    played.hear("1", "2", "3")
    with pytest.raises(ArgumentError) as refusal:
        await page_of(played, since=cursor)
    assert why in refusal.value.message
    assert "since" in refusal.value.message
    assert "`next`" in refusal.value.hint


async def test_a_gap_is_told_once_though_the_first_page_after_it_is_empty() -> None:
    played = Played(journal=Journal("epoch", 3))
    played.hear(*"abcdef")
    first = await page_of(played, since="epoch-0", contains="nothing like it")
    assert first["gap"]["reason"] == "evicted"
    assert first["entries"] == []
    assert "gap" not in await page_of(played, since=first["next"])


@pytest.mark.parametrize("over", [-1, 0, 1])
@pytest.mark.parametrize(("detail", "most"), [("brief", 4_096), ("full", 16_384)])
@pytest.mark.parametrize("character", ["a", "\u00e9", "\U0001f600"])
async def test_a_body_is_cut_above_4_kb_of_utf_8_or_16_in_full(
    character: str, detail: str, most: int, over: int
) -> None:
    width, size = len(character.encode()), most + over
    body = "a" * (size - 100 * width) + character * 100
    played = Played()
    played.hear(body)
    (entry,) = (await page_of(played, maxBytes=LARGE, detail=detail))["entries"]
    if size <= most:
        assert entry["body"] == body
        assert not {"truncated", "bodyBytes"} & set(entry)
    else:
        assert body.startswith(entry["body"])
        assert most - width < len(entry["body"].encode()) <= most
        assert (entry["truncated"], entry["bodyBytes"]) == (True, size)


async def test_a_body_that_is_whole_has_no_size_though_another_text_was_cut() -> None:
    played = Played()
    played.publish(MessageReceived(f"{ROOM}/W", "W", "short", id="i" * 60_000))
    (entry,) = (await page_of(played, detail="full"))["entries"]
    assert entry["truncated"] is True
    assert entry["body"] == "short"
    assert "bodyBytes" not in entry


@pytest.mark.parametrize("nickname", ["W\u200bilma", "Wilma", "a/b \u202e"])
async def test_a_sender_is_found_by_the_name_that_an_entry_shows(nickname: str) -> None:
    played = Played()
    played.hear("hello", nickname=nickname)
    played.hear("no", nickname="other")
    for name in (nickname, visible(nickname), f"{ROOM}/{visible(nickname)}"):
        assert bodies(await page_of(played, **{"from": name})) == ["hello"]


async def test_a_search_that_took_too_long_ends_and_says_where_to_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(paging, "SCAN_SECONDS", 0.0)
    monkeypatch.setattr(paging, "SLICE_SECONDS", 0.0)
    played = Played()
    played.hear(*(str(number) for number in range(50)))
    cursor, told, pages = "epoch-0", [], 0
    while True:
        page = await page_of(played, since=cursor, contains="4")
        told += bodies(page)
        pages += 1
        if not page["more"]:
            break
        assert page["next"] != cursor
        cursor = page["next"]
    assert pages > 1
    assert told == [str(number) for number in range(50) if "4" in str(number)]


async def test_a_search_for_the_newest_that_took_too_long_says_that_there_is_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(paging, "SCAN_SECONDS", -1.0)
    monkeypatch.setattr(paging, "SLICE_SECONDS", -1.0)
    played = Played()
    played.hear(*"abc")
    page = await page_of(played, contains="a")
    assert (page["entries"], page["more"]) == ([], True)
    assert (page["next"], page["oldest"]) == ("epoch-3", "epoch-0")
