"""Any order of bridges, kills, locks, outages, lost COMMITs, jumps of the clock and readers."""

from collections.abc import Iterable

import pytest

from tests.store.simulated import play

SCHEDULES = 1_000
MORE_SCHEDULES = 100_000
FAILED = (
    11_288, 25_695, 53_031, 100_055, 102_378, 341_352, 725_462, 774_446, 3_014_943, 3_024_925,
)  # fmt: skip
"""The seeds of schedules that once broke a promise, from beyond the first thousand."""


def _broken(seeds: Iterable[int]) -> list[tuple[int, str]]:
    broken = []
    for seed in seeds:
        try:
            play(seed)
        except AssertionError as error:
            broken.append((seed, str(error)[:200]))
    return broken


@pytest.mark.parametrize(
    "schedules", [SCHEDULES, pytest.param(MORE_SCHEDULES, marks=pytest.mark.long)]
)
def test_everything_is_stored_or_in_a_gap_and_shown_once_whatever_happens(schedules: int) -> None:
    assert _broken((*FAILED, *range(schedules))) == []
