"""Many bridges on one PostgreSQL: what they read, through what, and by which clocks."""

import asyncio
import shutil
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import pytest

from bridge.settings.database_url import database_url
from bridge.store.clock import steady
from bridge.store.database import Observer, Query, TracedXml
from bridge.store.errors import (
    BrokenStoreError,
    BusyStoreError,
    NotOurStoreError,
    RefusedStoreError,
)
from bridge.store.location import Team
from bridge.store.outbox import Outbox
from bridge.store.postgresql import PostgresqlDatabase
from bridge.store.reading import Reading
from bridge.store.shipping import ship
from bridge.store.sql import SqlDatabase
from bridge.store.sqlite import open_file
from bridge.store.writer import Entered, Item, Moment, Writer
from bridge.text import iso
from tests.servers.certificates import Authority
from tests.servers.postgresql import PASSWORD, USER, Postgresql, running_pgbouncer
from tests.store.damaged import damage
from tests.store.hall import ROOM, said
from tests.store.member import Member
from tests.store.recorded import open_store, rows, selected

ME = Observer("bot@localhost", "McpDebug", "run")
QUERY = Query((ROOM,), "localhost")
IDS = "SELECT id FROM entries ORDER BY id"
RECORDERS, READERS, EACH = 16, 4, 10


class Machine:
    """A machine whose bridge writes and ships when it is told to; its clock may be wrong."""

    def __init__(
        self,
        team: Team,
        run: str = "run",
        wrong: float = 0.0,
        *,
        late: float = 0.0,
        stanzas: bool = True,
    ) -> None:
        """It reads its join `late` seconds after it asked for it."""
        self.outbox = Outbox(team, stanzas=stanzas)
        self.outbox.ahead += wrong
        self._wrong, self._writer = wrong, Writer()
        self._database = PostgresqlDatabase(team.url)
        entered = Entered(ROOM, time.time() + wrong, steady(), steady() - late)
        self.write(replace(ME, run=run), entered)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.outbox.close()
        self._database.close()

    def write(self, *items: Item) -> None:
        moment = Moment(time.time() + self._wrong, steady())
        self._writer.write(self.outbox, items, moment)

    def hears(
        self,
        *marks: int,
        body: str = "",
        shared: bool = True,
        room: str = ROOM,
        ago: float = 0.0,
    ) -> None:
        for mark in marks:
            heard = said(mark, body, time.time() + self._wrong - ago)
            self.write(heard._replace(shared=shared, room=room, steady=steady() - ago))

    def is_told(self, mark: int, said_at: float, **more: Any) -> None:
        """Hear as the room's history what was said at this time, by the server's clock."""
        heard = said(mark, "", time.time() + self._wrong, delayedFrom=iso(said_at), **more)
        self.write(heard._replace(earlier=True, steady=steady()))
        self.write()

    def ships(self, host: str = "here") -> None:
        while ship(self.outbox, self._database, host):
            pass


@pytest.fixture
def team(postgresql: Postgresql, tmp_path: Path) -> Team:
    return postgresql.team(tmp_path)


async def test_whoever_reads_on_from_a_cursor_sees_every_id_of_sixteen_recorders(
    team: Team,
) -> None:
    open_store(team).close()
    over, told = threading.Event(), [list[int]() for _ in range(READERS)]

    def read(ids: list[int]) -> None:
        place, last = 0, False
        with closing(open_store(team, writable=False)) as database:
            while not last:
                last = over.is_set()
                newest = database.newest()
                while place < newest:
                    events, place, _ = database.page(QUERY, after=place, until=newest, limit=50)
                    ids += [event.id for event in events]

    with ThreadPoolExecutor(READERS) as threads:
        readers = [threads.submit(read, ids) for ids in told]
        members = [Member(team, f"run{number}") for number in range(RECORDERS)]
        assert all(member.is_in() for member in members)
        for number in range(EACH):
            for run, member in enumerate(members):
                member.hears(number)  # of which everybody tells
                member.hears(-1 - number - EACH * run)
            await asyncio.sleep(0.02)
        for member in members:
            member.end()
        over.set()
        for reader in readers:
            reader.result()
    assert told == [[row[0] for row in selected(team, IDS)]] * READERS
    marks = sorted(event["jid"] for event in rows(team, "kind = 'message'"))
    assert marks == [*range(-EACH * RECORDERS, EACH)]


