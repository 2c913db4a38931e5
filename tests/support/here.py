"""A command of ours in this process: what it says and how it ends, with no Python to start."""

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from io import BufferedReader, BytesIO, TextIOWrapper
from pathlib import Path
from time import tzset
from unittest.mock import patch

from bridge.cli import main

HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The signals that a command handles, and ignores at its end."""


def run_here(
    home: Path, *command: str | Path, said: str = "", **environment: str
) -> "subprocess.CompletedProcess[str]":
    """What came of a command that is run in `home`, as `run_in` tells it of another process.

    Not for tests with an event loop, nor for commands that set up a log.
    """
    words = [*map(str, command)]
    out, err = (TextIOWrapper(BytesIO(), "utf-8", write_through=True) for _ in range(2))
    stdin = TextIOWrapper(BufferedReader(BytesIO(said.encode())), "utf-8")
    logged = logging.getLogger("bridge").handlers[:]
    with (
        _restoring(),
        chdir(home),
        patch.dict(os.environ, {"HOME": str(home), **environment}, clear=True),
        patch.object(sys, "stdin", stdin),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        tzset()
        try:
            code = main(words)
        except SystemExit as ended:
            code = int(ended.code or 0)
    assert logging.getLogger("bridge").handlers == logged
    told = (stream.buffer.getvalue().decode() for stream in (out, err))
    return subprocess.CompletedProcess(words, code, *told)


@contextmanager
def _restoring() -> Iterator[None]:
    """Undo what a command does to the process because its end is near."""
    handlers = {number: signal.getsignal(number) for number in HANDLED}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        tzset()
