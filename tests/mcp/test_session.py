import asyncio
import json
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from bridge.mcp.framing import MAX_FRAME_BYTES, Frame, Framer, Framing, encode
from bridge.mcp.session import MAX_CALLS_AT_ONCE, NOISE_REPLIES_PER_SECOND, Session
from tests.mcp.sample_tools import Workbench, notification, request, serving, tool_call

PATIENCE = 5.0
"""Seconds after which a test that waits has failed."""


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Client:
    """The far side of a session: what it sends goes in as chunks, what comes out is kept."""

    def __init__(self, drain_seconds: float = 10.0) -> None:
        self.bench = Workbench()
        self.clock = Clock()
        self.frames: list[Frame] = []
        self.writes: list[bytes] = []
        self._framer = Framer()
        self._came = asyncio.Event()
        self._chunks: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.session = Session(
            serving(self.bench), self._receive, clock=self.clock, drain_seconds=drain_seconds
        )
        self.running = asyncio.create_task(self.session.run(self._feed()))

    def send(self, *messages: object, framing: Framing = Framing.LINES) -> None:
        """Send all messages in one chunk."""
        frames = (Frame(json.dumps(one).encode(), framing) for one in messages)
        self.send_bytes(b"".join(map(encode, frames)))

    def send_bytes(self, data: bytes) -> None:
        self._chunks.put_nowait(data)

    async def replies(self, count: int) -> list[Any]:
        """Return all replies so far, once there are `count`."""
        async with asyncio.timeout(PATIENCE):
            while len(self.frames) < count:
                self._came.clear()
                await self._came.wait()
        return [json.loads(one.body) for one in self.frames]

    async def settled(self) -> list[Any]:
        """Return all replies so far, once a further request has been answered and taken away."""
        self.send(request("settled", "ping"))
        while not any(one["id"] == "settled" for one in await self.replies(1)):
            await self.replies(len(self.frames) + 1)
        self.frames = [one for one in self.frames if json.loads(one.body)["id"] != "settled"]
        return [json.loads(one.body) for one in self.frames]

    async def end(self) -> list[Any]:
        """End the input and return all replies there ever were."""
        self._chunks.put_nowait(None)
        async with asyncio.timeout(PATIENCE):
            await self.running
        return [json.loads(one.body) for one in self.frames]

    async def _feed(self) -> AsyncIterator[bytes]:
        while (chunk := await self._chunks.get()) is not None:
            yield chunk

    def _receive(self, data: bytes) -> None:
        self.writes.append(data)
        found = self._framer.feed(data)
        self.frames += [one for one in found if isinstance(one, Frame)]
        assert len(found) > 0
        self._came.set()


def ids(replies: list[Any]) -> list[Any]:
    return [one["id"] for one in replies]


# Plain tools


async def test_plain_tools_are_answered_in_order_in_the_turn_that_read_them() -> None:
    client = Client()
    client.send(*(request(number, "say", message=f"{number}") for number in range(5)))
    replies = await client.replies(5)
    assert ids(replies) == [0, 1, 2, 3, 4]
    assert len(client.writes) == 1
    assert client.bench.said == ["0", "1", "2", "3", "4"]
    assert client.session.answered.is_set()
    await client.end()


async def test_nothing_is_said_before_it_is_asked() -> None:
    client = Client()
    client.send(notification("notifications/initialized"))
    client.send_bytes(b"\n\n")
    assert await client.end() == []
    assert not client.session.answered.is_set()


async def test_a_message_may_come_in_any_pieces_and_the_last_without_its_newline() -> None:
    client = Client()
    for byte in json.dumps(request(1, "say", message="ü")).encode():
        client.send_bytes(bytes([byte]))
    assert ids(await client.end()) == [1]
    assert client.bench.said == ["ü"]


