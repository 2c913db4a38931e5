"""Rows that no bridge wrote: whatever stands in one, the others are read, and recording goes on."""

import random
import time
from collections import Counter
from contextlib import closing, suppress
from math import inf
from pathlib import Path
from typing import Any

import pytest

from bridge.recording.recorded import Reader, Walk
from bridge.store.database import Ageing, Amount, Happened, Observer, Query, Tenure, TracedXml
from bridge.store.errors import BrokenStoreError
from bridge.store.queries import LATEST
from bridge.store.retention import Clocks, Retention
from bridge.store.sqlite import SqliteDatabase
from bridge.store.writer import Entered, Moment, Writer
from bridge.xmpp.model.events import MessageReceived
from bridge.xmpp.model.filter import EventFilter
from tests.store.damaged import FORMS, damage
from tests.store.hall import Hall
from tests.store.recorded import selected
from tests.store.shelf import ACCOUNT, NIGHTLY, ROOM, Shelf

HEADER_BYTES = 100
"""Of a file of SQLite's: what is damaged there makes it another program's."""

NO_UTF8 = "CAST(x'ff' AS TEXT)"
ANOTHER = ["5", "1.5", "x'7b7d'", NO_UTF8]
"""Values of other types than a text."""

EVENTS = [
    "'{'",
    '\'["kind","message"]\'',
    "'{}'",
    """'{"kind":["message"]}'""",
    "replace(event, '}', ',')",
    "replace(event, '\"body\":\"', '\"body\":\"' || CAST(x'ff' AS TEXT))",
    "'{\"kind\":' || replace(hex(zeroblob(50000)), '0', '[')",
    "'{\"kind\":\"message\",\"body\":1' || replace(hex(zeroblob(5000)), '0', '1') || '}'",
]
"""In the place of the exact form of an event: nothing that could be one."""

TIMES = ["'soon'", "x'00'", NO_UTF8, "-1", "1e300", "9223372036854775807", "253402300800000"]

UNREADABLE = [
    *(("event", value) for value in [*EVENTS, *FORMS, *ANOTHER]),
    *((column, value) for column in ("at", "seen") for value in TIMES),
    *(("room", value) for value in ["99", "'x'", "x'00'"]),
    *(("observer", value) for value in ["99", "'x'", "x'00'"]),
    *(("shared", value) for value in ["'x'", "x'00'", "0.5"]),
]
"""A column of an event, and what stands there."""
EACH = pytest.mark.parametrize(("column", "value"), UNREADABLE)


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    made = Shelf(tmp_path / "rooms.db")
    made.say("before", at=1)
    other = Observer("another@example", "Another", "other")
    made.put(MessageReceived(f"{ROOM}/Wilma", "Wilma", "damaged"), at=2, by=other)
    made.say("after", at=3)
    return made


async def _read(shelf: Shelf, **more: Any) -> tuple[list[Any], Walk]:
    walk = await Reader(shelf.path, ACCOUNT).walk([ROOM], EventFilter(), **more)
    return [each.event.get("body") async for each in walk], walk


