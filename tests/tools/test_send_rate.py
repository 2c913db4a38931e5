import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.tools.send import SECONDS, TOLERANCE_SECONDS, RateLimiter


@pytest.mark.parametrize("per_minute", [1, 7, 6000])
@pytest.mark.parametrize("now", [0.0, 1_234_567.8])
def test_whoever_waits_as_long_as_told_is_let_through_once(per_minute: int, now: float) -> None:
    rate = RateLimiter(per_minute)
    assert [rate.take(now) for _ in range(per_minute)] == [0.0] * per_minute
    for _ in range(3):
        wait = rate.take(now)
        assert rate.take(now + wait / 2) == pytest.approx(wait / 2)
        now += wait
        assert rate.take(now) == 0.0


def test_what_is_given_back_after_a_rest_is_no_more_than_a_minutes_worth() -> None:
    rate = RateLimiter(2)
    assert rate.take(0.0) == rate.take(0.0) == 0.0
    rate.give_back()
    assert rate.take(0.0) == 0.0
    rate.give_back()
    rate.give_back()
    assert [rate.take(100.0) for _ in range(3)] == [0.0, 0.0, 30.0]


@given(
    per_minute=st.integers(1, 6000),
    steps=st.lists(st.floats(0.0, 30.0), max_size=60),
)
def test_no_minute_ever_sees_more_than_a_burst_and_what_came_in_meanwhile(
    per_minute: int, steps: list[float]
) -> None:
    rate, now, granted = RateLimiter(per_minute), 0.0, 0
    for step in steps:
        now += step
        granted += rate.take(now) == 0.0
        assert granted <= per_minute + (now + TOLERANCE_SECONDS) * per_minute / SECONDS
