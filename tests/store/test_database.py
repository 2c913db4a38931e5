"""What every database promises about order and transactions (`bridge.store.sql`)."""

from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from math import inf

import pytest

from bridge.store import sqlite
from bridge.store.database import Amount, Happened, Observer, Query
from bridge.store.errors import BusyStoreError
from bridge.store.location import Place
from bridge.store.sql import SqlDatabase
from bridge.text import iso
from tests.store.recorded import open_store

ROOM = "room@conference.localhost"
ME = Observer("bot@localhost", "McpDebug", "run")
QUERY = Query((ROOM,), "localhost")


@pytest.fixture
def two(place: Place) -> Iterator[tuple[SqlDatabase, SqlDatabase]]:
    with ExitStack() as stack:
        first, second = (stack.enter_context(closing(open_store(place))) for _ in range(2))
        yield first, second


def _said(*bodies: str, at: float = 1.0) -> list[Happened]:
    return [Happened(at, ROOM, {"kind": "message", "body": body}, shared=True) for body in bodies]


def _ids(database: SqlDatabase) -> dict[int, str]:
    events, _, _ = database.page(QUERY, after=0, until=database.newest(), limit=100)
    return {event.id: event.event["body"] for event in events}


def test_an_id_is_not_given_again_though_its_event_was_deleted(
    two: tuple[SqlDatabase, SqlDatabase],
) -> None:
    database, _ = two
    with database.transaction():
        database.append(ME, _said("deleted"))
    (former,) = _ids(database)
    with database.transaction():
        (holding,) = database.holdings()
        database.delete(holding, Amount(9, inf), None)
    assert database.newest() == former
    with database.transaction():
        database.append(ME, _said("later"))
    assert min(_ids(database)) > former


def test_nobody_else_writes_during_a_transaction_and_none_of_it_is_kept_if_it_raises(
    two: tuple[SqlDatabase, SqlDatabase],
) -> None:
    first, second = two
    with suppress(KeyError), first.transaction():
        first.append(ME, _said("never"))
        with pytest.raises(BusyStoreError), second.transaction():
            pass
        assert _ids(second) == {}  # who only reads waits for nobody
        raise KeyError
    assert _ids(first) == {}
    with second.transaction():
        second.append(ME, _said("once"))
    assert [*_ids(first).values()] == ["once"]


@pytest.mark.parametrize("at", [1.0009, 1.001, 1_796_000_000.1239999, 1_796_000_000.999])
def test_an_event_has_the_time_that_the_log_showed(
    two: tuple[SqlDatabase, SqlDatabase], at: float
) -> None:
    database, _ = two
    with database.transaction():
        database.append(ME, _said("hello", at=at))
    (event,), _, _ = database.page(QUERY, after=0, until=database.newest(), limit=1)
    assert iso(event.at) == iso(at)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7])
def test_events_are_there_in_order_however_many_one_statement_inserts(
    two: tuple[SqlDatabase, SqlDatabase], count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "ROWS_AT_ONCE", 3)
    database, _ = two
    bodies = [str(number) for number in range(count)]
    with database.transaction():
        database.append(ME, _said(*bodies))
    assert [*_ids(database).values()] == bodies