@pytest.mark.parametrize("framing", Framing)
async def test_a_reply_uses_the_framing_of_its_request(framing: Framing) -> None:
    client = Client()
    client.send(request(1, "say", message="x"), framing=framing)
    client.send(request(2, "wait"), framing=framing)
    client.send(request(3, "nope"), framing=framing)
    client.send(7, framing=framing)
    await client.replies(3)
    client.bench.release.set()
    assert len(await client.end()) == 4
    assert {one.framing for one in client.frames} == {framing}


async def test_both_framings_may_be_mixed_message_by_message() -> None:
    client = Client()
    client.send(request(1, "wait"), framing=Framing.HEADERS)
    client.send(request(2, "ping"))
    await client.replies(1)
    client.bench.release.set()
    await client.end()
    assert [one.framing for one in client.frames] == [Framing.LINES, Framing.HEADERS]


@pytest.mark.parametrize("extra", [0, 1])
async def test_a_message_of_sixteen_mebibytes_is_served_and_a_byte_more_is_not(extra: int) -> None:
    client = Client()
    body = json.dumps(request(1, "count", text="")).encode()
    body = body.replace(b'""', b'"' + b"x" * (MAX_FRAME_BYTES + extra - len(body)) + b'"')
    assert len(body) == MAX_FRAME_BYTES + extra
    client.send_bytes(body + b"\n")
    client.send(request(2, "ping"))
    first, second = await client.end()
    assert second["id"] == 2
    if extra:
        assert first["id"] is None
        assert first["error"]["code"] == -32700
    else:
        assert first["result"]["words"] == 1


# Waiting tools


async def test_waiting_tools_run_side_by_side_and_hold_nothing_up() -> None:
    client = Client()
    client.send(*(request(number, "wait", name=f"{number}") for number in range(3)))
    client.send(request("quick", "say", message="x"))
    assert ids(await client.replies(1)) == ["quick"]
    assert client.session.busy
    client.bench.release.set()
    replies = await client.replies(4)
    assert sorted(ids(replies[1:])) == [0, 1, 2]
    assert client.bench.most_running == 3
    await client.end()
    assert not client.session.busy


async def test_as_many_calls_run_at_once_as_allowed_and_further_ones_wait_their_turn() -> None:
    client = Client()
    client.send(*(request(number, "wait") for number in range(MAX_CALLS_AT_ONCE + 1)))
    await client.settled()
    await client.settled()
    assert client.bench.running == MAX_CALLS_AT_ONCE
    client.bench.release.set()
    assert len(await client.replies(MAX_CALLS_AT_ONCE + 1)) == MAX_CALLS_AT_ONCE + 1
    assert client.bench.most_running == MAX_CALLS_AT_ONCE
    await client.end()


async def test_a_call_that_waits_its_turn_can_be_cancelled_and_never_starts() -> None:
    client = Client()
    client.send(*(request(number, "wait", name="ran") for number in range(MAX_CALLS_AT_ONCE)))
    client.send(request("late", "wait", name="late"))
    await client.settled()
    client.send(notification("notifications/cancelled", requestId="late"))
    client.bench.release.set()
    replies = await client.end()
    assert "late" not in ids(replies)
    assert len(replies) == MAX_CALLS_AT_ONCE
    assert "late" not in client.bench.cleaned_up


async def test_cancelling_a_call_cancels_its_coroutine_and_gets_no_reply() -> None:
    client = Client()
    client.send(request(1, "wait", name="one"), request(2, "wait", name="two"))
    await client.bench.started.wait()
    client.send(notification("notifications/cancelled", requestId=1))
    assert await client.settled() == []
    assert client.bench.cleaned_up == ["one"]
    client.bench.release.set()
    assert ids(await client.end()) == [2]


async def test_a_call_cancelled_before_it_starts_never_does() -> None:
    client = Client()
    client.send(request(1, "wait"), notification("notifications/cancelled", requestId=1))
    assert await client.settled() == []
    assert not client.bench.started.is_set()
    assert await client.end() == []
    assert not client.session.busy


