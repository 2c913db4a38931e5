import json

from bridge.mcp.framing import MAX_FRAME_BYTES
from bridge.mcp.session import (
    MAX_PENDING_BYTES,
    MAX_PENDING_CALLS,
)
from tests.mcp.client import Client, ids
from tests.mcp.sample_tools import (
    request,
)


async def test_reading_pauses_when_too_many_calls_are_pending_and_goes_on_when_one_ends() -> None:
    client = Client()
    client.send(*(request(number, "wait") for number in range(MAX_PENDING_CALLS - 1)))
    await client.read()
    client.send(request("last", "wait"))
    client.send(request("beyond", "say", message="read again"))
    await client.idle()
    assert client.unread == 1
    client.bench.release.set()
    replies = await client.end()
    assert len(replies) == MAX_PENDING_CALLS + 1
    assert ids(replies).index("beyond") >= 1


async def test_reading_pauses_when_pending_requests_hold_too_much_memory() -> None:
    def padded(id_: object, size: int) -> bytes:
        body = json.dumps(request(id_, "wait")).encode()
        return body[:1] + b" " * (size - len(body)) + body[1:] + b"\n"

    client = Client()
    count = MAX_PENDING_BYTES // MAX_FRAME_BYTES
    for number in range(count):
        client.send_bytes(padded(number, MAX_FRAME_BYTES))
    await client.read()
    client.send_bytes(padded("a byte more", 100))
    client.send(request("beyond", "say", message="read again"))
    await client.idle()
    assert client.unread == 1
    client.bench.release.set()
    await client.replies(count + 2)
    # What was held is given back: another call that waits holds nothing up.
    client.bench.release.clear()
    client.send(request("waits", "wait"))
    await client.read()
    client.bench.release.set()
    assert len(await client.end()) == count + 3


async def test_the_calls_of_a_batch_hold_the_memory_of_one_message_together() -> None:
    client = Client()
    client.send(request(0, "initialize", protocolVersion="2025-03-26"))
    count = 100
    calls = [request(number, "wait", name="x" * 100_000) for number in range(count)]
    assert count * len(json.dumps(calls)) > MAX_PENDING_BYTES
    client.send(calls)
    await client.read()
    client.bench.release.set()
    assert len(await client.end()) == 2
