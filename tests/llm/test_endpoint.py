"""One question to a service that answers, misbehaves, or is not there."""

import asyncio
import json
import logging
import ssl
import sys
from collections.abc import Callable
from functools import partial

import pytest

from bridge.llm.model import SECRET_CHARACTERS, Model, completed
from bridge.llm.prompt import ModelPrompt
from bridge.mcp.errors import ToolError
from bridge.settings.values import Secret
from tests.llm.model_service import (
    KEY,
    Asked,
    ModelService,
    Turn,
    assert_keeps_nothing,
    completion,
    model_service,
    raw,
    replying,
    saying,
    silent,
)
from tests.servers.certificates import Authority

PROMPT = ModelPrompt("Be brief.", "Say hello, ü\ud800.")
PATIENCE = 30.0
"""Seconds after which a test that waits has failed."""


def _endpoint(service: ModelService) -> Model:
    return partial(completed, service.base_url, "small", Secret(KEY))


async def _failure(*turns: Turn) -> tuple[ToolError, ModelService]:
    async with model_service(*turns) as service:
        with pytest.raises(ToolError) as caught:
            await _endpoint(service)(PROMPT)
    assert_keeps_nothing(caught.value)
    return caught.value, service


async def test_a_question_is_one_post_to_the_base_url_with_the_key_if_there_is_one() -> None:
    async with model_service(saying("hello")) as service:
        assert await _endpoint(service)(PROMPT) == "hello"
        assert await completed(service.base_url + "/", "small", None, PROMPT) == "hello"
    asked, keyless = service.asked
    assert asked.path == keyless.path == "/v1/chat/completions"
    assert "authorization" not in keyless.headers
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.headers["content-type"] == "application/json"
    assert asked.body["model"] == "small"
    assert ModelPrompt(asked.system, asked.user) == PROMPT
    assert asked.body["stream"] is False


async def test_a_proxy_does_not_see_the_key_in_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    async with model_service(saying("stolen")) as proxy, model_service(saying("hi")) as service:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.base_url.removesuffix("/v1"))
        assert await _endpoint(service)(PROMPT) == "hi"
    assert proxy.asked == []


HALF = json.dumps(completion("hello")).encode()


@pytest.mark.parametrize(
    "turn",
    [
        raw(b""),
        raw(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n" + HALF[:20]),
        raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1f4\r\n" + HALF[:20]),
        raw(b"SSH-2.0-OpenSSH_9.2\r\n"),
    ],
)
async def test_a_service_that_hangs_up_half_way_or_speaks_no_http_is_told(turn: Turn) -> None:
    error, service = await _failure(turn)
    assert error.condition == "connection-reset"
    assert len(service.asked) == 1


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"[" * 100_000, "not JSON"),
        (b'{"choices": []}', "no chat completion"),
        (b'{"choices": [{"message": "hi"}]}', "no chat completion"),
        (json.dumps(completion(None)).encode(), "no chat completion"),
        (b'{"choices":[{"message":{"content":null,"refusal":"I must not"}}]}', "I must not"),
    ],
)
async def test_a_reply_that_is_no_completion_is_told(body: bytes, problem: str) -> None:
    error, service = await _failure(replying(200, body))
    assert error.condition == "undefined-condition"
    assert problem in error.message
    assert all(name in error.hint for name in ("LLM_BASE_URL", "LLM_API_KEY", "LLM_MODEL"))
    assert len(service.asked) == 1


async def test_cancelling_closes_the_connection() -> None:
    async with model_service(silent) as service, asyncio.timeout(PATIENCE):
        asking = asyncio.create_task(_endpoint(service)(PROMPT))
        await service.came.wait()
        assert not service.left.is_set()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await service.left.wait()


async def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    async with model_service(saying("hi")) as service:
        with pytest.raises(ToolError) as caught:
            await _endpoint(service)(PROMPT)
    assert_keeps_nothing(caught.value)
    assert caught.value.hint == "pip install 'xmpp-debug-bridge[llm]'"
    assert service.asked == []


async def test_a_proxy_that_cannot_be_used_is_told_without_its_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "gopher://me:hidden-word@127.0.0.1:1")
    with pytest.raises(ToolError) as caught:
        await completed("https://127.0.0.1:1/v1", "small", Secret(KEY), PROMPT)
    assert "HTTPS_PROXY" in caught.value.hint
    assert "hidden-word" not in caught.value.message + caught.value.hint


# TLS


def _secured(authority: Authority, *names: str) -> ssl.SSLContext:
    certificate = authority.issue(*names)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.combined)
    return context


@pytest.mark.parametrize(
    ("name", "is_known", "is_trusted"),
    [("127.0.0.1", True, True), ("other.example", True, False), ("127.0.0.1", False, False)],
)
async def test_a_certificate_of_a_known_authority_for_the_host_is_trusted(
    name: str,
    is_known: bool,
    is_trusted: bool,
    authority: Authority,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if is_known:
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.ca_file))
    async with model_service(saying("hi"), secured=_secured(authority, name)) as service:
        if is_trusted:
            assert await _endpoint(service)(PROMPT) == "hi"
            return
        with pytest.raises(ToolError) as caught:
            await _endpoint(service)(PROMPT)
    assert caught.value.condition == "certificate-verify-failed"
    assert service.asked == []


# The key


def _echo(make: Callable[[str], Turn]) -> Turn:
    async def turn(
        asked: Asked, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        key = asked.headers["authorization"].removeprefix("Bearer ")
        await make(key)(asked, reader, writer)

    return turn


ECHOES: dict[str, Callable[[str], Turn]] = {
    "an error that is cut": lambda key: replying(400, {"error": {"message": "x" * 190 + key}}),
    "a refusal": lambda key: replying(
        200, {"choices": [{"message": {"content": None, "refusal": key}}]}
    ),
    "no http": lambda key: raw(f"HTTP/1.1 {key}\r\n\r\n".encode()),
    "a bad header": lambda key: raw(f"HTTP/1.1 200 OK\r\n{key}\r\n\r\n".encode()),
    "a redirect": lambda key: replying(302, {"error": key}, location=f"http://{key}/"),
}


@pytest.mark.parametrize("kind", ECHOES)
async def test_a_service_that_repeats_the_key_does_not_get_it_shown(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    error, _ = await _failure(_echo(ECHOES[kind]))
    # What the libraries log goes nowhere: tests/test_logs.py.
    ours = [each.getMessage() for each in caplog.records if each.name.startswith("bridge")]
    told = f"{error.message} {error.hint} {error!r} {ours}"
    assert KEY not in told
    assert KEY[:16] not in told


@pytest.mark.parametrize("short", [0, 1])
async def test_a_placeholder_for_a_key_is_left_in_answers_as_the_word_it_is(short: int) -> None:
    key = "o" * (SECRET_CHARACTERS - short)
    async with model_service(saying(f"look: {key}")) as service:
        reply = await completed(service.base_url, "small", Secret(key), PROMPT)
    assert reply == (f"look: {key}" if short else "look: ***")
