import asyncio
import fcntl
import os
import resource
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from bridge.mcp import stdio
from bridge.mcp.stdio import MAX_UNSENT_BYTES, READ_BYTES, Stdio, read_chunks

PATIENCE = 10.0
"""Seconds after which a test that waits has failed."""

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


@contextmanager
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    os.close(reading)
    os.close(writing)


def read_all(descriptor: int) -> bytes:
    """Return what a non-blocking descriptor holds just now."""
    os.set_blocking(descriptor, False)
    found = bytearray()
    with suppress(BlockingIOError):
        while data := os.read(descriptor, 1 << 20):
            found += data
    return bytes(found)


async def turns(count: int = 20) -> None:
    """Let the loop go round."""
    for _ in range(count):
        await asyncio.sleep(0)


# What comes in


async def test_bytes_are_read_from_a_pipe_until_its_end() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"one")
    found = []
    async with asyncio.timeout(PATIENCE):
        async for chunk in read_chunks(reading):
            found.append(chunk)
            if chunk == b"one":
                os.write(writing, b"two")
                os.close(writing)
    os.close(reading)
    assert found == [b"one", b"two"]


async def test_bytes_are_read_from_a_socket_until_its_end() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"one")
        theirs.shutdown(socket.SHUT_WR)
        async with asyncio.timeout(PATIENCE):
            assert [chunk async for chunk in read_chunks(ours.fileno())] == [b"one"]


