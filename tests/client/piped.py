"""The client as a script runs it: lines go in through a pipe, answers come out."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from tests.client.terminal import SECONDS
from tests.e2e.bridge_process import COMMAND, run_in


def run(
    home: Path,
    said: str,
    *arguments: str,
    more: Mapping[str, str] | None = None,
    redirection: str = "",
) -> "subprocess.CompletedProcess[str]":
    """Run the client with these lines as its input, and with `more` variables.

    It is run as a shell does it, perhaps with a redirection such as `<&-`.
    """
    command = ("/bin/sh", "-c", f'exec "$@" {redirection}', "sh", COMMAND, "client", *arguments)
    return run_in(home, *command, said=said, **(more or {}))


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    tasks = Path(f"/proc/{pid}/task")
    return [int(one) for task in tasks.iterdir() for one in (task / "children").read_text().split()]


class Piped:
    """A client that is spoken to line by line."""

    def __init__(self, home: Path, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [COMMAND, "client", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            bufsize=1,
            cwd=home,
            env={"PATH": os.environ["PATH"], "HOME": str(home)},
        )

    @property
    def stdout(self) -> IO[str]:
        """Where its answers come out."""
        assert self.process.stdout is not None
        return self.process.stdout

    @property
    def stderr(self) -> IO[str]:
        """Where its log comes out."""
        assert self.process.stderr is not None
        return self.process.stderr

    def say(self, line: str) -> None:
        """Write one line to its input."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")

    def end(self) -> tuple[int, str]:
        """Return the exit code, and what it wrote to stderr since it was last read."""
        with self.process:
            return self.process.wait(SECONDS), self.stderr.read()
