"""The truth table of `decide`, and when a room was without a bridge."""

import pytest

from bridge.store.database import Happened, Lease, Tenure
from bridge.store.decision import (
    GRACE_SECONDS,
    LEASE_SECONDS,
    NEWCOMER_SECONDS,
    Absence,
    Observed,
    Stay,
    absence,
    decide,
)

NOW = 1_100.0
SINCE = 1_000.0
US, OTHER, NOBODY = "us", "other", ""
YOUNG, OLD, STORED = (
    Observed(Happened(0.0, "room@x", {"kind": "message"}), noticed, stored)
    for noticed, stored in ((NOW, False), (NOW - GRACE_SECONDS, False), (NOW - 9, True))
)
EVENTS = [OLD, STORED, YOUNG]


@pytest.mark.parametrize(
    ("run", "age", "since", "holds"),
    [
        (None, 0, SINCE, True),
        (US, 0, SINCE, True),
        (US, 99, NOW - 1, True),
        (OTHER, 0, SINCE, False),
        (OTHER, LEASE_SECONDS, SINCE, False),
        (OTHER, LEASE_SECONDS + 1, SINCE, True),
        (OTHER, LEASE_SECONDS + 1, NOW - 1, False),
        (OTHER, LEASE_SECONDS + 9, NOW - NEWCOMER_SECONDS, True),
        (NOBODY, 0, SINCE, True),
        (NOBODY, 2, NOW - 1, False),
        (NOBODY, 9, NOW - NEWCOMER_SECONDS, True),
        (OTHER, -1, SINCE, True),  # the clock began anew
    ],
)
def test_the_holder_writes_at_once_and_others_what_the_holder_has_not_written_soon(
    run: str | None, age: float, since: float, holds: bool
) -> None:
    lease = None if run is None else Lease(run, NOW - age)
    decision = decide(lease, [], Stay(US, since, NOW), EVENTS)
    assert decision.written == ([OLD, YOUNG] if holds else [OLD])
    assert decision.kept == ([] if holds else [YOUNG])
    assert decision.lease == (Lease(US, NOW) if holds else None)
    assert decision.until == (NOW if holds else YOUNG.noticed)


@pytest.mark.parametrize("how", ["ends", "hurries"])
def test_nothing_is_kept_at_the_end_or_when_somebody_waits(how: str) -> None:
    stay = Stay(US, SINCE, NOW, **{how: True})
    decision = decide(Lease(OTHER, NOW), [], stay, EVENTS)
    assert (decision.written, decision.kept, decision.lease) == ([OLD, YOUNG], [], None)
    mine = decide(Lease(US, NOW), [], stay, EVENTS).lease
    assert mine == Lease(NOBODY if how == "ends" else US, NOW)


def _tenure(since: float, until: float, *, ended: bool = False, id_: int = 1) -> Tenure:
    return Tenure(id_, OTHER, since, until, since + 5_000, until + 5_000, ended)


@pytest.mark.parametrize(
    ("others", "age", "earlier"),
    [
        ([], 0, True),
        ([_tenure(0, SINCE)], 0, False),
        ([_tenure(0, SINCE - 1, ended=True)], 0, True),
        ([_tenure(0, SINCE - 1)], 0, None),
        ([_tenure(0, SINCE - 1)], NEWCOMER_SECONDS, True),
        ([_tenure(SINCE + 1, SINCE + 2)], 3, True),
    ],
)
def test_who_was_there_before_us_is_written_unless_another_saw_them_come(
    others: list[Tenure], age: float, earlier: bool | None
) -> None:
    assert decide(None, others, Stay(US, SINCE, SINCE + age), []).earlier is earlier


ENTERED = _tenure(100, 200, id_=9)


@pytest.mark.parametrize(
    ("others", "now", "expected"),
    [
        ([], 100, None),
        ([_tenure(0, 50)], 300, Absence(5_050, 5_100)),
        ([_tenure(0, 50), _tenure(20, 70), _tenure(10, 30)], 300, Absence(5_070, 5_100)),
        ([_tenure(0, 100)], 300, None),
        ([_tenure(100, 120, id_=3)], 300, None),
        ([_tenure(100, 120, id_=10)], 300, None),
        ([_tenure(150, 160)], 300, None),
        ([_tenure(0, 99)], 99 + LEASE_SECONDS, True),
        ([_tenure(0, 99, ended=True)], 99 + LEASE_SECONDS, Absence(5_099, 5_100)),
        ([_tenure(0, 99)], 100 + LEASE_SECONDS, Absence(5_099, 5_100)),
    ],
)
def test_a_gap_is_the_time_in_which_no_tenure_is(
    others: list[Tenure], now: float, expected: Absence | bool | None
) -> None:
    assert absence([*others, ENTERED], ENTERED, now) == expected
