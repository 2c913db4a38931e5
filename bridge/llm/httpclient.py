"""Asks web services for JSON with httpx, within limits of time and size.

Each failure is a `ToolError`. httpx comes with the extra `[llm]` and is imported with the first
request. Like curl, it takes proxies and trust anchors from the process environment (`HTTPS_PROXY`,
`NO_PROXY`, `SSL_CERT_FILE`): some networks can be left only through a proxy. A key goes only to the
address that was named:

- Redirects are not followed.
- A proxy sees the key only encrypted.
- The key never goes in clear to another machine.
- It is removed from the service's error texts.
"""

import asyncio
import importlib
import logging
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Any, TypeVar

from bridge.mcp.errors import ToolError
from bridge.mcp.jsonrpc import Json, compact, parse
from bridge.mcp.schema import MismatchError
from bridge.settings.values import Secret
from bridge.text import one_line

CONNECT_SECONDS = 10.0
"""How long a connection may take, TLS included."""

SHOWN_CHARACTERS = 200
"""The most characters of an error text from a service or from httpx."""

MAX_REPLY_BYTES = 1024 * 1024
"""The longest reply, in bytes: far more than the longest answer of a model or a list of places."""

THIS_MACHINE = frozenset({"localhost", "127.0.0.1", "::1"})
"""The hosts to which a key may go in clear."""

CONDITIONS = {
    401: "not-authorized",
    402: "forbidden",
    403: "forbidden",
    404: "item-not-found",
    429: "resource-constraint",
}
"""The condition for a status (RFC 9110, section 15). For other statuses the first digit decides."""

