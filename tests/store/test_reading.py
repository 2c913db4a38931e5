"""The reading of the store: in bounded looks, in a thread, in one order."""

import asyncio
from contextlib import closing
from math import inf
from pathlib import Path
from time import perf_counter, thread_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.recording.recorded import CHUNK, Reader
from bridge.store import postgresql, sqlite
from bridge.store.database import Amount, Happened, Query, TracedXml
from bridge.store.errors import NotOurStoreError, StoreError
from bridge.store.location import Place
from bridge.store.sqlite import SPAN, SqliteDatabase
from bridge.text import searchable
from bridge.xmpp.model.events import (
    Event,
    MessageReceived,
    MessageSent,
    OccupantJoined,
    OccupantLeft,
    SubjectChanged,
)
from bridge.xmpp.model.filter import EventFilter
from bridge.xmpp.model.journal import CursorError
from tests.conftest import a_place
from tests.store.recorded import in_a_file, open_store
from tests.store.shelf import ACCOUNT, NIGHTLY, ROOM, Shelf

MANY = 60_000
TURN_SECONDS = 0.005
"""Of work on the loop at a stretch."""
EVERYTHING = EventFilter()


@pytest.fixture
def shelf(place: Place) -> Shelf:
    return Shelf(place)


@pytest.fixture(scope="module")
def large(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Place:
    place = a_place(request, tmp_path_factory.mktemp("large"))
    with closing(open_store(place)) as database, database.transaction():
        database.append(NIGHTLY, [_happened(number) for number in range(MANY)])
    return place


def _happened(number: int) -> Happened:
    body = f"number {number}: what somebody says in a room is about as long as this"
    event = {"kind": "message", "direction": "in", "from": f"{ROOM}/W", "sender": "W", "body": body}
    return Happened(number / 10, ROOM, event, shared=True)


async def _texts(reader: Reader, wanted: EventFilter = EVERYTHING, **more: object) -> list[str]:
    walk = await reader.walk([ROOM], wanted, **more)  # type: ignore[arg-type]
    return [each.event["body"] async for each in walk]


@pytest.mark.parametrize(
    "wanted", [EventFilter(contains="NUMBER 59999:"), EventFilter(sender="nobody")]
)
async def test_the_loop_turns_on_while_the_store_is_searched(
    large: Place, wanted: EventFilter
) -> None:
    longest, turns = 0.0, 0

    async def turn() -> None:
        nonlocal longest, turns
        while True:
            began = thread_time()
            await asyncio.sleep(0)
            longest = max(longest, thread_time() - began)
            turns += 1

    turning = asyncio.create_task(turn())
    async for _ in await Shelf(large).reader.walk([ROOM], wanted, seconds=1.0):
        pass
    turning.cancel()
    assert turns > 10
    assert longest < TURN_SECONDS


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    return Shelf(a_place(request, tmp_path_factory.mktemp("any")))


LETTERS = 'kK\u017f\u212aé\u0301ÉßS\u1e9eİi\u0307"\\/n\n\t\r\x7f\x85\u200b\u202e😀 '
"""Among them some whose lower case is more than one letter, or another's, and hidden ones."""
TEXTS = st.text(st.sampled_from(LETTERS), max_size=6)


@settings(max_examples=100, deadline=None)
@given(TEXTS, TEXTS, st.integers(0, 5), st.integers(1, 6))
def test_no_text_is_missed_whatever_is_in_it(
    shared: Shelf, text: str, other: str, start: int, length: int
) -> None:
    part = text[start : start + length]
    kinds: list[Event] = [
        MessageReceived(f"{ROOM}/W", "W", text + other),
        MessageSent(f"{ROOM}/W", "W", text + other, "id"),
        SubjectChanged(text + other),
        OccupantLeft(f"{ROOM}/W", "W", status=text + other),
        OccupantJoined(f"{ROOM}/W", "W", "none", "none", status=text + other),
    ]
    query = Query((ROOM,), "example", contains=(searchable(part),))
    with shared.opened() as filled:
        before = filled.newest()
        shared.put(*kinds)
        rows, _, _ = filled.page(query, after=before, until=filled.newest(), limit=9)
    written = [before + number for number in range(1, 6)]
    assert [each.id for each in rows if text + other] == written * bool(text + other)


async def test_a_walk_ends_when_its_time_is_over_and_goes_on_where_it_came_to(large: Place) -> None:
    reader = Shelf(large).reader
    wanted = EventFilter(contains=f"number {MANY - 1}:")
    walk = await reader.walk([ROOM], wanted, seconds=0.0)
    assert [each async for each in walk] == []
    assert (walk.more, walk.next) == (True, walk.cursor_of(SPAN))
    walk = await reader.walk([ROOM], wanted, since=walk.next, seconds=0.0)
    assert [each.id async for each in walk] == [MANY]
    assert (walk.more, walk.next) == (False, walk.cursor_of(MANY))


async def test_what_is_recorded_while_a_walk_is_under_way_comes_with_the_next(shelf: Shelf) -> None:
    shelf.say(*map(str, range(CHUNK + 1)))
    walk = await shelf.reader.walk([ROOM], EVERYTHING)
    told: list[str] = []
    async for each in walk:
        if not told:
            shelf.say("later")
        told.append(each.event["body"])
    assert told == list(map(str, range(CHUNK + 1)))
    assert await _texts(shelf.reader, since=walk.next) == ["later"]


async def test_a_walk_ends_ahead_of_what_is_deleted_meanwhile(shelf: Shelf) -> None:
    for number in range(CHUNK + 10):
        shelf.say(str(number), at=number)
    walk = await shelf.reader.walk([ROOM], EVERYTHING)
    told: list[str] = []
    async for each in walk:
        if not told:
            shelf.expire(CHUNK + 5)
        told.append(each.event["body"])
    assert told == list(map(str, range(CHUNK)))
    assert (walk.more, walk.gap) == (True, None)
    again = await shelf.reader.walk([ROOM], EVERYTHING, since=walk.next)
    assert [each.event["body"] async for each in again] == [str(CHUNK + n) for n in range(5, 10)]
    assert again.gap is not None
    assert (again.gap.first, again.gap.last) == (CHUNK + 1, CHUNK + 5)


@in_a_file
async def test_a_walk_ends_when_its_store_is_put_aside(shelf: Shelf) -> None:
    shelf.say(*map(str, range(CHUNK + 1)))
    walk = await shelf.reader.walk([ROOM], EVERYTHING)
    told = 0
    async for _ in walk:
        if not told:
            for each in shelf.path.parent.iterdir():
                each.unlink()
            Shelf(shelf.path).say("of another store")
        told += 1
    assert (told, walk.more) == (CHUNK, True)
    with pytest.raises(CursorError):
        await shelf.reader.walk([ROOM], EVERYTHING, since="epoch-1")


async def test_a_call_that_is_cancelled_leaves_nothing_running_for_long(large: Place) -> None:
    reader = Shelf(large).reader
    searching = asyncio.create_task(_texts(reader, EventFilter(sender="nobody")))
    await asyncio.sleep(0)
    searching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await searching
    began = perf_counter()
    await asyncio.get_running_loop().shutdown_default_executor()
    assert perf_counter() - began < 1


def _ours(number: int, direction: str) -> Happened:
    said = {"from": f"{ROOM}/McpDebug", "sender": "McpDebug", "id": f"m{number}"}
    event = {"kind": "message", "direction": direction, **said}
    return Happened(1.0, ROOM, event, shared=direction == "in")


def test_what_we_said_is_known_to_be_heard_by_its_own_copy_and_no_other(shelf: Shelf) -> None:
    sent = [_ours(number, "out") for number in range(6)]
    copies = [_ours(number, "in") for number in (0, 2)]
    others = [
        copies[0]._replace(event={**copies[0].event, "id": f"m{number}", **more})
        for number, more in ((1, {"sender": "W", "from": f"{ROOM}/W"}), (99, {}))
    ]
    with shelf.opened() as database:
        with database.transaction():
            database.append(NIGHTLY, [*sent, *others, *copies])
        rows, _, _ = database.page(Query((ROOM,), "example"), after=0, until=6, limit=6)
    assert [each.echoed for each in rows] == [True, False, True, False, False, False]


@in_a_file
async def test_reading_makes_no_store_and_changes_none(shelf: Shelf, tmp_path: Path) -> None:
    absent = tmp_path / "absent.db"
    with pytest.raises(NotOurStoreError):
        await _texts(Reader(absent, ACCOUNT))
    assert not absent.exists()
    with (
        closing(SqliteDatabase(shelf.path, writable=False)) as database,
        pytest.raises(StoreError, match="readonly"),
        database.transaction(),
    ):
        database.append(NIGHTLY, [_happened(1)])


async def test_stanzas_are_told_to_the_account_that_sent_or_got_them(shelf: Shelf) -> None:
    own = type(NIGHTLY)(ACCOUNT, "McpDebug", "own")
    with shelf.opened() as database, database.transaction():
        database.append_stanzas(own, [TracedXml(1.0, "in", "2", "<ä/>")])
        database.append_stanzas(NIGHTLY, [TracedXml(2.0, "out", "1", "<b/>")])
    walk = await shelf.reader.walk([ROOM], EVERYTHING, stanzas=True)
    assert [(each.at, each.event) async for each in walk] == [
        (1.0, {"kind": "stanza", "direction": "in", "bytes": 5, "connection": "2", "xml": "<ä/>"})
    ]


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["a", "b"])), max_size=12),
    st.none() | st.integers(0, 6),
    st.none() | st.integers(0, 6),
    st.integers(1, 5),
    st.integers(1, 4),
    st.booleans(),
)
async def test_looks_of_any_length_find_each_event_once_and_in_order(
    shared: Shelf,
    happened: list[tuple[int, str]],
    start: int | None,
    end: int | None,
    span: int,
    limit: int,
    backward: bool,
) -> None:
    with shared.opened() as database:
        before = database.newest()
        with database.transaction():
            for holding in database.holdings():
                database.delete(holding, Amount(99, inf), None)
    for at, name in happened:
        shared.say(name, at=at, room=f"{name}@x")
    query = Query(("a@x",), "example", start=start, end=end)
    expected = [
        number
        for number, (at, name) in enumerate(happened, before + 1)
        if name == "a" and (start is None or at >= start) and (end is None or at <= end)
    ]
    with pytest.MonkeyPatch.context() as patch:
        for module in (sqlite, postgresql):
            patch.setattr(module, "SPAN", span)
        with closing(open_store(shared.place, writable=False)) as database:
            within = database.span(query)
            first, last = within.first, within.last
            ids: list[int] = []
            while first < last:
                rows, far, _ = database.page(
                    query, after=first, until=last, limit=limit, backward=backward
                )
                assert len(rows) <= limit
                ids += [each.id for each in rows]
                first, last = (first, far) if backward else (far, last)
    assert ids == (expected[::-1] if backward else expected)
