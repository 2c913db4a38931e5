"""Asks a web service for one JSON document, or raises a `ToolError` that says what went wrong."""

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

from bridge.toolkit import HttpError, Response, ToolError, request, visible

MAX_REPLY_BYTES = 256 * 1024
"""Of a reply; the longest that are asked for here have a few kilobytes."""

MAX_REASON = 200
"""Characters of a service's own reason that are shown."""

FAILURES = {
    "policy-violation": (
        f"sent a reply that cannot be used: it has more than {MAX_REPLY_BYTES:,} bytes.",
        "undefined-condition",
    ),
    "remote-server-timeout": ("did not answer within {seconds:g} s.", "remote-server-timeout"),
    "connection-timeout": ("did not answer within {seconds:g} s.", "remote-server-timeout"),
    "connection-refused": ("cannot be reached: {said}.", "remote-server-not-found"),
    "certificate-verify-failed": ("cannot be reached: {said}.", "remote-server-not-found"),
}
"""What an error says of a service for each condition of `HttpError`, and its own condition."""

BROKE_OFF = ("broke off: {said}.", "service-unavailable")
"""The same for every other condition."""

_DIGITS = re.compile("[0-9]{1,6}")


@dataclass(frozen=True)
class Service:
    """A web service, and what an error says of it."""

    name: str
    base_url: str
    setting: str
    """The variable that holds `base_url`."""

    async def ask(self, path: str, query: Mapping[str, str], *, seconds: float) -> object:
        """Return the JSON document at `path`, within `seconds`; raises `ToolError`."""
        try:
            response = await request(
                "GET",
                f"{self.base_url.rstrip('/')}/{path}",
                query=query,
                deadline=asyncio.get_running_loop().time() + seconds,
                max_bytes=MAX_REPLY_BYTES,
                proxy_in_clear=True,
            )
        except HttpError as error:
            raise self._failure(error, seconds) from error
        if response.body is None:
            raise self.bad_reply("it is compressed, though that was not asked for")
        if response.status != 200:
            raise self._refusal(response, response.body)
        return self._json(response.body)

    def bad_reply(self, why: str) -> ToolError:
        """Return the error for a reply that cannot be used."""
        return self._error(f"sent a reply that cannot be used: {why}.", "undefined-condition")

    def _failure(self, error: HttpError, seconds: float) -> ToolError:
        said = visible(error.text[:MAX_REASON])
        if error.condition == "feature-not-implemented":
            return ToolError(
                "This tool needs an HTTP client, and none is installed.",
                condition=error.condition,
                hint="Install the extra `[llm]`: pip install 'xmpp-debug-bridge[llm]'; then "
                "start the bridge again.",
            )
        if error.condition == "not-acceptable":
            return ToolError(
                f"The HTTP client does not start ({said}).",
                condition="internal-server-error",
                hint="Check the proxy variables (HTTPS_PROXY, ALL_PROXY) in the environment of "
                "the bridge.",
            )
        text, condition = FAILURES.get(error.condition, BROKE_OFF)
        return self._error(text.format(said=said, seconds=seconds), condition)

    def _refusal(self, response: Response, body: bytes) -> ToolError:
        match response.status:
            case 429:
                wait = response.headers.get("Retry-After", "")
                when = f" It asks to wait {wait} s." if _DIGITS.fullmatch(wait) else ""
                return self._error(
                    f"has had too many requests from here.{when}", "policy-violation"
                )
            case status if 300 <= status < 400:
                return self._error(
                    f"answered with a redirect (HTTP {status}), which is not followed.", "redirect"
                )
            case status if status >= 500:
                return self._error(f"is out of order (HTTP {status}).", "service-unavailable")
            case status:
                reason = self._reason(body)
                return self._error(f"refused (HTTP {status}){reason}.", "undefined-condition")

    def _reason(self, body: bytes) -> str:
        try:
            said = self._json(body)
        except ToolError:
            return ""
        reason = said.get("reason") if isinstance(said, dict) else None
        return f": {visible(reason[:MAX_REASON])!r}" if isinstance(reason, str) else ""

    def _json(self, body: bytes) -> object:
        try:
            value: object = json.loads(body, parse_constant=_refuse)
        except (ValueError, RecursionError) as error:
            raise self.bad_reply("it is not JSON") from error
        return value

    def _error(self, predicate: str, condition: str) -> ToolError:
        return ToolError(
            f"{self.name} {predicate}",
            condition=condition,
            hint=f"Try again later; {self.setting} says where it is asked.",
        )


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
