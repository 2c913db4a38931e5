"""Makes the SQL that finds the events of a query, and reads the rows that it returns. Pure."""

import json
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any

from bridge.store.database import Amount, Database, Observer, Query, Recorded
from bridge.store.errors import left_out
from bridge.store.tables import member
from bridge.text import searchable

# The inner SELECT finds the room's copy of a message that a bridge sent. A copy that comes after
# more than a minute does not count: xmppSend waits no longer.
_RECORDED = f"""
SELECT events.id, events.at, jid, events.event, account, nickname, run, events.shared, CASE
  WHEN NOT events.shared AND {member("direction")} = 'out' THEN EXISTS (
    SELECT 1 FROM entries AS copy WHERE copy.room = events.room AND copy.kind = 'message'
    AND copy.at BETWEEN events.at - 1000 AND events.at + 60000
    AND {member("direction", "copy")} = 'in'
    AND coalesce({member("reflects", "copy")}, {member("id", "copy")}) = {member("id")}
    AND {member("sender", "copy")} = {member("sender")}
    AND {member("from", "copy")} = {member("from")})
  ELSE FALSE END, events.seen
FROM entries AS events NOT INDEXED LEFT JOIN places ON places.id = events.room
LEFT JOIN runs ON runs.id = events.observer
"""

# The text of an event is one of these fields. If it is `plain`, it has only ASCII characters, and
# no hidden ones. Otherwise Python makes the searchable form, which takes ten times as long.
_CONTAINS = f"""
CASE WHEN plain THEN instr(lower(event), ?) ELSE instr(searchable(CAST(
  coalesce({member("body")}, {member("subject")}, {member("status")}) AS BLOB)), ?) END
"""

_STANZAS = """
SELECT events.id, at, '', CASE typeof(direction) || typeof(connection) || typeof(xml)
  WHEN 'texttexttext' THEN json_object('kind', 'stanza', 'direction', direction,
  'bytes', length(CAST(xml AS BLOB)), 'connection', connection, 'xml', xml) END,
  account, nickname, run, 0, 0, at
FROM traffic AS events LEFT JOIN runs ON runs.id = events.observer
"""

_ASTRAY = "observer NOT IN (SELECT id FROM runs)"
"""A condition for damaged rows, which refer to an observer that does not exist."""

LATEST = 253_402_300_799_999
"""The last millisecond of the year 9999. No bridge has written a later time, since it could not be
formatted."""

DATED = f"at BETWEEN 0 AND {LATEST}"
"""A condition for rows whose time a bridge may have written."""

_ROW = (int, int, str, str, str, str, str, int, int, int)
"""The types of the columns of `_RECORDED` and `_STANZAS`."""

DELETED_BYTES = 10 << 20
"""One deletion removes at most so many bytes, which takes a tenth of a second; or a single longer
row."""

_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


def matching(query: Query, target: str) -> tuple[str, list[object]]:
    """Return the SQL that finds the rows that match, which `recorded` reads, and its values.

    It also finds damaged rows, which refer to an observer or a room that does not exist.
    """
    within_, values = within(query, target)
    conditions, further = _conditions(query)
    select, astray = _STANZAS, _ASTRAY
    if not query.stanzas:
        select, astray = _RECORDED, f"{_ASTRAY} OR room NOT IN (SELECT id FROM places)"
    return f"{select} WHERE ({within_} OR {astray}) AND {conditions}", [*values, *further]


def within(query: Query, target: str) -> tuple[str, list[object]]:
    """Return the query's rooms and accounts as an SQL condition, with its values."""
    accounts = among("account", query.connection_of)
    by = f"observer IN (SELECT id FROM runs WHERE target = ? AND {accounts})"
    lost = "kind = 'gap'"  # without a room, it is about events of any room
    if query.stanzas:
        return by, [target, *query.connection_of]
    rooms = f"SELECT id FROM places WHERE target = ? AND domain = ? AND {among('jid', query.rooms)}"
    none = "SELECT id FROM places WHERE target = ? AND domain = ? AND jid = ''"
    return (
        f"(room IN ({rooms}) OR (room IN ({none}) AND ({by} OR {lost})))",
        [target, query.domain, *query.rooms, target, query.domain, target, *query.connection_of],
    )


