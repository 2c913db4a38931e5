"""What a file system may do to a program: no more room, an odd umask."""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_file_beyond(size: int) -> Iterator[None]:
    """A disk that is full, as this process sees it: writes stop short at `size`, then fail."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def mask(value: int) -> Iterator[None]:
    before = os.umask(value)
    try:
        yield
    finally:
        os.umask(before)
