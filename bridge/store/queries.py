"""Turns events into the columns of a row, and rows into events. Pure."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import Any

from bridge.store.database import Amount, Happened, Observer, Query, Recorded
from bridge.store.pairing import key_of
from bridge.text import milliseconds, searchable

LATEST = 253_402_300_799_999
"""The last millisecond of the year 9999. No bridge has written a later time, since it could not be
formatted."""

MAX_ID = 10**17
"""No store reaches this id. In a file, a higher one means damage. In a team's database, rows with a
higher one are somebody's mischief, and are passed over."""

DATED = f"at BETWEEN 0 AND {LATEST}"
"""A condition for rows whose time a bridge may have written."""

_ROW = (int, int, str, str, str, str, str, int, int, int, str, int)
"""The types of the columns from which an event is read."""

DELETED_BYTES = 10 << 20
"""One deletion removes at most so many bytes, which takes a tenth of a second; or a single longer
row."""

_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


COLUMNS: Mapping[str, tuple[str, ...]] = {
    "entries": (
        *("id", "room", "observer", "at", "seen", "shared", "kind", "plain"),
        *("content", "stanza", "message", "event"),
    ),
    "traffic": ("id", "at", "observer", "direction", "connection", "xml"),
}
"""The columns of each table of rows that every store has."""


def columns_of(happened: Happened, room: int, observer: int) -> dict[str, Any]:
    """Return the columns of an event, with the ids of its room and observer."""
    exact, event = encoded(happened.event), happened.event
    content, stanza = happened.key or key_of(event)
    return {
        "room": room,
        "observer": observer,
        "at": milliseconds(happened.at),
        "seen": milliseconds(happened.when),
        "shared": int(happened.shared),
        "kind": event["kind"],
        # Whether the searchable form of a text in this JSON is the text in lower case.
        "plain": int(exact.isascii() and exact.isprintable() and "\\r" not in exact),
        "content": content,
        "stanza": stanza,
        "message": message_of(event),
        "event": exact,
    }


def former_columns(row: Sequence[Any]) -> dict[str, Any]:
    """Return the columns of an event that the former version stored, of a damaged one, too.

    `row` has its id, room, observer, time, and the columns up to `plain`; then its exact form.
    """
    names = ("id", "room", "observer", "at", "shared", "kind", "plain", "event")
    columns = dict(zip(names, row, strict=True)) | {"seen": row[3]}
    if (event := event_of(row[-1])) is not None:
        content, stanza = key_of(event)
        columns |= {"content": content, "stanza": stanza, "message": message_of(event)}
    return columns


def message_of(event: Mapping[str, Any]) -> int | None:
    """Return a number for a message and the room's copy of it; below zero if a bridge sent it."""
    direction, id_ = event.get("direction"), event.get("reflects", event.get("id"))
    # A tuple, since of a damaged event the direction may be a list, which no set takes.
    if event.get("kind") != "message" or direction not in ("in", "out") or id_ is None:
        return None
    text = f"{id_}\0{event.get('from')}".encode(errors="replace")
    number = int.from_bytes(blake2b(text, digest_size=7).digest(), "big") + 1
    return -number if direction == "out" else number


def said_of(event: Mapping[str, Any]) -> str | None:
    """Return the searchable form of an event's text; None if it has none."""
    texts = (event.get(name) for name in ("body", "subject", "status"))
    said = next((text for text in texts if text is not None), None)
    return None if said is None else storable(searchable(str(said)))


def event_of(exact: object) -> dict[str, Any] | None:
    """Return the event of which this is the exact form; None if it is damaged."""
    with suppress(ValueError, RecursionError, TypeError):
        event = json.loads(exact)  # type: ignore[arg-type]
        if type(event) is dict and type(event.get("kind")) is str:
            return event
    return None


def among(name: str, wanted: Collection[object]) -> str:
    """Return the SQL condition that a column has one of the values `wanted`."""
    return f"{name} IN ({', '.join(['NULL', *['?'] * len(wanted)])})"


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


def with_stanza(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a row with its stanza as an event; a row without one if the stanza is damaged."""
    id_, at, room, direction, connection, xml, *rest = row
    event = None
    if {type(direction), type(connection), type(xml)} == {str}:
        size = len(xml.encode())
        event = encoded(
            {"kind": "stanza", "direction": direction, "bytes": size}
            | {"connection": connection, "xml": xml}
        )
    return (id_, at, room, event, *rest)


def recorded(row: tuple[Any, ...]) -> Recorded | None:
    """Return the event in a row; None if no bridge can have written it."""
    is_typed = tuple(map(type, row)) == _ROW
    if is_typed and row[7] in {0, 1} and all(0 <= time <= LATEST for time in (row[1], row[9])):
        id_, at, room, exact, *by, shared, echoed, seen, file, number = row
        event = event_of(exact)
        if event is not None:
            flags = bool(shared), bool(echoed)
            return Recorded(
                id_, at / 1000, room, event, Observer(*by), *flags, seen / 1000, file, number
            )
    return None


def decoded(text: bytes) -> str | bytes:
    """Return a text of the store; if it is damaged, its bytes, which `recorded` refuses."""
    try:
        return text if b"\0" in text else text.decode()  # no bridge writes a NUL: see `storable`
    except UnicodeDecodeError:
        return text


def encoded(value: object) -> str:
    """Return a value as JSON that can be stored."""
    return storable(_encode(value))


def storable(text: str) -> str:
    """Return `text` with `?` for what cannot be stored: lone surrogates, and NUL in PostgreSQL."""
    text = text if text.isascii() else text.encode("utf-8", "replace").decode()
    return text.replace("\0", "?")
