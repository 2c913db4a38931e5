import asyncio
import fcntl
import os
import socket
from pathlib import Path

import pytest

from bridge.mcp import stdio
from bridge.mcp.stdio import MAX_UNSENT_BYTES, READ_BYTES, Stdio, read_chunks
from tests.mcp.pipes import PATIENCE, pipe, read_all, turns


async def test_a_regular_file_is_read_in_bounded_chunks_between_which_others_have_their_turn(
    tmp_path: Path,
) -> None:
    path = tmp_path / "requests.jsonl"
    path.write_bytes(b"x" * (READ_BYTES + 1))
    went, chunks = asyncio.Event(), []
    asyncio.get_running_loop().call_soon(went.set)
    with path.open("rb") as file:
        async with asyncio.timeout(PATIENCE):
            async for chunk in read_chunks(file.fileno()):
                assert went.is_set()
                chunks.append(len(chunk))
    assert chunks == [READ_BYTES, 1]


async def test_a_terminal_that_hangs_up_is_at_its_end() -> None:
    master, terminal = os.openpty()
    os.write(master, b"hello\n")
    output = []
    async with asyncio.timeout(PATIENCE):
        async for chunk in read_chunks(terminal):
            output.append(chunk)
            os.close(master)
    os.close(terminal)
    assert output == [b"hello\n"]


@pytest.mark.parametrize("blocking", [True, False])
async def test_bytes_that_another_process_took_do_not_block_the_loop(blocking: bool) -> None:
    with pipe() as (reading, writing):
        os.set_blocking(reading, blocking)
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


unblock = stdio._unblock  # noqa: SLF001 - only our own stdout is claimed in public


async def test_what_does_not_fit_is_sent_in_order_when_there_is_room() -> None:
    with pipe() as (reading, writing):
        out = Stdio(os.open(os.devnull, os.O_RDONLY), unblock(os.dup(writing)))
        sent = bytes(range(256)) * 4096
        for start in range(0, len(sent), 50_000):
            out.write(sent[start : start + 50_000])
        output = b""
        async with asyncio.timeout(PATIENCE):
            while len(output) < len(sent):
                output += read_all(reading)
                await asyncio.sleep(0)  # it sends on in its own turn
            await out.flush()
        assert output == sent
        out.write(b"more")
        assert read_all(reading) == b"more"
        assert [chunk async for chunk in out.chunks()] == []
        out.close()


@pytest.mark.parametrize("over", [0, 1])
async def test_no_more_is_read_while_more_than_the_limit_is_unsent(over: int) -> None:
    with pipe() as (requests, client_out), pipe() as (client_in, replies):
        size = fcntl.fcntl(replies, fcntl.F_GETPIPE_SZ)
        both = Stdio(os.dup(requests), unblock(os.dup(replies)))
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
                await asyncio.sleep(0)  # it sends on in its own turn
        assert await waiting == b"2"
        both.close()


async def test_a_client_that_stopped_reading_and_is_gone_sets_broken() -> None:
    reading, writing = os.pipe()
    out = Stdio(os.open(os.devnull, os.O_RDONLY), unblock(writing))
    out.write(b"x" * 1_000_000)
    assert not out.broken.is_set()
    os.close(reading)
    async with asyncio.timeout(PATIENCE):
        await out.broken.wait()
        await out.flush()
    out.write(b"nobody hears")
    out.close()


async def test_a_client_that_is_gone_before_the_first_reply_or_a_full_disk_sets_broken() -> None:
    reading, to_pipe = os.pipe()
    os.close(reading)
    ours, theirs = socket.socketpair()
    theirs.close()
    for writing in (to_pipe, ours.detach(), os.open("/dev/full", os.O_WRONLY)):
        out = Stdio(os.open(os.devnull, os.O_RDONLY), unblock(writing))
        out.write(b"x")
        assert out.broken.is_set()
        out.close()


async def test_closing_with_replies_unsent_leaves_nothing_behind() -> None:
    with pipe() as (_reading, writing):
        descriptor = unblock(os.dup(writing))
        out = Stdio(os.open(os.devnull, os.O_RDONLY), descriptor)
        out.write(b"x" * 1_000_000)
        with pytest.raises(TimeoutError):  # flushing may be given up
            async with asyncio.timeout(0.01):
                await out.flush()
        flushing = asyncio.ensure_future(out.flush())
        await turns()
        out.close()
        async with asyncio.timeout(PATIENCE):
            await flushing
        assert not asyncio.get_running_loop().remove_writer(descriptor)
