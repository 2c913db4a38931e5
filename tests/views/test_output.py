import asyncio
import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import pytest

from bridge.views.output import Output

SECONDS = 30.0
"""Limit for what a thread is to do at once."""

PIPE_BYTES = 1 << 16
"""What a pipe holds on Linux."""


@dataclass
class Pipe:
    """A pipe whose reading end is ours."""

    reading: int
    writing: int

    def stop_reading(self) -> None:
        os.close(self.reading)
        self.reading = -1

    def said(self) -> bytes:
        os.close(self.writing)
        self.writing = -1
        return b"".join(iter(lambda: os.read(self.reading, PIPE_BYTES), b""))

    def close(self) -> None:
        for descriptor in (self.reading, self.writing):
            if descriptor >= 0:
                os.close(descriptor)


def stream(descriptor: int, encoding: str = "utf-8") -> TextIO:
    return os.fdopen(descriptor, "w", encoding=encoding, closefd=False)


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    """For the matter."""
    pipe = Pipe(*os.pipe())
    yield pipe
    pipe.close()


@pytest.fixture
def beside() -> Iterator[Pipe]:
    """For words about it."""
    pipe = Pipe(*os.pipe())
    yield pipe
    pipe.close()


async def test_both_are_written_each_to_its_own(pipe: Pipe, beside: Pipe) -> None:
    output = Output(stream(pipe.writing), stream(beside.writing), lambda: None)
    for number in range(100):
        output.write(f"{number}")
        output.write_notice(f"about {number}")
    output.close()
    assert pipe.said().decode() == "".join(f"{number}\n" for number in range(100))
    assert beside.said().decode() == "".join(f"about {number}\n" for number in range(100))


async def test_what_an_encoding_lacks_is_written_as_an_escape(pipe: Pipe) -> None:
    output = Output(stream(pipe.writing, "latin-1"), None, lambda: None)
    output.write("é 日 \ud83d")
    output.write_notice("to nobody")
    output.close()
    assert pipe.said() == b"\xe9 \\u65e5 \\ud83d\n"


@pytest.mark.parametrize("too_much", [0, 1])
async def test_what_nobody_reads_is_kept_up_to_the_limit_and_counted_beyond(
    too_much: int, pipe: Pipe, beside: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridge.views.output.MAX_WAITING_BYTES", 3 * PIPE_BYTES)
    output = Output(stream(pipe.writing), stream(beside.writing), lambda: None)
    output.write("x" * (2 * PIPE_BYTES - 1))  # the pipe fills, and the thread waits for its reader
    output.write("y" * (PIPE_BYTES - 1 + too_much))
    kept = (2 if too_much else 3) * PIPE_BYTES
    read = await asyncio.wait_for(asyncio.to_thread(_read, pipe.reading, kept), SECONDS)
    output.write("z")
    output.close()
    assert (b"y" in read) is not bool(too_much)
    assert pipe.said() == b"z\n"
    warning = b"[Client] WARNING: dropped 1 text, since nobody read them\n"
    assert beside.said() == warning * too_much


async def test_a_reader_who_leaves_ends_it_without_a_word(pipe: Pipe) -> None:
    ended = asyncio.Event()
    output = Output(stream(pipe.writing), None, ended.set)
    pipe.stop_reading()
    await asyncio.wait_for(ended.wait(), SECONDS)
    output.write("to nobody")
    output.close()
    assert output.error is None


@pytest.mark.parametrize("kind", ["file", "device"])
async def test_a_file_is_written_like_a_pipe(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "file" if kind == "file" else Path("/dev/null")
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
    output = Output(stream(descriptor), None, lambda: None)
    output.write("text")
    output.close()
    os.close(descriptor)
    assert kind == "device" or path.read_text("utf-8") == "text\n"


async def test_a_full_disk_ends_it_with_the_reason() -> None:
    ended = asyncio.Event()
    descriptor = os.open("/dev/full", os.O_WRONLY)
    output = Output(stream(descriptor), None, ended.set)
    output.write("text")
    await asyncio.wait_for(ended.wait(), SECONDS)
    output.close()
    os.close(descriptor)
    assert output.error is not None
    assert output.error.errno == errno.ENOSPC


async def test_a_pipe_that_another_program_made_not_to_block_loses_nothing(pipe: Pipe) -> None:
    os.set_blocking(pipe.writing, False)
    output = Output(stream(pipe.writing), None, lambda: None)
    output.write("x" * (4 * PIPE_BYTES - 1))
    read = await asyncio.wait_for(asyncio.to_thread(_read, pipe.reading, 4 * PIPE_BYTES), SECONDS)
    assert read == b"x" * (4 * PIPE_BYTES - 1) + b"\n"
    output.close()


def _read(descriptor: int, size: int) -> bytes:
    data = b""
    while len(data) < size:
        data += os.read(descriptor, size - len(data))
    return data