Answer = TypeVar("Answer")

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class WebService:
    """A web service that answers with JSON."""

    name: str
    """The name of the service in errors, where it begins a sentence."""
    base_url: str
    settings: str
    """The settings that an error says to check: the variable that holds `base_url`, and others."""
    key: Secret | None = None
    """A bearer token."""

    async def ask(
        self,
        path: str,
        read: Callable[[Json], Answer],
        *,
        seconds: float,
        query: Mapping[str, str] | None = None,
        body: Json = None,
    ) -> Answer:
        """Return what `read` makes of the reply at `path`, within `seconds`.

        Raises `ToolError`, also if `read` raises `MismatchError`. A `body` is sent as JSON in a
        POST, and through no proxy that would see it in clear. Cancelling closes the connection.
        """
        began = monotonic()
        try:
            async with asyncio.timeout(seconds):
                reply = await self._request(path, query, body)
            if not isinstance(reply, ToolError):
                return read(reply)
        except TimeoutError:
            reply = self._failure("remote-server-timeout", f"gave no answer within {seconds:g} s")
        except MismatchError as mismatch:
            reply = self._unusable(str(mismatch))
        taken = (monotonic() - began) * 1000
        log.info("%s (%s, after %.1f ms)", reply.message, reply.condition, taken)
        # All errors are raised here: a traceback from further down would have the key and the
        # request in it.
        raise reply

    async def _request(
        self, path: str, query: Mapping[str, str] | None, body: Json
    ) -> Json | ToolError:
        try:
            # In a thread: the import takes a tenth of a second, and would block the loop.
            httpx = await asyncio.to_thread(importlib.import_module, "httpx")
        except ImportError:
            return ToolError(
                "This needs an HTTP client that is not installed: the extra [llm].",
                condition="feature-not-implemented",
                hint="pip install 'xmpp-debug-bridge[llm]'",
            )
        try:
            address = httpx.URL(f"{self.base_url.rstrip('/')}/{path}")
            secured = address.scheme == "https"
            if self.key is not None and not secured and address.host not in THIS_MACHINE:
                what = "is not asked: without https:// the key would go in clear"
                return self._failure("encryption-required", what)
            # In a thread, since it reads all trust anchors.
            async with await asyncio.to_thread(_client, httpx, secured or body is None) as client:
                return await self._exchange(client, address, query, body)
        except httpx.ConnectTimeout:
            late = f"took no connection within {CONNECT_SECONDS:g} s"
            return self._failure("connection-timeout", late)
        except httpx.ConnectError as error:
            said = str(error)  # it has OpenSSL's name for the reason
            untrusted = "CERTIFICATE_VERIFY_FAILED" in said
            condition = "certificate-verify-failed" if untrusted else "connection-refused"
            return self._failure(condition, "cannot be reached", said)
        except httpx.HTTPError as error:
            return self._failure("connection-reset", "broke off", str(error))
        except (httpx.InvalidURL, UnicodeError) as error:
            return self._failure("jid-malformed", "has no valid address", str(error))
        except (ImportError, OSError, ValueError) as error:  # a proxy that httpx cannot use
            # Its text may hold the credentials of the proxy.
            what = f"cannot be asked through the proxy set here ({type(error).__name__})"
            hint = "Check HTTPS_PROXY and ALL_PROXY in the environment of the bridge."
            return self._failure("not-acceptable", what, hint=hint)

    async def _exchange(
        self, client: Any, address: Any, query: Mapping[str, str] | None, body: Json
    ) -> Json | ToolError:
        # Bodies are not unpacked: a few compressed bytes could become any number of bytes.
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        if self.key is not None:
            headers["Authorization"] = f"Bearer {self.key.reveal()}"
        method, sent, content = "GET", "", None
        if body is not None:
            headers["Content-Type"] = "application/json"
            # A lone surrogate becomes its JSON escape.
            method, content = "POST", compact(body).encode("utf-8", "backslashreplace")
            sent = f" of {len(content)} bytes"
        began, got = monotonic(), bytearray()
        log.info("%s is sent a %s%s", self.name, method, sent)
        async with client.stream(
            method, address, params=query, content=content, headers=headers
        ) as response:
            async for chunk in response.aiter_raw():
                got += chunk
                if len(got) > MAX_REPLY_BYTES:
                    break
        status, taken = response.status_code, (monotonic() - began) * 1000
        log.info("%s answered %d with %d bytes in %.1f ms", self.name, status, len(got), taken)
        reply = self._parsed(got)
        return reply if response.is_success else self._refusal(response, reply)

    def _parsed(self, body: bytearray) -> Json | ToolError:
        if len(body) > MAX_REPLY_BYTES:
            what = f"answered with more than {MAX_REPLY_BYTES:,} bytes"
            return self._failure("policy-violation", what)
        try:
            return parse(body)
        except ValueError:
            return self._unusable("it is not JSON")

    def _refusal(self, response: Any, reply: Json) -> ToolError:
        condition, said, hint = "bad-request", "", ""
        match reply:
            case {"error": {"message": str(text)}} | {"error": str(text)} | {"reason": str(text)}:
                said = text
        status = response.status_code
        if status == 429 or status >= 500:  # the same request may succeed a little later
            wait = response.headers.get("retry-after", "").strip()  # RFC 9110, section 10.2.3
            known = wait.isdecimal() and len(wait) < 10
            hint = f"It asks to wait {int(wait)} s." if known else "Call it again later."
            condition = "service-unavailable"
        elif 300 <= status < 400:
            condition, hint = "redirect", f"Redirects are not followed. Check {self.settings}."
        return self._failure(CONDITIONS.get(status, condition), f"answered {status}", said, hint)

    def _unusable(self, why: str) -> ToolError:
        return self._failure("undefined-condition", "sent a reply that cannot be used", why)

    def _failure(self, condition: str, what: str, said: str = "", hint: str = "") -> ToolError:
        key = "" if self.key is None else self.key.reveal()
        words = one_line(said.replace(key, "***") if key else said, SHOWN_CHARACTERS)
        return ToolError(
            f"{self.name} {what}{f': {words}' if words else '.'}",
            condition=condition,
            hint=hint or f"Check {self.settings}.",
            remote=True,
        )


def _client(httpx: Any, trust_env: bool) -> Any:
    return httpx.AsyncClient(
        verify=ssl.create_default_context(),
        trust_env=trust_env,
        follow_redirects=False,
        timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
    )
