"""Whether to write who was there before us, and when a room was without a bridge."""

import pytest

from bridge.store.database import Tenure
from bridge.store.decision import SILENCE_SECONDS, Absence, absence, writes_earlier

SINCE = 1_000.0
OTHER = "other"


def _tenure(since: float, until: float, *, ended: bool = False, id_: int = 1) -> Tenure:
    return Tenure(id_, OTHER, since, until, since + 5_000, until + 5_000, ended)


@pytest.mark.parametrize(
    ("others", "age", "earlier"),
    [
        ([], 0, True),
        ([_tenure(0, SINCE)], 0, False),
        ([_tenure(0, SINCE - 1, ended=True)], 0, True),
        ([_tenure(0, SINCE - 1)], 0, None),
        ([_tenure(0, SINCE - 1)], SILENCE_SECONDS, True),
        ([_tenure(SINCE + 1, SINCE + 2)], 3, True),
    ],
)
def test_who_was_there_before_us_is_written_unless_another_saw_them_come(
    others: list[Tenure], age: float, earlier: bool | None
) -> None:
    assert writes_earlier(others, SINCE, SINCE + age) is earlier


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
        ([_tenure(0, 99)], 99 + SILENCE_SECONDS, True),
        ([_tenure(0, 99, ended=True)], 99 + SILENCE_SECONDS, Absence(5_099, 5_100)),
        ([_tenure(0, 99)], 100 + SILENCE_SECONDS, Absence(5_099, 5_100)),
    ],
)
def test_a_gap_is_the_time_in_which_no_tenure_is(
    others: list[Tenure], now: float, expected: Absence | bool | None
) -> None:
    assert absence([*others, ENTERED], ENTERED, now, SILENCE_SECONDS) == expected


def test_a_copy_of_a_file_was_not_in_the_room_before_the_file_itself() -> None:
    copied, entered = (ENTERED._replace(file=name) for name in "ab")
    earlier = _tenure(0, 50)._replace(file="b")
    tenures = [earlier, earlier._replace(file="a"), copied, entered]
    assert absence(tenures, entered, 300, SILENCE_SECONDS) == Absence(5_050, 5_100)
    # Of two bridges that came at once, the same ends the gap, whichever file tells it.
    both = [*tenures, *(it._replace(run="third", id=11) for it in (copied, entered))]
    assert absence(both, entered, 300, SILENCE_SECONDS) == Absence(5_050, 5_100)
    assert absence(both, both[-1], 300, SILENCE_SECONDS) is None
