"""A model behind an HTTP address of the user's: one question, one connection, bounded.

The key goes to that address and nowhere else: redirects are not followed, a proxy only sees it
encrypted, it never goes in clear to another machine, and what the service says is cleared of it.
"""

import asyncio
import importlib
import ipaddress
import logging
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from bridge.escaping import one_line
from bridge.llm import chat
from bridge.llm.chat import ReplyError
from bridge.llm.prompt import Prompt
from bridge.mcp.toolset import ToolError
from bridge.settings.values import Secret

if TYPE_CHECKING:
    import httpx

CONNECT_SECONDS = 10.0
"""How long a connection may take, TLS included."""

ANSWER_SECONDS = 90.0
"""How long a question may take in all, with its repetitions."""

MAX_REPLY_BYTES = 1024 * 1024
"""Of a reply; an answer within its own limit is far shorter."""

SHOWN_CHARACTERS = 200
"""Of what a service says went wrong."""

SECRET_CHARACTERS = 12
"""Keys from this length on are taken out of answers too; shorter ones, such as `none` for services
that ignore it, are words that may well stand there."""

UNTRUSTED = "CERTIFICATE_VERIFY_FAILED"
"""OpenSSL's word for it, in the text of the error."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Reply:
    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Endpoint:
    """A service that speaks chat completions."""

    base_url: str
    """As in `LLM_BASE_URL`: what `/chat/completions` is added to."""
    model: str
    key: Secret | None = None
    answer_seconds: float = field(default=ANSWER_SECONDS, kw_only=True)

    async def complete(self, prompt: Prompt) -> str:
        """Return the model's answer; raises `ToolError`. Cancelling closes the connection."""
        try:
            return await self._complete(prompt)
        except ToolError as error:
            failure = error
        # The frames and errors that it came through hold the key and the request: it goes on alone.
        failure.__cause__ = failure.__context__ = None
        try:
            raise failure.with_traceback(None)
        finally:
            del failure  # this frame is in its traceback

    async def _complete(self, prompt: Prompt) -> str:
        key = "" if self.key is None else self.key.reveal()
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            **({"Authorization": f"Bearer {key}"} if key else {}),
        }
        try:
            async with asyncio.timeout(self.answer_seconds) as deadline:
                answer = await self._ask(chat.body_of(prompt, self.model), headers, key)
        except TimeoutError as error:
            if not deadline.expired():
                raise
            raise ToolError(
                f"The model at LLM_BASE_URL gave no answer within {self.answer_seconds:g} s.",
                condition="remote-server-timeout",
                hint="Ask about less, or see whether the service answers at all.",
            ) from error
        return _cleared(answer, key) if len(key) >= SECRET_CHARACTERS else answer

    async def _ask(self, body: bytes, headers: dict[str, str], key: str) -> str:
        try:
            # Off the loop: it takes a tenth of a second, in which nobody else would be served.
            library: Any = await asyncio.to_thread(importlib.import_module, "httpx")
        except ImportError as error:
            raise ToolError(
                "This needs an HTTP client that is not installed: the extra [llm].",
                condition="feature-not-implemented",
                hint="pip install 'xmpp-debug-bridge[llm]'",
            ) from error
        try:
            url = library.URL(self.base_url.rstrip("/") + chat.PATH)
            if key and url.scheme != "https" and not _is_here(url.host):
                raise ToolError(
                    "LLM_BASE_URL is no https:// address, so the key would go in clear.",
                    condition="encryption-required",
                    hint="Write https:// in LLM_BASE_URL, or leave LLM_API_KEY out if none is "
                    "needed.",
                )
            async with await asyncio.to_thread(_client, library, url) as client:
                reply = await _insist(client, url, body, headers)
        except library.InvalidURL as error:
            raise ToolError(
                f"LLM_BASE_URL cannot be asked: {_said(str(error), key)}",
                condition="jid-malformed",
                hint="Check LLM_BASE_URL.",
            ) from error
        except library.ConnectTimeout as error:
            raise ToolError(
                f"LLM_BASE_URL: no connection within {CONNECT_SECONDS:g} s.",
                condition="connection-timeout",
                hint="Check the host and port in LLM_BASE_URL, and any firewall in between.",
            ) from error
        except library.ConnectError as error:
            if UNTRUSTED in str(error):
                raise ToolError(
                    f"The certificate of LLM_BASE_URL is not trusted: {_said(str(error), key)}",
                    condition="certificate-verify-failed",
                    hint="Check the host in LLM_BASE_URL. For an authority of your own, set "
                    "SSL_CERT_FILE to its PEM file.",
                ) from error
            raise ToolError(
                f"LLM_BASE_URL cannot be reached: {_said(str(error), key)}",
                condition="connection-refused",
                hint="Check that the service runs, and LLM_BASE_URL.",
            ) from error
        except library.HTTPError as error:
            said = _said(str(error), key) or type(error).__name__
            raise ToolError(
                f"The connection to LLM_BASE_URL broke before the answer was there: {said}",
                condition="connection-reset",
                hint="Call it again; the service may have been restarted.",
            ) from error
        if not 200 <= reply.status < 300:
            raise _refusal(reply, key)
        try:
            return chat.answer_of(reply.body)
        except ReplyError as error:
            raise ToolError(
                f"What LLM_BASE_URL answered is no chat completion: {_said(str(error), key)}",
                condition="undefined-condition",
                hint="Check that LLM_BASE_URL is the base of an OpenAI-style API, such as "
                "https://llm.example.org/v1.",
            ) from error


