"""What xmppHistory tells of the time before the bridge was there, from the recorder's store."""

from contextlib import closing
from pathlib import Path

import pytest

from bridge.mcp.errors import ArgumentError, ToolError
from bridge.recording.recorded import Reader, Walk
from bridge.store.clock import Instant
from bridge.store.database import Happened, Observer
from bridge.store.errors import left_out
from bridge.text import iso
from bridge.tools.entries import RESULT_BYTES, json_size
from bridge.tools.trace import xmpp_trace
from bridge.tools.wait import xmpp_wait
from bridge.xmpp.model.events import (
    ConnectionChanged,
    MessageReceived,
    MessageSent,
    OccupantLeft,
    Phase,
)
from bridge.xmpp.model.faults import Fault
from bridge.xmpp.model.filter import EventFilter
from bridge.xmpp.model.journal import Journal, Record
from tests.conftest import a_place
from tests.store.damaged import damage
from tests.store.shelf import ACCOUNT, NIGHTLY, SETTINGS, Shelf
from tests.support.memory import traced
from tests.tools.played import LOGS, ROOM, Played, arguments, bodies, in_rooms, page_of

NOW = 1_000.0
"""When the bridge was started."""


@pytest.fixture
def shelf(request: pytest.FixtureRequest, tmp_path: Path) -> Shelf:
    return Shelf(a_place(request, tmp_path))


in_both = pytest.mark.parametrize("shelf", ["sqlite", "postgresql"], indirect=True)
"""For what each kind of store has to answer for itself; else it is in a file."""


def _played(shelf: Shelf, played: Played | None = None) -> Played:
    """A bridge that was started just now, beside the store."""
    played = played or Played()
    played.reader, played.settings = shelf.reader, SETTINGS
    played.publish(MessageReceived(f"{ROOM}/W", "W", "now"), at=NOW)
    return played


@in_both
async def test_what_was_recorded_before_the_bridge_was_there_is_told_from_then_on(
    shelf: Shelf,
) -> None:
    kicked = OccupantLeft(
        f"{ROOM}/Robot", "Robot", codes=frozenset({307}), actor="Mallory", reason="enough"
    )
    shelf.say("early", at=100)
    shelf.put(kicked, at=200)
    shelf.say("now", at=NOW)
    page = await page_of(_played(shelf), after=iso(150))
    first, last = page["entries"]
    assert (page["more"], page["next"]) == (False, last["cursor"])
    left = {"kind": "leave", "sender": "Robot", "at": iso(200), "meaning": ["kicked"]}
    assert left.items() <= first.items()
    assert (first["actor"], first["reason"], first["source"]) == ("Mallory", "enough", "recorded")
    assert (last["body"], last["at"], last["source"]) == ("now", iso(NOW), "recorded")
    full = await page_of(_played(shelf), after=iso(150), detail="full")
    assert full["entries"][0]["codes"] == [307]
    assert full["entries"][1]["from"] == f"{ROOM}/Wilma"


@pytest.mark.parametrize(
    ("given_", "told"),
    [
        ({"after": iso(NOW - 0.001)}, ["now, recorded"]),
        ({"before": iso(NOW + 9)}, ["now"]),
        ({"before": iso(NOW - 1), "limit": 1}, ["two"]),
        ({"after": iso(100), "before": iso(150)}, ["one"]),
        ({}, ["now"]),
        ({"since": "oldest"}, ["now"]),
    ],
)
async def test_memory_answers_as_far_as_it_reaches_and_else_the_store(
    shelf: Shelf, given_: dict[str, object], told: list[str]
) -> None:
    shelf.say("one", at=100)
    shelf.say("two", at=200)
    shelf.say("now, recorded", at=NOW)
    assert bodies(await page_of(_played(shelf), **given_)) == told


async def test_memory_that_has_lost_its_oldest_does_not_reach_there(shelf: Shelf) -> None:
    played = _played(shelf, Played(journal=Journal("epoch", 2)))
    for at in (1, 2, 3):
        shelf.say(f"recorded {at}", at=NOW + at)
        played.publish(MessageReceived(f"{ROOM}/W", "W", str(at)), at=NOW + at)
    assert bodies(await page_of(played, after=iso(NOW + 1))) == [f"recorded {n}" for n in (1, 2, 3)]
    assert bodies(await page_of(played, after=iso(NOW + 2))) == ["2", "3"]


