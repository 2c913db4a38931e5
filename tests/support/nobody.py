"""Being somebody whom permissions bind."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

NOBODY = 65534
"""Root may do everything; whoever this is may not."""


@contextmanager
def without_privileges() -> Iterator[None]:
    """Not as root, whom no permission binds."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(before)
