"""One question to a web service: what tests/llm and tests/samples leave open."""

import asyncio
import gzip
import json
import re
from asyncio import StreamReader, StreamWriter
from contextlib import suppress
from typing import Any

import pytest

from bridge.llm.httpclient import MAX_REPLY_BYTES, WebService
from bridge.mcp.errors import ToolError
from bridge.mcp.jsonrpc import Json
from bridge.mcp.schema import MismatchError
from bridge.settings.values import Secret
from tests.llm.model_service import (
    KEY,
    Asked,
    assert_keeps_nothing,
    model_service,
    replying,
    silent,
)

PATIENCE = 30.0
"""Seconds after which a test that waits has failed."""


def _service(url: str, key: str = KEY) -> WebService:
    return WebService("The oracle", url, "ORACLE_URL", Secret(key))


def _whole(reply: Json) -> Json:
    return reply


async def _post(url: str, *, seconds: float = PATIENCE) -> Json:
    return await _service(url).ask("ask", _whole, seconds=seconds, body={})


async def _failure(url: str, **more: float) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await _post(url, **more)
    assert KEY not in repr(caught.value)
    assert_keeps_nothing(caught.value)
    assert caught.value.message.startswith("The oracle ")
    assert caught.value.message.isprintable()
    assert caught.value.remote
    return caught.value


async def test_a_redirect_is_not_followed_and_the_key_goes_nowhere_else() -> None:
    async with (
        model_service(replying(200, b"7")) as elsewhere,
        model_service(replying(308, location=f"{elsewhere.base_url}/ask")) as service,
    ):
        error = await _failure(service.base_url)
    assert elsewhere.asked == []
    assert (error.message, error.condition) == ("The oracle answered 308.", "redirect")
    assert error.hint == "Redirects are not followed. Check ORACLE_URL."
    assert len(service.asked) == 1


async def test_a_body_may_have_the_bytes_allowed_and_not_one_more() -> None:
    body = b"7".ljust(MAX_REPLY_BYTES)
    async with model_service(replying(200, body), replying(200, body + b" ")) as service:
        assert await _post(service.base_url) == 7
        error = await _failure(service.base_url)
    assert error.message == f"The oracle answered with more than {MAX_REPLY_BYTES:,} bytes."
    assert error.condition == "policy-violation"


async def test_a_compressed_body_is_not_unpacked() -> None:
    packed = gzip.compress(b"7")
    async with model_service(replying(200, packed, content_encoding="gzip")) as service:
        assert "it is not JSON" in (await _failure(service.base_url)).message
    assert service.asked[0].headers["accept-encoding"] == "identity"


async def test_a_reply_that_does_not_fit_fails_the_question_in_the_words_of_its_reader() -> None:
    def read(reply: Json) -> Json:
        raise MismatchError(f"{reply} is wanted")

    async with model_service(replying(200, b'"\\n%s"' % KEY[:15].encode())) as service:
        with pytest.raises(ToolError) as caught:
            await _service(service.base_url, KEY[:15]).ask("ask", read, seconds=PATIENCE, body={})
    assert caught.value.message == (
        "The oracle sent a reply that cannot be used: \\u{A}*** is wanted"
    )
    assert caught.value.condition == "undefined-condition"
    assert caught.value.__context__ is None


