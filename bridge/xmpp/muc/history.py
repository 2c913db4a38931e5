"""Says how long a room may be sending its history after it has let us in. Pure.

A room sends its history after our own presence and before the subject (XEP-0045, sections 7.2.13
and 7.2.15); some rooms send it before our presence. In that time a message with a delay is history,
whoever stamped it: some rooms stamp with the sender's address, not with their own. After that time
a stamp proves nothing, since an occupant may write one into a live message.
"""

from math import inf

QUIET_SECONDS = 2.0
"""A room that sends nothing for so long has sent all of its history, though no subject came."""

HISTORY_SECONDS = 10.0
"""The most that a room's history takes, in seconds. Occupants who go on speaking cannot make the
time any longer."""


class HistoryWindow:
    """The time in which a room may send its history.

    All times are seconds of the loop's clock. The window closes with the subject, with the first
    live message of an occupant, after `QUIET_SECONDS` in which the room sent nothing, and after
    `HISTORY_SECONDS`.
    """

    def __init__(self) -> None:
        self._opened = self._heard = -inf

    def open(self, now: float) -> None:
        """Open it: the room has sent something before it let us in, or is letting us in."""
        self._opened = self._heard = now

    def hear(self, now: float) -> None:
        """Note that the room sent something; a window that has closed stays closed."""
        if self.is_open(now):
            self._heard = now

    def close(self) -> None:
        """Close it, since the room has sent the subject, or an occupant something live."""
        self._opened = self._heard = -inf

    @property
    def until(self) -> float:
        """When it closes by itself."""
        return min(self._opened + HISTORY_SECONDS, self._heard + QUIET_SECONDS)

    def is_open(self, now: float) -> bool:
        """Whether the room may still be sending its history."""
        return now < self.until
