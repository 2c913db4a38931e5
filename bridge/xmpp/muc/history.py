"""Says how long a room may be sending its history after it has let us in. Pure.

A room sends its history after our own presence and before the subject (XEP-0045, sections 7.2.13
and 7.2.15); some rooms send it before our presence. In that time a message with a delay is history,
whichever address is in the stamp: some rooms stamp with the sender's address instead of their own.
After that time a stamp proves nothing, since an occupant may write a stamp into a live message.
"""

from math import inf

QUIET_SECONDS = 2.0
"""A room that was silent for this time has sent all of its history, even if no subject came."""

HISTORY_SECONDS = 10.0
"""The longest time of a room's history. Occupants who go on speaking cannot prolong it."""


class HistoryWindow:
    """The time in which a room may send its history.

    All times are seconds of the loop's clock. The window closes at the first of these:

    - the subject
    - the first live message of an occupant
    - `QUIET_SECONDS` in which the room sent nothing
    - `HISTORY_SECONDS` after it opened
    """

    def __init__(self) -> None:
        self.until = -inf
        """When the window closes by itself."""
        self._ends = -inf
        """When it closes at the latest."""

    def open(self, now: float) -> None:
        """Open the window: the room is letting us in, or has sent something before."""
        self.until, self._ends = now + QUIET_SECONDS, now + HISTORY_SECONDS

    def hear(self, now: float) -> None:
        """Note that the room sent something; a closed window stays closed."""
        if self.is_open(now):
            self.until = min(self._ends, now + QUIET_SECONDS)

    def close(self) -> None:
        """Close the window: the subject has come, or a live message of an occupant."""
        self.until = -inf

    def is_open(self, now: float) -> bool:
        """Whether the room may still be sending its history."""
        return now < self.until
