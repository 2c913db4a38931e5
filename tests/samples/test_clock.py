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
    before = int(time.time())
    result = current_time()
    local = datetime.fromisoformat(result.data.local)
    assert before <= local.timestamp() <= time.time()
    assert result.data.local.endswith(offset)
    assert result.data.zone == abbreviation
    assert "person" in result.prompt
