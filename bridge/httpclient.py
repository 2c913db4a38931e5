"""Sends one HTTP request by httpx, bounded in time and size; every failure is an `HttpError`.

httpx comes with the extra `[llm]` and is imported with the first request. Proxies and trust anchors
are taken from the process environment (`HTTPS_PROXY`, `NO_PROXY`, `SSL_CERT_FILE`), as curl does:
nothing could be reached otherwise where a proxy is needed. Redirects are not followed, so that a
key goes to the address that was named and nowhere else.
"""

import asyncio
import importlib
import ipaddress
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

CONNECT_SECONDS = 10.0
"""How long a connection may take, TLS included."""

UNTRUSTED = "CERTIFICATE_VERIFY_FAILED"
"""What OpenSSL calls it in the text of the error."""


class HttpError(Exception):
    """A request that got no response that can be used."""

    def __init__(self, condition: str, text: str = "") -> None:
        super().__init__(condition, text)
        self.condition = condition
        """`feature-not-implemented`: httpx is not installed; `not-acceptable`: a proxy variable of
        the environment is wrong; `jid-malformed`: the address is; `encryption-required`: the key
        would go to another machine in clear; `connection-timeout`, `certificate-verify-failed`,
        `connection-refused`: there is no connection; `connection-reset`: it broke, or does not
        carry HTTP; `policy-violation`: the body is too long; `remote-server-timeout`: the deadline
        passed."""
        self.text = text
        """What the library says of it; part of it may be the server's text."""


@dataclass(frozen=True)
class Response:
    """The whole response of a server."""

    status: int
    headers: Mapping[str, str]
    body: bytes | None
    """None if it is compressed, which was not asked for: a few bytes could unpack to any number."""


async def request(
    method: str,
    url: str,
    *,
    deadline: float,
    max_bytes: int,
    query: Mapping[str, str] | None = None,
    json: bytes | None = None,
    key: str = "",
    proxy_in_clear: bool = False,
) -> Response:
    """Return the response; raises `HttpError`. Cancelling closes the connection.

    `deadline` is a time of the event loop, `max_bytes` the limit of the response's body, `json` the
    body of the request, `key` a bearer token. A proxy is used for `http:` addresses, of which it
    sees everything, with `proxy_in_clear` only.
    """
    headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
    if json is not None:
        headers["Content-Type"] = "application/json"
    if key:
        headers["Authorization"] = f"Bearer {key}"
    try:
        async with asyncio.timeout_at(deadline):
            try:
                # Off the loop: it takes a tenth of a second, in which nobody else would be served.
                library: Any = await asyncio.to_thread(importlib.import_module, "httpx")
            except ImportError as error:
                raise HttpError("feature-not-implemented") from error
            try:
                address = library.URL(url)
                secured = address.scheme == "https"
                if key and not secured and not _is_this_machine(address.host):
                    raise HttpError("encryption-required")
                client = await asyncio.to_thread(
                    _client, library, secured=secured, trust_env=secured or proxy_in_clear
                )
                async with (
                    client,
                    client.stream(
                        method, address, params=query, content=json, headers=headers
                    ) as response,
                ):
                    return Response(
                        response.status_code, response.headers, await _body(response, max_bytes)
                    )
            except (library.InvalidURL, library.HTTPError, UnicodeError) as error:
                text = str(error) or type(error).__name__
                raise HttpError(_condition(library, error), text) from error
    except TimeoutError as error:
        raise HttpError("remote-server-timeout") from error


def _client(library: Any, *, secured: bool, trust_env: bool) -> Any:
    try:
        return library.AsyncClient(
            # Reading the system's certificates takes time; a context without any trusts nobody.
            verify=(
                ssl.create_default_context() if secured else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            ),
            trust_env=trust_env,
            follow_redirects=False,
            timeout=library.Timeout(None, connect=CONNECT_SECONDS),
        )
    except (ImportError, OSError, ValueError) as error:
        # Its text may hold the credentials of a proxy.
        raise HttpError("not-acceptable", type(error).__name__) from error


async def _body(response: Any, max_bytes: int) -> bytes | None:
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        return None
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > max_bytes:
            raise HttpError("policy-violation")
    return bytes(body)


def _condition(library: Any, error: Exception) -> str:
    if isinstance(error, library.ConnectTimeout):
        return "connection-timeout"
    if isinstance(error, library.ConnectError):
        return "certificate-verify-failed" if UNTRUSTED in str(error) else "connection-refused"
    return "connection-reset" if isinstance(error, library.HTTPError) else "jid-malformed"


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
