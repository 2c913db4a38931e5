import pytest

from bridge.xmpp.model.backoff import (
    FIRST_SECONDS,
    JITTER,
    LATER_SECONDS,
    MINUTE_SECONDS,
    MOST_SECONDS,
    pause,
)
from bridge.xmpp.model.faults import Retry


def test_pauses_double_up_to_the_most() -> None:
    pauses = [pause(Retry.SOON, attempt, 0) for attempt in (*range(1, 8), 10**9)]
    assert pauses == [1, 2, 4, 8, 16, 32, MOST_SECONDS, MOST_SECONDS]


@pytest.mark.parametrize(
    ("retry", "seconds"),
    [(Retry.NEVER, None), (Retry.MINUTE, MINUTE_SECONDS), (Retry.LATER, LATER_SECONDS)],
)
def test_a_pause_that_does_not_grow_stays_the_same(retry: Retry, seconds: float | None) -> None:
    assert {pause(retry, attempt, 0) for attempt in (1, 10**9)} == {seconds}


@pytest.mark.parametrize("jitter", [-1.0, 1.0])
def test_jitter_moves_a_pause_by_its_part(jitter: float) -> None:
    assert pause(Retry.SOON, 3, jitter) == 4 * FIRST_SECONDS * (1 + JITTER * jitter)
    assert FIRST_SECONDS <= (pause(Retry.SOON, 1, jitter) or 0) <= MOST_SECONDS
    assert (pause(Retry.SOON, 9, jitter) or 0) <= MOST_SECONDS


def test_what_nobody_meant_is_tried_again_at_once_and_then_with_growing_pauses() -> None:
    pauses = [pause(Retry.AT_ONCE, attempt, 0) for attempt in range(1, 5)]
    assert pauses == [0, 2, 4, 8]
