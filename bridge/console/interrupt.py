"""Signals, while we run: Ctrl-C means something else at every turn, and none leaves a mess."""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager


def heed_the_end(action: Callable[[int], object]) -> None:
    """Have SIGTERM, and SIGHUP where nobody ignores it (`nohup`), call `action` with its number."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            asyncio.get_running_loop().add_signal_handler(number, action, number)


def heed(action: Callable[[], object]) -> None:
    """Have Ctrl-C call `action` from now on."""
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, action)


@contextmanager
def heeding(action: Callable[[], object]) -> Iterator[None]:
    """Have Ctrl-C call `action` within the block, and what it did before afterwards."""
    before = signal.getsignal(signal.SIGINT)
    heed(action)
    try:
        yield
    finally:
        asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, before)


@contextmanager
def shielded() -> Iterator[None]:
    """Have Ctrl-C do nothing where nobody heeds it: between an answer and the next prompt."""
    before = signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
