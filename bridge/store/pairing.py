"""Finds out which events of different bridges are the same event. Pure."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import blake2b
from math import inf
from typing import Any, NamedTuple, TypeVar

from bridge.text import seconds_of

Seen = TypeVar("Seen")

SAME_SECONDS = 30.0
"""Two bridges observed the same event if all fields except VARYING ones are equal, and the times
differ by at most this number of seconds."""

STAMP_SECONDS = 1.0
"""A room may cut the time of its history to seconds."""

BEHIND_SECONDS = 86_400.0
"""If a room's stamp is further than this in the future, it is not believed."""

# fmt: off
VARYING = frozenset({
    "author", "changed", "codes", "delayedFrom", "formerAffiliation", "formerPayload", "formerRole",
    "jid", "meaning", "occupantId", "payload", "reflection", "reflects", "self", "source",
    "stampedAt", "stampedBy", "stanzaId",
})
# fmt: on
"""The fields of a shared event that may differ between observers. The room shows more to a
moderator, sends some codes to one occupant only, and sends newcomers as history what others have
seen live. Changes within seconds are folded, and the time at which the folding begins depends on
the observer. Stanza ids are compared apart from the other fields."""

_WITH_CODES = VARYING - {"codes"}
"""An event without a sender, such as a changed configuration, has the same codes for all."""

_encode = json.JSONEncoder(separators=(",", ":"), sort_keys=True, default=str).encode


class Key(NamedTuple):
    """What all observers of an event have in common: hashes, the same in every process."""

    content: int
    """A hash of its fields, except those that vary."""
    stanza: int | None
    """A hash of its stanza id (XEP-0359); None if it has none."""


class Wanted(NamedTuple):
    """An observed event that is looked for in a store."""

    key: Key
    seen: float
    """When it happened, in seconds, by the clock that all observers share."""
    since: float
    """No other observer saw it before this time, in seconds of the same clock."""
    ours: bool = False
    """Whether a row of its own run, or a row that its file has no more, may be the event: a room
    repeats what it sent live as history."""
    row: int = 0
    """The row that the event already has in a file; 0 if it has none."""
    by: int = 0
    """The id of its observer in a team's database, where a copy of the file may have brought the
    same row; 0 if only other rows are looked for."""


class Alike(NamedTuple):
    """A row that may be a wanted event."""

    id: int
    seen: float
    stanza: int | None
    copied: bool = False
    """Whether it is the same row, out of a copy of the same file."""
    is_history: bool = False
    """Whether a room told it as history: its time is the room's."""
    run: str = ""
    """The run that observed it."""
    number: int = 0
    """The id that it has in the file that it came from."""
    asked: float = -inf
    """When that run asked the room to let it in: it heard nothing live that was said before. Minus
    infinity if that is not known, or if it is no message."""


def key_of(event: Mapping[str, Any]) -> Key:
    """Return the key of an event, which may come from the store with values of any type."""
    varying = VARYING if "sender" in event else _WITH_CODES
    if event.get("kind") == "message":  # a message may consist of its payload
        varying -= {"payload"}
    said = {name: value for name, value in event.items() if name not in varying}
    stanza = event.get("stanzaId")
    return Key(_hash(_encode(said)), None if stanza is None else _hash(str(stanza)))


def told_at(event: Mapping[str, Any], seen: Seen) -> float | Seen:
    """Return when the room says that an event of its history was; of any other, when it was `seen`.

    Both are in seconds since the epoch. The room's own stamp may lie in the future by the clock of
    a bridge that is behind.
    """
    at = seconds_of(str(event.get("delayedFrom", "")))
    stamp = None if "stampedBy" in event else seconds_of(str(event.get("stampedAt", "")))
    believed = stamp is not None and at is not None and 0 < stamp - at <= BEHIND_SECONDS
    stamped = stamp if believed else at
    return seen if stamped is None else stamped


def _hash(text: str) -> int:
    digest = blake2b(text.encode(errors="replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def same(wanted: Wanted, rows: Sequence[Alike], taken: Collection[int]) -> Alike | None:
    """Return the row that is the wanted event; None if no row is.

    `rows` have the room and either the stanza id or the content of the wanted event. Where both
    have a stanza id, these decide. Otherwise the times decide, and a row is one event only: the
    rows with an id in `taken` are already the rows of other events that the observer saw.
    """
    stanza = wanted.key.stanza
    named = [row for row in rows if stanza is not None and row.stanza == stanza]
    if first := [row for row in rows if row.copied] or named:
        return min(first)
    start = wanted.seen - SAME_SECONDS
    near = [
        (abs(row.seen - wanted.seen), row)
        for row in rows
        if (stanza is None or row.stanza is None)
        and row.id not in taken
        and max(start, wanted.since - STAMP_SECONDS * row.is_history) <= row.seen
        and row.seen <= wanted.seen + SAME_SECONDS
        and (row.is_history or row.asked <= wanted.seen)
    ]
    return min(near)[1] if near else None


def paired(
    wanted: Iterable[Wanted], looked: Iterable[Sequence[Alike]], taken: set[int]
) -> list[Alike | None]:
    """Return the row that each wanted event is, or None; the ids of the rows are added to `taken`.

    `looked` has for each wanted event the rows that it may be: see `same`.
    """
    rows = list[Alike | None]()
    for each, alike in zip(wanted, looked, strict=True):
        rows.append(row := same(each, alike, taken))
        taken |= set() if row is None else {row.id}
    return rows
