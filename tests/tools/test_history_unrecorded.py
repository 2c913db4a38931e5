"""What xmppHistory tells, from memory, of what the store that it reads does not have yet."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bridge.mcp.errors import ArgumentError
from bridge.recording.recorded import Reader, Walk
from bridge.recording.recording import Recording
from bridge.store.clock import steady
from bridge.store.database import Happened, Observer
from bridge.store.sqlite import SqliteDatabase
from bridge.store.writer import Entered, Item, Left, Moment, Writer
from bridge.text import iso
from bridge.tools.history import xmpp_history
from bridge.tools.link import RoomLink
from bridge.xmpp.model import events
from bridge.xmpp.model.events import Event, MessageReceived, Phase, Source, encode
from bridge.xmpp.muc.participant import Participant
from tests.store.shelf import ROOM, SETTINGS
from tests.tools.played import arguments, bodies, wire

LONG_AGO = iso(1.0)
ME = f"{ROOM}/McpDebug"
MYSELF = events.OccupantJoined(ME, "McpDebug", "participant", "none", self_=True)
HERE = events.OccupantJoined(f"{ROOM}/Wilma", "Wilma", "participant", "none")

PAST = (("early", "s0"), ("meanwhile", "s1"))
"""What the room tells of the time before, and the ids."""


def _said(body: str, **more: Any) -> MessageReceived:
    return MessageReceived(f"{ROOM}/Wilma", "Wilma", body, **more)


class Night:
    """A recorder that writes when a test says so."""

    def __init__(self, path: Path) -> None:
        self._database = SqliteDatabase(path)
        self._writer = Writer()
        observer = Observer("recorder@example", "McpDebug-record", "night")
        self.writes(observer, Entered(ROOM, time.time(), steady(), steady()))

    def writes(self, *items: Item) -> None:
        self._writer.write(self._database, items, Moment(time.time(), steady()))

    def hears(self, *happened: Event) -> None:
        """Let it write what it has heard."""
        self.writes(*(Happened(time.time(), ROOM, encode(each), shared=True) for each in happened))

    def ends(self) -> None:
        self.writes(Left(ROOM, time.time(), steady()))

    def close(self) -> None:
        self._database.close()


class Day:
    """The bridge beside it, or after it."""

    def __init__(self, path: Path) -> None:
        self.participant = Participant(SETTINGS)
        self.recording = Recording(self.participant, path)
        self.link = RoomLink(self.participant, self.recording)

    def happens(self, *happened: Event, earlier: bool = False) -> None:
        for each in happened:
            self.participant.publisher.publish(each, ROOM, earlier=earlier)

    def enters(self, *told: Event) -> None:
        """Let it into the room, which tells this of the time before."""
        self.happens(events.ConnectionChanged(Phase.JOINING))
        self.happens(HERE, earlier=True)
        self.happens(MYSELF)
        self.happens(*told, events.SubjectChanged("x"), earlier=True)
        self.happens(events.ConnectionChanged(Phase.JOINED))

    async def page(self, **given: object) -> dict[str, Any]:
        asked = {"kinds": ["message"]} | ({} if "since" in given else {"after": LONG_AGO}) | given
        return wire(await xmpp_history(self.link, **arguments(xmpp_history, asked)))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rooms.db"


@pytest.fixture
def night(path: Path) -> Iterator[Night]:
    with closing(Night(path)) as night:
        night.hears(_said("early", stanza_id="s0"))
        yield night


@pytest.fixture
def day(path: Path, night: Night) -> Iterator[Day]:
    day = Day(path)
    yield day
    day.recording.close()


async def test_beside_a_living_recorder_what_it_has_not_written_yet_is_told_once(
    night: Night, day: Day
) -> None:
    day.enters(_said("early", stanza_id="s0", source=Source.HISTORY))
    night.hears()
    day.happens(_said("late", stanza_id="s1"), _said("later"))
    page = await day.page()
    assert (bodies(page), page["more"]) == (["early", "late", "later"], False)
    assert {each.get("source") for each in page["entries"]} == {"recorded"}
    night.hears(_said("late", stanza_id="s1"), _said("later"))
    after = await day.page(since=page["next"])
    assert (after["entries"], after["more"]) == ([], False)
    day.happens(_said("at last"))
    assert bodies(await day.page(since=page["next"])) == ["at last"]
    assert bodies(await day.page()) == ["early", "late", "later", "at last"]


@pytest.mark.parametrize("ending", ["ended", "killed"])
async def test_after_a_restart_what_the_room_tells_of_meanwhile_is_told_once(
    ending: str, night: Night, day: Day
) -> None:
    if ending == "ended":
        night.ends()
    day.enters(*(_said(each, stanza_id=id_, source=Source.HISTORY) for each, id_ in PAST))
    day.happens(_said("late"))
    page = await day.page()
    assert (bodies(page), page["more"]) == (["early", "meanwhile", "late"], False)
    assert bodies(await day.page(since=page["next"])) == []
    assert bodies(await day.page(room="lobby")) == bodies(page)


@pytest.mark.parametrize("pages", [1, 3])
async def test_what_a_room_tells_after_a_page_from_memory_is_told_unless_the_store_has_it(
    pages: int, day: Day
) -> None:
    day.happens(events.ConnectionChanged(Phase.JOINING))
    day.happens(HERE, earlier=True)
    page = await day.page(kinds=None)
    assert [each["kind"] for each in page["entries"][-1:]] == ["join"]  # it waits for our own
    day.happens(MYSELF)
    day.happens(events.ConnectionChanged(Phase.JOINED))
    for _ in range(pages):
        page = await day.page(since=page["next"])
    told = (_said(each, stanza_id=id_, source=Source.HISTORY) for each, id_ in PAST)
    day.happens(*told, events.SubjectChanged("x"), earlier=True)
    page = await day.page(since=page["next"])
    assert bodies(page) == ["meanwhile"]
    day.happens(_said("late"))
    assert bodies(await day.page(since=page["next"])) == ["late"]


async def test_so_it_is_if_the_room_tells_while_the_page_is_read(
    day: Day, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, told = Reader.walk, [_said("early", stanza_id="s0", source=Source.HISTORY)]

    async def walk(reader: Reader, *asked: Any, **more: Any) -> Walk:
        walked = await read(reader, *asked, **more)
        while told:
            day.happens(told.pop(), earlier=True)
        return walked

    day.happens(events.ConnectionChanged(Phase.JOINING))
    day.happens(HERE, earlier=True)
    day.happens(MYSELF)
    monkeypatch.setattr(Reader, "walk", walk)
    page = await day.page(kinds=None)
    assert bodies(await day.page(since=page["next"])) == []


async def test_what_a_locked_store_does_not_take_is_told(
    path: Path, night: Night, day: Day
) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as lock:
        lock.execute("BEGIN IMMEDIATE")
        day.enters()
        day.happens(_said("late"), _said("psst", type="chat"))
        page = await day.page()
        assert (bodies(page), page["more"]) == (["early", "late", "psst"], False)
        lock.execute("ROLLBACK")
    night.hears(_said("late"), _said("later"))
    day.happens(_said("later"))
    await day.recording.recorder.flush()
    page = await day.page(since=page["next"])
    assert (bodies(page), page["next"].count("+")) == (["later"], 0)


async def test_what_the_room_has_not_sent_back_is_told_once_while_the_store_is_locked(
    path: Path, night: Night, day: Day
) -> None:
    day.enters()
    with closing(sqlite3.connect(path, isolation_level=None)) as lock:
        lock.execute("BEGIN IMMEDIATE")
        day.happens(events.MessageSent(ME, "McpDebug", "is it lost?", "1"))
        page = await day.page()
        assert bodies(page) == ["early", "is it lost?"]
        lock.execute("ROLLBACK")
    await day.recording.recorder.flush()
    night.hears(_said("yes"))
    assert bodies(await day.page(since=page["next"])) == ["yes"]


async def read_on(day: Day, page: dict[str, Any], limit: int) -> list[str]:
    """Return the bodies of a page and of all that follow it, in pages of this size."""
    told = bodies(page)
    while page["more"]:
        page = await day.page(limit=limit, since=page["next"])
        told += bodies(page)
    assert (await day.page(since=page["next"]))["entries"] == []
    return told


@pytest.mark.parametrize("limit", [1, 2, 4])
async def test_what_the_store_does_not_take_is_told_in_pages_without_what_it_has(
    limit: int, path: Path, night: Night, day: Day
) -> None:
    day.enters()
    night.hears(*map(_said, "bd"))
    told = await day.page()
    assert bodies(told) == ["early", "b", "d"]
    with closing(sqlite3.connect(path, isolation_level=None)) as lock:
        lock.execute("BEGIN IMMEDIATE")
        day.happens(*map(_said, "abcdef"))
        first = await day.page(limit=limit, since=told["next"])
        assert await read_on(day, first, limit) == list("acef")
        lock.execute("ROLLBACK")
    assert await read_on(day, await day.page(limit=limit, since=first["next"]), limit) == list(
        "acef"[limit:]
    )


async def test_what_was_told_from_memory_is_told_again_after_a_restart_which_is_said(
    path: Path, night: Night, day: Day
) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as lock:
        lock.execute("BEGIN IMMEDIATE")
        day.enters()
        day.happens(*map(_said, "ab"))
        page = await day.page(limit=2)
        assert (bodies(page), page["more"]) == (["early", "a"], True)
        stored, then, _ = page["next"].partition("+")
        remembered = f"{day.participant.journal.cursor}{then}1"
        for wrong in ("", "oldest", stored, f"oldest{then}1", f"{remembered}x", remembered[:-1]):
            with pytest.raises(ArgumentError, match="since is not a cursor of this bridge"):
                await day.page(since=f"{stored}{then}{wrong}")
        lock.execute("ROLLBACK")
    await day.recording.recorder.flush()
    night.hears(_said("meanwhile"))
    next_day = Day(path)
    next_day.enters()
    next_day.happens(_said("c"))
    after = await next_day.page(since=page["next"])
    assert (bodies(after), after["gap"]["reason"]) == (["a", "b", "meanwhile", "c"], "restarted")
    assert "gap" not in await next_day.page(since=after["next"])
    next_day.recording.close()


@pytest.mark.parametrize("limit", [1, 2, 50])
async def test_a_bridge_outside_goes_on_in_a_store_that_was_locked_while_a_page_was_read(
    limit: int, path: Path, night: Night, day: Day
) -> None:
    told, since = list[str](), {"after": LONG_AGO}
    with closing(sqlite3.connect(path, isolation_level=None)) as lock:
        for step in range(6):
            if locked := step % 2 == 0:
                lock.execute("BEGIN IMMEDIATE")
            else:
                night.hears(_said(f"at {step}"), _said("again"))
            day.participant.publisher.publish(events.ConnectionChanged(Phase.CONNECTING), "")
            more = True
            while more:
                page = await day.page(kinds=["message", "connection"], limit=limit, **since)
                told += [each.get("body", each["kind"]) for each in page["entries"]]
                since, more = {"since": page["next"]}, page["more"]
            assert ("+" in page["next"]) is locked
            if locked:
                lock.execute("ROLLBACK")
    said = ["early", *(f"at {step}" for step in (1, 3, 5)), *["again"] * 3]
    assert sorted(told) == sorted(said + ["connection"] * 6)


@pytest.mark.parametrize("limit", [1, 4])
async def test_pages_of_any_size_tell_each_once(limit: int, night: Night, day: Day) -> None:
    day.enters()
    night.hears(_said("seen by it alone"))
    day.happens(*map(_said, "abcd"))
    told = await read_on(day, await day.page(limit=limit), limit)
    assert told == ["early", "seen by it alone", *"abcd"]


async def test_a_rooms_history_is_known_behind_any_number_of_other_events(
    night: Night, day: Day
) -> None:
    status = (replace(HERE, status=str(number)) for number in range(1_100))
    night.hears(*(events.OccupantChanged(**vars(each)) for each in status))
    day.enters(_said("early", stanza_id="s0", source=Source.HISTORY))
    day.happens(_said("late"))
    assert bodies(await day.page()) == ["early", "late"]
