"""What ends a command from outside."""

import asyncio
import signal
from collections.abc import Callable


def call_on_termination(action: Callable[[int], object]) -> None:
    """Have SIGTERM call `action` with its number, and SIGHUP too unless it is ignored (`nohup`)."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            asyncio.get_running_loop().add_signal_handler(number, action, number)