async def test_a_call_in_a_batch_can_be_cancelled() -> None:
    client = Client()
    client.send(request(0, "initialize", protocolVersion="2025-03-26"))
    client.send([tool_call(1, "wait"), tool_call(2, "wait", name="two"), request(3, "ping")])
    await client.replies(1)
    await client.bench.started.wait()
    client.send(notification("notifications/cancelled", requestId=1))
    client.bench.release.set()
    _, batch = await client.end()
    assert sorted(ids(batch)) == [2, 3]


async def test_an_id_used_twice_gets_two_replies() -> None:
    client = Client()
    client.send(request(1, "wait", name="a"), request(1, "wait", name="b"))
    client.bench.release.set()
    replies = await client.end()
    assert ids(replies) == [1, 1]
    assert sorted(one["result"]["longestWord"] for one in replies) == ["a", "b"]


async def test_a_notification_shaped_call_runs_and_gets_no_reply() -> None:
    client = Client()
    client.send(notification("wait", name="quiet"), notification("say", message="x"))
    client.bench.release.set()
    assert await client.end() == []
    assert client.bench.cleaned_up == ["quiet"]
    assert client.bench.said == ["x"]


# What goes wrong


async def test_a_call_beyond_its_deadline_is_given_up_and_says_so() -> None:
    client = Client()
    client.send(request(1, "wait_in_vain"), tool_call(2, "wait_in_vain"))
    bare, mcp = sorted(await client.end(), key=lambda one: int(one["id"]))
    assert bare["error"]["code"] == -32603
    assert bare["error"]["message"] == "wait_in_vain took longer than 0.01 s and was given up"
    assert bare["error"]["data"]["condition"] == "remote-server-timeout"
    assert mcp["result"]["isError"]
    assert "took longer than 0.01 s" in mcp["result"]["content"][0]["text"]
    assert client.bench.cleaned_up == ["in vain", "in vain"]


