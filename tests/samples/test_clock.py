import time
from collections.abc import Iterator
from datetime import datetime

import pytest

from bridge.samples.clock import current_time


@pytest.fixture
def environ() -> Iterator[pytest.MonkeyPatch]:
    """The environment, after which the process has its old zone."""
    with pytest.MonkeyPatch.context() as patch:
        yield patch
    time.tzset()


@pytest.mark.parametrize(
    ("zone", "offset", "abbreviation"),
    [
        ("UTC", "+00:00", "UTC"),
        ("Asia/Kolkata", "+05:30", "IST"),
        ("XYZ-3", "+03:00", "XYZ"),
    ],
)
def test_the_time_told_is_now_in_the_zone_of_the_process(
    zone: str, offset: str, abbreviation: str, environ: pytest.MonkeyPatch
) -> None:
    environ.setenv("TZ", zone)
    time.tzset()
    before = time.time()
    result = current_time()
    utc = datetime.fromisoformat(result.data.utc).timestamp()
    assert before - 0.001 <= utc <= time.time()
    local = datetime.fromisoformat(result.data.local)
    assert local.timestamp() == int(utc)
    assert result.data.local.endswith(offset)
    assert result.data.zone == abbreviation
    assert result.data.weekday == local.strftime("%A")
    assert "person" in result.prompt
