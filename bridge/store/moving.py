"""Moves the rows of a store of the former version into the new tables of the same file.

They are moved in the order of their ids, a few in each transaction, and keep their ids. A bridge
of the former version may go on adding rows. These are moved too, under new ids, unless a bridge of
this version has written the same.
"""

from typing import Any

from bridge.store.database import Happened, Observer, TracedXml
from bridge.store.pairing import Wanted, key_of, same
from bridge.store.queries import event_of, former_columns
from bridge.store.sqlite import SqliteDatabase

MOVED = 500
"""Rows that one transaction moves: other bridges wait some 20 ms meanwhile."""

FORMER = "former"
"""The run of the tenures that stand for all bridges of the former version."""


def move(database: SqliteDatabase) -> bool:
    """Move some of the former rows; return whether more may be there."""
    with database.transaction():
        events = database.all(
            "SELECT events.id, events.room, observer, at, shared, kind, plain, event, jid, domain, "
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
        database.insert([former_columns(row[:8]) for row in events if row[0] <= end])
        for row in events:
            if row[0] > end:
                _take(database, *row[3:5], *row[7:])
        for _, at, *by, direction, connection, xml in stanzas:
            if None not in by and type(at) is int and type(xml) is str:
                stanza = TracedXml(at / 1000, str(direction), str(connection), xml)
                database.append_stanzas(Observer(*by), [stanza])
        for table, rows in (("events", events), ("stanzas", stanzas)):
            if rows:
                database.remove_where(table, "id <= ?", rows[-1][0])
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


def _take(
    database: SqliteDatabase, at: Any, shared: Any, event: Any, jid: Any, domain: Any, *by: Any
) -> None:
    """Move a row that a bridge of the former version has added since, unless the store has it."""
    exact = event_of(event)
    if exact is None or type(at) is not int or None in (jid, *by):
        return
    key, observer = key_of(exact), Observer(*by)
    wanted = Wanted(key, at / 1000, 0.0)
    if shared:
        (rows,) = database.alike(jid, domain, [wanted], observer.run)
        if same(wanted, rows, ()) is not None:
            return
    happened = Happened(at / 1000, jid, exact, bool(shared), key=key)
    database.append(observer, [happened])
