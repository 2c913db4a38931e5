"""A command of ours in this process: what it says and how it ends, without the start of a Python."""

import os
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import BufferedReader, BytesIO, TextIOWrapper
from pathlib import Path
from unittest.mock import patch

from bridge.cli import main


def run_here(
    home: Path, *command: str | Path, said: str = "", **environment: str
) -> "subprocess.CompletedProcess[str]":
    """What came of a command that is run in `home`, as `run_in` tells it of another process.

    For commands that need no event loop and set up no log: these would change the tests that follow.
    """
    words = [*map(str, command)]
    out, err = (TextIOWrapper(BytesIO(), "utf-8", write_through=True) for _ in range(2))
    stdin = TextIOWrapper(BufferedReader(BytesIO(said.encode())), "utf-8")
    with (
        chdir(home),
        patch.dict(os.environ, {"HOME": str(home), **environment}, clear=True),
        patch.object(sys, "stdin", stdin),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            code = main(words)
        except SystemExit as ended:
            code = int(ended.code or 0)
    told = (stream.buffer.getvalue().decode() for stream in (out, err))
    return subprocess.CompletedProcess(words, code, *told)
