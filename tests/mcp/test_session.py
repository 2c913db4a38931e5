import asyncio
import json
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from bridge.mcp import session
from bridge.mcp.framing import MAX_FRAME_BYTES, Framing
from bridge.mcp.jsonrpc import MAX_BATCH_MESSAGES
from bridge.mcp.session import (
    CHANGES_SECONDS,
    MAX_CALLS_AT_ONCE,
    MAX_PENDING_BYTES,
    MAX_PENDING_CALLS,
    NOISE_REPLIES_PER_SECOND,
    TURN_SECONDS,
    Session,
)
from bridge.mcp.toolset import Toolset
from tests.mcp.client import Client, at_once, ids, logged
from tests.mcp.sample_tools import (
    Workbench,
    break_later,
    notification,
    request,
    serving,
    stateless,
    tool_call,
    wait,
)
from tests.mcp.test_session_client_requests import ABLE, ASKING

# Plain tools


async def test_plain_tools_are_answered_in_order_in_the_turn_that_read_them() -> None:
    client = Client()
    client.send(*(request(number, "say", message=f"{number}") for number in range(5)))
    replies = await client.replies(5)
    assert ids(replies) == [0, 1, 2, 3, 4]
    assert len(client.writes) == 1
    assert client.bench.said == ["0", "1", "2", "3", "4"]
    await client.end()


async def test_only_a_call_that_wants_what_is_still_being_loaded_waits_for_it() -> None:
    loaded = asyncio.Event()
    client = Client(loading={Workbench: loaded})
    client.send(request(1, "say", message="x"), request(2, "count", text=""))
    assert ids(await client.settled()) == [2]
    loaded.set()
    assert ids(await client.replies(2)) == [2, 1]
    await client.end()


LAST = request("last", "ping")


@pytest.mark.parametrize("batch", [False, True], ids=["lines", "a batch"])
@pytest.mark.parametrize(
    "message",
    [request(1, "tools/list"), notification("notifications/cancelled", requestId=1)],
    ids=["lists", "cancellations"],
)
async def test_many_messages_in_one_read_leave_others_their_turns_of_the_loop(
    message: dict[str, object], batch: bool
) -> None:
    client = Client()
    client.send(request("handshake", "initialize", protocolVersion="2025-03-26"))
    await client.replies(1)
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    client.clock.step = TURN_SECONDS / 4  # what passes between two looks at the clock
    beside = asyncio.create_task(others())
    await asyncio.sleep(0)
    messages = [*[message] * 30, LAST]
    client.send(*([messages] if batch else messages))
    turns = 0
    await client.replies(2 if batch or "id" not in message else 32)
    beside.cancel()
    assert turns >= 6
    await client.end()


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


async def test_waits_have_slots_of_their_own_and_keep_no_other_call_waiting() -> None:
    listen = wait._replace(name="listen", own_slots=True)
    client = Client(Toolset("waits", (listen, wait, break_later)))
    client.send(*(request(number, "listen") for number in range(MAX_CALLS_AT_ONCE + 1)))
    await client.settled()
    assert client.bench.running == MAX_CALLS_AT_ONCE
    client.send(request("other", "break_later"))
    assert ids(await client.replies(1)) == ["other"]
    # Nor do other calls take theirs, and of all others there are as many at once as before.
    client.send(*(request(f"{number}", "wait") for number in range(MAX_CALLS_AT_ONCE + 1)))
    await client.settled()
    assert client.bench.running == 2 * MAX_CALLS_AT_ONCE
    client.bench.release.set()
    assert len(await client.end()) == 2 * (MAX_CALLS_AT_ONCE + 1) + 1
    assert client.bench.most_running == 2 * MAX_CALLS_AT_ONCE


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


# What goes wrong


async def test_a_call_beyond_its_deadline_is_given_up_and_says_so() -> None:
    client = Client()
    client.send(request(1, "wait_in_vain"), tool_call(2, "wait_in_vain"))
    bare, mcp = sorted(await client.end(), key=lambda each: int(each["id"]))
    assert bare["error"]["code"] == -32603
    assert bare["error"]["message"] == "wait_in_vain took longer than 0.01 s and was given up"
    assert bare["error"]["data"]["condition"] == "remote-server-timeout"
    assert mcp["result"]["isError"]
    assert "took longer than 0.01 s" in mcp["result"]["content"][0]["text"]
    assert client.bench.cleaned_up == ["in vain", "in vain"]


