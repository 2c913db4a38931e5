"""The process's own descriptors."""

import os
import socket
import subprocess
import sys

import pytest

from tests.mcp.pipes import PATIENCE, pipe, read_all

ECHO = """
import asyncio, os, subprocess, sys
from bridge.mcp.stdio import Stdio, StdioError

async def main():
    stdio = Stdio.claim()
    BEFORE
    async for chunk in stdio.chunks():
        stdio.write(chunk)
        if stdio.broken.is_set():
            sys.stderr.write("broken\\n")
            break
    stdio.write(b"end\\n")
    await stdio.flush()
    AFTER
    stdio.close()

try:
    asyncio.run(main())
except StdioError as error:
    sys.stderr.write(f"refused: {error}\\n")
    sys.exit(3)
"""


def echo(before: str = "pass", after: str = "pass") -> list[str]:
    """Return the command of a child that writes what it reads, and `end` at the end."""
    script = ECHO.replace("BEFORE", before).replace("AFTER", after)
    return [sys.executable, "-W", "error", "-c", script]


def shell(redirections: str, command: list[str]) -> subprocess.CompletedProcess[bytes]:
    """Run `command` with the shell's redirections, which can close descriptors."""
    return subprocess.run(
        ["bash", "-c", f'exec "$@" {redirections}', "bash", *command],
        capture_output=True,
        input=b"hello\n",
        timeout=PATIENCE,
        check=False,
    )


def test_one_socket_may_be_both_stdin_and_stdout() -> None:
    ours, theirs = socket.socketpair()
    with ours, subprocess.Popen(echo(), stdin=theirs.fileno(), stdout=theirs.fileno()) as child:
        theirs.close()
        ours.settimeout(PATIENCE)
        ours.sendall(b"hello\n")
        assert ours.recv(100) == b"hello\n"
        ours.shutdown(socket.SHUT_WR)
        assert ours.recv(100) == b"end\n"
        assert child.wait(PATIENCE) == 0


@pytest.mark.parametrize("redirections", ["</dev/null", "<&- 2>&-"])
def test_a_closed_or_empty_stdin_is_at_its_end_and_stdout_still_works(redirections: str) -> None:
    done = shell(redirections, echo("print('stray', flush=True); os.write(1, b'')"))
    assert done.stdout == b"end\n"
    assert done.returncode == 0
    assert done.stderr == (b"" if "2>&-" in redirections else b"stray\n")


STRAY = """
    print("printed", flush=True)
    os.write(1, b"written\\n")
    os.system("echo from a shell")
    subprocess.run([sys.executable, "-c", "print('from a child')"], check=True)
    import ctypes
    libc = ctypes.CDLL(None)
    libc.puts(b"from C")
    libc.fflush(None)
"""


def test_whatever_anybody_prints_goes_to_stderr() -> None:
    done = subprocess.run(
        echo(STRAY), input=b"hello\n", capture_output=True, timeout=PATIENCE, check=True
    )
    assert done.stdout == b"hello\nend\n"
    told = ["printed", "written", "from a shell", "from a child", "from C"]
    assert done.stderr.decode().splitlines() == told


CHILD = """
    child = subprocess.run(
        [sys.executable, "-c", "import os; print(os.read(0, 9), os.listdir('/proc/self/fd'))"],
        check=True, stdout=subprocess.PIPE, close_fds=False,
    )
    sys.stderr.write(child.stdout.decode())
    sys.stderr.write(repr(sys.stdin and sys.stdin.read()) + "\\n")
"""


@pytest.mark.parametrize("redirections", ["", "<&-"])
def test_a_child_process_inherits_an_empty_stdin_and_neither_of_our_ends(
    redirections: str,
) -> None:
    # asyncio.run comes later: the loop must not have taken descriptor 0.
    command = echo(CHILD)
    script = (
        command[-1]
        .replace("stdio = Stdio.claim()", "stdio = CLAIMED")
        .replace("async def main", "CLAIMED = Stdio.claim()\n\nasync def main")
    )
    done = shell(redirections, [*command[:-1], script])
    childs, own = done.stderr.decode().splitlines()
    assert done.returncode == 0
    assert childs == "b'' ['0', '1', '2', '3']"  # 3 is the listing itself
    assert own == ("None" if redirections else "''")


BLOCKING = """
    sys.stderr.write(repr([os.get_blocking(one) for one in (1, 2)]) + "\\n")
"""


@pytest.mark.parametrize("redirections", ["", "2>&1"])
def test_the_callers_pipes_go_on_blocking(redirections: str) -> None:
    with pipe() as (reading, writing):
        with subprocess.Popen(
            ["bash", "-c", f'exec "$@" {redirections}', "bash", *echo(after=BLOCKING)],
            stdin=subprocess.DEVNULL,
            stdout=writing,
            stderr=subprocess.PIPE,
        ) as child:
            _, errors = child.communicate(timeout=PATIENCE)
        assert os.get_blocking(writing)
        told = errors if not redirections else read_all(reading)
        assert b"[True, True]" in told