def _conditions(query: Query) -> tuple[str, list[object]]:
    """Return the other conditions of the query as SQL, and their values."""
    where, values = ["TRUE"], list[object]()
    for condition, bound in (("at >= ?", query.start), ("at <= ?", query.end)):
        if bound is not None:
            where.append(condition)
            values.append(round(bound * 1000))
    if query.kinds is not None:
        where.append(among("kind", query.kinds))
        values += query.kinds
    if query.mentions:
        where.append("instr(lower(event), lower(?))")
        values.append(encoded(query.mentions)[1:-1])
    if query.contains:
        where.append(f"({' OR '.join([_CONTAINS] * len(query.contains))})")
        for text in map(storable, query.contains):
            values += [encoded(text)[1:-1], text]
    return " AND ".join(where), values


def among(name: str, wanted: Collection[str]) -> str:
    """Return the SQL condition that a column has one of the values `wanted`."""
    return f"{name} IN ({', '.join('?' * len(wanted))})"


def table_of(query: Query) -> str:
    """Return the table that the query reads."""
    return "traffic" if query.stanzas else "entries"


def rooms_of(query: Query) -> tuple[str, ...]:
    """Return the bare JIDs of the rooms whose events the query reads; `""` for connections."""
    if query.stanzas:
        return ()
    return ("", *query.rooms) if query.connection_of else query.rooms


def fitting(rows: Iterable[tuple[int, float]], most: Amount) -> tuple[list[int], float]:
    """Return the ids of the first rows that may be deleted together, and their bytes in all.

    Each row is an id and its bytes.
    """
    ids, total = list[int](), 0.0
    for id_, size in rows:
        if total + size > (min(most.bytes, DELETED_BYTES) if ids else most.bytes):
            break
        ids.append(id_)
        total += size
    return ids, total


def readable(rows: Sequence[tuple[Any, ...]], database: Database, file: str) -> list[Recorded]:
    """Return the events in the rows. Unreadable rows are noted in the database."""
    events = [event for row in rows if (event := recorded(row, file)) is not None]
    if len(events) < len(rows):
        database.unreadable |= {row[0] for row in rows} - {event.id for event in events}
        database.warnings["damaged"] = left_out(len(database.unreadable))
    return events


def recorded(row: tuple[Any, ...], file: str) -> Recorded | None:
    """Return the event in a row; None if no bridge can have written it.

    The row may have two more columns: the file that it was shipped from, and its id there.
    """
    fields, origin = row[: len(_ROW)], row[len(_ROW) :] or (file, row[0])
    if tuple(map(type, fields)) == _ROW and 0 <= row[1] <= LATEST and row[7] in {0, 1}:
        id_, at, room, exact, *by, shared, echoed, seen = fields
        with suppress(ValueError, RecursionError):
            event, observer = json.loads(exact), Observer(*by)
            if type(event) is dict and type(event.get("kind")) is str and _is_flat(event):
                flags = bool(shared), bool(echoed)
                return Recorded(id_, at / 1000, room, event, observer, *flags, seen / 1000, *origin)
    return None


def _is_flat(event: dict[str, Any]) -> bool:
    """Whether no value of the event is an object, and no list has an object or a list in it."""
    values = [*event.values()]
    nested = chain.from_iterable(value for value in values if type(value) is list)
    return dict not in map(type, values) and {dict, list}.isdisjoint(map(type, nested))


def decoded(text: bytes) -> str | bytes:
    """Return a text of the store; if it is no UTF-8, its bytes, which `recorded` refuses."""
    try:
        return text.decode()
    except UnicodeDecodeError:
        return text


def encoded(value: object) -> str:
    """Return a value as JSON that can be stored."""
    return storable(_encode(value))


def storable(text: str) -> str:
    """Return `text` with `?` for lone surrogates, which UTF-8 cannot encode."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def is_plain(exact: str) -> bool:
    """Whether the searchable form of a text in this JSON is the text in lower case."""
    return exact.isascii() and exact.isprintable() and "\\r" not in exact


def searchable_of(text: bytes | None) -> str | None:
    """Return the searchable form of an event's text, in which we look for `contains`."""
    return None if text is None else searchable(text.decode(errors="replace"))