@pytest.mark.parametrize("name", ["break_down", "break_later", "time_out", "lose", "overflow"])
async def test_a_tool_that_breaks_is_an_internal_error_that_tells_no_secret(name: str) -> None:
    client = Client()
    with logged(logging.INFO) as lines:
        client.send(request(1, name), tool_call(2, name), request(3, "ping"))
        replies = sorted(await client.end(), key=lambda each: int(each["id"]))
    assert ids(replies) == [1, 2, 3]
    for each in replies[:2]:
        assert each["error"]["code"] == -32603
        assert name in json.dumps(each["error"]["data"])
        assert "secret" not in json.dumps(each)
        assert "Traceback" not in json.dumps(each)
    assert not any("\n" in line for line in lines)


@pytest.mark.parametrize("framing", Framing)
async def test_a_batch_is_answered_in_its_framing_whatever_it_cancels(framing: Framing) -> None:
    (other,) = set(Framing) - {framing}
    client = Client()
    client.send(request(0, "initialize", protocolVersion="2025-03-26"))
    client.send([tool_call(1, "wait"), request(2, "ping")], framing=other)
    cancel = notification("notifications/cancelled", requestId=1)
    client.send([cancel, tool_call(3, "wait"), request(4, "ping")], framing=framing)
    await client.replies(2)
    client.bench.release.set()
    _, theirs, own = await client.end()
    assert ids(theirs) == [2]
    assert ids(own) == [4, 3]
    assert [each.framing for each in client.frames[1:]] == [other, framing]


# Noise


async def test_noise_is_answered_up_to_its_limit_in_each_second() -> None:
    client = Client()
    client.send_bytes(b"noise\n" * (NOISE_REPLIES_PER_SECOND + 1))
    assert len(await client.settled()) == NOISE_REPLIES_PER_SECOND
    client.clock.now += 0.999
    client.send_bytes(b"noise\n")
    assert len(await client.settled()) == NOISE_REPLIES_PER_SECOND
    client.clock.now += 0.001
    client.send_bytes(b"noise\n" * 1000)
    replies = await client.end()
    assert len(replies) == 2 * NOISE_REPLIES_PER_SECOND
    assert {each["error"]["code"] for each in replies} == {-32700}


async def test_noise_takes_no_reply_from_whoever_shows_an_id() -> None:
    client = Client()
    client.send(request(0, "initialize", protocolVersion="2025-03-26"))
    client.send_bytes(b"noise\n" * 200)
    client.send(*({"id": number} for number in range(200)))
    noise = [7] * (MAX_BATCH_MESSAGES - 1)
    client.send([*noise, request("in a batch", "ping")], noise)
    *replies, batch = await client.end()
    assert ids(replies)[-200:] == list(range(200))
    assert len(replies) == 1 + NOISE_REPLIES_PER_SECOND + 200
    assert ids(batch) == ["in a batch"]


# The end


async def test_calls_in_flight_at_the_end_of_input_are_finished() -> None:
    client = Client()
    client.send(request(1, "wait"))
    ending = asyncio.create_task(client.end())
    await client.bench.started.wait()
    client.bench.release.set()
    assert ids(await ending) == [1]


async def test_the_end_of_input_waits_for_a_call_no_longer_than_the_drain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session, "DRAIN_SECONDS", 0.02)
    client = Client()
    client.send(request(1, "wait", name="slow"), tool_call(2, "wait", name="slow"))
    bare, mcp = await client.end()
    assert bare["error"]["data"]["condition"] == "system-shutdown"
    assert mcp["result"]["isError"]
    assert "Condition: system-shutdown" in mcp["result"]["content"][0]["text"]
    assert client.bench.cleaned_up == ["slow", "slow"]
    assert client.bench.running == 0


async def test_a_call_cancelled_before_it_starts_never_does() -> None:
    client = Client()
    client.send(request(1, "wait"), notification("notifications/cancelled", requestId=1))
    assert await client.settled() == await client.end() == []
    assert not client.bench.started.is_set()


async def test_stopping_the_session_cancels_its_calls_and_answers_those_in_the_queue() -> None:
    client, calls = Client(), range(MAX_CALLS_AT_ONCE)
    client.send(notification("wait", name="no id"), *(request(each, "wait") for each in calls))
    await client.settled()
    assert sorted(ids(await client.stop())) == [*calls]
    assert client.bench.most_running == len(client.bench.cleaned_up) == MAX_CALLS_AT_ONCE


