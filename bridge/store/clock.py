"""The clock by which bridges compare what they saw, and tell how long it took. It is never set."""

import time
from contextlib import suppress
from pathlib import Path

NEVER_ASLEEP: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""The monotonic clock that goes on while the machine sleeps. On Linux this is `CLOCK_BOOTTIME`."""


def steady() -> float:
    """Return seconds since the machine was started, the same in every process."""
    return time.clock_gettime(NEVER_ASLEEP)


class Instant(float):
    """A time by the clock that people read, in seconds since the epoch, and by the steady clock.

    Two instants are compared, and subtracted, by the steady clock: the other may have been set in
    between. With any other number, an instant is what people read.
    """

    steady: float

    @classmethod
    def of(cls, at: float, by_steady: float) -> "Instant":
        """Return the time that is `at` for people, and `by_steady` by the steady clock."""
        instant = cls(at)
        instant.steady = by_steady
        return instant

    @classmethod
    def now(cls) -> "Instant":
        """Return the time now."""
        return cls.of(time.time(), steady())

    def __sub__(self, other: float) -> float:
        if isinstance(other, Instant):
            return self.steady - other.steady
        return float.__sub__(self, other)

    def __lt__(self, other: float) -> bool:
        return self - other < 0

    def __le__(self, other: float) -> bool:
        return self - other <= 0

    def __gt__(self, other: float) -> bool:
        return self - other > 0

    def __ge__(self, other: float) -> bool:
        return self - other >= 0


def boot() -> str:
    """Return a name of the time since the machine was started; empty if there is none."""
    with suppress(OSError, UnicodeError):
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    return ""
