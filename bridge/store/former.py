"""Shows the rows of a store of the former version, and moves them into the new tables."""

from collections.abc import Callable
from typing import Any

from bridge.store.database import Happened, Observer, TracedXml
from bridge.store.pairing import Wanted, key_of, same
from bridge.store.queries import COLUMNS, event_of, former_columns
from bridge.store.sql import SqlDatabase
from bridge.store.tables import TABLES, VERSION

MOVED = 500
"""Rows that one transaction moves: other bridges wait some 20 ms meanwhile."""

FORMER = "former"
"""The run of the tenures that stand for all bridges of the former version."""

_COLUMNS = ", ".join(COLUMNS["entries"])

_KNOWN = {
    "runs (id, account, nickname, run, target)": "SELECT *, '' FROM main.observers",
    "places (id, jid, domain, target, bytes, evicted)": "SELECT id, jid, domain, '', 0, evicted "
    "FROM main.rooms",
    "tenures (id, place, run, since, until, since_at, until_at, ended)": "SELECT id, id, 'former', "
    "0.0, seen_until / 1e3, 0.0, seen_until / 1e3, 1 FROM main.rooms "
    "WHERE typeof(seen_until) = 'integer' AND seen_until BETWEEN 0 AND 253402300799999",
}
"""The former tables that are copied at once, as the new ones. The bytes of a room are counted as
its events are moved."""

_BEGIN = """
UPDATE file SET (id, put_off, day_left, stanza_bytes, former_end) = (SELECT id, put_off, day_left,
  0, (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'events') FROM store),
  former = 1;
INSERT INTO sqlite_sequence SELECT column1, coalesce((SELECT max(seq) FROM sqlite_sequence
  WHERE name = column2), 0) FROM (VALUES ('entries', 'events'), ('traffic', 'stanzas'));
"""

_EVENTS = (
    "id, room, observer, at, at, shared, kind, plain, NULL, NULL, "
    "message_of(CAST(event AS BLOB)), event FROM main.events"
)
_STANZAS = "id, at, observer, direction, connection, xml FROM main.stanzas"

UNMOVED = {
    "file (id, boot, ahead, stanza_bytes, put_off, day_left, former, former_end)": "SELECT "
    "id, '', 0.0, stanza_bytes, put_off, day_left, 1, NULL FROM main.store",
    **_KNOWN,
    f"entries ({_COLUMNS})": f"SELECT {_EVENTS}",
    "traffic (id, at, observer, direction, connection, xml)": f"SELECT {_STANZAS}",
}
"""The former tables as the new ones, for a reader of a store that is not migrated."""

HALF_MOVED = {
    "entries": f"SELECT {_COLUMNS} FROM main.entries UNION ALL SELECT {_EVENTS} "
    "WHERE id <= (SELECT former_end FROM main.file)",
    "traffic": f"SELECT * FROM main.traffic UNION ALL SELECT {_STANZAS}",
}
"""The same while the rows are moved."""


def begin(file: SqlDatabase, *, writable: bool) -> None:
    """Make the new tables in a store of the former version; to a reader, show the former ones."""
    if not writable:
        _show(file, UNMOVED)
        return
    with file.transaction():
        if file.row("PRAGMA user_version") == (VERSION,):
            return  # another bridge was faster
        for statement in (TABLES + _BEGIN).split(";\n"):
            file.all(statement)
        for name, select in _KNOWN.items():
            file.all(f"INSERT OR IGNORE INTO {name} {select}")


def look(file: SqlDatabase, *, shows: bool = False) -> bool:
    """Return whether former rows may be there; with `shows`, show them to a reader."""
    ((pending,),) = file.all("SELECT former FROM file LIMIT 1") or [(None,)]
    if pending and shows:
        _show(file, HALF_MOVED)
    return bool(pending)


def _show(file: SqlDatabase, views: dict[str, str]) -> None:
    for name, select in views.items():
        file.all(f"CREATE TEMP VIEW {name} AS {select}")


def move(database: SqlDatabase, is_alone: Callable[[], bool]) -> bool:
    """Move some of the former rows; return whether more may be there.

    They are moved in the order of their ids, and keep their ids. A bridge of the former version may
    go on adding rows, until `is_alone` says that no other process has the file open. These are
    moved too, under new ids, unless a bridge of this version has written the same.
    """
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
            database.remove(table, [row[0] for row in rows])
        database.all(
            "UPDATE tenures SET until = seen_until / 1e3, until_at = seen_until / 1e3 FROM rooms "
            "JOIN places ON (places.jid, places.domain, target) = (rooms.jid, rooms.domain, '') "
            "WHERE place = places.id AND run = ? AND typeof(seen_until) = 'integer'",
            (FORMER,),
        )
        if events or stanzas or not is_alone():
            return True
        database.all("UPDATE file SET former = NULL")
    return False


def _take(
    database: SqlDatabase, at: Any, shared: Any, event: Any, jid: Any, domain: Any, *by: Any
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