async def test_a_cursor_of_the_store_goes_on_in_the_store_after_a_restart_too(
    shelf: Shelf,
) -> None:
    shelf.say("one", "two", at=100)
    page = await page_of(_played(shelf), after=iso(1), limit=1)
    assert (bodies(page), page["more"]) == (["one"], True)
    again = _played(shelf)
    page = await page_of(again, since=page["next"])
    assert (bodies(page), page["more"]) == (["two"], False)
    shelf.say("three", at=300)
    page = await page_of(again, since=page["next"])
    assert (bodies(page), page["more"]) == (["three"], False)
    assert bodies(await page_of(again, since=page["next"])) == []


@in_both
async def test_what_came_after_the_last_of_a_time_comes_after_its_page(shelf: Shelf) -> None:
    for at in (1, 2, 3, 4):
        shelf.say(str(at), at=at)
    played = _played(shelf)
    for span in ({"after": iso(2), "before": iso(3)}, {"before": iso(3)}):
        page = await page_of(played, **span)
        assert bodies(page)[-1] == "3"
        assert bodies(await page_of(played, since=page["next"])) == ["4"]
    page = await page_of(played, before=iso(3), kinds=["leave"])
    assert (page["entries"], page["next"].partition("-")[2]) == ([], "3")
    page = await page_of(played, before=iso(0.5))
    assert bodies(await page_of(played, since=page["next"], limit=2)) == ["1", "2"]


@in_both
async def test_what_was_deleted_after_the_cursor_is_a_gap(shelf: Shelf) -> None:
    for at in (1, 2, 3, 4):
        shelf.say("noise", at=at, room="noisy@conference.example")
        shelf.say(str(at), at=at)
    played = _played(shelf)
    page = await page_of(played, after=iso(1), limit=1)
    shelf.expire(9, "noisy@conference.example")
    assert "gap" not in await page_of(played, after=iso(1))
    assert "gap" not in await page_of(played, since=page["next"])
    shelf.expire(3.5)
    page = await page_of(played, since=page["next"])
    assert bodies(page) == ["4"]
    assert page["gap"] == {"from": 3, "to": 6, "reason": "evicted"}
    assert "gap" not in await page_of(played, since=page["oldest"])
    assert "gap" in await page_of(played, after=iso(2))
    assert "gap" not in await page_of(played, after=iso(4.5))
    assert "gap" in await page_of(played, before=iso(4))


async def test_a_cursor_of_a_store_that_was_put_aside_begins_anew_and_says_so(
    shelf: Shelf,
) -> None:
    shelf.say("one", "two", at=1)
    page = await page_of(_played(shelf), after=iso(1))
    for each in shelf.path.parent.iterdir():
        each.unlink()
    anew = Shelf(shelf.path)
    anew.say("of the new one", at=1)
    told = await page_of(_played(anew), since=page["next"])
    assert bodies(told) == ["of the new one"]
    assert told["gap"] == {"from": 3, "to": 0, "reason": "restarted"}


async def test_what_lies_aside_is_a_gap_of_the_time_before_it_was_put_there(shelf: Shelf) -> None:
    shelf.say("one", at=NOW - 50)
    aside = shelf.path.with_name(f"rooms.db.broken-{round(1e9 * (NOW - 100)):x}")
    aside.write_bytes(b"broken")
    gap = {"from": 1, "to": 0, "reason": "restarted"}
    played = _played(shelf)
    for given_ in ({"after": iso(NOW - 101)}, {"before": iso(NOW - 1)}):
        assert (await page_of(played, **given_))["gap"] == gap
    assert "gap" not in await page_of(played, after=iso(NOW - 99))
    page = await page_of(played, after=iso(NOW - 60))
    assert "gap" not in await page_of(played, since=page["next"])
    aside.unlink()
    assert "gap" not in await page_of(played, after=iso(1))


async def test_what_is_no_cursor_of_a_store_or_ahead_of_everything_is_refused(
    shelf: Shelf,
) -> None:
    shelf.say("one", at=1)
    played = _played(shelf)
    ahead = (await page_of(played, after=iso(1)))["next"].replace("-1", "-9")
    for since, why in (("recorded:00-x", "is not a cursor"), (ahead, "ahead of everything")):
        with pytest.raises(ArgumentError, match=f"since.* {why}"):
            await page_of(played, since=since)


