"""Decides what is known of the time before we came, by the tenures of all bridges in a room. Pure.

All times are seconds of one clock, which only goes forward, unless a field says otherwise.
"""

from collections.abc import Collection, Iterable
from math import inf
from typing import NamedTuple

from bridge.store.database import Tenure
from bridge.store.pairing import Alike

ROUNDED = 0.001
"""Events have times cut to milliseconds, tenures have exact times."""

SILENCE_SECONDS = 4.0
"""A tenure counts as going on until its bridge has said nothing for so many seconds."""


def writes_earlier(others: Iterable[Tenure], since: float, now: float) -> bool | None:
    """Return whether to write the occupants that were there as we came: no bridge saw them come.

    `others` are the tenures of other runs; we have been in the room since `since`. The result is
    None if it is not known yet.
    """
    before = [tenure for tenure in others if tenure.since <= since]
    if any(tenure.until >= since for tenure in before):
        return False
    return None if any(is_open(tenure, now) for tenure in before) else True


def asked_by(tenures: Iterable[Tenure], run: str, seen: float) -> float:
    """Return when a run asked to be let in, before it saw an event live; else minus infinity."""
    asked = (it.asked for it in tenures if it.run == run)
    return max((it for it in asked if it <= seen + ROUNDED), default=-inf)


def with_asked(
    rows: Iterable[Alike], kind: str, tenures: Collection[Tenure], slack: float = ROUNDED
) -> list[Alike]:
    """Return rows of this kind, each with when its run asked to be let in, less the slack.

    Only messages get it. Of occupants and the subject, a room tells newcomers how they are, without
    a time. So a bridge that comes may write these before the bridge that saw them live does.
    """
    if kind != "message":
        return [*rows]
    return [row._replace(asked=asked_by(tenures, row.run, row.seen) - slack) for row in rows]


def is_open(tenure: Tenure, now: float, patience: float = SILENCE_SECONDS) -> bool:
    """Whether a bridge may be in the room still, although its last word is from before `now`."""
    return not tenure.ended and 0 <= now - tenure.until <= patience


class Absence(NamedTuple):
    """A time when no bridge was in a room, in seconds since the epoch.

    If one file has the tenures before and after it, it is by the wall clock, unless that was set
    back meanwhile. Otherwise it is by the clock that all observers share.
    """

    start: float
    end: float


def absence(
    tenures: Collection[Tenure], entered: Tenure, now: float, patience: float
) -> Absence | bool | None:
    """Return the time without a bridge that ended when `entered` began; None if there was none.

    `tenures` are all of the room, from all files at hand. The result is True if it is not known
    yet: another bridge may still be in the room, although its last word is some seconds old.
    """
    begun = (entered.since, entered.run, entered.id)
    before = [
        tenure
        for tenure in tenures
        if (tenure.since, tenure.run, tenure.id) < begun
        and (tenure.run, tenure.id) != (entered.run, entered.id)  # the same, out of a copied file
    ]
    last = max(before, key=lambda tenure: tenure.until, default=None)
    if last is None or last.until >= entered.since:
        return None
    if any(is_open(tenure, now, patience) for tenure in before):
        return True
    if last.file == entered.file and last.until_at <= entered.since_at:
        return Absence(last.until_at, entered.since_at)
    return Absence(last.until, entered.since)  # the clocks of two machines may differ
