"""The tables of a store in SQLite; docs/store.md says what is in each. Pure."""

from bridge.store.database import Ageing

APPLICATION_ID = 0x584D5042
"""`XMPB`. In the header of a file, it says that the file is such a store."""

VERSION = 4
"""The version of the tables, in `user_version`. Raise it with every change of `TABLES`."""

FORMER_VERSION = 3
"""The version of the stores that are migrated; any other is refused."""

ROW_BYTES = 150
"""Bytes that each event and stanza takes in addition to its text, in its row and the indexes."""


def weight_of(text: str) -> str:
    """Return an SQL expression for the bytes that a row takes."""
    return f"coalesce(length(CAST({text} AS BLOB)), 0) + {ROW_BYTES}"


TABLES = f"""
CREATE TABLE file (
  id TEXT NOT NULL, boot TEXT NOT NULL DEFAULT '',
  ahead REAL NOT NULL DEFAULT 0, stanza_bytes INTEGER NOT NULL DEFAULT 0,
  put_off REAL NOT NULL, day_left REAL NOT NULL, former INTEGER, former_end INTEGER,
  copied TEXT NOT NULL DEFAULT '{{}}');
INSERT INTO file (id, {", ".join(Ageing._fields)})
  VALUES (lower(hex(randomblob(4))), {", ".join(map(str, Ageing()))});
CREATE TABLE runs (
  id INTEGER PRIMARY KEY, account TEXT NOT NULL, nickname TEXT NOT NULL, run TEXT NOT NULL,
  target TEXT NOT NULL, UNIQUE (run, account, nickname, target));
CREATE TABLE places (
  id INTEGER PRIMARY KEY, jid TEXT NOT NULL, domain TEXT NOT NULL, target TEXT NOT NULL,
  bytes INTEGER NOT NULL DEFAULT 0, evicted INTEGER NOT NULL DEFAULT 0,
  UNIQUE (jid, domain, target));
CREATE TABLE tenures (
  id INTEGER PRIMARY KEY, place INTEGER NOT NULL REFERENCES places, run TEXT NOT NULL,
  since REAL NOT NULL, until REAL NOT NULL, since_at REAL NOT NULL, until_at REAL NOT NULL,
  ended INTEGER NOT NULL, asked REAL);
CREATE INDEX tenures_until ON tenures (place, until);
CREATE TABLE entries (
  id INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, seen INTEGER NOT NULL,
  room INTEGER NOT NULL REFERENCES places, observer INTEGER NOT NULL REFERENCES runs,
  shared INTEGER NOT NULL, kind TEXT NOT NULL, plain INTEGER NOT NULL,
  content INTEGER, stanza INTEGER, message INTEGER, event TEXT NOT NULL);
CREATE INDEX entries_at ON entries (room, at);
CREATE INDEX entries_room ON entries (room);
CREATE INDEX entries_content ON entries (room, content, seen) WHERE content IS NOT NULL;
CREATE INDEX entries_stanza ON entries (room, stanza) WHERE stanza IS NOT NULL;
CREATE INDEX entries_message ON entries (room, message, at) WHERE message IS NOT NULL;
CREATE TRIGGER entry_deleted AFTER DELETE ON entries BEGIN
  UPDATE places SET bytes = coalesce(bytes, 0) - ({weight_of("old.event")}),
    evicted = max(coalesce(CAST(evicted AS INTEGER), 0), old.id) WHERE id = old.room; END;
CREATE TABLE traffic (
  id INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL,
  observer INTEGER NOT NULL REFERENCES runs, direction TEXT NOT NULL,
  connection TEXT NOT NULL, xml TEXT NOT NULL);
CREATE INDEX traffic_at ON traffic (at);
CREATE TRIGGER traffic_deleted AFTER DELETE ON traffic BEGIN
  UPDATE file SET stanza_bytes = coalesce(stanza_bytes, 0) - ({weight_of("old.xml")}); END;
CREATE TABLE shipped (
  target TEXT PRIMARY KEY, sent INTEGER NOT NULL DEFAULT 0, trying INTEGER NOT NULL DEFAULT 0,
  sent_stanza INTEGER NOT NULL DEFAULT 0, trying_stanza INTEGER NOT NULL DEFAULT 0,
  store TEXT NOT NULL DEFAULT '0', newest INTEGER NOT NULL DEFAULT 0);
CREATE TABLE same (row INTEGER PRIMARY KEY, id INTEGER NOT NULL);
PRAGMA user_version = {VERSION};
"""

NEW_FILE = f"""
PRAGMA page_size = 8192;
PRAGMA auto_vacuum = INCREMENTAL;
PRAGMA application_id = {APPLICATION_ID};
BEGIN;
{TABLES}
COMMIT;
PRAGMA journal_mode = WAL;
"""
"""WAL mode comes last: all of this must be in the file itself when it is renamed into place."""
