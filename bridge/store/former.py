"""Shows the rows of a store of the former version, until they are moved into the new tables."""

from bridge.store.queries import COLUMNS
from bridge.store.sql import SqlDatabase
from bridge.store.tables import TABLES, VERSION

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
