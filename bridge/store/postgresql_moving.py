"""Migrates the database of a team that has the tables of the former version."""

import json
from contextlib import suppress

from bridge.settings.database_url import DatabaseUrl
from bridge.store.errors import NotOurStoreError
from bridge.store.pairing import Key, key_of
from bridge.store.postgresql_connection import DatabaseConnection
from bridge.store.postgresql_tables import FORMER_VERSION, ROW_BYTES, TABLES

MOVED = 2_000
"""Rows that one transaction copies."""

KNOWN = """
INSERT INTO runs SELECT id, account, nickname, run FROM observers ON CONFLICT DO NOTHING;
INSERT INTO places (id, jid, domain, evicted)
  SELECT id, jid, domain, evicted FROM rooms ON CONFLICT DO NOTHING
"""

EVENTS = """
SELECT id, at, at, room, observer, shared, kind, event, said, message, id FROM events
WHERE id > (SELECT coalesce(max(id), 0) FROM entries) ORDER BY id LIMIT %s
"""

ENTRIES = """
INSERT INTO entries (id, at, seen, room, observer, shared, kind, event, said, message, number,
  content, stanza, file)
SELECT *, 0 FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::int[], %s::int[],
  %s::boolean[], %s::text[], %s::text[], %s::text[], %s::text[], %s::bigint[], %s::bigint[],
  %s::bigint[])
"""

STANZAS = """
INSERT INTO traffic SELECT id, at, observer, direction, connection, xml, 0, id FROM stanzas
WHERE id > (SELECT coalesce(max(id), 0) FROM traffic) ORDER BY id LIMIT %s RETURNING id
"""

END = f"""
INSERT INTO tenures SELECT 0, id, id, 'former', 0, seen_until / 1e3, 0, seen_until / 1e3, TRUE
  FROM rooms WHERE seen_until BETWEEN 0 AND 253402300799999 ON CONFLICT DO NOTHING;
SELECT setval(pg_get_serial_sequence('runs', 'id'), (SELECT coalesce(max(id), 1) FROM runs));
SELECT setval(pg_get_serial_sequence('places', 'id'), (SELECT coalesce(max(id), 1) FROM places));
UPDATE places SET bytes = (SELECT coalesce(sum(octet_length(event)
  + coalesce(octet_length(said), 0) + {ROW_BYTES}), 0) FROM entries WHERE room = places.id);
UPDATE store SET version = 2;
ALTER TABLE events RENAME TO former_events;
ALTER TABLE stanzas RENAME TO former_stanzas
"""
"""From now on, a bridge of the former version says that its user needs this version."""


def migrate(url: DatabaseUrl) -> None:
    """Copy the rows of the former version; do nothing if there are none. Raises `StoreError`."""
    connection = DatabaseConnection(url)
    try:
        if not _is_former(connection):
            return
        if not connection.row("SELECT to_regclass('entries') IS NOT NULL")[0]:
            connection.all(f"BEGIN; {TABLES} COMMIT")
        moved = True
        while moved:
            connection.begin()
            if not _is_former(connection):  # another bridge was faster
                return
            moved = _move(connection)
            if not moved:
                connection.all(END)
            connection.commit()
    finally:
        connection.close()


def _is_former(connection: DatabaseConnection) -> bool:
    with suppress(NotOurStoreError):
        return connection.row("SELECT version FROM store") == (FORMER_VERSION,)
    return False


def _move(connection: DatabaseConnection) -> bool:
    """Copy some events and stanzas under their ids; return whether there were any."""
    connection.all(KNOWN)
    rows = connection.all(EVENTS, MOVED)
    if rows:
        keys = [_key(row[7]) for row in rows]
        columns = zip(*(row + key for row, key in zip(rows, keys, strict=True)), strict=True)
        connection.all(ENTRIES, *map(list, columns))
    return bool(connection.all(STANZAS, MOVED)) or bool(rows)


def _key(exact: str) -> Key | tuple[None, None]:
    with suppress(ValueError, RecursionError):
        event = json.loads(exact)
        if type(event) is dict:
            return key_of(event)
    return None, None