@contextmanager
def logged(level: int) -> Iterator[list[str]]:
    lines: list[str] = []

    class Keeper(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(logging.Formatter().format(record))

    logger = logging.getLogger("bridge.mcp.session")
    keeper, before = Keeper(), logger.level
    logger.addHandler(keeper)
    logger.setLevel(level)
    try:
        yield lines
    finally:
        logger.removeHandler(keeper)
        logger.setLevel(before)


@pytest.mark.parametrize("name", ["break_down", "break_later", "time_out", "lose", "overflow"])
async def test_a_tool_that_breaks_is_an_internal_error_that_tells_no_secret(name: str) -> None:
    client = Client()
    with logged(logging.INFO) as lines:
        client.send(request(1, name), tool_call(2, name), request(3, "ping"))
        replies = sorted(await client.end(), key=lambda one: int(one["id"]))
    assert ids(replies) == [1, 2, 3]
    for one in replies[:2]:
        assert one["error"]["code"] == -32603
        assert name in json.dumps(one["error"]["data"])
        assert "secret" not in json.dumps(one)
        assert "Traceback" not in json.dumps(one)
    assert not any("\n" in line for line in lines)


async def test_the_traceback_of_a_broken_tool_is_in_the_log_at_debug_only() -> None:
    client = Client()
    for level, traced in ((logging.INFO, False), (logging.DEBUG, True)):
        with logged(level) as lines:
            client.send(request(1, "break_down"))
            await client.settled()
        (line,) = (one for one in lines if "broke" in one)
        assert "a secret\\u{A}in two lines" in line
        assert ("Traceback" in line) is traced
    await client.end()


async def test_a_failure_in_the_standards_words_is_no_crash() -> None:
    client = Client()
    client.send(request(1, "fail"), request(2, "count", text="a b", atMost=1))
    first, second = await client.end()
    assert first["error"] == {
        "code": -32603,
        "message": "the room is gone",
        "data": {"condition": "gone", "hint": "Choose another."},
    }
    assert second["error"]["code"] == -32602


async def test_a_message_of_any_depth_is_answered_at_any_level_of_the_log() -> None:
    client = Client()
    with logged(logging.DEBUG) as lines:
        for count, depth in enumerate([100, *range(900, 1010)], start=1):
            client.clock.now += 1
            client.send_bytes(
                b'{"jsonrpc":"2.0","id":%d,"method":"nope","params":{"x":%s%s}}\n'
                % (depth, b"[" * depth, b"]" * depth)
            )
            await client.replies(count)
        replies = await client.end()
    assert {one["error"]["code"] for one in replies} == {-32601, -32700}
    assert max(map(len, lines)) < 500


async def test_what_the_log_shows_of_a_message_is_escaped_and_cut() -> None:
    client = Client()
    forged = "\n[Server] forged\u202e" + "x" * 5000
    with logged(logging.DEBUG) as lines:
        client.send(
            request(forged, "say", message=forged),
            request(1, forged),
            notification(forged),
            {"id": forged, "result": forged},
            notification("notifications/cancelled", requestId=forged),
            request(forged, "wait"),
            notification("notifications/cancelled", requestId=forged),
        )
        await client.end()
    assert len(lines) >= 8
    for line in lines:
        assert "\n" not in line
        assert "\u202e" not in line
        assert len(line) < 1000


# Noise


async def test_noise_is_answered_up_to_its_limit_in_each_second() -> None:
    client = Client()
    client.send_bytes(b"noise\n" * (NOISE_REPLIES_PER_SECOND - 1))
    assert len(await client.settled()) == NOISE_REPLIES_PER_SECOND - 1
    client.send_bytes(b"noise\n" * 2)
    assert len(await client.settled()) == NOISE_REPLIES_PER_SECOND
    client.clock.now += 0.999
    client.send_bytes(b"noise\n")
    assert len(await client.settled()) == NOISE_REPLIES_PER_SECOND
    client.clock.now += 0.001
    client.send_bytes(b"noise\n" * 1000)
    replies = await client.end()
    assert len(replies) == 2 * NOISE_REPLIES_PER_SECOND
    assert {one["error"]["code"] for one in replies} == {-32700}


async def test_noise_takes_no_reply_from_whoever_shows_an_id() -> None:
    client = Client()
    client.send_bytes(b"noise\n" * 200)
    client.send(*({"id": number} for number in range(200)))
    replies = await client.end()
    assert ids(replies)[-200:] == list(range(200))
    assert len(replies) == 200 + NOISE_REPLIES_PER_SECOND


async def test_noise_within_batches_is_limited_too() -> None:
    client = Client()
    client.send(request(0, "initialize", protocolVersion="2025-03-26"))
    client.send([7] * 1000 + [request(1, "ping")], [7] * 1000)
    _, batch = await client.end()
    assert len(batch) == NOISE_REPLIES_PER_SECOND + 1
    assert batch[-1]["id"] == 1


# The end


async def test_calls_in_flight_at_the_end_of_input_are_finished() -> None:
    client = Client()
    client.send(request(1, "wait"))
    ending = asyncio.create_task(client.end())
    await client.bench.started.wait()
    client.bench.release.set()
    assert ids(await ending) == [1]


async def test_the_end_of_input_waits_for_a_call_no_longer_than_the_drain() -> None:
    client = Client(drain_seconds=0.02)
    client.send(request(1, "wait", name="slow"))
    assert await client.end() == []
    assert client.bench.cleaned_up == ["slow"]
    assert not client.session.busy


async def test_the_end_of_input_with_nothing_in_flight_is_the_end_at_once() -> None:
    client = Client(drain_seconds=10 * PATIENCE)
    assert await client.end() == []


async def test_stopping_the_session_cancels_what_is_in_flight() -> None:
    client = Client()
    client.send(request(1, "wait", name="one"))
    await client.bench.started.wait()
    client.running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await client.running
    assert client.bench.cleaned_up == ["one"]
    assert client.frames == []
