"""One HTTP request: what the tests of its users (tests/llm, tests/samples) leave open."""

import asyncio
from typing import Any

import pytest

from bridge.httpclient import HttpError, Response, request
from tests.llm.model_service import KEY, ModelService, model_service, replying, silent

PATIENCE = 10.0
"""Seconds after which a test that waits has failed."""


async def _post(url: str, *, seconds: float = PATIENCE, **more: Any) -> Response:
    deadline = asyncio.get_running_loop().time() + seconds
    return await request("POST", url, deadline=deadline, max_bytes=10, json=b"{}", **more)


async def _condition(service: ModelService, **more: Any) -> str:
    with pytest.raises(HttpError) as caught:
        await _post(service.base_url, **more)
    assert KEY not in repr(caught.value)
    return caught.value.condition


async def test_a_response_has_its_status_its_headers_in_any_case_and_its_body() -> None:
    async with model_service(replying(418, b"tea", X_Kind="green")) as service:
        response = await _post(service.base_url, query={"a": "b c"}, key=KEY)
    assert (response.status, response.headers["x-KIND"], response.body) == (418, "green", b"tea")
    (asked,) = service.asked
    assert asked.path == "/v1?a=b+c"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.headers["content-type"] == "application/json"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_a_response(status: int) -> None:
    async with model_service(replying(status, location="/elsewhere")) as service:
        assert (await _post(service.base_url)).status == status
    assert len(service.asked) == 1


async def test_a_body_may_have_the_bytes_allowed_and_not_one_more() -> None:
    async with model_service(replying(200, b"x" * 10), replying(200, b"x" * 11)) as service:
        assert (await _post(service.base_url)).body == b"x" * 10
        assert await _condition(service) == "policy-violation"


async def test_a_compressed_body_is_not_unpacked() -> None:
    async with model_service(replying(200, b"\x1f\x8b", content_encoding="gzip")) as service:
        assert (await _post(service.base_url)).body is None


@pytest.mark.parametrize("seconds", [0.2, 0.0, -1.0])
async def test_a_deadline_holds_even_one_that_has_passed(seconds: float) -> None:
    async with model_service(silent) as service:
        assert await _condition(service, seconds=seconds, key=KEY) == "remote-server-timeout"


@pytest.mark.parametrize(
    ("url", "condition"),
    [
        ("http://llm.example.org/", "encryption-required"),
        ("http://localhost.example.org/", "encryption-required"),
        ("http://127.0.0.1:1/", "connection-refused"),
        ("http://[::1", "jid-malformed"),
        ("ftp://127.0.0.1/", "connection-reset"),
    ],
)
async def test_a_key_goes_in_clear_to_this_machine_only(url: str, condition: str) -> None:
    with pytest.raises(HttpError) as caught:
        await _post(url, key=KEY)
    assert caught.value.condition == condition
    assert KEY not in f"{caught.value!r}{caught.value}"
