import pytest

from bridge.text import iso, iso_of, seconds_of


@pytest.mark.parametrize(
    ("at", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_700_000_000.25, "2023-11-14T22:13:20.250Z"),
        (1_700_000_000.9999, "2023-11-14T22:13:20.999Z"),
    ],
)
def test_times_are_iso_8601_in_utc_with_milliseconds(at: float, text: str) -> None:
    assert iso(at) == text


@pytest.mark.parametrize(
    ("stamp", "text"),
    [
        ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00.000Z"),
        ("2026-01-31T12:00:00.1749Z", "2026-01-31T12:00:00.174Z"),
        ("2026-01-31T14:30:00.5+02:30", "2026-01-31T12:00:00.500Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z"),
        ("2026-01-31T12:00:00", None),
        ("0001-01-01T00:00:00+01:00", None),
        ("yesterday", None),
    ],
)
def test_a_time_that_somebody_else_wrote_becomes_one_of_ours(stamp: str, text: str | None) -> None:
    assert iso_of(stamp) == text


@pytest.mark.parametrize(
    ("stamp", "seconds"),
    [("1970-01-01T01:00:00.25+01:00", 0.25), ("yesterday", None), ("", None), (None, None)],
)
def test_a_time_that_somebody_else_wrote_can_be_compared(
    stamp: str | None, seconds: float | None
) -> None:
    assert seconds_of(stamp) == seconds
