"""Counts the messages of `send` and `diagnose --say` across their runs, in a file for each account.

The file is empty. Its time of change is that of `RateLimiter.full_at`, by the wall clock. It is
in the folder of the default store, and for its owner alone. The bridge itself (`serve`) counts its
messages in memory.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from bridge.files import make_folder, open_private
from bridge.mcp.errors import ToolError
from bridge.store.location import default_path
from bridge.tools.send import SECONDS, RateLimiter


@contextmanager
def counted(rate: RateLimiter, account: str) -> Iterator[float]:
    """Let `rate` go on from the former runs of this account, and keep what the block takes.

    Yields the time by the wall clock. Other runs wait until the block has ended. After the clock
    was set back, the rate counts as used up by now. Raises `ToolError` if the file cannot be used.
    """
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - it never raises
    name = f"sent-{sha256(account.encode()).hexdigest()[:32]}"
    path = default_path(os.environ, home).with_name(name)
    try:
        make_folder(path.parent)
        if path.parent.is_symlink():
            raise OSError("its folder is a symbolic link")
        descriptor = open_private(path, os.O_RDWR)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            now = time.time()
            rate.full_at = min(os.fstat(descriptor).st_mtime, now + SECONDS)
            yield now
            os.utime(descriptor, (now, rate.full_at))
        finally:
            os.close(descriptor)  # and with it the lock
    except OSError as error:
        raise ToolError(
            f"Not sent: it cannot be counted in {str(path)!r} ({error.strerror or error}).",
            condition="policy-violation",
            hint="Make it a file that only you can use, or set XDG_STATE_HOME to another folder.",
        ) from error
