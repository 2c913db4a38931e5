import pytest

from bridge.times import iso


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
