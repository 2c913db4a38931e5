"""Asks a model behind an HTTP address that the user set, bounded in time and size.

The key goes to that address and nowhere else: redirects are not followed, a proxy only sees it
encrypted, it never goes in clear to another machine, and it is removed from what the service says.
"""

import asyncio
import logging
from dataclasses import dataclass, field
from datetime import UTC, datetime

from bridge.httpclient import CONNECT_SECONDS, HttpError, Response, request
from bridge.llm import chat
from bridge.llm.chat import ReplyError
from bridge.llm.prompt import Prompt
from bridge.mcp.toolset import ToolError
from bridge.settings.values import Secret
from bridge.text import one_line

ANSWER_SECONDS = 90.0
"""How long a question may take in all, with its repetitions."""

MAX_REPLY_BYTES = 1024 * 1024
"""Of a reply; an answer within its own limit is far shorter."""

SHOWN_CHARACTERS = 200
"""Of what a service says went wrong."""

SECRET_CHARACTERS = 12
"""Keys from this length on are taken out of answers too; shorter ones, such as `none` for services
that ignore it, are words that may well stand there."""

FAILURES = {
    "feature-not-implemented": (
        "This needs an HTTP client that is not installed: the extra [llm].",
        "pip install 'xmpp-debug-bridge[llm]'",
    ),
    "not-acceptable": (
        "The proxy that the environment names cannot be used: {said}",
        "Check HTTPS_PROXY and ALL_PROXY.",
    ),
    "jid-malformed": ("LLM_BASE_URL cannot be asked: {said}", "Check LLM_BASE_URL."),
    "encryption-required": (
        "LLM_BASE_URL is no https:// address, so the key would go in clear.",
        "Write https:// in LLM_BASE_URL, or leave LLM_API_KEY out if none is needed.",
    ),
    "connection-timeout": (
        f"LLM_BASE_URL: no connection within {CONNECT_SECONDS:g} s.",
        "Check the host and port in LLM_BASE_URL, and any firewall in between.",
    ),
    "certificate-verify-failed": (
        "The certificate of LLM_BASE_URL is not trusted: {said}",
        (
            "Check the host in LLM_BASE_URL. For an authority of your own, set SSL_CERT_FILE to "
            "its PEM file."
        ),
    ),
    "connection-refused": (
        "LLM_BASE_URL cannot be reached: {said}",
        "Check that the service runs, and LLM_BASE_URL.",
    ),
    "connection-reset": (
        "The connection to LLM_BASE_URL broke before the answer was there: {said}",
        "Call it again; the service may have been restarted.",
    ),
    "policy-violation": (
        f"What LLM_BASE_URL answered has more than {MAX_REPLY_BYTES:,} bytes.",
        "Check that LLM_BASE_URL is the base of an OpenAI-style API.",
    ),
    "remote-server-timeout": (
        "The model at LLM_BASE_URL gave no answer within {seconds} s.",
        "Ask about less, or see whether the service answers at all.",
    ),
}
"""Sentence and hint for each condition of `HttpError`."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Endpoint:
    """A service that speaks chat completions."""

    base_url: str
    """As in `LLM_BASE_URL`; `/chat/completions` is appended to it."""
    model: str
    key: Secret | None = None
    answer_seconds: float = field(default=ANSWER_SECONDS, kw_only=True)

    async def complete(self, prompt: Prompt) -> str:
        """Return the model's answer; raises `ToolError`. Cancelling closes the connection."""
        try:
            return await self._complete(prompt)
        except ToolError as error:
            failure = error
        # The traceback and the causes hold the key and the request: it is raised without them.
        failure.__cause__ = failure.__context__ = None
        try:
            raise failure.with_traceback(None)
        finally:
            del failure  # this frame is in its traceback

    async def _complete(self, prompt: Prompt) -> str:
        key = "" if self.key is None else self.key.reveal()
        try:
            response = await self._request(chat.body_of(prompt, self.model), key)
        except HttpError as error:
            message, hint = FAILURES[error.condition]
            said = {"said": _shown(error.text, key), "seconds": f"{self.answer_seconds:g}"}
            raise ToolError(
                message.format_map(said), condition=error.condition, hint=hint
            ) from error
        if not 200 <= response.status < 300:
            raise _refusal(response, key)
        try:
            answer = chat.answer_of(response.body or b"")
        except ReplyError as error:
            raise ToolError(
                f"What LLM_BASE_URL answered is no chat completion: {_shown(str(error), key)}",
                condition="undefined-condition",
                hint="Check that LLM_BASE_URL is the base of an OpenAI-style API, such as "
                "https://llm.example.org/v1.",
            ) from error
        return _redacted(answer, key) if len(key) >= SECRET_CHARACTERS else answer

    async def _request(self, body: bytes, key: str) -> Response:
        url = self.base_url.rstrip("/") + chat.PATH
        clock = asyncio.get_running_loop().time
        deadline = clock() + self.answer_seconds
        for attempt in range(1, chat.ATTEMPTS + 1):
            response = await request(
                "POST", url, deadline=deadline, max_bytes=MAX_REPLY_BYTES, json=body, key=key
            )
            log.debug("the model's service answered %d (attempt %d)", response.status, attempt)
            if not chat.is_temporary(response.status) or attempt == chat.ATTEMPTS:
                break
            pause = chat.pause_before(attempt + 1, response.headers, datetime.now(UTC))
            if pause > chat.MAX_PAUSE_SECONDS:
                break
            await asyncio.sleep(min(pause, deadline - clock()))
        return response


def _refusal(response: Response, key: str) -> ToolError:
    said = _shown(chat.error_message_of(response.body or b""), key)
    text = f"The model's service answered {response.status}{f': {said}' if said else '.'}"
    match response.status:
        case 401:
            condition, hint = "not-authorized", "Check LLM_API_KEY."
        case 402 | 403:
            condition = "forbidden"
            hint = "Check what the account of LLM_API_KEY may do, and LLM_MODEL."
        case 404:
            condition = "item-not-found"
            hint = "Check LLM_BASE_URL (usually it ends in /v1) and LLM_MODEL."
        case 429:
            wait = _shown(response.headers.get("retry-after", ""), key)
            known = wait.isascii() and wait.isdigit()
            condition = "resource-constraint"
            hint = f"It asks to wait {wait} s." if known else "Call it again later."
        case status if 300 <= status < 400:
            condition = "redirect"
            hint = "Redirects are not followed; put the final address into LLM_BASE_URL."
        case status if chat.is_temporary(status):
            condition, hint = "service-unavailable", "Call it again later."
        case _:
            condition, hint = "bad-request", "Check LLM_BASE_URL and LLM_MODEL."
    return ToolError(text, condition=condition, hint=hint)


def _redacted(text: str, key: str) -> str:
    """Return a text of the service without the key."""
    return text.replace(key, "***") if key else text


def _shown(text: str, key: str) -> str:
    return one_line(_redacted(text, key), SHOWN_CHARACTERS)
