import asyncio
import dataclasses
import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from bridge.mcp.errors import ArgumentError
from bridge.mcp.schema import MismatchError
from bridge.text import iso, visible
from bridge.tools import history, paging
from bridge.tools.entries import NOTICE
from bridge.xmpp.events import (
    Connected,
    ConnectionChanged,
    Event,
    Joined,
    MessageReceived,
    MessageSent,
    OccupantJoined,
    Phase,
    Source,
    SubjectChanged,
)
from bridge.xmpp.filter import EventFilter
from bridge.xmpp.journal import Journal
from tests.tools.played import (
    FAULT,
    LOGS,
    OTHER_LOBBY,
    ROOM,
    Played,
    arguments,
    in_rooms,
    wire,
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


async def _page(played: Played, **given: object) -> dict[str, Any]:
    page = wire(await TOOL(played.link, **arguments(TOOL, given)))
    SCHEMA.validate(page)
    assert page.get("notice") == (NOTICE if page["entries"] else None)
    return page


def _bodies(page: dict[str, Any]) -> list[str]:
    return [one["body"] for one in page["entries"]]


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
    whole = await _page(played, since=cursor, limit=500, **filters)
    told: list[str] = []
    expected = whole["entries"]
    # Where the whole did not fit in a page, it is the truth for as far as it goes.
    while True:
        page = await _page(played, since=cursor, limit=limit, **filters)
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
        page = await _page(played, since=cursor, **filters)
        everything += [one["cursor"] for one in page["entries"]]
        cursor = page["next"]
        if not page["more"]:
            break
    newest = await _page(played, limit=limit, **filters)
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
        newest = await _page(played, limit=limit, **filters)
        oldest = await _page(played, since=played.journal.oldest, limit=limit, **filters)
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
    for page in (await _page(played), await _page(played, since="epoch-0")):
        assert len(json.dumps(page)) <= MAX_PAGE_BYTES
        assert page["entries"] or not shapes
    for size in SIZES:
        assert len(json.dumps(await _page(played, maxBytes=size))) <= size


@pytest.mark.parametrize("size", SIZES)
async def test_a_body_that_is_longer_than_a_page_is_cut_to_fill_it(size: int) -> None:
    played = Played(journal=Journal("0" * 8))
    played.hear("before", "\u00e9" * 8_190, "after")  # as JSON 49,140 bytes
    page = await _page(played, since="00000000-1", maxBytes=size, detail="full")
    entry = page["entries"][0]
    assert (entry["truncated"], entry["bodyBytes"]) == (True, 16_380)
    assert len(json.dumps(page)) > size - 600
    assert page["more"] is True
    rest = await _page(played, since=page["next"], maxBytes=size)
    assert _bodies(page)[1:] + _bodies(rest) == ["after"]


async def test_an_entry_that_has_no_room_beside_others_is_whole_on_the_next_page() -> None:
    played = Played()
    played.hear("a" * 4_000, "b" * 6_000)
    first = await _page(played, since="epoch-0", detail="full")
    second = await _page(played, since=first["next"], detail="full")
    assert _bodies(first) + _bodies(second) == ["a" * 4_000, "b" * 6_000]


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
        page = await _page(played, limit=500, maxBytes=size)
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
        page = await _page(played, maxBytes=size, **given_)
        assert 1 <= len(page["entries"]) <= (1 if size < LARGE else 2)
        assert page["more"] is (len(page["entries"]) == 1)
        assert len(json.dumps(page)) <= size
        entry = page["entries"][0]
        assert entry["truncated"] is True
        assert entry["bodyBytes"] == len(text.encode())


@pytest.mark.parametrize("limit", [1, 2, 500])
async def test_a_page_holds_no_more_entries_than_were_asked_for(limit: int) -> None:
    played = Played()
    bodies = [str(number) for number in range(501)]
    played.hear(*bodies)
    page = await _page(played, limit=limit, maxBytes=LARGE)
    told = _bodies(page)
    assert told == bodies[-len(told) :]
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
        await _page(played, since=cursor)
    assert why in refusal.value.message
    assert "since" in refusal.value.message
    assert "`next`" in refusal.value.hint


@pytest.mark.parametrize("pattern", ["(", "a(?=b)", r"(a)\1", "a{1001}"])
async def test_a_pattern_that_is_none_is_refused_with_what_to_do(pattern: str) -> None:
    with pytest.raises(ArgumentError) as refusal:
        await _page(Played(), pattern=pattern)
    assert refusal.value.message.startswith("pattern ")
    assert "`contains`" in refusal.value.hint


async def test_what_was_evicted_before_the_page_is_told() -> None:
    played = Played(journal=Journal("epoch", 3))
    played.hear(*"abcdef")
    page = await _page(played, since="epoch-1")
    assert page["gap"] == {"from": 2, "to": 3, "reason": "evicted"}
    assert _bodies(page) == ["d", "e", "f"]
    assert "gap" not in await _page(played, since="epoch-3")
    assert (await _page(played))["gap"] == {"from": 1, "to": 3, "reason": "evicted"}
    # Where there is more before it, nothing is said of what would be before that.
    assert "gap" not in await _page(played, limit=2)
    assert page["oldest"] == "epoch-3"


async def test_a_cursor_from_before_a_restart_gets_everything_and_is_told() -> None:
    played = Played()
    played.hear(*"abc")
    page = await _page(played, since="former-7")
    assert page["gap"] == {"from": 8, "to": 0, "reason": "restarted"}
    assert _bodies(page) == ["a", "b", "c"]
    assert "gap" not in await _page(played, since=page["next"])


async def test_a_gap_is_told_once_though_the_first_page_after_it_is_empty() -> None:
    played = Played(journal=Journal("epoch", 3))
    played.hear(*"abcdef")
    first = await _page(played, since="epoch-0", contains="nothing like it")
    assert first["gap"]["reason"] == "evicted"
    assert first["entries"] == []
    assert "gap" not in await _page(played, since=first["next"])


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
    (entry,) = (await _page(played, maxBytes=LARGE, detail=detail))["entries"]
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
    (entry,) = (await _page(played, detail="full"))["entries"]
    assert entry["truncated"] is True
    assert entry["body"] == "short"
    assert "bodyBytes" not in entry


async def test_hidden_characters_are_escaped_and_the_journal_keeps_the_exact_text() -> None:
    nickname, body = "W\u200bilma", "a\u202eb\U000e0041\u200dc"
    played = Played()
    played.hear(body, nickname=nickname)
    (entry,) = (await _page(played, detail="full"))["entries"]
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
        assert _bodies(await _page(played, **{"from": name})) == ["hello"]


async def test_a_search_that_took_too_long_ends_and_says_where_to_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(paging, "SCAN_SECONDS", 0.0)
    monkeypatch.setattr(paging, "SLICE_SECONDS", 0.0)
    played = Played()
    played.hear(*(str(number) for number in range(50)))
    cursor, told, pages = "epoch-0", [], 0
    while True:
        page = await _page(played, since=cursor, contains="4")
        told += _bodies(page)
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
    page = await _page(played, contains="a")
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
    page = await _page(played, since="epoch-0", contains="99999")
    ticks.cancel()
    assert _bodies(page) == ["99999"]
    assert len(looked_at) == 100_000
    at_once = max(after - before for before, after in pairwise([*turns, len(looked_at)]))
    assert at_once <= paging.SLICE_SECONDS / EVENT_SECONDS + 1
    assert paging.SLICE_SECONDS + EVENT_SECONDS < TURN_SECONDS


async def test_events_that_come_while_a_page_is_made_are_left_for_the_next() -> None:
    played = Played()
    played.hear(*(str(number) for number in range(5_000)))
    call = asyncio.create_task(_page(played, since="epoch-0", contains="4999"))
    await asyncio.sleep(0)  # it is under way, and lets others in
    await asyncio.sleep(0)
    played.hear("4999 again")
    page = await call
    assert _bodies(page) == ["4999"]
    assert _bodies(await _page(played, since=page["next"], contains="4999")) == ["4999 again"]


NAME = "McpDebug"
OUT = MessageSent(f"{ROOM}/{NAME}", NAME, "hello", "m1")
BACK = MessageReceived(f"{ROOM}/{NAME}", NAME, "hello", id="m1", own=True)


async def test_what_we_said_is_one_entry_and_two_in_full() -> None:
    played = Played()
    played.publish(OUT)
    (unheard,) = (await _page(played))["entries"]
    assert (unheard["cursor"], unheard["body"], unheard["heard"]) == ("epoch-1", "hello", False)
    played.publish(dataclasses.replace(BACK, id="another", own=False))
    played.publish(BACK)
    _, heard = (await _page(played))["entries"]
    assert (heard["cursor"], heard["body"], heard["heard"]) == ("epoch-3", "hello", True)
    out, _, back = (await _page(played, detail="full"))["entries"]
    assert (out["direction"], out["id"], "reflection" in out) == ("out", "m1", False)
    assert (back["direction"], back["id"], back["reflection"]) == ("in", "m1", True)


async def test_a_message_is_heard_though_an_archive_or_another_page_told_of_it() -> None:
    played = Played()
    played.publish(OUT)
    played.publish(dataclasses.replace(BACK, source=Source.HISTORY))
    (entry,) = (await _page(played))["entries"]
    assert (entry["cursor"], entry["source"], "heard" in entry) == ("epoch-2", "history", False)


async def test_what_was_sent_is_heard_in_its_own_room_only() -> None:
    played = in_rooms(ROOM, LOGS)
    played.publish(OUT)
    played.publish(dataclasses.replace(BACK, from_=f"{LOGS}/{NAME}"), LOGS)
    assert [one["heard"] for one in (await _page(played))["entries"]] == [False, True]


@given(
    st.lists(st.sampled_from(["out", "back", "noise", "step"]), max_size=30),
    st.integers(1, 5),
    st.sampled_from([2_000, 9_000]),
)
async def test_whatever_we_said_is_told_once_whether_it_was_heard_or_not(
    steps: list[str], limit: int, size: int
) -> None:
    played = Played()
    waiting: list[int] = []
    expected: dict[str, str] = {}
    for number, step in enumerate(steps):
        cursor = f"epoch-{number + 1}"
        match step:
            case "out":
                played.publish(dataclasses.replace(OUT, id=f"m{number}"))
                waiting.append(number)
                expected[cursor] = "False"
            case "back" if waiting:
                told = waiting.pop()
                played.publish(dataclasses.replace(BACK, id=f"m{told}"))
                del expected[f"epoch-{told + 1}"]
                expected[cursor] = "True"
            case "step":
                played.publish(ConnectionChanged(Phase.JOINING))
            case _:
                played.hear("noise")
                expected[cursor] = "None"
    found: dict[str, str] = {}
    page: dict[str, Any] = {"next": "oldest", "more": True}
    while page["more"]:
        page = await _page(played, since=page["next"], limit=limit, maxBytes=size)
        found |= {one["cursor"]: str(one.get("heard")) for one in page["entries"]}
    assert [*found.items()] == sorted(expected.items(), key=lambda it: int(it[0][6:]))


STEPS: list[Event] = [
    ConnectionChanged(Phase.CONNECTING),
    Connected("bot@example/r", "xmpp://example:5222", None, "PLAIN"),
    Joined(f"{ROOM}/{NAME}", NAME, created=False),
    ConnectionChanged(Phase.JOINED),
]


async def test_the_steps_of_connecting_are_told_if_they_are_asked_for_and_faults_always() -> None:
    played = Played()
    for step in STEPS:
        played.publish(step, "")
    played.publish(ConnectionChanged(Phase.WAITING, FAULT), "")
    (lost,) = (await _page(played))["entries"]
    assert (lost["kind"], lost["condition"]) == ("connection", FAULT.condition)
    for asked in ({"kinds": ["connection"]}, {"detail": "full"}):
        assert len((await _page(played, **asked))["entries"]) == 5
    assert (await _page(played, kinds=["message"]))["entries"] == []


SILENT = MessageReceived(f"{ROOM}/Robot", "Robot")


@pytest.mark.parametrize("detail", ["brief", "full"])
async def test_a_message_without_a_body_is_an_entry(detail: str) -> None:
    played = Played()
    played.publish(dataclasses.replace(SILENT, encrypted="OMEMO"))
    played.publish(dataclasses.replace(SILENT, payload=("composing (chatstates)",)))
    played.publish(dataclasses.replace(SILENT, encrypted="OMEMO", body="[This is encrypted]"))
    typed = [
        {name: one[name] for name in ("encrypted", "payload", "body") if name in one}
        for one in (await _page(played, detail=detail))["entries"]
    ]
    assert typed == [
        {"encrypted": "OMEMO"},
        {"payload": ["composing (chatstates)"]},
        {"encrypted": "OMEMO", "body": "[This is encrypted]"},
    ]


async def test_a_disguised_line_is_found_by_what_a_reader_sees_of_it() -> None:
    played = Played()
    played.hear("!p\u202ei\u200bng", "other")
    (entry,) = (await _page(played, contains="!PING"))["entries"]
    assert entry["body"] == "!p\\u{202E}i\\u{200B}ng"
    assert _bodies(await _page(played, contains=entry["body"])) == [entry["body"]]
    assert _bodies(await _page(played, contains="\u202e")) == [entry["body"]]
    assert _bodies(await _page(played, pattern="!ping")) == []
    assert _bodies(await _page(played, pattern="\u202e")) == [entry["body"]]


async def test_oldest_in_place_of_a_cursor_begins_with_the_first_that_is_kept() -> None:
    played = Played(journal=Journal("epoch", 3))
    played.hear(*"abcde")
    page = await _page(played, since="oldest", limit=2)
    assert (_bodies(page), page["more"]) == (["c", "d"], True)
    assert page["gap"] == {"from": 1, "to": 2, "reason": "evicted"}
    assert _bodies(await _page(played, since=page["next"])) == ["e"]
    assert "gap" not in await _page(Played(), since="oldest")


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
    page = await _page(_over_time(1, 2, 3, 4, 5, 6), **given_)
    assert _bodies(page) == told.split()
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
        page = await _page(played, **span, **more, limit=limit)
        told += [one["at"] for one in page["entries"]]
        more = {"since": page["next"]}
    last = iso(before) if ends else "~"
    assert told == [iso(one) for one in times if iso(after) <= iso(one) <= last]
    newest = await _page(played, before=iso(before), limit=limit)
    fitting = [iso(one) for one in times if iso(one) <= iso(before)]
    assert [one["at"] for one in newest["entries"]] == fitting[-limit:]
    assert newest["more"] is (len(fitting) > limit)


async def test_what_was_lost_before_the_time_asked_for_is_no_gap() -> None:
    played = _over_time(1, 2, 3, 4, 5, 6, capacity=3)
    assert "gap" not in await _page(played, after=iso(4.5))
    lost = {"from": 1, "to": 3, "reason": "evicted"}
    assert (await _page(played, after=iso(4)))["gap"] == lost
    assert (await _page(played, before=iso(5)))["gap"] == lost


async def test_what_a_loud_room_lost_is_a_gap_though_a_quiet_one_is_whole() -> None:
    played = in_rooms(ROOM, LOGS)
    played.journal = Journal("epoch", 10)
    played.journal.share_among((ROOM, LOGS))
    played.publish(MessageReceived(f"{LOGS}/W", "W", "kept"), LOGS, at=1)
    for number in range(20):
        played.publish(MessageReceived(f"{ROOM}/W", "W", str(number)), at=5)
    page = await _page(played, after=iso(3))
    assert page["gap"] == {"from": 1, "to": page["gap"]["to"], "reason": "evicted"}
    assert "gap" not in await _page(played, after=iso(3), room=LOGS)


@pytest.mark.parametrize("name", ["before", "after"])
@pytest.mark.parametrize("text", ["yesterday", "2026-01-01T00:00:00", ""])
async def test_a_time_that_is_none_is_refused_with_what_to_do(name: str, text: str) -> None:
    with pytest.raises(ArgumentError, match=f"{name} is no time with a zone") as refusal:
        await _page(Played(), **{name: text})
    assert "ISO 8601" in refusal.value.hint


async def test_a_cursor_of_the_archive_is_none_of_the_memory() -> None:
    with pytest.raises(ArgumentError, match="archive: true only"):
        await _page(Played(), since="archive:1")


def _talking() -> Played:
    """A participant in three rooms, in two of which something was said while it reconnected."""
    played = in_rooms(ROOM, LOGS, OTHER_LOBBY)
    played.hear("one")
    played.hear("two", room=LOGS)
    played.publish(ConnectionChanged(Phase.WAITING, FAULT), "")
    played.publish(ConnectionChanged(Phase.JOINING), LOGS)
    played.hear("three", room=LOGS)
    played.hear("four")
    return played


@pytest.mark.parametrize(
    ("given_", "told"),
    [
        ({}, [(ROOM, "one"), (LOGS, "two"), None, (LOGS, "three"), (ROOM, "four")]),
        ({"room": ROOM}, [(ROOM, "one"), (ROOM, "four")]),
        ({"room": "LOGS"}, [(LOGS, "two"), (LOGS, "three")]),
        ({"room": OTHER_LOBBY}, []),
        ({"room": LOGS, "limit": 1}, [(LOGS, "three")]),
        ({"room": LOGS, "since": "epoch-2"}, [(LOGS, "three")]),
        ({"room": LOGS, "since": "epoch-1", "limit": 1}, [(LOGS, "two")]),
        ({"room": LOGS, "contains": "e", "kinds": ["message"]}, [(LOGS, "three")]),
        ({"room": LOGS, "kinds": ["connection"]}, [(LOGS, "")]),
        ({"kinds": ["connection"]}, [None, (LOGS, "")]),
    ],
)
async def test_of_several_rooms_all_are_told_of_or_the_one_that_is_named(
    given_: dict[str, object], told: list[tuple[str, str] | None]
) -> None:
    page = await _page(_talking(), **given_)
    assert [
        (one["room"], one.get("body", "")) if "room" in one else None for one in page["entries"]
    ] == told


async def test_with_one_room_no_entry_names_it() -> None:
    played = Played()
    played.hear("hello")
    for given_ in ({}, {"room": ROOM}, {"room": "lobby"}):
        (entry,) = (await _page(played, **given_))["entries"]
        assert (entry["body"], "room" in entry) == ("hello", False)


async def test_what_one_room_has_lost_is_no_gap_in_another() -> None:
    played = in_rooms(ROOM, LOGS)
    played.journal = Journal("epoch", 10)
    played.journal.share_among((ROOM, LOGS))
    played.hear("kept", room=LOGS)
    played.hear(*map(str, range(30)))
    page = await _page(played, room=LOGS, since="epoch-0")
    assert (_bodies(page), page.get("gap"), page["oldest"]) == (["kept"], None, "epoch-0")
    assert (await _page(played, room=ROOM, since="epoch-0"))["gap"]["reason"] == "evicted"
    assert (await _page(played, since="epoch-0"))["gap"]["reason"] == "evicted"


async def test_pages_of_one_room_lose_nothing_while_others_go_on() -> None:
    played = in_rooms(ROOM, LOGS)
    told: list[str] = []
    page: dict[str, Any] = {"next": played.journal.oldest}
    for number in range(20):
        played.hear(f"a{number}", f"b{number}", room=LOGS)
        played.hear("noise", "more of it")
        page = await _page(played, room=LOGS, since=page["next"], limit=3)
        told += _bodies(page)
    assert page["more"] is False
    assert told == [f"{letter}{number}" for number in range(20) for letter in "ab"]


async def test_another_room_is_refused_before_anything_is_read() -> None:
    for more in ({}, {"archive": True}):
        with pytest.raises(ArgumentError, match="no room of the settings"):
            await _page(_talking(), room="nowhere", **more)