def test_of_writers_that_commit_crosswise_a_reader_misses_no_event(
    team: Team, postgresql: Postgresql
) -> None:
    told, place = list[int](), 0
    waits = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"

    def write(database: SqlDatabase, mark: int) -> None:
        with database.transaction():
            database.append(ME, [said(mark)])

    def read() -> None:
        nonlocal place
        newest = reading.newest()
        while place < newest:
            events, place, _ = reading.page(QUERY, after=place, until=newest, limit=9)
            told.extend(event.event["jid"] for event in events)

    with (
        closing(open_store(team)) as first,
        closing(open_store(team)) as second,
        closing(open_store(team, writable=False)) as reading,
        ThreadPoolExecutor() as threads,
    ):
        for mark in range(1, 20, 2):
            with first.transaction():
                later = threads.submit(write, second, mark + 1)
                while not later.done() and not postgresql.query(waits):
                    read()
                first.append(ME, [said(mark)])
                read()
            read()
            later.result()
            first, second = second, first
        read()
    assert told == [*range(1, 21)]


def test_behind_a_pooler_in_transaction_mode_all_is_the_same(
    team: Team, postgresql: Postgresql, tmp_path: Path
) -> None:
    schema = team.url.parameters["options"].partition("=")[2]
    with running_pgbouncer(postgresql, schema) as url:
        pooled = Team(database_url(url), tmp_path / "team.db", 10)
        with (
            closing(open_store(pooled)) as first,
            closing(open_store(pooled)) as second,
            closing(open_store(pooled, writable=False)) as reading,
        ):
            for number in range(6):
                for database in (first, second):
                    with database.transaction():
                        database.append(ME, [said(number)])
                        if number == 3 and database is first:
                            with pytest.raises(BusyStoreError), second.transaction():
                                pass
                        database.newest()
                events, _, _ = reading.page(QUERY, after=0, until=reading.newest(), limit=99)
                assert len(events) == 2 * number + 2
            assert reading.span(QUERY).last == 12
        with pytest.raises(RefusedStoreError, match="nowhere"):
            open_store(replace(pooled, url=database_url(url.replace("/pooled", "/nowhere"))))


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE {}.store SET newest = 0",
        "UPDATE {}.store SET newest = 9223372036854775807",
        "UPDATE {}.entries SET observer = 99 WHERE id < 9",
        "UPDATE {}.entries SET event = '{{', at = 9223372036854775807 WHERE id < 9",
        "UPDATE {0}.entries SET id = 9 * 10 ^ 18 WHERE id = (SELECT max(id) FROM {0}.entries)",
        "UPDATE {0}.entries SET id = 10 ^ 17 WHERE id = (SELECT max(id) FROM {0}.entries)",
        "UPDATE {}.tenures SET until = 'infinity'",
        "UPDATE {}.tenures SET until_at = 'NaN', since_at = 1e300",
        "UPDATE {}.files SET sent = 9223372036854775807",
        "UPDATE {}.files SET sent = 0",
        "UPDATE {}.files SET host = 'another'",
    ],
)
async def test_what_another_client_wrote_keeps_nothing_from_being_recorded(
    damage: str, team: Team, postgresql: Postgresql
) -> None:
    schema = team.url.parameters["options"].partition("=")[2]
    with Machine(team) as machine:
        machine.hears(1, 2)
        machine.ships()
        postgresql.query(damage.format(schema))
        machine.hears(3, 4)
        machine.ships()
        machine.hears(5)
        machine.ships()
    marks = [each["jid"] for each in rows(team, "kind = 'message' AND event LIKE '{\"kind%'")]
    assert sorted(marks)[-3:] == [3, 4, 5]
    assert len(marks) == len({*marks})


