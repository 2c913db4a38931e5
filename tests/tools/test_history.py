import asyncio
import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from bridge.mcp.errors import ArgumentError
from bridge.mcp.schema import MismatchError
from bridge.text import visible
from bridge.tools import history, paging
from bridge.xmpp.model.events import (
    Event,
    MessageReceived,
    MessageSent,
    OccupantJoined,
    SubjectChanged,
)
from bridge.xmpp.model.filter import EventFilter
from bridge.xmpp.model.journal import Journal
from tests.tools.looking import bodies, page_of
from tests.tools.played import (
    ROOM,
    Played,
    arguments,
)

TOOL = history.xmpp_history
SCHEMA = Draft202012Validator(TOOL.output_schema)
MAX_PAGE_BYTES = 9_000
"""As the contract has them, where no other size is asked for."""
LARGE = 45_000
"""The largest page that may be asked for."""
SIZES = (2_000, 9_000, 45_000)
WORST = ('"', "\\", "\u202e", "\U000e0041", "\U0001f600", "\n", "a", "\u00e9", "\x01")
"""Characters that take one to twelve bytes of JSON."""


EVENT_SECONDS = 0.0001
"""What an event takes in a test that sets the clock: far more than any does."""
TURN_SECONDS = 0.005
"""The longest turn of the loop."""


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


@given(EVENTS, FILTERS, st.integers(1, 7), st.integers(0, 40))
async def test_paging_forward_loses_nothing_and_repeats_nothing(
    events: list[Event], filters: dict[str, object], limit: int, start: int
) -> None:
    played = Played()
    records = [played.publish(event) for event in events]
    begin = min(start, len(events))
    cursor = f"epoch-{begin}"
    whole = await page_of(played, since=cursor, limit=500, **filters)
    told: list[str] = []
    expected = whole["entries"]
    # Where the whole did not fit in a page, it is the truth for as far as it goes.
    while True:
        page = await page_of(played, since=cursor, limit=limit, **filters)
        assert "gap" not in page
        assert len(page["entries"]) <= limit
        told += [one["cursor"] for one in page["entries"]]
        cursor = page["next"]
        if not page["more"]:
            break
        assert page["entries"]
    assert len(set(told)) == len(told)
    assert told == sorted(told, key=lambda one: int(one.rpartition("-")[2]))
    assert told[: len(expected)] == [one["cursor"] for one in expected]
    assert whole["more"] or len(told) == len(expected)
    assert cursor == f"epoch-{len(records)}"
    if not filters:
        assert told == [f"epoch-{number}" for number in range(begin + 1, len(records) + 1)]


@given(EVENTS, FILTERS, st.integers(1, 50))
async def test_the_newest_are_the_end_of_everything_and_oldest_first(
    events: list[Event], filters: dict[str, object], limit: int
) -> None:
    played = Played()
    for event in events:
        played.publish(event)
    everything: list[str] = []
    cursor = "epoch-0"
    while True:
        page = await page_of(played, since=cursor, **filters)
        everything += [one["cursor"] for one in page["entries"]]
        cursor = page["next"]
        if not page["more"]:
            break
    newest = await page_of(played, limit=limit, **filters)
    told = [one["cursor"] for one in newest["entries"]]
    assert told == everything[len(everything) - len(told) :]
    assert newest["more"] is (len(told) < len(everything))
    assert newest["next"] == f"epoch-{len(events)}"


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


@given(st.lists(st.tuples(st.sampled_from(WORST), st.integers(0, 40_000)), max_size=12))
async def test_a_page_never_takes_more_than_was_asked_for(shapes: list[tuple[str, int]]) -> None:
    played = Played()
    for character, length in shapes:
        played.hear(character * length)
    for page in (await page_of(played), await page_of(played, since="epoch-0")):
        assert len(json.dumps(page)) <= MAX_PAGE_BYTES
        assert page["entries"] or not shapes
    for size in SIZES:
        assert len(json.dumps(await page_of(played, maxBytes=size))) <= size


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
    ("text", "number"),
    [("x", 500), ("\u044f" * 40, 500), ("\u00e9" * 4_000, 8)],
    ids=["many", "cyrillic", "long"],
)
async def test_a_page_takes_no_more_than_its_bytes_however_its_json_is_written(
    text: str, number: int
) -> None:
    played = Played(journal=Journal("0" * 8))
    played.hear(*[text] * number)
    for size in (MAX_PAGE_BYTES, LARGE):
        page = await page_of(played, limit=500, maxBytes=size)
        assert page["more"] is True
        assert size * 0.5 < len(json.dumps(page)) <= size


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("character", WORST)
async def test_an_entry_fits_in_a_page_though_all_its_texts_are_endless(
    character: str, size: int
) -> None:
    text = character * 70_000
    every = MessageReceived(
        from_=f"{ROOM}/{text}",
        sender=text,
        body=text,
        id=text,
        stanza_id=text,
        delayed_from=text,
        jid=text,
        replaces=text,
        reply_to=text,
        reacts_to=text,
        reactions=(text,) * 32,
        retracts=text,
        encrypted=text,
        payload=(text,) * 9,
    )
    played = Played(journal=Journal("0" * 8))
    for _ in range(2):
        played.publish(every)
    for given_ in ({}, {"since": "00000000-0"}, {"since": "other000-123456789012345678"}):
        page = await page_of(played, maxBytes=size, **given_)
        assert 1 <= len(page["entries"]) <= (1 if size < LARGE else 2)
        assert page["more"] is (len(page["entries"]) == 1)
        assert len(json.dumps(page)) <= size
        entry = page["entries"][0]
        assert entry["truncated"] is True
        assert entry["bodyBytes"] == len(text.encode())


