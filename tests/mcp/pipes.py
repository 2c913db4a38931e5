"""Pipes, and the patience to read them."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

PATIENCE = 30.0
"""Seconds after which a test that waits has failed."""


@contextmanager
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    os.close(reading)
    os.close(writing)


def read_all(descriptor: int) -> bytes:
    """Return what a non-blocking descriptor holds just now."""
    os.set_blocking(descriptor, False)
    output = bytearray()
    with suppress(BlockingIOError):
        while data := os.read(descriptor, 1 << 20):
            output += data
    return bytes(output)


async def turns(count: int = 20) -> None:
    """Let the loop go round."""
    for _ in range(count):
        await asyncio.sleep(0)
