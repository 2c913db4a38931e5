"""Makes folders and files for their owner alone, and replaces files as a whole."""

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for their owner alone."""
    for missing in reversed([each for each in (folder, *folder.parents) if not each.exists()]):
        missing.mkdir(0o700, exist_ok=True)  # another process may just have made it


def open_private(path: Path, flags: int) -> int:
    """Return the descriptor of a file for its owner alone, which is made if it is missing.

    Raises `OSError` if the path is a link, or leads to something else than a file of its own.
    """
    flags |= os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NOCTTY, 0o600)
    held = os.fstat(descriptor)
    try:
        # A file with several names may be somebody else's, which a hard link leads to.
        if not stat.S_ISREG(held.st_mode) or held.st_nlink != 1:
            raise OSError("it is no file of its own")
        os.fchmod(descriptor, 0o600)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a new file for its owner alone, which takes the place of `path` after the block.

    If the block raises, `path` is as it was before.
    """
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".xmpp-bridge-")
    os.close(descriptor)
    new = Path(name)
    try:
        yield new
        new.replace(path)
    finally:  # Ctrl-C, too, must leave no part of a file
        new.unlink(missing_ok=True)
