"""The clock by which the bridges of one machine compare what they saw; it is never set."""

import time
from contextlib import suppress
from pathlib import Path

NEVER_ASLEEP: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""The monotonic clock that goes on while the machine sleeps. On Linux this is `CLOCK_BOOTTIME`."""


def steady() -> float:
    """Return seconds since the machine was started, the same in every process."""
    return time.clock_gettime(NEVER_ASLEEP)


def boot() -> str:
    """Return a name of the time since the machine was started; empty if there is none."""
    with suppress(OSError, UnicodeError):
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    return ""
