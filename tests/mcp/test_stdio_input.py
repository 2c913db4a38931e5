import asyncio
import os
import socket
from pathlib import Path

import pytest

from bridge.mcp.stdio import READ_BYTES, read_chunks
from tests.mcp.pipes import PATIENCE, pipe, turns


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
        await turns()
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
