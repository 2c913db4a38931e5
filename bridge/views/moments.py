"""Times as people write them on a command line, such as `yesterday` or `2 hours ago`."""

import re
from contextlib import suppress
from datetime import datetime, timedelta

from bridge.text import quoted

SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}

_PART = "([0-9]{1,5}) ?(s|sec|seconds?|m|min|minutes?|h|hours?|d|days?|w|weeks?)"
_AGO = re.compile(f"-?({_PART} ?)+|({_PART} ?)+ago")
_DAYS = {"today": 0, "yesterday": 1}
"""The words for days, which a time of day may follow, and how many days ago each day is."""


def moment(text: str, now: datetime) -> float:
    """Return the time that `text` means to `journalctl`, in seconds since the epoch.

    `now` is local time, and so is a time that is written without a zone. Raises `ValueError`.
    """
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    words = " ".join(text.lower().split())
    if words == "now":
        return now.timestamp()
    if _AGO.fullmatch(words):
        ago = sum(int(count) * SECONDS[unit[0]] for count, unit in re.findall(_PART, words))
        return now.timestamp() - ago
    day, _, time = words.partition(" ")
    if day in _DAYS:
        today, words = today - timedelta(days=_DAYS[day]), time or "00:00"
    for written in (text.strip(), f"{today:%Y-%m-%d} {words}"):
        with suppress(ValueError, OverflowError):
            return datetime.fromisoformat(written).timestamp()
    raise ValueError(
        f'{quoted(text)} is no time; write 2026-01-31, "2026-01-31 12:00", 12:00, '
        '2026-01-31T12:00:00Z, now, today, "yesterday 12:00", 90m or "2 hours ago"'
    )
