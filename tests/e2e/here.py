"""A command of ours in this process: what it says and how it ends, with no Python to start."""

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from time import tzset
from unittest.mock import patch

from bridge.cli import main
from bridge.logs import QUIET
from bridge.settings import sources
from tests.e2e.bridge_process import COMMAND

HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The signals that a command handles, and ignores at its end."""
PLACES = sources.places


def run_here(
    home: Path, *command: str | Path, said: str = "", **environment: str
) -> "subprocess.CompletedProcess[str]":
    """What came of a command that is run in `home`, as `run_in` tells it of another process.

    What it starts has its stdin, stdout and stderr. An event loop must not be running here.
    """

    def places(environ: Mapping[str, str], cwd: Path, _: Path) -> dict[Path, bool]:
        # The package is the checkout's, which may have a developer's `.env` beside it.
        return PLACES(environ, cwd, home / "package")

    words = [*map(str, command)]
    variables = {"PATH": "/usr/bin:/bin", "HOME": str(home), **environment}
    with TemporaryFile() as stdin, TemporaryFile() as stdout, TemporaryFile() as stderr:
        stdin.write(said.encode())
        stdin.seek(0)
        with (
            _unchanged(),
            chdir(home),
            patch.dict(os.environ, variables, clear=True),
            patch.object(sys, "argv", [COMMAND, *words]),
            patch.object(sources, "places", places),
            _instead("stdin", 0, stdin.fileno()),
            _instead("stdout", 1, stdout.fileno()),
            _instead("stderr", 2, stderr.fileno()),
        ):
            tzset()
            try:
                code = main()
            except SystemExit as ended:
                code = int(ended.code or 0)
        stdout.seek(0)
        stderr.seek(0)
        told = stdout.read().decode(), stderr.read().decode()
    return subprocess.CompletedProcess(words, code, *told)


@contextmanager
def _instead(name: str, number: int, descriptor: int) -> Iterator[None]:
    """Have a standard stream lead elsewhere, for this process and for what it starts."""
    kept = os.dup(number)
    os.dup2(descriptor, number)
    try:
        with (
            open(number, "w" if number else "r", 1, "utf-8", closefd=False) as stream,
            patch.object(sys, name, stream),
        ):
            yield
    finally:
        os.dup2(kept, number)
        os.close(kept)


@contextmanager
def _unchanged() -> Iterator[None]:
    """Undo what a command does to the process that is its own: signals, logs, the time zone."""
    handlers = {number: signal.getsignal(number) for number in HANDLED}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    logs = [logging.getLogger(name) for name in ("bridge", *QUIET)]
    logged = [(log.handlers, log.level, log.propagate) for log in logs]
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for log, (into, level, propagate) in zip(logs, logged, strict=True):
            log.handlers, log.propagate = into, propagate
            log.setLevel(level)
        tzset()
