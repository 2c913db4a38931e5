"""Decides what to delete from a store, and when.

Retention deletes events and stanzas that are too old, and the oldest ones if the store is too
large. Clocks come in as values. The values that have to outlive the process are in the store
(`Ageing`).

A deleted row cannot be restored, and the process cannot know whether the clock is right. So:

- After the clock jumped, no row is deleted for its age for an hour of running.
- Rows that become too old while we run, without a jump, are deleted.
- Rows may have been too old already when we started, or when the clock jumped. Of these, no more
  than a tenth of the store is deleted in a day of running.
"""

import logging
from collections.abc import Sequence
from math import inf
from typing import NamedTuple

from bridge.store.database import Ageing, Amount, Holding
from bridge.store.sql import SqlDatabase
from bridge.text import iso

EXPIRE_SECONDS = 10.0
"""The pause between two deletions."""

EXPIRED_AT_ONCE = 2_000
"""Most events that one transaction deletes: twice as many as one adds."""

CROWDED = 1.05
"""A store that is so many times as large as it may be is looked at without a pause."""

STANZAS = 4
"""Stanzas take at most this part of the store: a quarter."""

JUMP_SECONDS = 60.0
"""If the wall clock deviates by more than this from a clock that is never set, it has jumped. NTP
corrects less than that between two looks, unless the clock was wrong."""

PUT_OFF_SECONDS = 3_600.0
"""No row is deleted for its age in so many running seconds after a jump. Many machines start with a
wrong clock, and have the right time once the network is there."""

DAY_SECONDS = 86_400.0

TENTH = 10
"""Retention deletes rows that were already too old when we started, but at most a tenth of the
store in a day of running. If the clock is wrong, a user who notices it within a day has lost no
more."""

log = logging.getLogger(__name__)


class Clocks(NamedTuple):
    """The times of three clocks, in seconds."""

    wall: float
    """Since the epoch."""
    elapsed: float
    """A clock that is never set, and that goes on while the machine sleeps."""
    running: float
    """A clock that is never set, and that stops while the machine sleeps."""


