"""Finds out which events of different bridges are the same event. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from bridge.store.database import Happened, Recorded
from bridge.text import seconds_of

SAME_SECONDS = 30.0
"""Two bridges observed the same event if all fields except VARYING ones are equal, and the times
differ by at most this number of seconds."""

# fmt: off
VARYING = frozenset({
    "author", "changed", "codes", "delayedFrom", "formerAffiliation", "formerPayload", "formerRole",
    "jid", "meaning", "occupantId", "payload", "reflection", "reflects", "self", "source",
    "stampedAt", "stampedBy",
})
# fmt: on
"""The fields of a shared event that may differ between observers. The room shows more to a
moderator, sends some codes to one occupant only, and sends newcomers as history what others have
seen live. Changes within seconds are folded, and the time at which the folding begins depends on
the observer."""


class Mark(NamedTuple):
    """Identifies an event: all observers' marks of the event have equal keys and similar times."""

    key: int
    """Equal for all bridges that observed the event: a hash of its stanza id, or of its fields."""
    at: float
    """When it happened, in seconds since the epoch; 0 if the event has a stanza id, which
    suffices."""
    noticed: float = 0.0
    """When we observed it or read it in the store, in seconds of the monotonic clock."""


class Observed(NamedTuple):
    """A shared event that we observed."""

    mark: Mark
    happened: Happened
    number: float = 0
    """The number of the event among all items that the writer got."""
    weight: int = 0
    """See `weight` of `database`; 0 if the event waits for nothing."""


def mark_of(event: Mapping[str, Any], at: float, noticed: float = 0.0) -> Mark:
    """Return the mark of an event, which may come from the store with values of any type."""
    if "stanzaId" in event:
        return Mark(hash(("", str(event["stanzaId"]))), 0.0, noticed)
    # An event without a sender, such as a changed configuration, has the same codes for all.
    varying = VARYING if "sender" in event else VARYING - {"codes"}
    if event.get("kind") == "message":  # a message may consist of its payload
        varying -= {"payload"}
    said = sorted((name, str(value)) for name, value in event.items() if name not in varying)
    return Mark(hash((*said,)), seconds_of(str(event.get("delayedFrom", ""))) or at, noticed)


def unpaired(ours: list[Observed], theirs: list[Mark]) -> tuple[list[Observed], list[Mark]]:
    """Return the events that are only in `ours`, and the marks that are only in `theirs`.

    Each event is paired with at most one mark, so two equal messages stay two.
    """
    by_key = defaultdict[int, list[Mark]](list)
    for mark in theirs:
        by_key[mark.key].append(mark)
    only_ours = []
    for event in ours:
        alike = by_key.get(event.mark.key, [])
        near = (mark for mark in alike if abs(mark.at - event.mark.at) <= SAME_SECONDS)
        if (same := next(near, None)) is None:
            only_ours.append(event)
        else:
            alike.remove(same)
    return only_ours, [mark for alike in by_key.values() for mark in alike]


def unrecorded(observed: Iterable[Happened], recorded: Iterable[Recorded]) -> set[int]:
    """Return the numbers of the observed events without a recorded copy for the room."""

    def mark(event: Happened | Recorded) -> Mark:
        key, at, _ = mark_of(event.event, event.at)
        return Mark(hash((event.room, key)), at)

    theirs = sorted(map(mark, recorded), key=lambda mark: mark.at)
    missing, _ = unpaired([Observed(mark(event), event) for event in observed], theirs)
    return {event.happened.number for event in missing}
