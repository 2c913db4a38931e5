import asyncio
import fcntl
import os
import socket

import pytest

from bridge.mcp import stdio
from bridge.mcp.stdio import MAX_UNSENT_BYTES, Stdio
from tests.mcp.pipes import PATIENCE, pipe, read_all, turns

unblock = stdio._unblock  # noqa: SLF001 - only our own stdout is claimed in public


async def test_what_fits_is_sent_at_once() -> None:
    with pipe() as (reading, writing):
        out = Stdio(os.open(os.devnull, os.O_RDONLY), unblock(os.dup(writing)))
        out.write(b"hello\n")
        assert read_all(reading) == b"hello\n"
        out.write(b"")
        assert [chunk async for chunk in out.chunks()] == []
        await out.flush()
        out.close()


async def test_what_does_not_fit_is_sent_in_order_when_there_is_room() -> None:
    with pipe() as (reading, writing):
        out = Stdio(os.open(os.devnull, os.O_RDONLY), unblock(os.dup(writing)))
        sent = bytes(range(256)) * 4096
        for start in range(0, len(sent), 50_000):
            out.write(sent[start : start + 50_000])
        found = b""
        async with asyncio.timeout(PATIENCE):
            while len(found) < len(sent):
                found += read_all(reading)
                await asyncio.sleep(0)  # it sends on in its own turn
            await out.flush()
        assert found == sent
        out.write(b"more")
        assert read_all(reading) == b"more"
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


async def test_a_client_that_is_gone_before_the_first_reply_sets_broken() -> None:
    for end in ("pipe", "socket"):
        if end == "pipe":
            reading, writing = os.pipe()
            os.close(reading)
        else:
            ours, theirs = socket.socketpair()
            theirs.close()
            writing = ours.detach()
        out = Stdio(os.open(os.devnull, os.O_RDONLY), unblock(writing))
        out.write(b"x")
        assert out.broken.is_set()
        out.close()


async def test_a_full_disk_sets_broken() -> None:
    out = Stdio(os.open(os.devnull, os.O_RDONLY), os.open("/dev/full", os.O_WRONLY))
    out.write(b"x")
    assert out.broken.is_set()
    out.close()


async def test_closing_with_replies_unsent_leaves_nothing_behind() -> None:
    with pipe() as (_reading, writing):
        descriptor = unblock(os.dup(writing))
        out = Stdio(os.open(os.devnull, os.O_RDONLY), descriptor)
        out.write(b"x" * 1_000_000)
        flushing = asyncio.ensure_future(out.flush())
        await turns()
        out.close()
        async with asyncio.timeout(PATIENCE):
            await flushing
        assert not asyncio.get_running_loop().remove_writer(descriptor)


async def test_flushing_may_be_given_up_while_the_client_does_not_read() -> None:
    with pipe() as (_reading, writing):
        out = Stdio(os.open(os.devnull, os.O_RDONLY), unblock(os.dup(writing)))
        out.write(b"x" * 1_000_000)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await out.flush()
        out.close()
