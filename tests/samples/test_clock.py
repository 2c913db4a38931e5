import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from bridge.mcp.errors import ToolError
from bridge.mcp.schema import render
from bridge.samples import clock


@pytest.fixture
def environ() -> Iterator[pytest.MonkeyPatch]:
    """The environment, after which the process has its old zone."""
    with pytest.MonkeyPatch.context() as patch:
        yield patch
    time.tzset()


@pytest.mark.parametrize(
    ("zone", "local", "name", "abbreviation"),
    [
        ("UTC", "2026-11-22T02:30:00+00:00", "UTC", "UTC"),
        ("Asia/Kolkata", "2026-11-22T08:00:00+05:30", "Asia/Kolkata", "IST"),
        (":America/New_York", "2026-11-21T21:30:00-05:00", "America/New_York", "EST"),
        ("XYZ-3", "2026-11-22T05:30:00+03:00", "XYZ", "XYZ"),
    ],
)
def test_a_moment_is_told_in_the_zone_of_the_process(
    zone: str, local: str, name: str, abbreviation: str, environ: pytest.MonkeyPatch
) -> None:
    environ.setenv("TZ", zone)
    time.tzset()
    assert render(clock.local_time(1795314600.5, clock.zone_name())) == {
        "local": local,
        "utc": "2026-11-22T02:30:00.500Z",
        "zone": name,
        "abbreviation": abbreviation,
        "weekday": datetime.fromisoformat(local).strftime("%A"),
    }


@pytest.mark.parametrize("zone", ["Mars/Phobos", ":Europe/Atlantis", "/no/such/file", "UTC+"])
def test_a_zone_that_does_not_exist_is_refused_and_not_taken_for_utc(
    zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", zone)
    with pytest.raises(ToolError) as refusal:
        clock.current_time()
    assert repr(zone) in refusal.value.message
    assert refusal.value.hint.startswith("Whoever runs the bridge")
    assert "TZ" in refusal.value.hint


def test_the_zone_of_the_system_is_where_its_link_leads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = tmp_path / "localtime"
    monkeypatch.setattr(clock, "LOCALTIME", link)
    monkeypatch.delenv("TZ", raising=False)
    assert clock.zone_name() is None
    link.symlink_to("/usr/share/zoneinfo/Europe/Rome")
    assert clock.zone_name() == "Europe/Rome"
    link.unlink()
    link.write_text("no link", "utf-8")
    assert clock.zone_name() is None


def test_the_time_told_is_now() -> None:
    before = time.time()
    result = clock.current_time()
    utc = datetime.fromisoformat(result.data.utc).timestamp()
    assert before - 0.001 <= utc <= time.time()
    assert datetime.fromisoformat(result.data.local).timestamp() == int(utc)
    assert "person" in result.prompt
