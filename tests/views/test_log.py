"""The command `log`, without a store."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import pytest

from bridge.recording import recorded
from bridge.recording.recorded import Answer, Reader
from bridge.store.database import Observer
from bridge.store.errors import BusyStoreError
from bridge.store.reading import Extent, Reading
from bridge.views.log import ORDER_SECONDS, Log
from bridge.xmpp.model.events import MessageReceived, MessageSent
from bridge.xmpp.model.filter import EventFilter
from tests.store.shelf import ACCOUNT, ROOM, Shelf


async def test_followed_events_wait_a_second_for_earlier_ones_and_for_the_rooms_copy(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    shelf, sender, own = Shelf(tmp_path / "rooms.db"), f"{ROOM}/Bot", Observer(ACCOUNT, "Bot", "x")
    walk, clock = (
        partial(shelf.reader.walk, (ROOM,), EventFilter()),
        iter((100, 100.5, 100.75, 101)),
    )
    log = Log(walk, (), as_json=False, names_rooms=False, clock=lambda: next(clock))

    def shown() -> list[str]:
        return [line.split()[-1] for line in capfd.readouterr().out.splitlines()]

    for id_, body in (("1", "heard"), ("2", "lost")):
        shelf.put(MessageSent(sender, "Bot", body, id_), at=99.75, by=own, shared=False)
    shelf.say("ahead", at=100 + ORDER_SECONDS)
    cursor = await log.show(limit=10, follows=True)
    assert shown() == []
    shelf.put(MessageReceived(sender, "Bot", "heard", id="1"), at=100)
    shelf.put(MessageReceived(f"{ROOM}/Mallory", "Mallory", "claimed", id="2"), at=100)
    shelf.say("earlier", at=99.5)
    for bodies in (["earlier"], ["lost"], ["heard", "claimed"]):
        cursor = await log.show(cursor, follows=True)
        assert shown() == bodies


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Let another process lock the file, for readers too."""
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        yield


@pytest.mark.parametrize("limit", [10, None])
async def test_following_goes_on_once_a_file_that_could_not_be_read_can_be_again(
    limit: int | None, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    shelf = Shelf(tmp_path / "rooms.db")
    walk = partial(shelf.reader.walk, (ROOM,), EventFilter())
    log = Log(walk, (), as_json=False, names_rooms=False, clock=lambda: 100.0)
    shelf.say("before", at=1)
    with _locked(shelf.path):
        cursor = await log.show(limit=limit, follows=True)
        assert (cursor, await log.show(limit=limit, follows=True)) == (None, None)
    cursor = await log.show(cursor, limit, follows=True)
    shelf.say("after", at=2)
    with _locked(shelf.path):
        cursor = await log.show(cursor, follows=True)
        cursor = await log.show(cursor, follows=True)
    await log.show(cursor, follows=True)
    told = capfd.readouterr()
    assert [line.split()[-1] for line in told.out.splitlines()] == ["before", "after"]
    assert told.err.count("locked; nothing is shown until it can be read") == 2


class _Busy(Reader):
    """Of what it is asked, the first and the fourth fail, and the last ends it."""

    asked = 0

    async def ask(self, work: Callable[[Reading], Answer], extent: Extent | None = None) -> Answer:
        self.asked += 1
        if self.asked in {1, 4}:
            raise BusyStoreError("it is busy")
        if self.asked > 8:
            raise EOFError
        return await super().ask(work, extent)


async def test_following_begins_with_the_newest_once_it_can_read_a_whole_page(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorded, "CHUNK", 1)
    shelf = Shelf(tmp_path / "rooms.db")
    shelf.say(*"abc", at=1)
    walk = partial(_Busy(shelf.path, ACCOUNT).walk, (ROOM,), EventFilter())
    with pytest.raises(EOFError):
        await Log(walk, (), as_json=False, names_rooms=False).follow(2, 1, lambda: None)
    assert [line[-1] for line in capfd.readouterr().out.splitlines()] == ["b", "c"]