async def test_no_other_tool_takes_such_a_cursor_and_each_says_who_does(shelf: Shelf) -> None:
    shelf.say("one", at=1)
    played = _played(shelf)
    cursor = (await page_of(played, after=iso(1)))["next"]
    for tool, given_ in (
        (xmpp_wait, {"since": cursor}),
        (xmpp_trace, {"since": cursor}),
        (xmpp_trace, {"of": cursor}),
    ):
        with pytest.raises(ArgumentError, match="store, which xmppHistory alone reads"):
            # Refused before a wait would tell anybody of its progress.
            await tool(played.link, *[None] * (tool is xmpp_wait), **arguments(tool, given_))
    played.reader = None
    with pytest.raises(ArgumentError, match="since is not a cursor of this bridge"):
        await page_of(played, since=cursor)


async def test_a_store_that_cannot_be_read_is_said_to_be_so(shelf: Shelf) -> None:
    played = _played(shelf)
    shelf.path.write_bytes(b"something else")
    with pytest.raises(ToolError, match=r"cannot be read: .* is not a store of xmpp") as refused:
        await page_of(played, after=iso(1))
    assert refused.value.condition == "service-unavailable"  # the bridge itself is whole
    assert bodies(await page_of(played)) == ["now"]


@in_both
@pytest.mark.parametrize(
    ("given_", "told"),
    [
        ({"from": "wilma"}, []),
        ({"from": 'Zo\u00eb "\\'}, ["umlaut"]),
        ({"from": "Z\\u{200B}Z"}, ["ag\u200bain"]),
        ({"from": "GATEWAY.example"}, ["of a component"]),
        ({"from": "LOBBY@conference.example/Fred"}, ["ELSE"]),
        ({"contains": "hel\u200blo"}, ["Hello, World"]),
        ({"contains": "\u200b"}, ["ag\u200bain"]),
        ({"pattern": "^.LSE$"}, ["ELSE"]),
    ],
)
async def test_a_filter_picks_as_it_does_in_memory(
    shelf: Shelf, given_: dict[str, object], told: list[str]
) -> None:
    said = {
        "Hello, World": "Wilma",
        "ELSE": "Fred",
        "again": "Wilma",
        "ag\u200bain": "Z\u200bZ",
        "umlaut": 'Zo\u00eb "\\',
        "of a component": "G",
    }
    played = Played()
    for body, nickname in said.items():
        jid = "gateway.example/x" if nickname == "G" else None
        event = MessageReceived(f"{ROOM}/{nickname}", nickname, body, jid=jid)
        played.publish(event, at=1)
        shelf.put(event, at=1)
    remembered = await page_of(played, **given_)
    recorded = await page_of(_played(shelf), after=iso(1), **given_)
    for page in (remembered, recorded):
        assert [each.replace("\\u{200B}", "\u200b") for each in bodies(page)] == told


async def test_a_store_answers_for_rooms_of_the_settings_and_accounts_of_the_domain(
    shelf: Shelf,
) -> None:
    shelf.say("here", at=1)
    shelf.say("elsewhere", at=1, room="secret@conference.example")
    event = MessageReceived(f"{ROOM}/W", "W", "of a stranger")
    shelf.put(event, at=1, by=Observer("spy@other.example", "S", "spy"))
    assert bodies(await page_of(_played(shelf), after=iso(1))) == ["here"]


@in_both
async def test_what_one_saw_alone_names_who_it_was_unless_this_bridge(shelf: Shelf) -> None:
    whisper = MessageReceived(f"{ROOM}/W", "W", "psst", type="chat")
    fault = ConnectionChanged(Phase.WAITING, Fault("reset", "It broke.", "Wait."))
    shelf.put(whisper, at=1, shared=False)
    shelf.put(whisper, at=2, shared=False, by=Observer(ACCOUNT, "McpDebug", "epoch"))
    shelf.put(fault, at=3, room="", shared=False, by=Observer(ACCOUNT, "Me", "former"))
    shelf.put(fault, at=4, room="", shared=False)  # another account's
    page = await page_of(_played(shelf), after=iso(1))
    assert [each.get("observer") for each in page["entries"]] == [
        "recorder@example as McpDebug",
        None,
        f"{ACCOUNT} as Me",
    ]
    assert [each["at"] for each in page["entries"]] == [iso(1), iso(2), iso(3)]