def _age(team: Team, postgresql: Postgresql, seconds: float) -> None:
    """Put the past of a machine back by so long, in its file and in the database."""
    schema = team.url.parameters["options"].partition("=")[2]
    put_back = ", ".join(f"{it} = {it} - {seconds}" for it in ("since", "until"))
    put_back += f", until_at = until_at - {seconds}, since_at = since_at - {seconds}"
    postgresql.query(f"UPDATE {schema}.tenures SET {put_back}")  # noqa: S608 - of the test
    with closing(sqlite3.connect(team.file)) as file, file:
        file.execute(f"UPDATE tenures SET {put_back}")  # noqa: S608 - of the test


def test_a_stay_that_ended_days_before_it_could_be_shipped_is_in_no_gap(
    team: Team, postgresql: Postgresql
) -> None:
    open_store(team).close()
    with Machine(team, "first") as machine:
        machine.hears(1)
        machine.ships()
    _age(team, postgresql, 100_000)
    for run in ("second", "third"):
        with Machine(team, run) as machine:
            machine.hears(2)
        _age(team, postgresql, 100_000)
    with Machine(team, "last") as machine:
        while machine.outbox.tidy(10 << 20):
            pass
        machine.ships()
    find = "SELECT run FROM tenures ORDER BY since"
    assert selected(team, find) == [("first",), ("second",), ("third",), ("last",)]
    assert selected(team.file, find) == [("last",)]


@pytest.mark.parametrize("shipped", [True, False])
def test_stanzas_are_shipped_in_order_and_each_once_if_that_is_wanted(
    shipped: bool, team: Team
) -> None:
    open_store(team).close()
    with Machine(team, stanzas=shipped) as machine:
        for number in range(4):
            machine.write(TracedXml(time.time(), "in", "1", f"<a n='{number}'/>"))
            machine.hears(number)
            machine.ships()
            if number == 1:  # as after a COMMIT whose answer was lost
                machine.outbox.all("UPDATE shipped SET sent = 0, sent_stanza = 0")
    told = [xml for (xml,) in selected(team, "SELECT xml FROM traffic ORDER BY id")]
    assert told == ([f"<a n='{number}'/>" for number in range(4)] if shipped else [])
    assert [each["jid"] for each in rows(team, "kind = 'message'")] == [0, 1, 2, 3]


def test_the_file_keeps_for_an_hour_what_the_database_has_and_the_rest_until_it_has_it(
    team: Team,
) -> None:
    open_store(team).close()

    def kept(column: str, table: str) -> list[object]:
        while machine.outbox.tidy(10 << 20):
            pass
        return [it for (it,) in selected(team.file, f"SELECT {column} FROM {table}")]  # noqa: S608

    with Machine(team) as machine:
        for number in (1, 2):
            machine.write(TracedXml(time.time(), "in", "1", f"<{number}/>"))
            machine.hears(number)
            if number == 1:
                machine.ships()
        assert (len(kept("id", "entries")), kept("xml", "traffic")) == (3, ["<1/>", "<2/>"])
        machine.outbox.all("UPDATE entries SET seen = seen - 3700000, at = at - 3700000")
        machine.outbox.all("UPDATE traffic SET at = at - 3700000")
        assert (len(kept("id", "entries")), kept("xml", "traffic")) == (1, ["<2/>"])
        machine.ships()
        assert kept("id", "entries") == kept("xml", "traffic") == []
    assert [each["jid"] for each in rows(team, "kind = 'message'")] == [1, 2]


def test_damaged_rows_are_not_shipped_and_a_gap_counts_them(team: Team) -> None:
    open_store(team).close()
    with Machine(team) as machine:
        machine.hears(1, 2, 3, 4)
        for mark in (2, 3):
            find = f"SELECT id FROM entries WHERE instr(event, '\"jid\":{mark}') > 0"  # noqa: S608
            ((row,),) = selected(team.file, find)
            damage(team.file, "entries", row, "event", "'{'")
        for _ in range(2):  # the gap is a row that follows
            machine.ships()
    told = [(each["kind"], each.get("jid"), each.get("events")) for each in rows(team)]
    assert told == [("message", 1, None), ("message", 4, None), ("gap", None, 2)]