async def test_a_deadline_holds_in_the_middle_of_a_reply_and_where_it_has_passed() -> None:
    async def stall(asked: Asked, reader: StreamReader, writer: StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n1")
        await silent(asked, reader, writer)

    async with model_service(stall) as service, asyncio.timeout(PATIENCE):
        for seconds in (1.0, -1.0):  # time to get there
            error = await _failure(service.base_url, seconds=seconds)
            assert error.condition == "remote-server-timeout"
            assert f"within {seconds:g} s" in error.message
        await service.left.wait()


@pytest.mark.parametrize(
    ("url", "condition"),
    [
        ("http://llm.example.org/", "encryption-required"),
        ("http://10.0.0.1/", "encryption-required"),
        ("http://127.0.0.1.example.org/", "encryption-required"),
        ("HTTP://localhost.example.org/", "encryption-required"),
        ("http://127.0.0.1:1/", "connection-refused"),
        ("http://[::1", "jid-malformed"),
        ("http://h:port/", "jid-malformed"),
        ("ftp://127.0.0.1/", "connection-reset"),
    ],
)
async def test_a_key_goes_in_clear_to_this_machine_only(url: str, condition: str) -> None:
    error = await _failure(url)
    assert error.condition == condition
    assert ("without https://" in error.message) is (condition == "encryption-required")
    assert error.hint == "Check ORACLE_URL."


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"error": {"message": "no such"}}, ": no such"),
        ({"error": "no\nsuch \u202e"}, ": no\\u{A}such \\u{202E}"),
        ({"reason": "no such"}, ": no such"),
        ({"error": {"message": 7}}, "."),
        ([1], "."),
        (b"<html>", "."),
    ],
)
async def test_what_a_service_complains_of_is_found(body: Any, said: str) -> None:
    async with model_service(replying(400, body)) as service:
        ask = WebService("The oracle", service.base_url, "ORACLE_URL")
        with pytest.raises(ToolError) as caught:
            await ask.ask("ask", _whole, seconds=PATIENCE, body={})
    assert caught.value.message == f"The oracle answered 400{said}"


STATUSES = {
    401: "not-authorized",
    402: "forbidden",
    403: "forbidden",
    404: "item-not-found",
    429: "resource-constraint",
    300: "redirect",
    410: "bad-request",
    500: "service-unavailable",
    599: "service-unavailable",
}


async def test_each_status_has_its_condition_and_is_final() -> None:
    for status, condition in STATUSES.items():
        async with model_service(replying(status)) as service:
            assert (await _failure(service.base_url)).condition == condition
        assert len(service.asked) == 1


@pytest.mark.parametrize(
    ("wanted", "seconds"),
    [
        *((" 120 ", 120), ("9" * 9, 999_999_999)),
        *((wrong, None) for wrong in ("", "-1", "9" * 10, "Sun, 22 Nov 2026 03:00:05 GMT")),
    ],
)
async def test_the_hint_says_how_many_seconds_a_busy_service_asks_to_wait(
    wanted: str, seconds: int | None
) -> None:
    async with model_service(replying(429, retry_after=wanted)) as service:
        hint = (await _failure(service.base_url)).hint
    assert hint == (f"It asks to wait {seconds} s." if seconds else "Call it again later.")


@pytest.mark.parametrize(
    ("status", "body", "why"),
    [
        (201, {"a": KEY}, None),
        (503, {"a": KEY}, "The oracle answered 503. (service-unavailable, after N ms)"),
        (200, KEY.encode(), "(undefined-condition, after N ms)"),
    ],
)
async def test_the_log_says_what_was_sent_and_what_came_back_and_why_that_would_not_do(
    status: int, body: Any, why: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "bridge.llm.httpclient")
    async with model_service(replying(status, body)) as service:
        with suppress(ToolError):
            await _post(service.base_url)
    sent, answered, *failed = (re.sub(r"\d+\.\d", "N", each) for each in caplog.messages)
    size = len(body if isinstance(body, bytes) else json.dumps(body))
    assert sent == "The oracle is sent a POST of 2 bytes"
    assert answered == f"The oracle answered {status} with {size} bytes in N ms"
    assert [why is not None and each.endswith(why) for each in failed] == [True] * bool(why)
    assert KEY not in caplog.text


async def test_the_log_says_why_there_was_no_answer(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "bridge.llm.httpclient")
    with suppress(ToolError):
        await _service("http://127.0.0.1:1").ask("ask", _whole, seconds=PATIENCE)
    sent, failed = caplog.messages
    assert sent == "The oracle is sent a GET"
    assert failed.startswith("The oracle cannot be reached: ")
    assert "(connection-refused, after " in failed
    assert KEY not in caplog.text
