"""How fast an agent may talk: a token bucket, with time as a value. Pure."""

TOLERANCE_SECONDS = 1e-6
"""Whoever waits as long as they were told is let through, whatever floats make of the sum."""

SECONDS = 60.0
"""The rate is one a minute, and a minute's worth may go at once."""


class Pace:
    """Lets `per_minute` messages go in a minute, on average, and as many at once after a rest."""

    def __init__(self, per_minute: int, set_by: str = "") -> None:
        self.per_minute = per_minute
        self.set_by = set_by
        """Where the rate is set, for who has to change it; empty where nobody set it."""
        self._interval = SECONDS / per_minute
        self._at = 0.0
        self._missing = 0.0
        """How many seconds after `_at` the bucket is full again."""

    def take(self, now: float) -> float:
        """Take a token and return 0; or take none, and return the seconds until there is one.

        `now` is in seconds, of any clock that is not set back.
        """
        self._missing = max(0.0, self._missing - (now - self._at))
        self._at = now
        wait = self._missing + self._interval - SECONDS
        if wait > TOLERANCE_SECONDS:
            return wait
        self._missing += self._interval
        return 0.0

    def give_back(self) -> None:
        """Return a token that was taken for nothing."""
        self._missing -= self._interval