@pytest.mark.parametrize("column", ["since", "until", "since_at", "until_at", "run", "ended"])
@pytest.mark.parametrize("value", ["'x'", "x'00'", "char(0)", "NULL", "-1e9", "9e999"])
def test_a_tenure_that_no_bridge_wrote_keeps_nothing_from_being_shipped(
    column: str, value: str, team: Team
) -> None:
    with Machine(team, "before") as machine:
        machine.hears(1)
    damage(team.file, "tenures", 1, column, value)
    with Machine(team) as machine:
        machine.hears(2)
        machine.ships()
    assert [each["jid"] for each in rows(team, "kind = 'message'")] == [1, 2]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("DELETE FROM store", "other tables"),
        ("INSERT INTO store SELECT * FROM store", "other tables"),
        ("ALTER TABLE store DROP version", "no tables of a store"),
        ("DROP TABLE store", "no tables of a store"),
    ],
)
def test_tables_of_another_program_are_left_alone_and_named(
    change: str, named: str, team: Team, postgresql: Postgresql
) -> None:
    schema = team.url.parameters["options"].partition("=")[2]
    postgresql.query(f"SET search_path = {schema}; {change}")
    with pytest.raises(NotOurStoreError, match=named):
        open_store(team, making=False)
    with pytest.raises(NotOurStoreError, match="already exists; name another database"):
        open_store(team)


