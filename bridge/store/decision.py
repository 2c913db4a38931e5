"""Decides what a bridge writes if several bridges may record a room in one store. Pure.

All times are seconds of one clock, which only goes forward, unless a field says otherwise.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from bridge.store.database import Happened, Lease, Tenure

LEASE_SECONDS = 4.0
"""Without renewal, a lease holds for so many seconds, and a tenure counts as going on."""

NEWCOMER_SECONDS = 4.0
"""When a lease has ended, a bridge that came later leaves it for so many seconds to a bridge that
was in the room."""

GRACE_SECONDS = 0.4
"""A bridge without the lease leaves an event for so many seconds to the lease's holder. With two
pauses between transactions, a bridge that is killed loses less than the last second."""


class Observed(NamedTuple):
    """A shared event that we observed."""

    happened: Happened
    noticed: float
    """When we observed it."""
    stored: bool = False
    """Whether the store is known to have it."""
    number: float = 0
    """The number of the event among all items that the writer got."""
    weight: int = 0
    """See `weight` of `database`."""


class Stay(NamedTuple):
    """The time that a bridge has been in a room."""

    run: str
    """The run of the bridge."""
    since: float
    """The bridge has received all events of the room since this time."""
    until: float
    """The bridge knows all events of the room up to this time."""
    ends: bool = False
    """Whether the bridge left the room at the moment `until`."""
    hurries: bool = False
    """Whether somebody waits until everything is in the store."""


class Decision(NamedTuple):
    """What a bridge writes of a room."""

    written: Sequence[Observed]
    """Events that it writes."""
    kept: Sequence[Observed]
    """Events that it keeps in memory for less than a second, and decides on again."""
    lease: Lease | None
    """The lease that it writes; None if it leaves the lease as it is."""
    until: float
    """The store has everything that the bridge saw in the room up to this time."""
    earlier: bool | None
    """Whether to write who was in the room as we came, since no bridge saw them come; None if not
    known yet."""


def decide(
    lease: Lease | None, others: Iterable[Tenure], stay: Stay, events: Sequence[Observed]
) -> Decision:
    """Return what a bridge writes of a room that it is in, or that it has just left.

    `others` are the tenures of other runs, `events` the shared events of the stay that are not
    written yet. An event is dropped only if the store has it.

    The holder of the lease writes at once; any other bridge after `GRACE_SECONDS`, so that mostly
    the holder's copy is in the store by then. A bridge may take a lease

    - that it holds already, or if there never was a lease,
    - that has ended, if the bridge was in the room when the lease was last renewed,
    - that has ended, if the bridge has been in the room for `NEWCOMER_SECONDS`.

    A lease ends `LEASE_SECONDS` after it was renewed, or when its holder gives it up.
    """
    holds = lease is None or lease.run == stay.run
    if lease is not None and not holds:
        ended = not lease.run or not 0 <= stay.until - lease.beat <= LEASE_SECONDS
        was_there = stay.since <= lease.beat <= stay.until
        holds = ended and (was_there or stay.until - stay.since >= NEWCOMER_SECONDS)
    at_once = holds or stay.ends or stay.hurries
    missing = [event for event in events if not event.stored]
    kept = [
        event for event in missing if not at_once and stay.until - event.noticed < GRACE_SECONDS
    ]
    return Decision(
        written=[event for event in missing if event not in kept] if kept else missing,
        kept=kept,
        lease=Lease("" if stay.ends else stay.run, stay.until) if holds else None,
        until=min([stay.until, *(event.noticed for event in kept)]),
        earlier=_writes_earlier(others, stay),
    )


def _writes_earlier(others: Iterable[Tenure], stay: Stay) -> bool | None:
    """Return whether no other bridge was in the room when we came; None if not known yet."""
    before = [tenure for tenure in others if tenure.since <= stay.since]
    if any(tenure.until >= stay.since for tenure in before):
        return False
    if any(is_open(tenure, stay.until) for tenure in before):
        if stay.ends:
            return False
        return None if stay.until - stay.since < NEWCOMER_SECONDS else True
    return True


def is_open(tenure: Tenure, now: float, patience: float = LEASE_SECONDS) -> bool:
    """Whether a bridge may be in the room still, although its last word is from before `now`."""
    return not tenure.ended and 0 <= now - tenure.until <= patience


class Absence(NamedTuple):
    """A time when no bridge was in a room, in seconds since the epoch.

    It is by the clock of the machine that recorded before and after it; if that was set, or these
    are two machines, by the clock that they share.
    """

    start: float
    end: float


def absence(
    tenures: Collection[Tenure], entered: Tenure, now: float, patience: float = LEASE_SECONDS
) -> Absence | bool | None:
    """Return the time without a bridge that ended when `entered` began; None if there was none.

    `tenures` are all of the room, from all files at hand. The result is True if it is not known
    yet, since another bridge may be in the room and has not said so for some seconds.
    """
    begun = (entered.since, entered.file, entered.id)
    before = [tenure for tenure in tenures if (tenure.since, tenure.file, tenure.id) < begun]
    last = max(before, key=lambda tenure: tenure.until, default=None)
    if last is None or last.until >= entered.since:
        return None
    if any(is_open(tenure, now, patience) for tenure in before):
        return True
    if last.file == entered.file and last.until_at <= entered.since_at:
        return Absence(last.until_at, entered.since_at)
    return Absence(last.until, entered.since)  # the clocks of two machines may differ