async def test_what_any_bridge_has_lost_is_a_gap_in_each_room(shelf: Shelf) -> None:
    lost = {"kind": "gap", "from": iso(1), "to": iso(2), "events": 7, "reason": "a full disk"}
    with shelf.opened() as database, database.transaction():
        database.append(NIGHTLY, [Happened(2.0, "", lost)])
    page = await page_of(_played(shelf, in_rooms(ROOM, LOGS)), after=iso(1), room="logs")
    assert [(each["events"], each["reason"]) for each in page["entries"]] == [(7, "a full disk")]


async def test_what_the_store_has_is_told_once_however_much_came_since(shelf: Shelf) -> None:
    async def flush() -> int:
        return 2

    played = _played(shelf)
    said = [MessageReceived(f"{ROOM}/W", "W", str(each)) for each in range(1_500)]
    for each in said:
        played.publish(each, at=NOW + 1)
    shelf.put(*said, at=NOW + 1)
    with closing(Reader(shelf.place, ACCOUNT, flush)) as played.reader:
        page = await page_of(played, after=iso(1), pattern="^7$")
    assert bodies(page) == ["7"]


@in_both
@pytest.mark.parametrize("limit", [2, 3, 4])
async def test_what_waits_for_the_store_is_told_once_on_however_many_pages(
    shelf: Shelf, limit: int
) -> None:
    async def flush() -> int:
        return 1

    played, said = _played(shelf), [MessageReceived(f"{ROOM}/W", "W", each) for each in "abc"]
    for each in said:
        played.publish(each, at=NOW + 1)
    shelf.put(MessageReceived(f"{ROOM}/W", "W", "before"), said[1], at=NOW + 1)
    told, asked = list[str](), {"after": iso(1)}
    with closing(Reader(shelf.place, ACCOUNT, flush)) as played.reader:
        for _ in range(6):
            page = await page_of(played, limit=limit, **asked)
            told, asked = told + bodies(page), {"since": page["next"]}
    assert told == ["before", "b", "now", "a", "c"]


@in_both
async def test_what_memory_told_is_not_told_again_once_the_store_has_it(shelf: Shelf) -> None:
    unwritten: list[int | None] = [1, 4, None, None]

    async def flush() -> int | None:
        return unwritten.pop(0)

    played, said = _played(shelf), [MessageReceived(f"{ROOM}/W", "W", each) for each in "abcd"]
    told, asked, both = list[list[str]](), {"after": iso(1)}, list[bool]()
    with closing(Reader(shelf.place, ACCOUNT, flush)) as played.reader:
        for ours, theirs in zip(said, ("first", "second", "third", "fourth"), strict=True):
            played.publish(ours, at=NOW + 1)
            page = await page_of(played, **asked)
            told, asked = [*told, bodies(page)], {"since": page["next"]}
            both.append("+" in page["next"])
            if theirs == "first":
                shelf.put(MessageReceived(f"{ROOM}/W", "W", "now"), at=NOW)
            shelf.put(ours, MessageReceived(f"{ROOM}/W", "W", theirs), at=NOW + 1)
    assert told == [["now", "a"], ["first"], ["b", "second"], ["c", "third"]]
    assert both == [True, False, False, False]


@in_both
@pytest.mark.parametrize("run", ["epoch", "another"])
async def test_a_message_that_waits_for_the_store_is_told_beside_an_equal_one(
    shelf: Shelf, run: str
) -> None:
    async def flush() -> int:
        return 3

    played, said = _played(shelf), MessageReceived(f"{ROOM}/W", "W", "again")
    for at in (NOW + 1, NOW + 5):
        played.publish(said, at=at)
    shelf.put(said, at=NOW + 1, by=Observer(ACCOUNT, "Me", run))
    with closing(Reader(shelf.place, ACCOUNT, flush)) as played.reader:
        page = await page_of(played, after=iso(1), detail="full")
    assert bodies(page) == ["again", "again"]


async def _walked(shelf: Shelf) -> Walk:
    """Return a walk that has read all."""
    walk = await shelf.reader.walk([ROOM], EventFilter())
    assert [row.room async for row in walk]
    return walk


