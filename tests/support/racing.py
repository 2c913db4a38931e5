"""Doing something at the very moment that a file is opened or renamed, as whoever races us would.

Python announces both to audit hooks, after whatever was checked before and ahead of the system
call: no thread has to be lucky.
"""

import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

Act = Callable[[], object]

_acts: dict[tuple[str, str], list[Act]] = {}
_installed: list[bool] = []


@contextmanager
def at_the_moment(event: str, path: Path, act: Act, *, time: int = 1) -> Iterator[None]:
    """Do `act` once, when `path` is about to be opened (`open`) or renamed (`os.rename`).

    `time` says which time it has to be, the first or a later one.
    """
    if not _installed:  # for good: there is no taking one back
        sys.addaudithook(_hook)
        _installed.append(True)
    _acts[event, str(path)] = [*[_nothing] * (time - 1), act]
    try:
        yield
        assert not _acts, f"nobody came to {event} {path}"
    finally:
        _acts.clear()


def _hook(event: str, arguments: tuple[object, ...]) -> None:
    if not _acts or not arguments or not isinstance(arguments[0], str | os.PathLike):
        return
    key = event, os.fspath(arguments[0])
    if key in _acts:
        act = _acts[key].pop(0)
        if not _acts[key]:
            del _acts[key]
        act()


def _nothing() -> None:
    """Let a moment pass."""


def put(path: Path, kind: str, victim: Path) -> None:
    """Put something in the place of what stands at `path`; `victim` is a file that it leads to."""
    path.unlink(missing_ok=True)
    match kind:
        case "link":
            path.symlink_to(victim)
        case "link to nothing":
            path.symlink_to(victim.with_name("nothing"))
        case "hard link":
            path.hardlink_to(victim)
        case "FIFO":
            os.mkfifo(path)
        case "directory":
            path.mkdir()
        case "endless device":
            path.symlink_to("/dev/zero")
        case "full device":
            path.symlink_to("/dev/full")
        case _:
            raise ValueError(kind)


def somebodys_file(folder: Path, content: str) -> Path:
    """A file of somebody else, which no link may lead us to."""
    victim = folder / "victim"
    victim.write_text(content)
    victim.chmod(0o644)
    return victim


def is_untouched(victim: Path, content: str) -> bool:
    """Whether it is as it was, and nothing has come beside it."""
    mode = stat.S_IMODE(victim.stat().st_mode)
    nothing = victim.with_name("nothing")
    return (victim.read_text(), mode, nothing.exists()) == (content, 0o644, False)
