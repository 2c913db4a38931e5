"""Migrates the database of a team that has the tables of the former version."""

from bridge.store.postgresql_tables import FORMER_VERSION, TABLES
from bridge.store.queries import former_columns
from bridge.store.sql import SqlDatabase

MOVED = 2_000
"""Rows that one transaction copies."""

KNOWN = """
INSERT INTO runs SELECT id, account, nickname, run FROM observers ON CONFLICT DO NOTHING;
INSERT INTO places (id, jid, domain, evicted)
  SELECT id, jid, domain, evicted FROM rooms ON CONFLICT DO NOTHING
"""

EVENTS = """
SELECT id, room, observer, at, shared::int, kind, 0, event FROM events
WHERE id > (SELECT coalesce(max(id), 0) FROM entries) ORDER BY id LIMIT ?
"""

STANZAS = """
INSERT INTO traffic SELECT id, at, observer, direction, connection, xml, 0, id FROM stanzas
WHERE id > (SELECT coalesce(max(id), 0) FROM traffic) ORDER BY id LIMIT ? RETURNING id
"""

END = """
INSERT INTO tenures SELECT 0, id, id, 'former', 0, seen_until / 1e3, 0, seen_until / 1e3, 1
  FROM rooms WHERE seen_until BETWEEN 0 AND 253402300799999 ON CONFLICT DO NOTHING;
SELECT setval(pg_get_serial_sequence('runs', 'id'), (SELECT coalesce(max(id), 1) FROM runs));
SELECT setval(pg_get_serial_sequence('places', 'id'), (SELECT coalesce(max(id), 1) FROM places));
UPDATE store SET version = 2;
ALTER TABLE events RENAME TO former_events;
ALTER TABLE stanzas RENAME TO former_stanzas
"""
"""From now on, a bridge of the former version says that its user needs this version."""


def migrate(database: SqlDatabase) -> None:
    """Copy the rows of the former version. Raises `StoreError`."""
    if not database.row("SELECT to_regclass('entries') IS NOT NULL")[0]:
        database.all(f"BEGIN; {TABLES} COMMIT")
    moved = True
    while moved:
        with database.transaction():
            if database.row("SELECT version FROM store") != (FORMER_VERSION,):
                return  # another bridge was faster
            database.all(KNOWN)
            events = database.all(EVENTS, (MOVED,))
            rows = [former_columns(row) | {"file": 0, "number": row[0]} for row in events]
            database.insert(rows)
            moved = bool(database.all(STANZAS, (MOVED,)) or events)
            if not moved:
                database.all(END)