async def test_bytes_are_read_from_a_regular_file_in_bounded_chunks(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    path.write_bytes(b"x" * (READ_BYTES + 1))
    with path.open("rb") as file:
        chunks = [len(chunk) async for chunk in read_chunks(file.fileno())]
    assert chunks == [READ_BYTES, 1]


async def test_a_regular_file_leaves_the_loop_to_others_between_chunks(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    path.write_bytes(b"x" * READ_BYTES * 5)
    went = asyncio.Event()
    asyncio.get_running_loop().call_soon(went.set)
    with path.open("rb") as file:
        async for _ in read_chunks(file.fileno()):
            assert went.is_set()


async def test_an_empty_device_is_at_its_end_at_once() -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    assert [chunk async for chunk in read_chunks(nothing)] == []
    os.close(nothing)


async def test_a_terminal_that_hangs_up_is_at_its_end() -> None:
    master, terminal = os.openpty()
    os.write(master, b"hello\n")
    found = []
    async with asyncio.timeout(PATIENCE):
        async for chunk in read_chunks(terminal):
            found.append(chunk)
            os.close(master)
    os.close(terminal)
    assert found == [b"hello\n"]


async def test_a_pipe_that_does_not_block_is_read_like_any_other() -> None:
    with pipe() as (reading, writing):
        os.set_blocking(reading, False)
        os.write(writing, b"x")
        chunks = read_chunks(reading)
        assert await anext(chunks) == b"x"
        waiting = asyncio.ensure_future(anext(chunks))
        await turns()
        assert not waiting.done()
        os.write(writing, b"y")
        assert await waiting == b"y"


async def test_bytes_that_another_process_took_do_not_block_the_loop() -> None:
    with pipe() as (reading, writing):
        chunks = read_chunks(reading)
        waiting = asyncio.ensure_future(anext(chunks))
        await turns()
        os.write(writing, b"x")
        # The loop sees the byte in this turn; before the reader wakes, it is gone.
        asyncio.get_running_loop().call_soon(os.read, reading, 1)
        await turns()
        assert not waiting.done()
        os.write(writing, b"y")
        async with asyncio.timeout(PATIENCE):
            assert await waiting == b"y"


async def test_nobody_listens_for_bytes_that_nobody_takes() -> None:
    with pipe() as (reading, writing):
        os.write(writing, b"x")
        chunks = read_chunks(reading)
        assert await anext(chunks) == b"x"
        os.write(writing, b"y")
        # A loop that listened would go round and round for as long as the byte waits.
        assert not asyncio.get_running_loop().remove_reader(reading)
        assert await anext(chunks) == b"y"


async def test_nobody_listens_to_a_descriptor_once_reading_was_cancelled() -> None:
    with pipe() as (reading, _writing):
        waiting = asyncio.ensure_future(anext(read_chunks(reading)))
        await turns()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert not asyncio.get_running_loop().remove_reader(reading)


# What goes out


async def test_what_fits_is_sent_at_once() -> None:
    with pipe() as (reading, writing):
        out = Stdio(None, stdio._unblock(os.dup(writing)))  # noqa: SLF001
        out.write(b"hello\n")
        assert read_all(reading) == b"hello\n"
        out.write(b"")
        assert [chunk async for chunk in out.chunks()] == []
        await out.flush()
        out.close()


async def test_what_does_not_fit_is_sent_in_order_when_there_is_room() -> None:
    with pipe() as (reading, writing):
        out = Stdio(None, stdio._unblock(os.dup(writing)))  # noqa: SLF001
        sent = bytes(range(256)) * 4096
        for start in range(0, len(sent), 50_000):
            out.write(sent[start : start + 50_000])
        found = b""
        async with asyncio.timeout(PATIENCE):
            while len(found) < len(sent):
                found += read_all(reading)
                await asyncio.sleep(0)
            await out.flush()
        assert found == sent
        out.write(b"more")
        assert read_all(reading) == b"more"
        out.close()


@pytest.mark.parametrize("over", [0, 1])
async def test_no_more_is_read_while_more_than_the_limit_is_unsent(over: int) -> None:
    with pipe() as (requests, client_out), pipe() as (client_in, replies):
        size = fcntl.fcntl(replies, fcntl.F_GETPIPE_SZ)
        both = Stdio(os.dup(requests), stdio._unblock(os.dup(replies)))  # noqa: SLF001
        os.write(client_out, b"1")
        chunks = both.chunks()
        assert await anext(chunks) == b"1"
        both.write(b"x" * (size + MAX_UNSENT_BYTES + over))
        os.write(client_out, b"2")
        waiting = asyncio.ensure_future(anext(chunks))
        await turns()
        assert waiting.done() is not bool(over)
        async with asyncio.timeout(PATIENCE):
            while not waiting.done():
                read_all(client_in)
                await asyncio.sleep(0)
        assert await waiting == b"2"
        both.close()


async def test_a_client_that_stopped_reading_and_is_gone_sets_broken() -> None:
    reading, writing = os.pipe()
    out = Stdio(None, stdio._unblock(writing))  # noqa: SLF001
    out.write(b"x" * 1_000_000)
    assert not out.broken.is_set()
    os.close(reading)
    async with asyncio.timeout(PATIENCE):
        await out.broken.wait()
        await out.flush()
    out.write(b"nobody hears")
    out.close()


async def test_a_client_that_is_gone_before_the_first_reply_sets_broken() -> None:
    for end in ("pipe", "socket"):
        if end == "pipe":
            reading, writing = os.pipe()
            os.close(reading)
        else:
            ours, theirs = socket.socketpair()
            theirs.close()
            writing = ours.detach()
        out = Stdio(None, stdio._unblock(writing))  # noqa: SLF001
        out.write(b"x")
        assert out.broken.is_set()
        out.close()


async def test_a_full_disk_sets_broken() -> None:
    out = Stdio(None, os.open("/dev/full", os.O_WRONLY))
    out.write(b"x")
    assert out.broken.is_set()
    out.close()


async def test_closing_with_replies_unsent_leaves_nothing_behind() -> None:
    with pipe() as (_reading, writing):
        descriptor = stdio._unblock(os.dup(writing))  # noqa: SLF001
        out = Stdio(None, descriptor)
        out.write(b"x" * 1_000_000)
        flushing = asyncio.ensure_future(out.flush())
        await turns()
        out.close()
        async with asyncio.timeout(PATIENCE):
            await flushing
        assert not asyncio.get_running_loop().remove_writer(descriptor)


async def test_flushing_may_be_given_up_while_the_client_does_not_read() -> None:
    with pipe() as (_reading, writing):
        out = Stdio(None, stdio._unblock(os.dup(writing)))  # noqa: SLF001
        out.write(b"x" * 1_000_000)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await out.flush()
        out.close()


async def test_a_pipe_is_made_not_to_block_for_us_alone() -> None:
    with pipe() as (_reading, writing):
        ours = stdio._unblock(os.dup(writing))  # noqa: SLF001
        assert not os.get_blocking(ours)
        assert os.get_blocking(writing)
        os.close(ours)


# The process's own descriptors


def test_every_byte_of_a_pipe_comes_back() -> None:
    sent = os.urandom(3_000_000)
    done = subprocess.run(echo(), input=sent, capture_output=True, timeout=PATIENCE, check=True)
    assert done.stdout == sent + b"end\n"
    assert done.stderr == b""


def test_requests_may_come_from_a_file_and_replies_go_to_one(tmp_path: Path) -> None:
    requests, replies = tmp_path / "requests", tmp_path / "replies"
    requests.write_bytes(b"x" * 200_000)
    with requests.open("rb") as stdin, replies.open("wb") as stdout:
        subprocess.run(echo(), stdin=stdin, stdout=stdout, timeout=PATIENCE, check=True)
    assert replies.read_bytes() == requests.read_bytes() + b"end\n"


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


@pytest.mark.parametrize("redirections", ["<&-", "</dev/null", "<&- 2>&-", "</dev/null 2>&-"])
def test_a_closed_or_empty_stdin_is_at_its_end_and_stdout_still_works(redirections: str) -> None:
    done = shell(redirections, echo("print('stray', flush=True)"))
    assert done.stdout == b"end\n"
    assert done.returncode == 0
    assert done.stderr == (b"" if "2>&-" in redirections else b"stray\n")


def test_a_closed_stderr_lets_no_stray_print_reach_stdout() -> None:
    done = shell("2>&-", echo("print('stray', flush=True); os.write(1, b'stray')"))
    assert done.stdout == b"hello\nend\n"
    assert done.returncode == 0


@pytest.mark.parametrize("redirections", [">&-", ">&- <&-"])
def test_a_closed_stdout_is_refused(redirections: str) -> None:
    done = shell(redirections, echo())
    assert done.returncode == 3
    assert done.stderr == b"refused: stdout is closed, so no answer could be read\n"


def test_replies_to_an_empty_device_are_gone_without_a_word() -> None:
    done = shell(">/dev/null", echo())
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


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
    assert done.stderr.decode().splitlines() == [
        "printed",
        "written",
        "from a shell",
        "from a child",
        "from C",
    ]


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


def memory_bytes(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def test_a_client_that_does_not_read_stops_being_read_and_all_comes_when_it_does() -> None:
    total = 40 * 1024 * 1024
    with subprocess.Popen(echo(), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        sending, receiving = child.stdin.fileno(), child.stdout.fileno()
        os.set_blocking(sending, False)
        sent = 0
        # Once the child reads no more, its stdin stays full; before that it may be slow.
        while _becomes(
            sending, writable=True, seconds=PATIENCE if sent <= MAX_UNSENT_BYTES else 0.3
        ):
            sent += os.write(sending, b"\0" * 65536)
        assert MAX_UNSENT_BYTES < sent < MAX_UNSENT_BYTES + 1024 * 1024
        assert memory_bytes(child.pid) < 80 * 1024 * 1024
        os.set_blocking(receiving, False)
        received = 0
        while received < total:
            if sent < total and _becomes(sending, writable=True, seconds=0):
                sent += os.write(sending, b"\0" * min(65536, total - sent))
            if _becomes(receiving, writable=False, seconds=0.01):
                received += len(os.read(receiving, 1 << 20))
        assert received == total
        child.stdin.close()
        assert _becomes(receiving, writable=False, seconds=PATIENCE)
        assert os.read(receiving, 100) == b"end\n"
        assert child.wait(PATIENCE) == 0


def _becomes(descriptor: int, *, writable: bool, seconds: float) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT if writable else select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def test_a_client_that_closes_its_end_breaks_the_pipe() -> None:
    with subprocess.Popen(
        echo(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.close()
        child.stdin.write(b"hello\n")
        child.stdin.flush()
        assert child.stderr.readline() == b"broken\n"
        assert child.wait(PATIENCE) == 0
