"""Times as people write them, in a zone with summer time."""

import time
from collections.abc import Iterator
from datetime import datetime

import pytest

from bridge.text import iso
from bridge.views.moments import moment

NOW = datetime(2026, 3, 30, 9, 30)
"""The day after the clocks were put forward, local time."""


@pytest.fixture(autouse=True)
def _in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("now", "2026-03-30T07:30:00.000Z"),
        ("today", "2026-03-29T22:00:00.000Z"),
        ("Yesterday", "2026-03-28T23:00:00.000Z"),
        ("yesterday 12:00", "2026-03-29T10:00:00.000Z"),
        ("today 00:30", "2026-03-29T22:30:00.000Z"),
        ("2 hours ago", "2026-03-30T05:30:00.000Z"),
        ("1h", "2026-03-30T06:30:00.000Z"),
        ("-90m", "2026-03-30T06:00:00.000Z"),
        ("1h 30 min ago", "2026-03-30T06:00:00.000Z"),
        (" 3   days ago ", "2026-03-27T07:30:00.000Z"),
        ("10 s ago", "2026-03-30T07:29:50.000Z"),
        ("02:30", "2026-03-30T00:30:00.000Z"),
        ("2026-01-31", "2026-01-30T23:00:00.000Z"),
        ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00.000Z"),
        ("2026-01-31T12:00:00.250+01:00", "2026-01-31T11:00:00.250Z"),
    ],
)
def test_a_time_is_read_as_journalctl_reads_it(text: str, meant: str) -> None:
    assert iso(moment(text, NOW)) == meant


@pytest.mark.parametrize(
    "text", ["", "soon", "2 houses", "25:00", "2026-02-30", "\u202e", "0001-01-01x"]
)
def test_what_is_no_time_is_refused_with_what_would_be_one(text: str) -> None:
    with pytest.raises(ValueError, match="is no time; write 2026-01-31") as refused:
        moment(text, NOW)
    assert "\u202e" not in str(refused.value)