class Retention:
    """Deletes rows that are too old or too many, a few at a time."""

    def __init__(self, days: int, megabytes: int) -> None:
        self._days = days
        self._bytes = megabytes << 20
        self._last: Clocks | None = None
        self._steady = Clocks(0.0, 0.0, 0.0)
        """The clocks at the first look after a jump, or after the process started."""
        self._due = -inf
        self._spare = 0.0
        """How many bytes of rows that were already too old may still be deleted in this day of
        running; none if the day began in a former run."""
        self._warned = False
        """Whether the log already says that the tenth of the store for this day is deleted."""

    def apply(self, database: SqlDatabase, clocks: Clocks) -> bool:
        """Delete some events, if we may and it is time; return whether there is more to delete."""
        if clocks.running < self._due and database.size() <= CROWDED * self._bytes:
            return False
        if database.size() > self._bytes:
            database.checkpoint()
        with database.transaction():
            more = self._expire(database, clocks) or self._evict(database)
            database.shrink()
        if more:
            database.checkpoint()  # else the deletion stays in the `-wal`, beside what comes next
        self._last = clocks
        self._due = clocks.running if more else clocks.running + EXPIRE_SECONDS
        return more

    def _expire(self, database: SqlDatabase, clocks: Clocks) -> bool:
        """Delete rows that are too old, from one room at a time, since they may be many."""
        former = database.ageing()
        put_off, day_left = self._look(database, former, clocks)
        gone = Amount(0, 0.0)
        if not put_off:
            held = sorted(database.holdings(), key=lambda holding: holding.oldest)
            start, end = (at.wall - self._days * DAY_SECONDS for at in (self._steady, clocks))
            watched = min(end, start + clocks.elapsed - self._steady.elapsed)
            gone = _delete(database, held, (start, watched), Amount(EXPIRED_AT_ONCE, inf))
            if not gone.rows:
                amounts = [Amount(EXPIRED_AT_ONCE, self._spare)]
                if not day_left:
                    self._spare, self._warned = sum(it.bytes for it in held) / TENTH, False
                    # A larger row is deleted alone. Otherwise it would stay for ever.
                    amounts = [Amount(EXPIRED_AT_ONCE, self._spare), Amount(1, inf)]
                gone = _delete(database, held, (-inf, end), *amounts)
                self._spare -= gone.bytes
                day_left = day_left or (DAY_SECONDS if gone.rows else 0.0)
                if not (gone.rows or self._warned) and held and held[0].oldest < end:
                    self._warned = True
                    log.warning(
                        "more than a tenth of the store is older than %d days; no more than that "
                        "is deleted in a day of running, in case the clock is wrong: it says %s",
                        self._days,
                        iso(clocks.wall),
                    )
        if (now := Ageing(put_off, day_left)) != former:
            database.set_ageing(now)
        return gone.rows > 0

    def _look(self, database: SqlDatabase, former: Ageing, clocks: Clocks) -> Ageing:
        """Return how much is left of the two periods of an `Ageing`; notice if a clock jumped."""
        last = self._last or clocks
        passed = clocks.running - last.running
        # A damaged store may have any number here.
        put_off = max(0.0, min(former.put_off, PUT_OFF_SECONDS) - passed)
        day_left = max(0.0, min(former.day_left, DAY_SECONDS) - passed)
        jump = abs(clocks.wall - last.wall - (clocks.elapsed - last.elapsed)) > JUMP_SECONDS
        if self._last is None:  # later on, the newest event may be our own
            jump = database.latest() > clocks.wall + JUMP_SECONDS
        if jump or self._last is None:
            self._steady = clocks
        if jump:
            put_off = PUT_OFF_SECONDS
            log.warning(
                "the clock jumped, or was wrong before: nothing is deleted for its age for an hour "
                "of running; it says %s",
                iso(clocks.wall),
            )
        return Ageing(put_off, day_left)

    def _evict(self, database: SqlDatabase) -> bool:
        """Delete the oldest rows of the holding that `surplus_of` returns, if there is one."""
        surplus = surplus_of(database.holdings(), database.size(), self._bytes)
        if surplus is None:
            return False
        fullest, weight = surplus
        amounts = Amount(EXPIRED_AT_ONCE, weight), Amount(1, inf)
        return _delete(database, [fullest], None, *amounts).rows > 0


def _delete(
    database: SqlDatabase, held: Sequence[Holding], span: tuple[float, float] | None, *most: Amount
) -> Amount:
    """Delete rows with a time in `span`, from the first holding in which that deletes any.

    Of the amounts `most`, the first under which a row can be deleted is the limit.
    """
    amounts = (database.delete(holding, amount, span) for holding in held for amount in most)
    return next((gone for gone in amounts if gone.rows), Amount(0, 0.0))


def surplus_of(holdings: Sequence[Holding], size: int, most: int) -> tuple[Holding, float] | None:
    """Return the holding that has to shrink, and by how many bytes; None if none has to.

    Stanzas take at most a quarter of `most`, whatever else there is. Otherwise nothing is deleted
    unless `size` is over `most`. Each room keeps an equal share of `most`, as in the journal;
    connections and stanzas have no share. The result is the largest holding that exceeds its share.
    """
    stanzas = next((holding for holding in holdings if not holding.id), None)
    if stanzas is not None and stanzas.bytes > most / STANZAS:
        return stanzas, stanzas.bytes - most / STANZAS
    held = sum(holding.bytes for holding in holdings)
    kept = held * most / size  # `size` also has indexes, and the free space in pages
    share = kept / max(1, sum(1 for holding in holdings if holding.name))

    def beyond(holding: Holding) -> float:
        return holding.bytes - (share if holding.name else 0.0)

    over = [holding for holding in holdings if beyond(holding) > 0]
    if size <= most or not over:
        return None
    fullest = max(over, key=lambda holding: holding.bytes)
    return fullest, min(beyond(fullest), held - kept)
