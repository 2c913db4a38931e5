"""Decides what a bridge writes if several bridges may record a room in one store. Pure.

The times called `now`, `noticed`, `beat`, `since` and `until` are seconds of one clock, which only
goes forward. The times called `at` are seconds since the epoch.
"""

from collections.abc import Sequence
from typing import NamedTuple

from bridge.store.database import Lease
from bridge.store.pairing import Observed

LEASE_SECONDS = 6.0
"""Without renewal, a lease holds for so many seconds. Other bridges read it at intervals, and one
of them takes over within 10 s."""

HANDOVER_SECONDS = 2.0
"""When a lease is given up, bridges that were in the room with its holder may take it first, for so
many seconds."""

PATIENCE_SECONDS = 10.0
"""The lease's holder has so many seconds to write an event after we observed it."""

SKEW_SECONDS = 1.0
"""The holder may observe an event so many seconds later than us. When we leave the room, this takes
the place of `PATIENCE_SECONDS`."""


class Stay(NamedTuple):
    """The time that a bridge has been in a room."""

    run: str
    """The run of the bridge."""
    since: float
    """The bridge has received all events of the room since this time, on the clock of `now`."""
    until: float
    """The bridge knows all events of the room up to this time, on the same clock."""
    at: float
    """The same moment as `until`, in seconds since the epoch."""
    more: bool = False
    """Whether another transaction follows at once, with events from before `until`."""
    left: bool = False
    """Whether the bridge left the room at the moment `until`."""


class Decision(NamedTuple):
    """What a bridge writes of a room."""

    shared: Sequence[Observed] = ()
    """Events that it writes as seen by all in the room."""
    own: Sequence[Observed] = ()
    """Events that it writes as seen by itself alone."""
    kept: Sequence[Observed] = ()
    """Events that it keeps in memory, and decides on later."""
    lease: Lease | None = None
    """The lease that it writes and holds; None if it leaves the lease as it is."""
    unseen_from: float | None = None
    """Before we came, no bridge recorded the room since this time, in seconds since the epoch. None
    if bridges recorded it all the time, or never before."""
    earlier: bool | None = None
    """Whether to write what the room sent about the time before we came; None if not known yet."""


def decide(
    lease: Lease | None, stay: Stay, now: float, events: Sequence[Observed], earlier: bool | None
) -> Decision:
    """Return what a bridge writes of a room that it is in, or that it has just left.

    `events` are the shared events of its stay that are not in the store. `earlier` is the value in
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

    When we take a lease again, the decision about the time before we came does not change.

    We write *overdue* events as our own: the holder should have written them by now, so it did not
    see them, or saw them with other fields. We keep the other events.

    If a live lease was given up, we leave it to a bridge that was in the room together with its
    former holder, since that bridge has missed less than we have. We renew our own lease by taking
    it, but not before the last of several transactions: a renewal says that everything up to that
    time is written. When a bridge leaves, it gives its lease up.
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
