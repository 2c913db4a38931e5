"""Decides what `record` deletes, and when: what is too old, and the oldest of what is too much.

Clocks come in as values. What has to outlive the process is in the store (`Ageing`).

What is deleted cannot be restored, and nothing tells whether the clock is right. After the clock
jumped, nothing is deleted for its age for a while. Within a day of running, at most a tenth of the
store is deleted for its age. Not counted is what became too old while we ran and no clock jumped.
"""

import logging
from collections.abc import Sequence
from math import inf
from typing import NamedTuple

from bridge.store.database import Ageing, Amount, Database, Holding
from bridge.text import iso

EXPIRE_SECONDS = 10.0
"""Between two deletions."""

EXPIRED_AT_ONCE = 2_000
"""Events deleted in one transaction: twice as many as come in one."""

JUMP_SECONDS = 60.0
"""By how much the wall clock may differ from a clock that nobody sets; NTP corrects less than that
in between two looks, unless the clock was wrong."""

PUT_OFF_SECONDS = 3_600.0
"""Running time without deletion for age after a jump: many a machine that starts with a wrong clock
has the right time once the network is there."""

DAY_SECONDS = 86_400.0

TENTH = 10
"""The store divided by this may be deleted for its age in a day of running: who sees within a day
that the clock is wrong has lost no more."""

log = logging.getLogger(__name__)


class Clocks(NamedTuple):
    """What the clocks say, in seconds."""

    wall: float
    """Since the epoch."""
    elapsed: float
    """Of a clock that nobody sets, and that goes on while the machine sleeps."""
    running: float
    """Of a clock that nobody sets, and that stands still while the machine sleeps."""


class Retention:
    """Deletes what is too old or too much, a little at a time."""

    def __init__(self, days: int, megabytes: int) -> None:
        self._days = days
        self._bytes = megabytes << 20
        self._last: Clocks | None = None
        self._steady: Clocks | None = None
        """The first look at the clocks since they jumped, or since the process was started."""
        self._due = -inf
        self._warned = False
        """Whether the log says that a tenth of the store is gone for this day."""

    def apply(self, database: Database, clocks: Clocks) -> bool:
        """Delete some events, if it is time; return whether there is more to delete."""
        if clocks.running < self._due:
            return False
        with database.transaction():
            more = self._expire(database, clocks) or self._evict(database)
            database.shrink()
        self._last = clocks
        self._due = clocks.running if more else clocks.running + EXPIRE_SECONDS
        return more

    def _expire(self, database: Database, clocks: Clocks) -> bool:
        """Delete what is too old."""
        former = database.ageing()
        put_off, doubted, day_left, spare = self._ageing(database, former, clocks)
        rows = EXPIRED_AT_ONCE
        if not put_off and self._steady is not None:
            end = clocks.wall - self._days * DAY_SECONDS
            start = self._steady.wall - self._days * DAY_SECONDS
            watched = min(end, start + clocks.elapsed - self._steady.elapsed)
            for one in database.holdings():
                if rows == EXPIRED_AT_ONCE:  # of one room at once: what is deleted may be large
                    rows -= database.delete(one, Amount(rows, inf), (start, watched)).rows
        if rows == EXPIRED_AT_ONCE and not put_off and self._steady is not None:
            held = sorted(database.holdings(), key=lambda one: one.oldest)
            if not day_left:
                spare, self._warned = sum(one.bytes for one in held) / TENTH, False
            for one in held:
                gone = database.delete(one, Amount(rows, spare), (-inf, end))
                if not (gone.rows or day_left):  # a large row must not stay for ever
                    gone = database.delete(one, Amount(1, inf), (-inf, end))
                if gone.rows:
                    rows, spare = rows - gone.rows, spare - gone.bytes
                    day_left = day_left or DAY_SECONDS
                    break
            rest = rows == EXPIRED_AT_ONCE and any(one.oldest < end for one in held)
            if rest and not self._warned:
                self._warned = True
                log.warning(
                    "more than a tenth of the store is older than %d days; no more than that is "
                    "deleted in a day of running, in case the clock is wrong: it says %s",
                    self._days,
                    iso(clocks.wall),
                )
        if (now := Ageing(put_off, doubted, day_left, spare if day_left else 0.0)) != former:
            database.set_ageing(now)
        return rows < EXPIRED_AT_ONCE

    def _ageing(self, database: Database, former: Ageing, clocks: Clocks) -> Ageing:
        """Return how far the times are that running time ends; notice that a clock jumped."""
        put_off, doubted, day_left, spare = former
        jump = 0.0
        if self._last is not None:
            passed = clocks.running - self._last.running
            put_off, day_left = max(0.0, put_off - passed), max(0.0, day_left - passed)
            jump = clocks.wall - self._last.wall - (clocks.elapsed - self._last.elapsed)
        newest, at = database.latest()
        ahead = newest != doubted and at > clocks.wall + JUMP_SECONDS
        if self._last is None or abs(jump) > JUMP_SECONDS:
            self._steady = clocks
        if ahead or abs(jump) > JUMP_SECONDS:
            put_off, doubted = PUT_OFF_SECONDS, newest
            log.warning(
                "the clock jumped, or was wrong before: nothing is deleted for its age for an hour "
                "of running; it says %s",
                iso(clocks.wall),
            )
        return Ageing(put_off, doubted, day_left, spare)

    def _evict(self, database: Database) -> bool:
        """Delete the oldest of whichever room holds most, if the store is too large."""
        surplus = surplus_of(database.holdings(), database.size(), self._bytes)
        if surplus is None:
            return False
        fullest, weight = surplus
        gone = database.delete(fullest, Amount(EXPIRED_AT_ONCE, weight), None)
        return bool(gone.rows or database.delete(fullest, Amount(1, inf), None).rows)


def surplus_of(holdings: Sequence[Holding], size: int, most: int) -> tuple[Holding, float] | None:
    """Return whose oldest rows are deleted, and how many bytes of them, if `size` is over `most`.

    Each room is sure of an equal share of `most`, as in the journal. Of what is over its share the
    largest is returned. Connections and stanzas have no share.
    """
    held = sum(one.bytes for one in holdings)
    rooms = sum(bool(one.name) for one in holdings)
    kept = held * most / size  # indexes, and what pages have free, come on top of the rows
    share = kept / max(1, rooms)
    over = [(one, one.bytes - share * bool(one.name)) for one in holdings]
    over = [(one, beyond) for one, beyond in over if beyond > 0]
    if size <= most or not over:
        return None
    fullest, beyond = max(over, key=lambda found: found[0].bytes)
    return fullest, min(beyond, held - kept)