@EACH
async def test_a_row_that_cannot_be_read_is_left_out_and_counted_also_alone_in_a_chunk(
    column: str, value: str, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    damage(shelf.path, "entries", 2, column, value)
    told, walk = await _read(shelf)
    assert (told, walk.unreadable) == (["before", "after"], 1)
    assert (walk.more, walk.next) == (False, walk.cursor_of(3))
    monkeypatch.setattr("bridge.recording.recorded.CHUNK", 1)
    assert (await _read(shelf))[0] == ["before", "after"]
    told, walk = await _read(shelf, backward=True)
    assert (told, walk.unreadable) == (["after", "before"], 1)


async def test_the_last_millisecond_that_can_be_written_is_read(shelf: Shelf) -> None:
    damage(shelf.path, "entries", 2, "at", str(LATEST))
    told, walk = await _read(shelf)
    assert (told, walk.unreadable) == (["before", "damaged", "after"], 0)


@pytest.mark.parametrize(
    ("table", "column", "value", "told"),
    [
        ("runs", "account", NO_UTF8, ["before", "after"]),
        ("runs", "nickname", "x'00'", ["before", "after"]),
        ("runs", "nickname", "'x' || char(0)", ["before", "after"]),
        ("file", "id", NO_UTF8, ["before", "damaged", "after"]),
        ("file", "id", "'../'", ["before", "damaged", "after"]),
        ("places", "evicted", NO_UTF8, ["before", "damaged", "after"]),
    ],
)
async def test_no_row_of_another_table_keeps_the_rest_from_being_read(
    table: str, column: str, value: str, told: list[str], shelf: Shelf
) -> None:
    damage(shelf.path, table, 2 if table == "runs" else None, column, value)
    entries, walk = await _read(shelf)
    assert (entries, walk.unreadable) == (told, 3 - len(told))
    again, _ = await _read(shelf, since=walk.next)
    assert again == []


@pytest.mark.parametrize("column", ["direction", "connection", "xml"])
@pytest.mark.parametrize("value", ["x'00'", NO_UTF8])
async def test_a_stanza_that_cannot_be_read_is_left_out_and_counted(
    column: str, value: str, shelf: Shelf
) -> None:
    with shelf.opened() as database, database.transaction():
        database.append_stanzas(
            Observer(ACCOUNT, "McpDebug", "own"), [TracedXml(1.0, "in", "1", "<a/>")] * 2
        )
    damage(shelf.path, "traffic", 1, column, value)
    walk = await Reader(shelf.path, ACCOUNT).walk([ROOM], EventFilter(), stanzas=True)
    assert [each.id async for each in walk] == [2]
    assert walk.unreadable == 1


@EACH
def test_another_bridge_records_on_beside_a_row_that_cannot_be_read(
    column: str, value: str, tmp_path: Path
) -> None:
    hall = Hall(tmp_path / "rooms.db")
    first, second = hall.start_two_inside()
    hall.pass_time(1)
    second.stalled = True
    lost = hall.say()
    hall.say()
    hall.pass_time(1)
    path = tmp_path / "rooms.db"
    find = "SELECT id FROM entries WHERE instr(event, '\"jid\":{}') > 0"
    ((row,),) = selected(path, find.format(lost))
    damage(path, "entries", row, column, value)
    second.stalled = False
    hall.pass_time(1)
    hall.kill(first)
    mark = hall.say()
    hall.enter(hall.start())
    hall.pass_time(20)
    assert len(selected(path, f"{find.format(mark)} AND id > {row}")) == 1


@pytest.mark.parametrize(
    ("table", "column"),
    [
        *(
            ("entries", column)
            for column in ("at", "event", "kind", "plain", "message", "shared", "observer")
        ),
        *(("places", column) for column in ("bytes", "evicted")),
        *(("traffic", column) for column in ("at", "xml", "observer")),
        *(("file", column) for column in ("stanza_bytes", *Ageing._fields)),
        ("sqlite_sequence", "seq"),
    ],
)
@pytest.mark.parametrize("value", ["NULL", "'x'", "x'00'", NO_UTF8, "-9223372036854775807"])
def test_what_is_damaged_keeps_nothing_from_being_written_and_deleted(
    table: str, column: str, value: str, shelf: Shelf
) -> None:
    stanzas = [TracedXml(1.0, "in", "1", "<a/>")] * 2
    with shelf.opened() as database, database.transaction():
        database.append_stanzas(NIGHTLY, stanzas)
    damage(shelf.path, table, 2 if table in {"entries", "traffic"} else None, column, value)
    shelf.say("later", at=4)
    with shelf.opened() as database:
        with database.transaction():
            database.append_stanzas(NIGHTLY, stanzas)
        retention = Retention(1, 0)
        for now in range(0, 200, 20):
            retention.apply(database, Clocks(2e9, now, now))
        assert database.holdings() == []


def test_a_row_with_a_damaged_id_does_not_lead_back_to_rows_that_were_read(tmp_path: Path) -> None:
    shelf, limit = Shelf(tmp_path / "long.db"), 50
    shelf.say(*(f"number {count}" for count in range(1, 128)), at=1.0)
    whole = bytearray(shelf.path.read_bytes())
    cell = whole.rindex(bytes([64, 14, 0]), 0, whole.index(b"number 64"))  # id, header, no value
    whole[cell] = 64 - limit
    shelf.path.write_bytes(whole)
    read, far = list[int](), 64 - limit
    with shelf.opened() as database:
        while far < 127 and len(read) < 200:
            rows, far, _ = database.page(
                Query((ROOM,), "example"), after=far, until=127, limit=limit
            )
            read += [row.id for row in rows]
    assert read == [*range(15, 64), *range(65, 128)]


def test_a_format_that_sqlite_does_not_know_is_damage(shelf: Shelf) -> None:
    whole = bytearray(shelf.path.read_bytes())
    whole[47] = 6  # the last of four bytes: the format of the tables in the file
    shelf.path.write_bytes(whole)
    for writable in (False, True):
        with pytest.raises(BrokenStoreError):
            SqliteDatabase(shelf.path, writable=writable)


def test_a_damaged_page_number_is_not_taken_for_a_full_disk(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "large.db")
    shelf.say(*["x" * 500] * 100, room="noise@conference.example")
    shelf.say("y" * 20_000)
    whole = bytearray(shelf.path.read_bytes())
    place = whole.index(b"y" * 500)  # of the row, followed by the number of the page that goes on
    while whole[place : place + 1] == b"y":
        place += 1
    whole[place : place + 4] = b"\x7f\xff\xff\x00"
    shelf.path.write_bytes(whole)
    with shelf.opened() as database:
        noise = next(each for each in database.holdings() if each.name != ROOM)
        with pytest.raises(BrokenStoreError):
            database.delete(noise, Amount(1_000, inf), None)


FLIPS = 40
MORE_FLIPS = 4_000


@pytest.mark.parametrize("flips", [FLIPS, pytest.param(MORE_FLIPS, marks=pytest.mark.long)])
async def test_whatever_byte_is_damaged_the_rest_is_used_or_the_store_is_known_to_be_broken(
    shelf: Shelf, tmp_path: Path, flips: int
) -> None:
    with closing(SqliteDatabase(shelf.path)) as database, database.transaction():
        database.enter(ROOM, "example", Tenure(0, NIGHTLY.run, 1e3, 1e3, 1e3, 1e3, ended=False))
    whole, damaged = shelf.path.read_bytes(), tmp_path / "damaged.db"
    written = [place for place, each in enumerate(whole) if each and place >= HEADER_BYTES]
    seed = 1 if flips == FLIPS else time.time_ns() % 10**6
    chance = random.Random(seed)  # noqa: S311 - no secret
    outcomes = Counter[str]()
    for _ in range(flips):
        for each in tmp_path.glob("damaged.db*"):  # noqa: ASYNC240 - nothing else runs here
            each.unlink()
        place = chance.choice(written)
        other = chance.choice([whole[place] ^ 1 << chance.randrange(8), chance.randrange(256)])
        damaged.touch(0o600)
        damaged.write_bytes(whole[:place] + bytes([other]) + whole[place + 1 :])
        with suppress(BrokenStoreError):
            walk = await Reader(damaged, ACCOUNT).walk([ROOM], EventFilter())
            _ = [walk.record(each) async for each in walk]
            outcomes["read"] += 1
        with suppress(BrokenStoreError), closing(SqliteDatabase(damaged)) as database:
            writer, me = Writer(), Observer(ACCOUNT, "McpDebug", "own")
            writer.write(database, [me, Entered(ROOM, 3.0, 1_000.0, 1_000.0)], Moment(4.0, 1_001.0))
            for number in (1, 2):
                event = {"kind": "message", "sender": "Wilma", "body": str(number)}
                happened = Happened(5.0, ROOM, event, shared=True)
                moment = Moment(20.0, 1_020.0 + number, closing=number == 2)
                writer.write(database, [happened], moment)
            outcomes["written"] += 1
        with suppress(BrokenStoreError), closing(SqliteDatabase(damaged)) as database:
            retention = Retention(1, 0)
            for now in range(3):
                retention.apply(database, Clocks(2e9, now, now))
            outcomes["deleted"] += 1
    assert min(outcomes[each] for each in ("read", "written", "deleted")) > flips / 8, seed
