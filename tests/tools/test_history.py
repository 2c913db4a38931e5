"""What is on a page of xmppHistory: how much, of which rooms, between which times."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.mcp.errors import ArgumentError, ToolError
from bridge.mcp.toolset import Tool
from bridge.text import iso
from bridge.tools import paging
from bridge.tools.history import xmpp_history
from bridge.tools.trace import xmpp_trace
from bridge.xmpp.model.events import (
    Connected,
    ConnectionChanged,
    Event,
    Joined,
    MessageReceived,
    MessageSent,
    OccupantError,
    Phase,
    SendFailed,
    Source,
)
from bridge.xmpp.model.journal import Journal
from bridge.xmpp.model.room import Departure, LastError, Occupant
from tests.tools.played import (
    FAULT,
    LOGS,
    OTHER_LOBBY,
    ROOM,
    STATUS,
    Archived,
    Played,
    bodies,
    in_room,
    in_rooms,
    page_of,
)
from tests.xmpp.played_archive import Endless, Lazy

LARGE = 45_000
"""The largest page that may be asked for."""


async def test_a_body_that_is_longer_than_a_page_is_cut_to_fill_it() -> None:
    played, size = Played(journal=Journal("0" * 8)), 9_000
    played.hear("before", "\u00e9" * 8_190, "after")  # as JSON 49,140 bytes
    page = await page_of(played, since="00000000-1", maxBytes=size, detail="full")
    entry = page["entries"][0]
    assert (entry["truncated"], entry["bodyBytes"]) == (True, 16_380)
    assert len(json.dumps(page)) > size - 600
    assert page["more"] is True
    rest = await page_of(played, since=page["next"], maxBytes=size)
    assert bodies(page)[1:] + bodies(rest) == ["after"]


@pytest.mark.parametrize(
    ("cursor", "why"),
    [("yesterday", "look like"), ("epoch-4", "ahead"), ("epoch-1\n", "look like")],
)
async def test_a_cursor_that_is_none_is_refused_with_what_to_do(cursor: str, why: str) -> None:
    played = Played()
    played.hear("1", "2", "3")
    with pytest.raises(ArgumentError) as refusal:
        await page_of(played, since=cursor)
    assert why in refusal.value.message
    assert "since" in refusal.value.message
    assert "`next`" in refusal.value.hint


@pytest.mark.parametrize(("detail", "most"), [("brief", 4_096), ("full", 16_384)])
async def test_a_body_is_cut_above_4_kb_of_utf_8_or_16_in_full(detail: str, most: int) -> None:
    for over in (0, 1):
        played, body = Played(), "a" * (most + over - 400) + "\U0001f600" * 100
        played.hear(body)
        (entry,) = (await page_of(played, maxBytes=LARGE, detail=detail))["entries"]
        if over:
            assert entry["body"] == body[:-1]
            assert (entry["truncated"], entry["bodyBytes"]) == (True, most + 1)
        else:
            assert entry["body"] == body
            assert not {"truncated", "bodyBytes"} & set(entry)


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
    monkeypatch.setattr(paging, "SCAN_SECONDS", -1.0)
    newest = await page_of(played, contains="nothing like it")
    assert (newest["entries"], newest["more"]) == ([], True)
    assert (newest["next"], newest["oldest"]) == ("epoch-50", "epoch-0")


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
        ({"room": LOGS, "since": "epoch-1", "limit": 1}, [(LOGS, "two")]),
        ({"room": LOGS, "kinds": ["connection"]}, [(LOGS, "")]),
    ],
)
async def test_of_several_rooms_all_are_told_of_or_the_one_that_is_named(
    given_: dict[str, object], told: list[tuple[str, str] | None]
) -> None:
    page = await page_of(_talking(), **given_)
    assert [
        (each["room"], each.get("body", "")) if "room" in each else None for each in page["entries"]
    ] == told


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
    whole: dict[str, object] = {"limit": limit, "detail": "full"}  # nothing is folded
    span = {"after": iso(after)} | ({"before": iso(before)} if ends else {})
    told: list[str] = []
    page: dict[str, Any] = {"more": True}
    more: dict[str, object] = {}
    while page["more"]:
        page = await page_of(played, **span, **more, **whole)
        told += [each["at"] for each in page["entries"]]
        more = {"since": page["next"]}
    last = iso(before) if ends else "~"
    assert told == [iso(each) for each in times if iso(after) <= iso(each) <= last]
    newest = await page_of(played, before=iso(before), **whole)
    fitting = [iso(each) for each in times if iso(each) <= iso(before)]
    assert [each["at"] for each in newest["entries"]] == fitting[-limit:]
    assert newest["more"] is (len(fitting) > limit)


async def test_what_was_lost_before_the_time_asked_for_is_no_gap() -> None:
    played = _over_time(1, 2, 3, 4, 5, 6, capacity=3)
    assert "gap" not in await page_of(played, after=iso(4.5))
    lost = {"from": 1, "to": 3, "reason": "evicted"}
    assert (await page_of(played, after=iso(4)))["gap"] == lost
    assert (await page_of(played, before=iso(5)))["gap"] == lost


@pytest.mark.parametrize(
    ("name", "text"), [("before", "yesterday"), ("after", "2026-01-01T00:00:00")]
)
async def test_a_time_that_is_none_is_refused_with_what_to_do(name: str, text: str) -> None:
    with pytest.raises(ArgumentError, match=f"{name} is no time with a zone") as refusal:
        await page_of(Played(), **{name: text})
    assert "ISO 8601" in refusal.value.hint
    zoned = {"after": "1970-01-01T01:00:02+01:00"}
    assert bodies(await page_of(_over_time(1, 2, 3), **zoned)) == ["2", "3"]


async def test_a_cursor_of_the_archive_is_none_of_the_memory() -> None:
    with pytest.raises(ArgumentError, match="archive: true only"):
        await page_of(Played(), since="archive:1")


MAX_PAGE_BYTES = 9_000
"""As the contract has it, where no other size is asked for."""
START = "1970-01-01T00:00:00Z"
"""Before everything."""


class Long(Archived):
    """A participant in a room with such an archive."""

    kept = Lazy(Endless(10_000))


async def _page(played: Played, **given: Any) -> dict[str, Any]:
    page = await page_of(played, archive=True, **given)
    assert not {"oldest", "gap"} & set(page)
    assert len(json.dumps(page)) <= given.get("maxBytes", MAX_PAGE_BYTES)
    assert {each["source"] for each in page["entries"]} <= {"archive"}
    return page


def _numbers(page: dict[str, Any]) -> list[int]:
    return [int(each["body"].split()[1]) for each in page["entries"]]


async def test_what_one_of_many_said_is_found_once_and_in_order_page_by_page() -> None:
    played = Long()
    wanted: dict[str, object] = {"from": "Fred", "after": START, "limit": 4}
    page = await _page(played, **wanted)
    told = _numbers(page)
    while page["more"]:
        page = await _page(played, since=page["next"], **wanted)
        assert len(page["entries"]) <= 4
        told += _numbers(page)
    assert told == list(range(0, 10_000, 1_000))
    assert page["next"] == "archive:id-9999"
    assert {each["sender"] for each in page["entries"]} == {"Fred"}
    (full,) = (await _page(played, detail="full", **wanted | {"limit": 1}))["entries"]
    assert full["from"] == f"{ROOM}/Fred"


async def test_the_archive_is_read_from_its_beginning_where_the_oldest_is_asked_for() -> None:
    page = await _page(Long(), since="oldest", limit=2)
    assert _numbers(page) == [0, 1]


async def test_of_several_rooms_the_archive_of_one_is_asked_which_each_entry_names() -> None:
    played = Long(further=(Played(room_jid=LOGS),))
    for room in (None, ROOM, "lobby"):
        page = await _page(played, limit=3, room=room)
        assert [each["room"] for each in page["entries"]] == [ROOM] * 3
    with pytest.raises(ToolError, match=f"The bridge is not in the room {LOGS} "):
        await _page(played, room="logs")
    (entry,) = (await _page(Long(), limit=1))["entries"]
    assert "room" not in entry


NAME = "McpDebug"
OUT = MessageSent(f"{ROOM}/{NAME}", NAME, "hello", "m1")
BACK = MessageReceived(f"{ROOM}/{NAME}", NAME, "hello", id="m1", own=True)


async def test_what_we_said_is_one_entry_and_two_in_full() -> None:
    played = Played()
    played.publish(OUT)
    (unheard,) = (await page_of(played))["entries"]
    assert (unheard["cursor"], unheard["body"], unheard["heard"]) == ("epoch-1", "hello", False)
    played.publish(BACK._replace(id="another", own=False))
    played.publish(BACK)
    _, heard = (await page_of(played))["entries"]
    assert (heard["cursor"], heard["body"], heard["heard"]) == ("epoch-3", "hello", True)
    out, _, back = (await page_of(played, detail="full"))["entries"]
    assert (out["direction"], out["id"], "reflection" in out) == ("out", "m1", False)
    assert (back["direction"], back["id"], back["reflection"]) == ("in", "m1", True)


async def test_an_error_names_the_message_and_whoever_answered_with_it() -> None:
    played = Played()
    played.publish(OccupantError(f"{ROOM}/Robot", "Robot", "not-acceptable", "a\u202eb", "m1"))
    played.publish(SendFailed("m1", "forbidden"))
    at = "1970-01-01T00:00:00.000Z"
    theirs, returned = (await page_of(played, kinds=["error"]))["entries"]
    told = {"cursor": "epoch-2", "at": at, "kind": "error", "condition": "forbidden", "id": "m1"}
    assert returned == told
    words = {"sender": "Robot", "condition": "not-acceptable", "text": "a\\u{202E}b"}
    assert theirs == told | words | {"cursor": "epoch-1", "escaped": True}
    (entry,) = (await page_of(played, **{"from": "Robot", "contains": "ab"}))["entries"]
    assert entry == theirs


async def test_a_message_is_heard_though_an_archive_or_another_page_told_of_it() -> None:
    played = Played()
    played.publish(OUT)
    played.publish(BACK._replace(source=Source.HISTORY))
    (entry,) = (await page_of(played))["entries"]
    assert (entry["cursor"], entry["source"], "heard" in entry) == ("epoch-2", "history", False)


async def test_what_was_sent_is_heard_in_its_own_room_only() -> None:
    played = in_rooms(ROOM, LOGS)
    played.publish(OUT)
    played.publish(BACK._replace(from_=f"{LOGS}/{NAME}"), LOGS)
    assert [each["heard"] for each in (await page_of(played))["entries"]] == [False, True]


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
    (lost,) = (await page_of(played))["entries"]
    assert (lost["kind"], lost["condition"]) == ("connection", FAULT.condition)
    for asked in ({"kinds": ["connection"]}, {"detail": "full"}):
        assert len((await page_of(played, **asked))["entries"]) == 5
    assert (await page_of(played, kinds=["message"]))["entries"] == []


# Repeats.


def said(*messages: str) -> Played:
    """Somebody says this: `NICKNAME BODY`, in the room before a `:` or in the default one."""
    played = in_rooms(*[ROOM, LOGS]) if any(":" in message for message in messages) else Played()
    for message in messages:
        room, _, words = message.rpartition(":")
        nickname, _, body = words.partition(" ")
        played.hear(body, nickname=nickname, room=LOGS if room else ROOM)
    return played


REPEATS = {
    "in a row": (["W a", "W a", "W a", "W b"], [("a", 3), ("b", None)]),
    "not in a row": (["W a", "W b", "W a"], [("a", None), ("b", None), ("a", None)]),
    "of two senders": (["W a", "X a", "W a"], [("a", None)] * 3),
    "of two rooms": (["W a", "logs:W a", "W a", "logs:W a"], [("a", 2), ("a", 2)]),
}


@pytest.mark.parametrize(("messages", "told"), REPEATS.values(), ids=REPEATS)
@pytest.mark.parametrize("since", [{}, {"since": "oldest"}], ids=["newest", "oldest"])
async def test_equal_messages_of_a_sender_in_a_row_in_a_room_are_one_entry(
    messages: list[str], told: list[tuple[str, int | None]], since: dict[str, str]
) -> None:
    played = said(*messages)
    page = await page_of(played, kinds=["message"], **since)
    assert [(entry["body"], entry.get("times")) for entry in page["entries"]] == told
    full = (await page_of(played, kinds=["message"], detail="full", **since))["entries"]
    assert len(full) == len(messages)
    if told[0] == ("a", 3):
        entry = page["entries"][0]
        assert (entry["at"], entry["lastAt"]) == (full[0]["at"], full[2]["at"])
        rest = await page_of(played, since=entry["cursor"])
        assert bodies(rest) == ["b"]


@pytest.mark.parametrize("since", [{}, {"since": "oldest"}], ids=["newest", "oldest"])
async def test_the_limit_counts_entries_as_they_are_given(since: dict[str, str]) -> None:
    played = said(*["W a"] * 5, *["W b"] * 5, *["W c"] * 5)
    page = await page_of(played, limit=2, **since)
    assert [entry["times"] for entry in page["entries"]] == [5, 5]
    assert bodies(page) == (["a", "b"] if since else ["b", "c"])
    assert page["more"] is True
    if since:
        rest = await page_of(played, limit=1, since=page["next"])
        assert (bodies(rest), rest["more"]) == (["c"], False)


@pytest.mark.parametrize(
    "odd",
    [
        {"body": "x" * 5_000},
        {"body": "a", "encrypted": "OMEMO"},
        {"body": "a", "reply_to": ["1", "2"]},
        {"body": "a", "type": ["chat", "groupchat"]},
    ],
    ids=["cut", "encrypted", "answers", "private"],
)
async def test_messages_that_may_differ_are_not_folded(odd: dict[str, Any]) -> None:
    played = Played()
    for number in range(2):
        fields = {
            name: value[number] if isinstance(value, list) else value for name, value in odd.items()
        }
        played.publish(MessageReceived(f"{ROOM}/W", "W", **fields))
    assert len((await page_of(played, maxBytes=LARGE))["entries"]) == 2


async def test_repeats_in_the_rooms_history_have_the_time_when_the_last_was_said() -> None:
    played = Played()
    for number in range(3):
        when: Any = {"delayed_from": f"2026-01-31T12:00:0{number}.000Z", "source": Source.HISTORY}
        played.publish(MessageReceived(f"{ROOM}/W", "W", "a", id=str(number), **when))
    (entry,) = (await page_of(played))["entries"]
    assert entry["times"] == 3
    assert (entry["delayedFrom"][17:19], entry["lastAt"][17:19]) == ("00", "02")


@pytest.mark.parametrize(
    ("sender", "hint"),
    [
        ("wilma", 'Nobody here is called "wilma"; in the room is "Wilma".'),
        ("Wilma", None),
        ("Nobody", None),
        ("fred", 'Nobody here is called "fred"; in the room was "Fred".'),
        ("Fred", None),
        ("Al@x", f'"Al@x" is taken for an account; the occupant is "{ROOM}/Al@x".'),
    ],
)
async def test_an_empty_page_of_a_misspelt_sender_says_who_is_there(
    sender: str, hint: str | None
) -> None:
    wilma = Occupant(f"{ROOM}/Wilma", "Wilma", "participant", "none", 1.5)
    al = replace(wilma, jid=f"{ROOM}/Al@x", nickname="Al@x")
    there, gone = (*STATUS.occupants, wilma, al), (Departure("Fred", 1.0, "left"),)
    played = Played(replace(STATUS, occupants=there, departures=gone))
    page = await page_of(played, **{"from": sender})
    assert (page["entries"], page.get("hint")) == ([], hint)
    assert ("notice" in page) is (hint is not None)


@pytest.mark.parametrize("tool", [xmpp_history, xmpp_trace], ids=lambda tool: tool.name)
async def test_an_empty_page_says_in_which_other_room_its_sender_is(tool: Tool) -> None:
    played = in_rooms(ROOM, LOGS)
    played.further[0].picture = in_room(LOGS, "Robot")
    page = await page_of(played, tool, room=ROOM, **{"from": "Robot"})
    assert page["hint"] == f'"Robot" is in the room "{LOGS}": ask there.'
    assert "hint" not in await page_of(played, tool, **{"from": "Robot"})


@pytest.mark.parametrize(
    ("times", "note"),
    [
        ({"after": "2999-01-01T00:00:00Z"}, "`after` is in the future: it is "),
        ({"after": "2026-01-02T00:00:00Z", "before": "2026-01-01T00:00:00Z"}, "`before` is ear"),
        ({"before": "1969-01-01T00:00:00Z"}, "Nothing is known from before 1970-01-01T"),
        ({"after": "2026-01-02T00:00:00Z", "before": "2026-01-03T00:00:00Z"}, None),
        ({}, None),
    ],
)
async def test_an_empty_page_says_if_no_event_can_be_between_its_times(
    times: dict[str, str], note: str | None
) -> None:
    played = Played()
    played.hear("once")
    page = await page_of(played, contains="never", **times)
    assert page["entries"] == []
    assert page.get("note", "").startswith(note or "")
    assert ("note" in page) is (note is not None)


async def test_a_page_that_begins_later_than_was_asked_for_says_since_when_all_is_known() -> None:
    played = Played()
    played.hear("once", "again")
    first = (await page_of(played))["entries"][0]["at"]
    for after, note in (
        ("1969-01-01T00:00:00Z", f"Nothing is known from before {first}."),
        (first, None),
    ):
        page = await page_of(played, after=after)
        assert (len(page["entries"]), page.get("note")) == (2, note)


async def test_an_empty_page_says_that_the_bridge_is_not_in_a_room() -> None:
    played = in_rooms(ROOM, LOGS)
    played.further[0].picture = replace(
        STATUS, phase=Phase.WAITING, last_error=LastError(FAULT, 0.0)
    )
    for room in (None, LOGS):
        page = await page_of(played, room=room)
        assert page["note"].startswith(f"The bridge is not in the room {LOGS} (phase waiting)")
    assert "note" not in await page_of(played, room=ROOM)