@pytest.mark.parametrize("limit", [1, 2, 500])
async def test_a_page_holds_no_more_entries_than_were_asked_for(limit: int) -> None:
    played = Played()
    said = [str(number) for number in range(501)]
    played.hear(*said)
    page = await page_of(played, limit=limit, maxBytes=LARGE)
    told = bodies(page)
    assert told == said[-len(told) :]
    # So many entries, however short, are more than fits.
    assert len(told) == limit or (limit == 500 and len(json.dumps(page)) > LARGE - 1_000)
    assert page["more"] is True


@pytest.mark.parametrize(
    "wrong",
    [
        {"limit": 0},
        {"limit": 501},
        {"limit": 1.5},
        {"limit": "5"},
        {"limit": True},
        {"maxBytes": 1_999},
        {"maxBytes": 45_001},
        {"maxBytes": 9_000.5},
        {"unknown": 1},
        {"from_": "Wilma"},
        {"kinds": ["messages"]},
        {"kinds": []},
        {"detail": "short"},
        {"contains": ""},
        {"contains": "x" * 1_001},
        {"pattern": "x" * 1_001},
        {"since": 5},
    ],
)
def test_arguments_that_are_none_are_refused_and_named(wrong: dict[str, object]) -> None:
    with pytest.raises(MismatchError) as refusal:
        arguments(TOOL, wrong)
    assert next(iter(wrong)) in str(refusal.value)


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


@pytest.mark.parametrize("pattern", ["(", "a(?=b)", r"(a)\1", "a{1001}"])
async def test_a_pattern_that_is_none_is_refused_with_what_to_do(pattern: str) -> None:
    with pytest.raises(ArgumentError) as refusal:
        await page_of(Played(), pattern=pattern)
    assert refusal.value.message.startswith("pattern ")
    assert "`contains`" in refusal.value.hint


async def test_what_was_evicted_before_the_page_is_told() -> None:
    played = Played(journal=Journal("epoch", 3))
    played.hear(*"abcdef")
    page = await page_of(played, since="epoch-1")
    assert page["gap"] == {"from": 2, "to": 3, "reason": "evicted"}
    assert bodies(page) == ["d", "e", "f"]
    assert "gap" not in await page_of(played, since="epoch-3")
    assert (await page_of(played))["gap"] == {"from": 1, "to": 3, "reason": "evicted"}
    # Where there is more before it, nothing is said of what would be before that.
    assert "gap" not in await page_of(played, limit=2)
    assert page["oldest"] == "epoch-3"


async def test_a_cursor_from_before_a_restart_gets_everything_and_is_told() -> None:
    played = Played()
    played.hear(*"abc")
    page = await page_of(played, since="former-7")
    assert page["gap"] == {"from": 8, "to": 0, "reason": "restarted"}
    assert bodies(page) == ["a", "b", "c"]
    assert "gap" not in await page_of(played, since=page["next"])


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


async def test_hidden_characters_are_escaped_and_the_journal_keeps_the_exact_text() -> None:
    nickname, body = "W\u200bilma", "a\u202eb\U000e0041\u200dc"
    played = Played()
    played.hear(body, nickname=nickname)
    (entry,) = (await page_of(played, detail="full"))["entries"]
    assert entry["body"] == "a\\u{202E}b\\u{E0041}\\u{200D}c"
    assert entry["sender"] == "W\\u{200B}ilma"
    assert entry["from"] == f"{ROOM}/W\\u{{200B}}ilma"
    assert entry["escaped"] is True
    (record,) = played.journal
    assert isinstance(record.event, MessageReceived)
    assert (record.event.body, record.event.sender) == (body, nickname)


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


async def test_a_filter_over_a_full_journal_lets_others_have_their_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    played = Played(journal=Journal("epoch", 100_000))
    for number in range(100_000):
        played.journal.append(MessageReceived(f"{ROOM}/W", "W", str(number)), 0.0)
    looked_at: list[float] = []  # when, in seconds of the clock that a test sets
    now = 0.0

    def clock() -> float:
        return now

    matches = EventFilter.matches

    def counted(self: EventFilter, event: Event) -> bool:
        nonlocal now
        now += EVENT_SECONDS
        looked_at.append(now)
        return matches(self, event)

    turns = []

    async def ticking() -> None:
        while True:
            turns.append(len(looked_at))
            await asyncio.sleep(0)  # once a turn

    monkeypatch.setattr(paging, "monotonic", clock)
    monkeypatch.setattr(EventFilter, "matches", counted)
    ticks = asyncio.create_task(ticking())
    page = await page_of(played, since="epoch-0", contains="99999")
    ticks.cancel()
    assert bodies(page) == ["99999"]
    assert len(looked_at) == 100_000
    at_once = max(after - before for before, after in pairwise([*turns, len(looked_at)]))
    assert at_once <= paging.SLICE_SECONDS / EVENT_SECONDS + 1
    assert paging.SLICE_SECONDS + EVENT_SECONDS < TURN_SECONDS


async def test_events_that_come_while_a_page_is_made_are_left_for_the_next() -> None:
    played = Played()
    played.hear(*(str(number) for number in range(5_000)))
    call = asyncio.create_task(page_of(played, since="epoch-0", contains="4999"))
    await asyncio.sleep(0)  # it is under way, and lets others in
    await asyncio.sleep(0)
    played.hear("4999 again")
    page = await call
    assert bodies(page) == ["4999"]
    assert bodies(await page_of(played, since=page["next"], contains="4999")) == ["4999 again"]
