"""The tables of a store in SQLite; docs/store.md says what is in each. Pure."""

from bridge.store.database import Ageing

APPLICATION_ID = 0x584D5042
"""`XMPB`. In the header of a file, it says that the file is such a store."""

VERSION = 3
"""The version of the tables, in `user_version`. Raise it with every change of `TABLES`. We refuse a
store of another version: there is no migration."""

ROW_BYTES = 100
"""Bytes that each event and stanza takes in addition to its text, in its row and the indexes."""


def weight_of(text: str) -> str:
    """Return an SQL expression for the bytes that a row takes."""
    return f"coalesce(length(CAST({text} AS BLOB)), 0) + {ROW_BYTES}"


def member(name: str, table: str = "events") -> str:
    """Return the SQL for a member of an event; NULL in a damaged row, so that no index fails."""
    event = f"{table}.event" if table else "event"
    return f"iif(json_valid({event}), json_extract({event}, '$.{name}'), NULL)"


TABLES = f"""
PRAGMA page_size = 8192;
PRAGMA auto_vacuum = INCREMENTAL;
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {VERSION};
BEGIN;
CREATE TABLE store (
  id TEXT NOT NULL, stanza_bytes INTEGER NOT NULL DEFAULT 0,
  put_off REAL NOT NULL, day_left REAL NOT NULL);
INSERT INTO store VALUES (lower(hex(randomblob(4))), 0, {", ".join(map(str, Ageing()))});
CREATE TABLE observers (
  id INTEGER PRIMARY KEY, account TEXT NOT NULL, nickname TEXT NOT NULL, run TEXT NOT NULL,
  UNIQUE (run, account, nickname));
CREATE TABLE rooms (
  id INTEGER PRIMARY KEY, jid TEXT NOT NULL, domain TEXT NOT NULL,
  recorder TEXT, beat REAL, seen_until INTEGER,
  bytes INTEGER NOT NULL DEFAULT 0, evicted INTEGER NOT NULL DEFAULT 0, UNIQUE (jid, domain));
CREATE TABLE events (
  id INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL,
  room INTEGER NOT NULL REFERENCES rooms, observer INTEGER NOT NULL REFERENCES observers,
  shared INTEGER NOT NULL, kind TEXT NOT NULL, plain INTEGER NOT NULL, event TEXT NOT NULL);
CREATE INDEX events_at ON events (room, at);
CREATE INDEX events_room ON events (room);
CREATE UNIQUE INDEX events_stanza_id ON events (room, {member("stanzaId", "")})
  WHERE shared AND {member("stanzaId", "")} IS NOT NULL;
CREATE INDEX events_id ON events (room, {member("id", "")}, {member("sender", "")}, at)
  WHERE kind = 'message';
CREATE TRIGGER event_deleted AFTER DELETE ON events BEGIN
  UPDATE rooms SET bytes = coalesce(bytes, 0) - ({weight_of("old.event")}),
    evicted = max(coalesce(CAST(evicted AS INTEGER), 0), old.id) WHERE id = old.room;
END;
CREATE TABLE stanzas (
  id INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL,
  observer INTEGER NOT NULL REFERENCES observers, direction TEXT NOT NULL,
  connection TEXT NOT NULL, xml TEXT NOT NULL);
CREATE INDEX stanzas_at ON stanzas (at);
CREATE TRIGGER stanza_deleted AFTER DELETE ON stanzas BEGIN
  UPDATE store SET stanza_bytes = coalesce(stanza_bytes, 0) - ({weight_of("old.xml")});
END;
COMMIT;
PRAGMA journal_mode = WAL;
"""
"""WAL mode comes last: all of this must be in the file itself when it is renamed into place."""
