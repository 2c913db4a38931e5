"""Decides what a bridge writes of a room that several bridges may record in one store. Pure.

All times called `now`, `noticed`, `beat`, `since` and `until` are seconds of one clock, which only
goes forward. All times called `at` are seconds since the epoch.
"""

from collections.abc import Sequence
from typing import NamedTuple

from bridge.store.database import Lease
from bridge.store.pairing import Observed

LEASE_SECONDS = 6.0
"""How long a lease holds without being renewed. Other bridges read it at intervals, and one of them
takes over within 10 s."""

HANDOVER_SECONDS = 2.0
"""How long a lease that was given up is reserved for bridges that were in the room with its
holder."""

PATIENCE_SECONDS = 10.0
"""How long after we observed an event the holder of the lease may take to write it."""

SKEW_SECONDS = 1.0
"""How much later than us the holder may observe an event. When we leave the room, this is used in
place of `PATIENCE_SECONDS`."""


class Stay(NamedTuple):
    """The time that a bridge has been in a room."""

    run: str
    """The run of the bridge."""
    since: float
    """The time, on the clock of `now`, from which on it has received all that happens there."""
    until: float
    """The time, on the same clock, up to which it knows what happened."""
    at: float
    """The same moment as `until`, in seconds since the epoch."""
    more: bool = False
    """Whether another transaction follows at once, with events from before `until`."""
    left: bool = False
    """Whether the bridge left the room at the moment `until`."""


class Decision(NamedTuple):
    """What a bridge writes of a room."""

    shared: Sequence[Observed] = ()
    """Events that it writes as seen by everybody."""
    own: Sequence[Observed] = ()
    """Events that it writes as seen by itself alone."""
    kept: Sequence[Observed] = ()
    """Events that it keeps, and decides on later."""
    lease: Lease | None = None
    """The lease that it writes and holds; None: it leaves the lease as it is."""
    unseen_from: float | None = None
    """When the time began, in seconds since the epoch, in which nobody recorded the room before we
    came; None if it was recorded all the time, or never before."""
    earlier: bool | None = None
    """Whether to write what the room sent about the time before we came; None: not known yet."""


def decide(
    lease: Lease | None, stay: Stay, now: float, events: Sequence[Observed], earlier: bool | None
) -> Decision:
    """Return what a bridge writes of a room that it is in, or that it has just left.

    `events` are the shared events of its stay that are not in the store; `earlier` is the value in
    the previous decision, and None at first.

    A lease is *live* for `LEASE_SECONDS` after it was renewed, and for `HANDOVER_SECONDS` after it
    was given up. We were in the room *together* with its holder if the lease was renewed or given
    up after we had come.

    | lease                     | together | we leave | events  | lease   | before we came       |
    |---------------------------|----------|----------|---------|---------|----------------------|
    | there is none             |          |          | shared  | taken   | written              |
    | another's, live           | yes      |          | overdue | left    | not written          |
    | another's, live           | no       |          | overdue | left    | as decided           |
    | given up or ours, live    | no       | no       | kept    | left    | as decided           |
    | given up or ours, live    | no       | yes      | shared  | taken   | written, after a gap |
    | given up or ours, live    | yes      |          | shared  | taken   | not written          |
    | not live, whosever it was | yes      |          | shared  | taken   | not written          |
    | not live, whosever it was | no       |          | shared  | taken   | written, after a gap |

    If a lease is taken again, what was decided about the time before we came does not change.

    *Overdue* events are written as our own: the holder should have written them by now, so it
    did not see them, or saw them with other fields. The other events are kept.

    A live lease that was given up is left to a bridge that was in the room together with its former
    holder, since that bridge has missed less than we have. A lease of ours is renewed by taking
    it, but not before the last of several transactions: a renewal says that everything up to that
    time is written. The lease of a bridge that leaves is given up.
    """
    together = live = False
    if lease is not None:
        together = stay.since <= lease.beat <= now
        live = 0 <= now - lease.beat <= (LEASE_SECONDS if lease.run else HANDOVER_SECONDS)
        if live and lease.run not in {"", stay.run}:
            due = lease.beat - (SKEW_SECONDS if stay.left else PATIENCE_SECONDS)
            return Decision(
                own=[event for event in events if event.mark.noticed < due],
                kept=[event for event in events if event.mark.noticed >= due],
                earlier=False if together else earlier,
            )
        if live and not (together or stay.left):
            return Decision(kept=events, earlier=earlier)
    taken = Lease("" if stay.left else stay.run, stay.until, stay.at)
    if lease is not None and lease.run == stay.run and stay.more:
        taken = lease
    unseen = lease is not None and not together and earlier is None
    return Decision(
        shared=events,
        lease=taken,
        unseen_from=lease.seen_until if lease is not None and unseen else None,
        earlier=not together if earlier is None else earlier,
    )