async def _unrecorded(walk: Walk, *records: Record) -> list[Record]:
    await walk.compare(records, "epoch", range(0))
    return walk.unrecorded(records)


async def test_old_history_that_the_store_has_is_not_told_again_from_memory(shelf: Shelf) -> None:
    shelf.put(MessageReceived(f"{ROOM}/W", "W", "old"), at=NOW)
    walk = await _walked(shelf)
    told = MessageReceived(f"{ROOM}/W", "W", "old", delayed_from=iso(NOW))
    assert await _unrecorded(walk, Record(1, NOW + 600, told, ROOM)) == []


@in_both
async def test_what_came_into_the_store_after_it_was_read_is_told_from_memory(shelf: Shelf) -> None:
    shelf.say("before", at=NOW)
    walk = await _walked(shelf)
    said = MessageReceived(f"{ROOM}/W", "W", "later")
    shelf.put(said, at=NOW)
    assert await _unrecorded(walk, later := Record(1, NOW, said, ROOM)) == [later]


@in_both
async def test_memory_is_compared_with_the_store_by_a_clock_that_is_not_set(shelf: Shelf) -> None:
    said, now = MessageReceived(f"{ROOM}/W", "W", "now"), Instant.now()
    shelf.put(said, at=now)
    walk = await _walked(shelf)
    later = Instant.of(now + 3_600, now.steady)  # the clock was put back since
    assert await _unrecorded(walk, Record(1, later, said, ROOM)) == []


async def test_large_events_of_the_store_are_compared_with_memory_a_few_at_a_time(
    shelf: Shelf,
) -> None:
    shelf.say(*(f"{number} {'x' * 200_000}" for number in range(150)), at=NOW + 1)
    walk = await shelf.reader.walk([ROOM], EventFilter())
    now = Record(1, NOW + 1, MessageReceived(f"{ROOM}/W", "W", "now"), ROOM)
    with traced() as memory:
        assert await _unrecorded(walk, now) == [now]
        assert memory()[1] < 40_000_000  # of 30 MB twice, as text and as events


@in_both
async def test_what_a_bridge_said_is_told_once_where_the_room_sent_it_back(shelf: Shelf) -> None:
    own = f"{ROOM}/McpDebug"
    shelf.put(MessageSent(own, "McpDebug", "heard", "1"), at=1, shared=False)
    shelf.put(MessageReceived(own, "McpDebug", "heard", id="1"), at=1.1)
    shelf.put(MessageSent(own, "McpDebug", "never heard", "2"), at=2, shared=False)
    shelf.put(MessageReceived(f"{ROOM}/W", "W", "imitated", id="2"), at=2.1)
    for times in ({"after": iso(1)}, {"before": iso(3)}):
        page = await page_of(_played(shelf), **times, detail="full")
        assert bodies(page) == ["heard", "heard", "never heard", "imitated"]
        page = await page_of(_played(shelf), **times)
        told = [("heard", None), ("never heard", False), ("imitated", None)]
        assert [(each["body"], each.get("heard")) for each in page["entries"]] == told


@pytest.mark.parametrize("most", [4_000, RESULT_BYTES])
async def test_a_page_is_no_longer_than_it_may_be_with_warnings_in_it(
    most: int, shelf: Shelf
) -> None:
    shelf.say(*(f"{number:03} {'long ' * 20}" for number in range(200)), at=1)
    damage(shelf.path, "entries", 2, "event", "'{'")
    played = _played(shelf)
    others = [f"{number} {'a' * 500}" for number in range(3)]
    played.warnings = others
    page = await page_of(played, after=iso(1), limit=500, maxBytes=most)
    assert page["warnings"] == [*others, left_out(1)]
    assert page["entries"]
    assert json_size(page) <= most


async def test_what_cannot_be_read_is_left_out_and_said(shelf: Shelf) -> None:
    for name in ("one", "two", "three"):
        shelf.say(name, at=2)
    damage(shelf.path, "entries", 2, "event", "'{'")
    damage(shelf.path, "entries", 3, "event", """'{"kind":"leave","sender":5}'""")
    for asked in ({"after": iso(1)}, {"before": iso(3)}):
        page = await page_of(_played(shelf), **asked)
        assert bodies(page)[0] == "one"
        assert "three" not in bodies(page)
        (warning,) = page["warnings"]
        assert warning.startswith("2 rows of the store cannot be read")
