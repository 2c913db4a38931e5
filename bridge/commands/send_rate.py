"""Counts the messages of `send` and `diagnose --say` across their runs, in a file for each account.

The file is empty: its time of change is `RateLimiter.full_at`, by the wall clock. It lies in the
folder of the default store, for its owner alone. The bridge itself (`serve`) counts its messages in
memory.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256

from bridge.files import make_folder, open_private, state_folder
from bridge.mcp.errors import ToolError
from bridge.tools.send import SECONDS, RateLimiter


class CountedRate(RateLimiter):
    """A rate limiter for all runs of one account together.

    Its methods use the wall clock, not the time that they are given. They raise `ToolError` if the
    file cannot be used. If the clock was set back, the rate counts as used up.
    """

    def __init__(self, per_minute: int, rate_in: str, account: str) -> None:
        super().__init__(per_minute, rate_in)
        name = f"sent-{sha256(account.encode()).hexdigest()[:32]}"
        self._path = state_folder(os.environ) / name

    def wait(self, now: float) -> float:
        """Return the seconds until there is a token."""
        with self._counted() as now:
            return super().wait(now)

    def take(self, now: float) -> float:
        """Take a token, or return the seconds until there is one."""
        with self._counted() as now:
            return super().take(now)

    def give_back(self) -> None:
        """Return a token for a message that was not sent."""
        with self._counted():
            super().give_back()

    @contextmanager
    def _counted(self) -> Iterator[float]:
        """Yield the time, with the count of former runs; at the end of the block, save the count.

        Other runs wait until the block has ended.
        """
        path = self._path
        try:
            make_folder(path.parent)
            if path.parent.is_symlink():
                raise OSError("its folder is a symbolic link")
            descriptor = open_private(path, os.O_RDWR)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                now = time.time()
                self.full_at = min(os.fstat(descriptor).st_mtime, now + SECONDS)
                yield now
                os.utime(descriptor, (now, self.full_at))
            finally:
                os.close(descriptor)  # and with it the lock
        except OSError as error:
            raise ToolError(
                f"Not sent: it cannot be counted in {str(path)!r} ({error.strerror or error}).",
                condition="policy-violation",
                hint="Make it a file that only you can use, or set XDG_STATE_HOME to another "
                "folder.",
            ) from error
