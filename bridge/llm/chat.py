"""Writes and reads chat completions, the HTTP API of OpenAI that many services speak. Pure."""

import json
from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus

from bridge.llm.prompt import Prompt
from bridge.mcp.jsonrpc import compact

PATH = "/chat/completions"

ATTEMPTS = 3
"""How often one question is sent to a service that is busy or broken."""

FIRST_PAUSE_SECONDS = 1.0
"""Before the second attempt, unless the service says otherwise; doubled before each further one."""

MAX_PAUSE_SECONDS = 20.0
"""A service that wants a longer one is not waited for."""


class ReplyError(ValueError):
    """The reply is no chat completion; the text says what is wrong with it."""


def body_of(prompt: Prompt, model: str) -> bytes:
    """Return the body of the request, without options that some services refuse."""
    messages = [
        {"role": "system", "content": prompt.instructions},
        {"role": "user", "content": prompt.message},
    ]
    return compact({"model": model, "messages": messages, "stream": False}).encode(
        "utf-8",
        "backslashreplace",  # a lone surrogate becomes its JSON escape
    )


def answer_of(body: bytes) -> str:
    """Return the model's words; raises `ReplyError`."""
    reply = _loaded(body)
    choices = reply.get("choices") if isinstance(reply, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(message, dict):
        raise ReplyError("it has no choices[0].message")
    content, refusal = message.get("content"), message.get("refusal")
    if isinstance(content, str):
        return content
    if isinstance(refusal, str):
        raise ReplyError(f"the model refused: {refusal}")
    raise ReplyError("its choices[0].message.content is not a string")


def error_message_of(body: bytes) -> str:
    """Return the message in a service's error; empty if there is none that can be read."""
    try:
        reply = _loaded(body)
    except ReplyError:
        return ""
    error = reply.get("error") if isinstance(reply, dict) else None
    said = error.get("message") if isinstance(error, dict) else error
    return said if isinstance(said, str) else ""


def is_temporary(status: int) -> bool:
    """Whether the same request may succeed a little later."""
    return status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR


def pause_before(attempt: int, headers: Mapping[str, str], now: datetime) -> float:
    """Return how many seconds to wait before `attempt`; the first repetition is number 2.

    Retry-After (RFC 9110, section 10.2.3) takes precedence where it can be read.
    """
    wanted = headers.get("retry-after", "").strip()
    if wanted.isascii() and wanted.isdigit() and len(wanted) < 10:
        return float(wanted)
    try:
        return max(0.0, (parsedate_to_datetime(wanted) - now).total_seconds())
    except (TypeError, ValueError, OverflowError):
        # No date; one without its zone, which is no HTTP date; or a year that no calendar has.
        return float(FIRST_PAUSE_SECONDS * 2 ** (attempt - 2))


def _loaded(body: bytes) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ReplyError("it is not JSON") from error
