"""The client as a script runs it: lines go in through a pipe, answers come out."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.e2e.bridge_process import COMMAND, run_in
from tests.e2e.here import run_here


def run(
    home: Path,
    said: str,
    *arguments: str,
    more: Mapping[str, str] | None = None,
    redirection: str = "",
) -> "subprocess.CompletedProcess[str]":
    """Run the client with these lines as its input, and with `more` variables.

    With a redirection such as `<&-` a shell starts it.
    """
    if not redirection:
        return run_here(home, "client", *arguments, said=said, **(more or {}))
    command = ("/bin/sh", "-c", f'exec "$@" {redirection}', "sh", COMMAND, "client", *arguments)
    return run_in(home, *command, said=said, **(more or {}))


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    tasks = Path(f"/proc/{pid}/task")
    return [
        int(each) for task in tasks.iterdir() for each in (task / "children").read_text().split()
    ]