async def _insist(
    client: "httpx.AsyncClient", url: "httpx.URL", body: bytes, headers: dict[str, str]
) -> _Reply:
    for attempt in range(1, chat.ATTEMPTS + 1):
        async with client.stream("POST", url, content=body, headers=headers) as response:
            reply = _Reply(response.status_code, response.headers, await _body(response))
        log.debug("the model's service answered %d (attempt %d)", reply.status, attempt)
        if not chat.is_passing(reply.status) or attempt == chat.ATTEMPTS:
            break
        pause = chat.pause_before(attempt + 1, reply.headers, datetime.now(UTC))
        if pause > chat.MAX_PAUSE_SECONDS:
            break
        await asyncio.sleep(pause)
    return reply


def _client(library: Any, url: "httpx.URL") -> "httpx.AsyncClient":
    try:
        secured = url.scheme == "https"
        client: httpx.AsyncClient = library.AsyncClient(
            # Reading the system's certificates takes time; a context without any trusts nobody.
            verify=(
                ssl.create_default_context() if secured else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            ),
            # Through a proxy, a plain http:// request would show it the key.
            trust_env=secured,
            follow_redirects=False,
            timeout=library.Timeout(None, connect=CONNECT_SECONDS),
        )
    except (ImportError, ValueError) as error:
        raise ToolError(
            f"The proxy that the environment names cannot be used: {type(error).__name__}",
            condition="not-acceptable",
            hint="Check HTTPS_PROXY and ALL_PROXY.",
        ) from error
    return client


async def _body(response: "httpx.Response") -> bytes:
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        return b""  # we asked for none: a few bytes could unpack to any number
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > MAX_REPLY_BYTES:
            raise ToolError(
                f"What LLM_BASE_URL answered has more than {MAX_REPLY_BYTES:,} bytes.",
                condition="policy-violation",
                hint="Check that LLM_BASE_URL is the base of an OpenAI-style API.",
            )
    return bytes(body)


def _refusal(reply: _Reply, key: str) -> ToolError:
    said = _said(chat.complaint_of(reply.body), key)
    told = f"The model's service answered {reply.status}{f': {said}' if said else '.'}"
    match reply.status:
        case 401:
            return ToolError(told, condition="not-authorized", hint="Check LLM_API_KEY.")
        case 402 | 403:
            hint = "Check what the account of LLM_API_KEY may do, and LLM_MODEL."
            return ToolError(told, condition="forbidden", hint=hint)
        case 404:
            hint = "Check LLM_BASE_URL (usually it ends in /v1) and LLM_MODEL."
            return ToolError(told, condition="item-not-found", hint=hint)
        case 429:
            wait = _said(reply.headers.get("retry-after", ""), key)
            hint = f"It asks to wait: {wait}." if wait else "Call it again later."
            return ToolError(told, condition="resource-constraint", hint=hint)
        case status if 300 <= status < 400:
            hint = "Redirects are not followed; put the final address into LLM_BASE_URL."
            return ToolError(told, condition="redirect", hint=hint)
        case status if chat.is_passing(status):
            return ToolError(told, condition="service-unavailable", hint="Call it again later.")
        case _:
            hint = "Check LLM_BASE_URL and LLM_MODEL."
            return ToolError(told, condition="bad-request", hint=hint)


def _cleared(text: str, key: str) -> str:
    """Return what a stranger said without the key."""
    return text.replace(key, "***") if key else text


def _said(text: str, key: str) -> str:
    return one_line(_cleared(text, key), SHOWN_CHARACTERS)


def _is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
