"""How much memory Python's own objects take."""

import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def traced() -> Iterator[Callable[[], tuple[int, int]]]:
    """What is allocated meanwhile, from the start on: now, and the most that there was."""
    tracemalloc.start()
    try:
        yield tracemalloc.get_traced_memory
    finally:
        tracemalloc.stop()
