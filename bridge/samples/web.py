"""One JSON document from a web service, or a `ToolError` that says what went wrong.

httpx comes with the extra `[llm]` and is imported within the call. Proxies and trust anchors are
taken from the process environment (`HTTPS_PROXY`, `NO_PROXY`, `SSL_CERT_FILE`), as curl does:
behind a proxy nothing could be reached otherwise. Redirects are not followed.
"""

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

from bridge.toolkit import ToolError, visible

if TYPE_CHECKING:
    import httpx

MAX_REPLY_BYTES = 256 * 1024
"""Of a reply; the longest that are asked for here have a few kilobytes."""

MAX_REASON = 200
"""Characters of a service's own reason that are shown."""

_DIGITS = re.compile("[0-9]{1,6}")


@dataclass(frozen=True)
class Reply:
    """What a service answered, whole."""

    status: int
    retry_after: str
    """As the header has it; empty without."""
    body: bytes


@dataclass(frozen=True)
class Service:
    """A web service, and what an error tells of it."""

    name: str
    base_url: str
    setting: str
    """The variable that holds `base_url`."""

    async def ask(self, path: str, query: Mapping[str, str], *, seconds: float) -> object:
        """Return the JSON document at `path`, within `seconds`; raises `ToolError`."""
        async with await self._client(seconds) as client:
            reply = await self._get(client, path, query, seconds)
        return self._read(reply)

    def bad_reply(self, why: str) -> ToolError:
        """Return the error for a reply that is none."""
        return ToolError(
            f"{self.name} sent a reply that cannot be used: {why}.",
            condition="undefined-condition",
            hint=f"Try again later; {self.setting} says where it is asked.",
        )

    async def _client(self, seconds: float) -> "httpx.AsyncClient":
        try:
            # It takes a quarter of a second, in which others want their answers.
            await asyncio.to_thread(import_module, "httpx")
            import httpx
        except ImportError as error:
            raise ToolError(
                "This tool needs an HTTP client, and none is installed.",
                condition="feature-not-implemented",
                hint="Install the extra `[llm]`: pip install 'xmpp-debug-bridge[llm]'; then start "
                "the bridge again.",
            ) from error
        try:
            return httpx.AsyncClient(timeout=seconds, follow_redirects=False, trust_env=True)
        except (ImportError, OSError, ValueError) as error:
            # Its text may hold the credentials of a proxy.
            raise ToolError(
                f"The HTTP client does not start ({type(error).__name__}).",
                condition="internal-server-error",
                hint="Check the proxy variables (HTTPS_PROXY, ALL_PROXY) and SSL_CERT_FILE in the "
                "environment of the bridge.",
            ) from error

    async def _get(
        self, client: "httpx.AsyncClient", path: str, query: Mapping[str, str], seconds: float
    ) -> Reply:
        import httpx

        url = f"{self.base_url.rstrip('/')}/{path}"
        # Uncompressed: what a few bytes unpack to has no bound.
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        try:
            async with (
                asyncio.timeout(seconds),
                client.stream("GET", url, params=dict(query), headers=headers) as response,
            ):
                return Reply(
                    response.status_code,
                    response.headers.get("Retry-After", ""),
                    await self._body(response),
                )
        except (TimeoutError, httpx.TimeoutException) as error:
            late = f"did not answer within {seconds:g} s."
            raise self._error(late, "remote-server-timeout") from error
        except httpx.ConnectError as error:
            away = f"cannot be reached: {_shown(error)}."
            raise self._error(away, "remote-server-not-found") from error
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
            broken = f"broke off: {_shown(error)}."
            raise self._error(broken, "service-unavailable") from error

    async def _body(self, response: "httpx.Response") -> bytes:
        if response.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise self.bad_reply("it is compressed, though that was not asked for")
        body = bytearray()
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > MAX_REPLY_BYTES:
                raise self.bad_reply(f"it has more than {MAX_REPLY_BYTES:,} bytes")
        return bytes(body)

    def _read(self, reply: Reply) -> object:
        if reply.status == 200:
            return self._json(reply.body)
        raise self._refusal(reply)

    def _refusal(self, reply: Reply) -> ToolError:
        match reply.status:
            case 429:
                wait = reply.retry_after
                when = f" It wants {wait} s of patience." if _DIGITS.fullmatch(wait) else ""
                return self._error(
                    f"has had too many requests from here.{when}", "policy-violation"
                )
            case status if 300 <= status < 400:
                return self._error(
                    f"sends its clients elsewhere (HTTP {status}), which is not followed.",
                    "redirect",
                )
            case status if status >= 500:
                return self._error(f"is out of order (HTTP {status}).", "service-unavailable")
            case status:
                reason = self._reason(reply)
                return self._error(f"refused (HTTP {status}){reason}.", "undefined-condition")

    def _reason(self, reply: Reply) -> str:
        try:
            said = self._json(reply.body)
        except ToolError:
            return ""
        reason = said.get("reason") if isinstance(said, dict) else None
        return f": {visible(reason[:MAX_REASON])!r}" if isinstance(reason, str) else ""

    def _json(self, body: bytes) -> object:
        try:
            value: object = json.loads(body, parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            raise self.bad_reply("it is not JSON") from error
        return value

    def _error(self, predicate: str, condition: str) -> ToolError:
        return ToolError(
            f"{self.name} {predicate}",
            condition=condition,
            hint=f"Try again later; {self.setting} says where it is asked.",
        )


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _shown(error: Exception) -> str:
    return visible(str(error)[:MAX_REASON]) or type(error).__name__
