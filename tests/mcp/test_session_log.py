import json
import logging
import re

import pytest

from bridge.mcp.jsonrpc import compact
from bridge.mcp.session import NOISE_REPLIES_PER_SECOND
from tests.mcp.client import Client, logged
from tests.mcp.sample_tools import (
    envelope,
    notification,
    request,
    stateless,
    tool_call,
)


async def test_each_request_reply_and_cancellation_is_one_line_at_debug() -> None:
    client = Client()
    with logged(logging.DEBUG) as lines:
        client.send(request("a", "wait", name="x"))
        await client.read()
        client.send(tool_call(2, "say", message="hi"), stateless(3, "ping"))
        await client.replies(2)
        client.clock.now += 0.0125
        client.send(notification("notifications/cancelled", requestId="a"))
        client.send_bytes(b"noise\n")
        await client.end()
    wire = [
        re.sub(r"\d+ bytes", "N bytes", line) for line in lines if line[:2] in {"<-", "->", "--"}
    ]
    assert [re.sub(r" ms: .*", " ms", line) for line in wire] == [
        '<- bare wait id "a", N bytes: {"name":"x"}',
        '<- 2025-11-25 tools/call id 2, N bytes: {"name":"say","arguments":{"message":"hi"}}',
        "-> 2025-11-25 tools/call id 2, N bytes, 0.0 ms",
        f'<- 2026-07-28 ping id 3, N bytes: {{"_meta":{compact(envelope())}}}',
        "-> 2026-07-28 ping id 3, N bytes, 0.0 ms",
        '<- 2025-11-25 notifications/cancelled id null, N bytes: {"requestId":"a"}',
        '-- bare wait id "a", cancelled after 12.5 ms',
        "-> ? ? id null, N bytes, 0.0 ms",
    ]


async def test_input_that_cannot_be_read_is_said_at_info_once_and_noise_not_without_end() -> None:
    client = Client()
    with logged(logging.INFO) as lines:
        client.send_bytes(b'noise\n{"jsonrpc":"2.0","id":7}\n')
        client.send_bytes(b"Content-Length: two\r\n\r\n")
        client.send(request(8, "initialize", protocolVersion="2025-03-26"), [1])
        await client.read()
        assert lines == [
            f"Cannot read the input: {reason}"
            for reason in (
                "Parse error: Expecting value at character 0",
                'Invalid Request: there is no "method"',
                "Parse error: headers without a Content-Length that is one number of bytes",
                "Invalid Request: a message is a JSON object",
            )
        ]
        client.send_bytes(b"noise\n" * 2 * NOISE_REPLIES_PER_SECOND)
        await client.end()
    assert len(lines) == NOISE_REPLIES_PER_SECOND


async def test_a_number_that_json_cannot_say_again_does_not_stop_the_log() -> None:
    client = Client()
    with logged(logging.DEBUG) as lines:
        text = json.dumps(request(1, "count", text="here")).replace('"here"', "1e999")
        client.send_bytes(f"{text}\n".encode())
        (reply,) = await client.settled()
        await client.end()
    assert "error" in reply
    assert lines[0].startswith("<- bare count id 1, ")


async def test_arguments_and_results_within_a_line_of_the_log_are_json() -> None:
    client = Client()
    with logged(logging.DEBUG) as lines:
        client.send(request(1, "count", text="it's", atMost=None), tool_call(2, "fail"))
        client.send(tool_call(3, "say", message="x" * 500))
        await client.end()
    shown = [line.partition(": ")[2] for line in lines if line[:2] in {"<-", "->"}]
    *whole, cut = sorted(shown, key=len)
    assert [type(json.loads(text)) for text in shown if "characters)" not in text]
    assert json.loads(whole[0]) == {"text": "it's"}
    assert cut.endswith("characters)")


MOOD = {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "mood", "value": ""}}


@pytest.mark.parametrize(
    ("method", "params", "cause"),
    [
        ("resources/read", {"uri": "sample://endless"}, "SchemaError: "),
        ("prompts/get", {"name": "falter"}, "RuntimeError: a secret"),
        ("completion/complete", MOOD, "RuntimeError: a secret"),
    ],
)
async def test_what_breaks_in_a_resource_or_prompt_is_told_in_the_log_alone(
    method: str, params: dict[str, object], cause: str
) -> None:
    client = Client()
    with logged(logging.INFO) as lines:
        client.send(request(1, method, **params), request(2, "ping"))
        first, second = await client.end()
    assert first["error"]["code"] == -32603
    assert "secret" not in json.dumps(first)
    assert second["id"] == 2
    assert any(cause in line for line in lines)


async def test_the_traceback_of_a_broken_tool_is_in_the_log_at_debug_only() -> None:
    client = Client()
    for level, traced in ((logging.INFO, False), (logging.DEBUG, True)):
        with logged(level) as lines:
            client.send(request(1, "break_down"))
            await client.settled()
        (line,) = (each for each in lines if "break_down broke: " in each)
        assert "a secret\\u{A}in two lines" in line
        assert re.search(r"sample_tools\.py, line \d+, in break_down\)$", line)
        assert any("Traceback" in each for each in lines) is traced
    await client.end()


async def test_a_message_of_any_depth_is_answered_at_any_level_of_the_log() -> None:
    client = Client()
    with logged(logging.DEBUG) as lines:
        for count, depth in enumerate([100, *range(900, 1010), 100_000], start=1):
            client.clock.now += 1
            client.send_bytes(
                b'{"jsonrpc":"2.0","id":%d,"method":"nope","params":{"x":%s%s}}\n'
                % (depth, b"[" * depth, b"]" * depth)
            )
            await client.replies(count)
        replies = await client.end()
    codes = [each["error"]["code"] for each in replies]
    assert (codes[0], codes[-1]) == (-32601, -32700)
    assert set(codes) == {-32601, -32700}
    assert max(map(len, lines)) < 500


async def test_what_the_log_shows_of_a_message_is_escaped_and_cut() -> None:
    client = Client()
    forged = "\n[Server] forged\u202e\r\x85\u2028\ud800" + "x" * 5000
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
        assert len(line.splitlines()) == 1
        assert "\u202e" not in line
        assert len(line.encode()) < 1000


async def test_a_tool_that_failed_is_logged_as_failed_in_every_dialect() -> None:
    client = Client()
    with logged(logging.DEBUG) as lines:
        client.send(request(1, "fail"), tool_call(2, "fail"), notification("fail"))
        client.send(stateless(3, "tools/call", name="fail", arguments={}))
        await client.settled()
        client.send(request(4, "initialize", protocolVersion="2025-03-26"))
        client.send([tool_call(5, "fail")])
        await client.end()
    assert lines.count("fail failed: gone: the room is gone") == 5
    (reply,) = (line for line in lines if line.startswith("-> 2025-11-25 tools/call id 2, "))
    assert "Condition: gone" in reply


async def test_above_debug_only_what_a_remote_service_caused_is_logged() -> None:
    client = Client()
    with logged(logging.INFO) as lines:
        client.send(request(1, "fail"), request(2, "fail", a=1), request(3, "wait_in_vain"))
        client.send(request(4, "say", message="x"), request(5, "nope"), [])
        await client.end()
    late = "wait_in_vain took longer than 0.01 s and was given up"
    assert lines == [f"wait_in_vain failed: remote-server-timeout: {late}"]
