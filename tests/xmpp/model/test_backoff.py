import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    pauses = [pause(Retry.SOON, attempt, 0) for attempt in range(1, 9)]
    assert pauses == [1, 2, 4, 8, 16, 32, MOST_SECONDS, MOST_SECONDS]


@pytest.mark.parametrize(
    ("retry", "seconds"),
    [(Retry.NEVER, None), (Retry.MINUTE, MINUTE_SECONDS), (Retry.LATER, LATER_SECONDS)],
)
def test_a_pause_that_does_not_grow_stays_the_same(retry: Retry, seconds: float | None) -> None:
    assert {pause(retry, attempt, 0) for attempt in (1, 5)} == {seconds}


@pytest.mark.parametrize("jitter", [-1.0, 1.0])
def test_jitter_moves_a_pause_by_its_part(jitter: float) -> None:
    assert pause(Retry.SOON, 3, jitter) == 4 * FIRST_SECONDS * (1 + JITTER * jitter)


def test_what_nobody_meant_is_tried_again_at_once_and_then_with_growing_pauses() -> None:
    pauses = [pause(Retry.AT_ONCE, attempt, 0) for attempt in range(1, 5)]
    assert pauses == [0, 2, 4, 8]


@given(st.sampled_from(Retry), st.integers(1, 10**9), st.floats(-1, 1))
def test_every_pause_is_within_its_bounds(retry: Retry, attempt: int, jitter: float) -> None:
    seconds = pause(retry, attempt, jitter)
    match retry:
        case Retry.NEVER:
            assert seconds is None
        case Retry.AT_ONCE if attempt == 1:
            assert seconds == 0
        case Retry.SOON | Retry.AT_ONCE:
            assert seconds is not None
            assert FIRST_SECONDS <= seconds <= MOST_SECONDS
        case _:
            assert seconds is not None
            assert MOST_SECONDS <= seconds <= LATER_SECONDS * (1 + JITTER)
