"""The truth table of `decide`: who writes what of a room that several bridges record."""

import pytest

from bridge.store.database import Happened, Lease
from bridge.store.decision import (
    HANDOVER_SECONDS,
    LEASE_SECONDS,
    PATIENCE_SECONDS,
    SKEW_SECONDS,
    Decision,
    Stay,
    decide,
)
from bridge.store.pairing import Mark, Observed

SINCE = 1_000.0
"""When we came, on the clock of `now`."""
NOW = 1_100.0
AT = 1_700_000_000.0
SEEN_UNTIL = AT - 500
US, OTHER, NOBODY = "us", "other", ""

EVENTS = [
    Observed(Mark(number, AT, noticed), Happened(AT, "room@x", {"kind": "message"}))
    for number, noticed in enumerate((NOW - 50, NOW - PATIENCE_SECONDS - 1, NOW - 5, NOW))
]
WAITING = Decision(kept=EVENTS)


def _written(*, earlier: bool, gap: bool = False, run: str = US) -> Decision:
    unseen_from = SEEN_UNTIL if gap else None
    return Decision(EVENTS, (), (), Lease(run, NOW, AT), unseen_from, earlier)


def _overdue(count: int, *, earlier: bool | None = None) -> Decision:
    return Decision((), EVENTS[:count], EVENTS[count:], earlier=earlier)


@pytest.mark.parametrize(
    ("run", "age", "since", "left", "expected"),
    [
        # There is no lease.
        (None, 0, SINCE, False, _written(earlier=True)),
        (None, 0, SINCE, True, _written(earlier=True, run=NOBODY)),
        # Another's, live.
        (OTHER, 0, SINCE, False, _overdue(2, earlier=False)),
        (OTHER, LEASE_SECONDS, SINCE, False, _overdue(1, earlier=False)),
        (OTHER, LEASE_SECONDS, NOW - 5, False, _overdue(1)),
        (OTHER, 0, SINCE, True, _overdue(3, earlier=False)),
        (OTHER, LEASE_SECONDS, NOW - 5, True, _overdue(2)),
        # Given up, live.
        (NOBODY, HANDOVER_SECONDS, SINCE, False, _written(earlier=False)),
        (NOBODY, HANDOVER_SECONDS, NOW - 1, False, WAITING),
        (NOBODY, HANDOVER_SECONDS, NOW - 1, True, _written(earlier=True, gap=True, run=NOBODY)),
        # Ours, live.
        (US, 1, SINCE, False, _written(earlier=False)),
        (US, 1, SINCE, True, _written(earlier=False, run=NOBODY)),
        (US, 1, NOW, False, WAITING),
        (US, 1, NOW, True, _written(earlier=True, gap=True, run=NOBODY)),
        # Not live, whosever it was.
        (OTHER, LEASE_SECONDS + 1, SINCE, False, _written(earlier=False)),
        (OTHER, LEASE_SECONDS + 1, NOW, False, _written(earlier=True, gap=True)),
        (NOBODY, HANDOVER_SECONDS + 1, SINCE, False, _written(earlier=False)),
        (NOBODY, HANDOVER_SECONDS + 1, NOW, False, _written(earlier=True, gap=True)),
        (US, LEASE_SECONDS + 1, SINCE, False, _written(earlier=False)),
        (US, LEASE_SECONDS + 1, NOW, False, _written(earlier=True, gap=True)),
        # Renewed in the future: the clock began anew.
        (OTHER, -1, SINCE, False, _written(earlier=True, gap=True)),
    ],
)
def test_the_truth_table(
    run: str | None, age: float, since: float, left: bool, expected: Decision
) -> None:
    lease = None if run is None else Lease(run, NOW - age, SEEN_UNTIL)
    assert decide(lease, Stay(US, since, NOW, AT, left=left), NOW, EVENTS, None) == expected


@pytest.mark.parametrize("earlier", [True, False])
@pytest.mark.parametrize(("run", "age"), [(US, 1), (OTHER, LEASE_SECONDS + 1), (OTHER, 200)])
def test_what_was_decided_of_the_time_before_we_came_is_not_decided_again(
    earlier: bool, run: str, age: float
) -> None:
    stay = Stay(US, SINCE, NOW, AT)
    decision = decide(Lease(run, NOW - age, SEEN_UNTIL), stay, NOW, EVENTS, earlier)
    assert decision == _written(earlier=earlier)


def test_a_lease_of_ours_is_renewed_with_the_last_of_several_transactions() -> None:
    ours, stay = Lease(US, NOW - 1, SEEN_UNTIL), Stay(US, SINCE, NOW, AT, more=True)
    assert decide(ours, stay, NOW, EVENTS, False) == _written(earlier=False)._replace(lease=ours)
    others = ours._replace(run=OTHER, beat=NOW - LEASE_SECONDS - 1)
    assert decide(others, stay, NOW, EVENTS, False) == _written(earlier=False)


def test_a_bridge_waits_for_the_holder_as_long_as_that_may_lag_behind() -> None:
    holder = Lease(OTHER, NOW, SEEN_UNTIL)
    for left, seconds in ((False, PATIENCE_SECONDS), (True, SKEW_SECONDS)):
        just, due = (
            [Observed(Mark(1, AT, NOW - seconds - late), EVENTS[0].happened)] for late in (0, 0.1)
        )
        stay = Stay(US, SINCE, NOW, AT, left=left)
        assert decide(holder, stay, NOW, just, None).kept == just
        assert decide(holder, stay, NOW, due, None).own == due
