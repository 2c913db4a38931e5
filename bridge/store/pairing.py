"""Tells which events are the same, whoever observed them. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from bridge.store.database import Happened, Recorded, weight
from bridge.text import seconds_of

SAME_SECONDS = 30.0
"""Two bridges observed the same event if all fields but VARYING ones are equal and their times
differ by at most so many seconds."""

# fmt: off
VARYING = frozenset({
    "codes", "delayedFrom", "formerAffiliation", "formerRole", "jid", "meaning", "reflection",
    "self", "source",
})
# fmt: on
"""The fields of a shared event that may differ between observers. The room shows more to a
moderator, sends some codes to one occupant only, and tells later what others have seen live."""


class Mark(NamedTuple):
    """What tells an event from every other one, whoever observed it."""

    key: int
    """Equal for all bridges that observed the event: a hash of its stanza id, or of its fields."""
    at: float
    """When it happened, in seconds since the epoch; 0 if it has a stanza id, which suffices."""


class Found(NamedTuple):
    """A shared event that another bridge observed, and that we read in the store."""

    mark: Mark
    noticed: float
    """When we read it, in seconds of the monotonic clock."""


@dataclass(slots=True)
class Observed:
    """A shared event that we observed."""

    mark: Mark
    noticed: float
    """When we observed it, in seconds of the monotonic clock."""
    number: float
    """Its number among all items that the writer was given."""
    happened: Happened
    _weight: int = 0

    @property
    def weight(self) -> int:
        """Of the event; most are written before anybody asks."""
        self._weight = self._weight or weight(self.happened)
        return self._weight


def mark_of(event: Mapping[str, Any], at: float) -> Mark:
    """Return the mark of an event, which may stand in the store with values of any type."""
    if "stanzaId" in event:
        return Mark(hash(("", str(event["stanzaId"]))), 0.0)
    # The codes of what nobody sent, such as a change of the configuration, are the same for all.
    varying = VARYING if "sender" in event else VARYING - {"codes"}
    said = sorted((name, str(value)) for name, value in event.items() if name not in varying)
    return Mark(hash((*said,)), seconds_of(str(event.get("delayedFrom", ""))) or at)


def unpaired(ours: list[Observed], theirs: list[Found]) -> tuple[list[Observed], list[Found]]:
    """Return the events that are only in `ours`, and those that are only in `theirs`.

    Each event is paired with one of the other list at most, so two equal messages stay two.
    """
    by_key = defaultdict[int, list[Found]](list)
    for found in theirs:
        by_key[found.mark.key].append(found)
    only_ours = []
    for one in ours:
        key, at = one.mark
        alike = by_key.get(key, [])
        same = next((it for it in alike if abs(it.mark.at - at) <= SAME_SECONDS), None)
        if same is None:
            only_ours.append(one)
        else:
            alike.remove(same)
    return only_ours, [found for alike in by_key.values() for found in alike]


def unrecorded(observed: Iterable[Happened], recorded: Iterable[Recorded]) -> set[int]:
    """Return the numbers of those observed events of which no copy is recorded for the room."""

    def mark(one: Happened | Recorded) -> Mark:
        key, at = mark_of(one.event, one.at)
        return Mark(hash((one.room, key)), at)

    ours = [Observed(mark(one), 0, 0, one) for one in observed]
    theirs = sorted((Found(mark(one), 0) for one in recorded), key=lambda one: one.mark.at)
    missing, _ = unpaired(ours, theirs)
    return {one.happened.number for one in missing}
