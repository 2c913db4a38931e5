"""Moves the rows of a store of the former version into the new tables of the same file.

They are moved in the order of their ids, a few in each transaction, and keep their ids. A bridge
of the former version may go on adding rows. These are moved too, under new ids, unless a bridge of
this version has written the same.
"""

import json
from contextlib import suppress
from typing import Any

from bridge.store.database import Happened, Observer, TracedXml
from bridge.store.pairing import Wanted, key_of, same
from bridge.store.sqlite import SqliteDatabase
from bridge.store.tables import ROW_BYTES

MOVED = 500
"""Rows that one transaction moves: other bridges wait some 20 ms meanwhile."""

FORMER = "former"
"""The run of the tenures that stand for all bridges of the former version."""

_ENTRY = "id, at, seen, room, observer, shared, kind, plain, content, stanza, event"


def move(database: SqliteDatabase) -> bool:
    """Move some of the former rows; return whether more may be there."""
    with database.transaction():
        events = database.all(
            "SELECT events.id, at, events.room, observer, shared, kind, plain, event, jid, domain, "
            "account, nickname, run FROM events LEFT JOIN rooms ON rooms.id = events.room "
            "LEFT JOIN observers ON observers.id = observer ORDER BY events.id LIMIT ?",
            (MOVED,),
        )
        stanzas = database.all(
            "SELECT stanzas.id, at, account, nickname, run, direction, connection, xml "
            "FROM stanzas LEFT JOIN observers ON observers.id = observer "
            "ORDER BY stanzas.id LIMIT ?",
            (MOVED,),
        )
        end = database.row("SELECT coalesce(former_end, 0) FROM file")[0]
        _keep(database, [row for row in events if row[0] <= end])
        for row in events:
            if row[0] > end:
                _take(database, *row)
        for _, at, *by, direction, connection, xml in stanzas:
            if None not in by and type(at) is int and type(xml) is str:
                stanza = TracedXml(at / 1000, str(direction), str(connection), xml)
                database.append_stanzas(Observer(*by), [stanza])
        for table, rows in (("events", events), ("stanzas", stanzas)):
            if rows:
                database.remove(table, "id <= ?", rows[-1][0])
        database.all(
            "UPDATE tenures SET until = seen_until / 1e3, until_at = seen_until / 1e3 FROM rooms "
            "JOIN places ON (places.jid, places.domain, target) = (rooms.jid, rooms.domain, '') "
            "WHERE place = places.id AND run = ? AND typeof(seen_until) = 'integer'",
            (FORMER,),
        )
        if events or stanzas or not database.is_alone():
            return True
        database.all("UPDATE file SET former = NULL")
    return False


def _keep(database: SqliteDatabase, rows: list[tuple[Any, ...]]) -> None:
    """Move rows under their own ids, damaged ones as they are."""
    sizes, values = dict[Any, int](), []
    for id_, at, room, observer, shared, kind, plain, event, *_ in rows:
        key: tuple[object, ...] = (None, None)
        if (exact := _decoded(event)) is not None:
            key = key_of(exact)
        values.append((id_, at, at, room, observer, shared, kind, plain, *key, event))
        sizes[room] = sizes.get(room, 0) + len(str(event).encode(errors="replace")) + ROW_BYTES
    places = ", ".join("?" * 11)
    database.many(f"INSERT OR IGNORE INTO entries ({_ENTRY}) VALUES ({places})", values)
    database.many(
        "UPDATE places SET bytes = coalesce(bytes, 0) + ? WHERE id = ?",
        [(size, room) for room, size in sizes.items()],
    )


def _take(
    database: SqliteDatabase, id_: int, at: Any, _room: Any, _by: Any, shared: Any, _kind: Any,
    _plain: Any, event: Any, jid: Any, domain: Any, account: Any, nickname: Any, run: Any,
) -> None:  # fmt: skip
    """Move a row that a bridge of the former version has added since, unless the store has it."""
    exact = _decoded(event)
    if exact is None or type(at) is not int or None in (jid, account, nickname, run):
        return
    key = key_of(exact)
    wanted = Wanted(key, at / 1000, 0.0)
    if shared:
        (rows,) = database.alike(jid, domain, run, [wanted])
        if same(wanted, rows, ()) is not None:
            return
    happened = Happened(at / 1000, jid, exact, bool(shared), key=key)
    database.append(Observer(account, nickname, run), [happened])


def _decoded(event: object) -> dict[str, Any] | None:
    with suppress(ValueError, RecursionError, TypeError):
        exact = json.loads(event)  # type: ignore[arg-type]
        return exact if type(exact) is dict and type(exact.get("kind")) is str else None
    return None