async def test_a_call_that_has_not_begun_when_the_input_breaks_is_answered_too() -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield json.dumps(request(1, "wait")).encode() + b"\n"
        raise ConnectionError("the input broke")

    bench, written = Workbench(), bytearray()
    session = Session(serving(bench), written.extend, ready=at_once)
    with pytest.raises(ConnectionError):
        await session.run(chunks())
    assert json.loads(written)["error"]["data"]["condition"] == "system-shutdown"
    assert not bench.started.is_set()


async def test_too_many_calls_are_refused_and_all_other_input_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session, "MAX_PENDING_CALLS", most := 20)
    client = Client(tools=ASKING)
    client.send(request("hello", "initialize", protocolVersion="2025-11-25", capabilities=ABLE))
    client.send(tool_call("asks", "consult"))
    client.send(*(tool_call(number, "wait") for number in range(most - 1)))
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
    assert len(await client.end()) == 7 + most


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
    assert (refused["id"], plain["id"]) == ("beyond", "plain")
    assert refused["error"]["data"]["condition"] == "resource-constraint"
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


# Changes


UPDATED = "notifications/resources/updated"
WORDS_ONLY = {"resourceSubscriptions": ["sample://words"]}


def updates(frames: list[Any]) -> list[Any]:
    return [each["params"] for each in frames if each.get("method") == UPDATED]


async def subscribed(client: Client, *uris: str) -> None:
    client.send(*(request(uri, "resources/subscribe", uri=uri) for uri in uris))
    await client.replies(len(uris))


async def test_a_flood_of_changes_is_one_notification_a_resource_a_period() -> None:
    client = Client()
    await subscribed(client, "sample://words", "sample://nothing")
    loop = asyncio.get_running_loop()
    start, told = loop.time(), 2
    for _ in range(3):
        for _ in range(1000):
            client.session.changed("sample://words")
            client.session.changed("sample://nothing")
        told += 2
        replies = await client.replies(told)
    # The first goes at once, each further one a whole period after the one before it.
    assert loop.time() - start >= 2 * CHANGES_SECONDS
    assert [each["uri"] for each in updates(replies)] == ["sample://words", "sample://nothing"] * 3
    assert len(updates(await client.end())) == 6


async def test_the_last_change_is_told_even_if_the_session_ends_before_its_turn() -> None:
    client = Client()
    client.send(stateless("l", "subscriptions/listen", notifications=WORDS_ONLY))
    await client.replies(1)
    client.session.changed("sample://words")
    await client.replies(2)
    client.session.changed("sample://words")
    *_, last, closing = await client.end()
    assert last["method"] == UPDATED
    assert closing["id"] == "l"


async def test_after_the_end_nothing_is_told_any_more() -> None:
    client = Client()
    await subscribed(client, "sample://words")
    client.send(request(1, "logging/setLevel", level="debug"))
    assert len(await client.end()) == 2
    client.session.changed("sample://words")
    client.session.announce("emergency", "sample", "too late")
    await client.idle()
    assert len(client.frames) == 2


async def test_what_is_logged_for_all_goes_out_at_once() -> None:
    client = Client()
    client.send(request(1, "logging/setLevel", level="warning"))
    await client.replies(1)
    client.session.announce("warning", "sample", "enough")
    assert (await client.replies(2))[1]["params"]["data"] == "enough"
    await client.end()


async def test_progress_and_log_of_a_call_go_out_in_its_framing() -> None:
    asked, latest = Framing.HEADERS, Framing.LINES
    client = Client()
    client.send(request(0, "logging/setLevel", level="debug"), framing=latest)
    meta = {"progressToken": "t"}
    calling = request(1, "tools/call", name="climb_slowly", arguments={}, _meta=meta)
    client.send(calling, framing=asked)
    await client.replies(2)
    client.send(request(2, "ping"), framing=latest)
    await client.replies(3)
    client.bench.release.set()
    *_, last, reply = await client.replies(5)
    assert (last["method"], reply["id"]) == ("notifications/progress", 1)
    climbing = request(3, "tools/call", name="climb", arguments={"heights": [1]}, _meta=meta)
    client.send(climbing, framing=asked)
    await client.end()
    framings = [each.framing for each in client.frames]
    assert framings[:3] == [latest, asked, latest]
    assert set(framings[3:]) == {asked}
    methods = [json.loads(each.body).get("method") for each in client.frames[5:]]
    assert "notifications/message" in methods