@pytest.mark.parametrize(
    ("trouble", "refused"), [("", False), ("authority", True), ("name", True), ("mode", False)]
)
def test_the_certificate_and_its_name_are_checked_unless_the_url_says_otherwise(
    trouble: str,
    refused: bool,
    postgresql: Postgresql,
    authority: Authority,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    anchors = Authority(tmp_path / "other") if trouble in {"authority", "mode"} else authority
    # The anchors that Python uses.
    monkeypatch.setenv("SSL_CERT_FILE", str(anchors.ca_file))
    host = "other.example" if trouble == "name" else "db.example"
    more = "&sslmode=require" if trouble == "mode" else ""
    where = f"{host}:{postgresql.port}/postgres?hostaddr=127.0.0.1{more}"
    url = database_url(f"postgresql://{USER}:{PASSWORD}@{where}")
    assert (url.warning is None) == (trouble != "mode")
    if not refused:
        PostgresqlDatabase(url, making=True).close()
        return
    with pytest.raises(RefusedStoreError, match="certificate") as raised:
        PostgresqlDatabase(url, making=True)
    assert PASSWORD not in str(raised.value)


@pytest.mark.parametrize("wrong", [3_600.0, -3_600.0, 0.0])
@pytest.mark.parametrize("holder", [0, 1])
def test_a_clock_that_is_wrong_by_an_hour_doubles_nothing_and_loses_nothing(
    wrong: float, holder: int, team: Team, tmp_path: Path
) -> None:
    elsewhere = replace(team, file=tmp_path / "elsewhere" / "team.db")
    with Machine(team, "run0") as right, Machine(elsewhere, "run1", wrong) as off:
        first, second = (right, off) if holder == 0 else (off, right)
        for mark in range(1, 20):
            second.hears(mark)
            if mark < 10:
                first.hears(mark)
                first.ships()
            second.ships()
    told = rows(team)
    assert [(each["kind"], each["shared"], each["jid"]) for each in told] == [
        ("message", True, mark) for mark in range(1, 20)
    ]
    assert {each["run"] for each in told} == {"run0", "run1"}


@pytest.mark.parametrize("wrong", [3_600.0, -3_600.0, 0.0])
def test_what_is_heard_late_stands_once_and_what_was_said_before_the_join_is_another(
    wrong: float, team: Team, tmp_path: Path
) -> None:
    elsewhere = replace(team, file=tmp_path / "elsewhere" / "team.db")
    with (
        Machine(team, "run0") as first,
        Machine(elsewhere, "run1", wrong, late=6) as late,
    ):
        first.hears(1, ago=4)
        first.hears(2, body="again", ago=6.5)
        first.ships()
        late.hears(1)
        late.hears(3, body="again")
        late.ships()
        assert sorted(each["jid"] for each in rows(team, "kind = 'message'")) == [1, 2, 3]


@pytest.mark.parametrize("wrong", [3_600.0, 0.0])
def test_what_a_machine_alone_heard_is_no_later_message_of_one_that_came_after_it(
    wrong: float, team: Team, tmp_path: Path
) -> None:
    elsewhere = replace(team, file=tmp_path / "elsewhere" / "team.db")
    with Machine(team, "run0") as first, Machine(elsewhere, "run1", wrong, late=2) as later:
        later.hears(2, body="again")
        later.ships()
        first.hears(1, body="again", ago=6)
        first.hears(2, body="again")
        first.ships()
        assert sorted(each["jid"] for each in rows(team, "kind = 'message'")) == [1, 2]


@pytest.mark.parametrize("more", [{}, {"stanzaId": "s1"}])
@pytest.mark.parametrize("wrong", [0.0, 3_600.0])
def test_what_a_room_tells_again_to_each_bridge_stands_once_however_long_ago_it_was(
    wrong: float, more: dict[str, str], team: Team
) -> None:
    said_at = int(time.time()) - 7_200
    for run in ("run0", "run1", "run2"):
        with Machine(team, run, wrong) as machine:
            machine.is_told(1, said_at, **more)
            machine.is_told(2, said_at, **more and {"stanzaId": "s2"})
            machine.ships()
            while machine.outbox.tidy(10 << 20):
                pass
            with closing(sqlite3.connect(team.file)) as store, store:
                store.execute("UPDATE entries SET at = at - 7200000")  # two hours later
    assert [each["jid"] for each in rows(team, "kind = 'message'")] == [1, 2]


@pytest.mark.parametrize("wrong", [0.0, 2.5, -7.0, 3_600.0])
@pytest.mark.parametrize("apart", [True, False])
def test_what_a_bridge_heard_and_the_room_tells_another_one_stands_once(
    apart: bool, wrong: float, team: Team, tmp_path: Path
) -> None:
    elsewhere = replace(team, file=tmp_path / "elsewhere" / "team.db")
    with Machine(team, "run0", 0.0 if apart else wrong) as first:
        first.hears(1)
        said_at = time.time()
        first.ships()
    with Machine(elsewhere if apart else team, "run1", wrong) as second:
        second.is_told(1, int(said_at))
        second.ships()
    assert [each["jid"] for each in rows(team, "kind = 'message'")] == [1]


def test_a_file_that_does_not_say_when_its_bridges_asked_to_be_let_in_is_shipped(
    team: Team,
) -> None:
    with Machine(team, "before") as machine:
        machine.hears(1)
    with closing(sqlite3.connect(team.file)) as store:
        store.execute("ALTER TABLE tenures DROP COLUMN asked")
    with Machine(team) as machine:
        machine.hears(2)
        machine.ships()
    assert [each["jid"] for each in rows(team, "kind = 'message'")] == [1, 2]


@pytest.mark.parametrize("wrong", [0.0, -3_600.0])
def test_what_was_shipped_in_vain_is_not_shipped_again_and_equal_messages_stay_apart(
    wrong: float, team: Team, tmp_path: Path
) -> None:
    elsewhere = replace(team, file=tmp_path / "elsewhere" / "team.db")
    with Machine(team, "run0") as first, Machine(elsewhere, "run1", wrong) as second:
        for _ in range(3):
            first.hears(1, body="again")
            second.hears(1, body="again")
        first.ships()
        second.ships()
        second.hears(2, body="again")
        second.ships()
        assert [each["jid"] for each in rows(team, "kind = 'message'")] == [1, 1, 1, 2]


def _read(
    team: Team, database: PostgresqlDatabase | None, cursor: Sequence[str] = ()
) -> tuple[list[int], Sequence[str]]:
    """Return the marks of what is shown after a cursor, and the next cursor."""
    with closing(open_file(team, writable=False)) as file:
        span, extent = Reading(database, file, None).begin(QUERY, cursor)
        reading, after, shown = Reading(database, file, extent), extent.before[0], list[int]()
        while after < span.last:
            rows, after, _ = reading.page(QUERY, after=after, until=span.last, limit=3)
            shown += [row.event["jid"] for row in rows if row.event["kind"] == "message"]
    row = span.last - extent.base + extent.sent
    return shown, (span.store, str(extent.base), extent.file, str(row))


def test_a_row_of_the_file_is_not_taken_for_the_row_of_the_database_with_its_number(
    team: Team, tmp_path: Path
) -> None:
    open_store(team).close()
    elsewhere = replace(team, file=tmp_path / "elsewhere" / "team.db")
    with Machine(team, "run0") as ours, Machine(elsewhere, "run1") as theirs:
        ours.hears(1, 2, 3)
        shown, cursor = _read(team, None)
        ours.hears(4, 5, 6)
        theirs.hears(4, 5, 6, 1, 2, 3)
        theirs.ships()
        with closing(PostgresqlDatabase(team.url, writable=False)) as database:
            more, _ = _read(team, database, cursor)
    assert (shown, more) == ([1, 2, 3], [4, 5, 6])


@contextmanager
def _two_machines(
    team: Team, tmp_path: Path
) -> Iterator[tuple[Machine, Machine, PostgresqlDatabase]]:
    """Yield this machine, another one, and the database as this one reads it."""
    open_store(team).close()
    elsewhere = replace(team, file=tmp_path / "elsewhere" / "team.db")
    with (
        Machine(team, "run0") as ours,
        Machine(elsewhere, "run1") as theirs,
        closing(PostgresqlDatabase(team.url, writable=False)) as database,
    ):
        yield ours, theirs, database


def test_an_equal_message_of_another_machine_is_shown_beside_one_that_is_known(
    team: Team, tmp_path: Path
) -> None:
    with _two_machines(team, tmp_path) as (ours, theirs, database):
        ours.hears(1, body="again")  # and does not ship it
        told, cursor = _read(team, database)
        for mark in (1, 1, 1):
            theirs.hears(mark, body="again")
            theirs.ships()
            more, cursor = _read(team, database, cursor)
            told += more
    assert told == [1, 1, 1]


@pytest.mark.parametrize("joins_late", [False, True])
def test_an_equal_message_that_waits_is_shown_beside_one_that_another_machine_shipped(
    joins_late: bool, team: Team, tmp_path: Path
) -> None:
    with _two_machines(team, tmp_path) as (ours, theirs, database):
        theirs.hears(1, body="again", ago=8 if joins_late else 0)
        theirs.ships()
        if not joins_late:
            ours.hears(1, body="again")
            ours.ships()
        told, cursor = _read(team, database)
        ours.hears(
            2, body="again"
        )  # it waits as it is read, and is shipped before the next reading
        for _ in range(2):
            more, cursor = _read(team, database, cursor)
            told += more
            ours.ships()
    assert told == [1, 2]


def test_who_ships_next_knows_the_name_that_the_file_got_meanwhile(team: Team) -> None:
    open_store(team).close()
    with closing(Outbox(team, stanzas=True)) as later:
        with Machine(team) as machine:
            assert machine.outbox.locked()
            machine.ships("here")
            machine.ships("there")
        assert later.locked()
        assert selected(team.file, "SELECT id FROM file") == [(later.name,)]


@pytest.mark.parametrize("host", ["here", "there"])
@pytest.mark.parametrize("first", [0, 1])
def test_where_a_file_was_copied_both_readers_are_shown_each_event_once(
    host: str, first: int, team: Team, tmp_path: Path
) -> None:
    open_store(team).close()
    copied = replace(team, file=tmp_path / "copied" / "team.db")
    copied.file.parent.mkdir()
    with closing(PostgresqlDatabase(team.url, writable=False)) as database, Machine(team) as ours:
        ours.hears(1, 2)
        ours.ships()
        ours.hears(3)
        ours.hears(-3, shared=False)
        before, cursor = _read(team, database)
        with (
            closing(sqlite3.connect(team.file)) as file,
            closing(sqlite3.connect(copied.file)) as to,
        ):
            file.backup(to)
        with Machine(copied, "copy") as theirs:
            shown, cursors = [[*before], [*before]], [cursor, cursor]

            def read_all() -> None:
                for n, place in enumerate((team, copied)):
                    more, cursors[n] = _read(place, database, cursors[n])
                    shown[n] += more

            for mark in (4, 6):
                for n, machine in enumerate((ours, theirs)):
                    machine.hears(mark)
                    machine.hears(-mark - n, shared=False)
                read_all()
                for n in (first, 1 - first):
                    (ours, theirs)[n].ships(("here", host)[n])
                    read_all()
            ours.ships()
            theirs.ships(host)
            read_all()
    everything = [-7, -6, -5, -4, -3, 1, 2, 3, 4, 6]
    assert [sorted(each) for each in shown] == [everything, everything]


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize(
    "asked", [{}, {"contains": ("again",)}, {"kinds": frozenset({"message"})}, {"end": 1e10}]
)
def test_an_event_of_two_machines_is_shown_by_its_lowest_id_whatever_is_asked(
    asked: dict[str, Any], backward: bool, team: Team, tmp_path: Path
) -> None:
    elsewhere = replace(team, file=tmp_path / "elsewhere" / "team.db")
    with (
        Machine(team, "run0") as first,
        Machine(elsewhere, "run1") as second,
        closing(PostgresqlDatabase(team.url, writable=False)) as database,
    ):
        for mark in range(1, 7):
            for machine in (first, second):
                machine.hears(mark, body="again" if mark % 2 else "")
            if mark == 2:
                second.ships()
        first.ships()
        rows, _, _ = database.page(QUERY, after=0, until=database.newest(), limit=99)
        said = {row.id: row.event["jid"] for row in rows if row.event["kind"] == "message"}
        assert [*said.values()] == [1, 2, 3, 4, 5, 6]
        # The rest of the second machine's file is in the database, and it does not know that.
        query, file = replace(QUERY, **asked), second.outbox
        span, extent = Reading(database, file, None).begin(query)
        assert span.last - extent.base > 0
        reading, shown = Reading(database, file, extent), list[int]()
        begin, end = span.first, span.last
        while begin < end:
            page, reached, _ = reading.page(
                query, after=begin, until=end, limit=2, backward=backward
            )
            shown += [row.id for row in page if row.event["kind"] == "message"]
            begin, end = (begin, reached) if backward else (reached, end)
        wanted = [id_ for id_, mark in said.items() if mark % 2 or "contains" not in asked]
        assert shown == (wanted[::-1] if backward else wanted)


@pytest.mark.parametrize("copy_ships_first", [False, True])
def test_a_copy_of_a_file_gets_a_name_of_its_own_and_doubles_nothing(
    copy_ships_first: bool, team: Team, tmp_path: Path
) -> None:
    elsewhere = replace(team, file=tmp_path / "elsewhere" / "team.db")
    with Machine(team) as machine:
        machine.hears(1)
        machine.ships()
        machine.hears(2, shared=False)
        machine.hears(3, shared=False, room="")
        machine.hears(4)
    shutil.copytree(team.file.parent, elsewhere.file.parent, ignore=shutil.ignore_patterns("else*"))
    with Machine(team, "late") as machine, Machine(elsewhere, "other") as copy:
        if copy_ships_first:
            copy.ships("another host")
        machine.ships()
        copy.ships("another host")
        assert machine.outbox.name != copy.outbox.name
        copy.hears(5)
        copy.ships("another host")
    assert [each["jid"] for each in rows(team, "kind = 'message'")] == [1, 2, 3, 4, 5]


def test_what_is_wrong_with_the_file_is_said_to_who_ships_it(team: Team) -> None:
    with Machine(team):
        pass
    with closing(sqlite3.connect(team.file)) as store, store:
        store.execute("DELETE FROM file")
    with pytest.raises(BrokenStoreError, match="has other tables"):
        Outbox(team, stanzas=False)


def test_the_file_is_opened_to_ship_while_another_process_writes_into_it(team: Team) -> None:
    with Machine(team) as machine:
        machine.hears(1)
        with closing(sqlite3.connect(team.file, isolation_level=None)) as store:
            store.execute("BEGIN IMMEDIATE")
            with closing(Outbox(team, stanzas=False)) as another:
                assert another.waiting() > 0
        machine.ships()
        assert machine.outbox.waiting() == 0
