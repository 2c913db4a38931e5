import json

from bridge.mcp.framing import MAX_FRAME_BYTES
from bridge.mcp.session import (
    MAX_PENDING_BYTES,
    MAX_PENDING_CALLS,
)
from tests.mcp.client import Client, ids
from tests.mcp.sample_tools import notification, request, tool_call
from tests.mcp.test_session_client_requests import ABLE, ASKING


async def test_too_many_calls_are_refused_and_all_other_input_is_read() -> None:
    client = Client(tools=ASKING)
    client.send(request("hello", "initialize", protocolVersion="2025-11-25", capabilities=ABLE))
    client.send(tool_call("asks", "consult"))
    client.send(*(tool_call(number, "wait") for number in range(MAX_PENDING_CALLS - 1)))
    *_, question = await client.replies(2)
    client.send(tool_call("beyond", "wait"), tool_call("plain", "say", message="hi"))
    beyond, plain = (await client.replies(4))[2:]
    assert (beyond["id"], beyond["result"]["isError"]) == ("beyond", True)
    assert "Condition: resource-constraint" in (why := beyond["result"]["content"][0]["text"])
    assert f"{MAX_PENDING_CALLS:,}" in why
    assert (plain["id"], plain["result"]["isError"]) == ("plain", False)
    assert await client.settled()  # a ping is answered
    client.send({"jsonrpc": "2.0", "id": question["id"], "result": {"it": "is"}})
    answered = (await client.replies(5))[-1]
    assert (answered["id"], "heard" in str(answered["result"])) == ("asks", True)
    client.send(tool_call("in its place", "wait"), tool_call("again beyond", "wait"))
    assert ids(await client.replies(6))[-1] == "again beyond"
    client.send(notification("notifications/cancelled", requestId=0))
    await client.settled()
    client.send(tool_call("in the place of the cancelled", "wait"), request("last", "ping"))
    assert ids(await client.replies(7))[-1] == "last"
    client.bench.release.set()
    assert len(await client.end()) == 7 + MAX_PENDING_CALLS


async def test_calls_are_refused_while_pending_requests_hold_too_much_memory() -> None:
    def padded(id_: object, size: int) -> bytes:
        body = json.dumps(request(id_, "wait")).encode()
        return body[:1] + b" " * (size - len(body)) + body[1:] + b"\n"

    client = Client()
    count = MAX_PENDING_BYTES // MAX_FRAME_BYTES
    for number in range(count):
        client.send_bytes(padded(number, MAX_FRAME_BYTES))
    client.send_bytes(padded("a byte more", 100))
    assert await client.settled() == []
    client.send(request("beyond", "wait"), request("plain", "say", message="read"))
    refused, plain = await client.settled()
    assert (refused["id"], refused["error"]["data"]["condition"]) == (
        "beyond",
        "resource-constraint",
    )
    assert plain["id"] == "plain"
    client.bench.release.set()
    await client.replies(count + 3)
    # What was held is given back: another call that waits is taken.
    client.bench.release.clear()
    client.send(request("waits", "wait"))
    assert len(await client.settled()) == count + 3
    client.bench.release.set()
    assert ids(await client.end())[-1] == "waits"


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
