"""Logs in: chooses a SASL mechanism and runs its exchange (RFC 6120, section 6)."""

import asyncio
import secrets
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, TypeAlias
from xml.etree.ElementTree import Element

from slixmpp.util.sasl.client import saslprep
from slixmpp.util.stringprep_profiles import StringPrepError

from bridge.settings.table import Settings
from bridge.text import quoted
from bridge.wire.scram import (
    HASHES,
    LEAST_UNTRUSTED_ITERATIONS,
    ChannelBinding,
    ScramClient,
    ScramError,
)
from bridge.xmpp import stanzas
from bridge.xmpp.errors import XmppError
from bridge.xmpp.stanzas import SASL, SASL_CB

CHALLENGE, SUCCESS, FAILURE = (f"{{{SASL}}}{name}" for name in ("challenge", "success", "failure"))
ANSWERS = (CHALLENGE, SUCCESS, FAILURE)
"""The answers that a server may give."""

Exchange: TypeAlias = Callable[[Element], Awaitable[Element]]
"""Sends an element and returns the answer, one of `ANSWERS`."""


class LoginResult(NamedTuple):
    """How a login was done."""

    mechanism: str
    channel_binding: str | None
    """The type of the channel binding; None where the mechanism has none."""


class LoginRefusedError(XmppError):
    """The server refused the login; `condition` is one of RFC 6120, section 6.5."""

    def __init__(self, condition: str, text: str | None = None) -> None:
        self.condition = condition
        self.text = text
        super().__init__(condition)


class NoMechanismError(XmppError):
    """None of the mechanisms `offered` is supported and safe on this connection."""

    def __init__(self, offered: list[str]) -> None:
        self.offered = offered
        super().__init__(", ".join(offered))


async def log_in(
    settings: Settings,
    features: Element,
    exchange: Exchange,
    *,
    bindings: Sequence[ChannelBinding],
    genuine: bool,
    on_finding: Callable[[str], None] = lambda _: None,
) -> LoginResult:
    """Log in with the best mechanism among `features`, and return which it was.

    `bindings` are the channel bindings of this connection, best first; `genuine` says that the
    server's certificate was verified, which PLAIN and weak SCRAM parameters require. Only one
    mechanism is tried, so that the server counts a wrong password once. Raises
    `LoginRefusedError`, `NoMechanismError`, or `ScramError` where the server fails to prove itself.

    An impostor with an unchecked certificate can relay an unbound login to the real server. So
    where the server offers channel binding and the certificate was not checked, none goes unbound.
    """
    offered = [
        (one.text or "").strip()
        for one in features.iterfind(f"{{{SASL}}}mechanisms/{{{SASL}}}mechanism")
    ]
    on_finding(f"offered: {quoted(', '.join(offered)) if offered else 'nothing'}")
    try:
        username = saslprep(settings.username)
        password = saslprep(settings.password.reveal())
    except (StringPrepError, UnicodeError) as error:
        raise LoginRefusedError("malformed-request", "characters SASLprep forbids") from error
    binding = _common_binding(features, bindings)
    plus = [f"{one}-PLUS" for one in HASHES]
    best = [*plus, *HASHES] if binding is not None else [*HASHES]
    mechanism = next((one for one in best if one in offered), None)
    offers_binding = any(one in offered for one in plus)
    if mechanism is not None:
        if offers_binding and binding is None and not genuine:
            raise ScramError("it binds logins in no way that the bridge can, with TLS unchecked")
        bound = binding if mechanism in plus else None
        on_finding(f"chosen: {mechanism}{f', bound to TLS by {bound.type}' if bound else ''}")
        client = ScramClient(
            mechanism,
            username,
            secrets.token_urlsafe(24),
            bound,
            could_bind=not offers_binding and (bool(bindings) or not genuine),
            least_iterations=1 if genuine else LEAST_UNTRUSTED_ITERATIONS,
        )
        await _scram(client, mechanism, password, exchange)
        return LoginResult(mechanism, None if bound is None else bound.type)
    if "PLAIN" in offered and genuine:
        on_finding("chosen: PLAIN")
        await _plain(username, password, exchange)
        return LoginResult("PLAIN", None)
    raise NoMechanismError(offered)


def _common_binding(features: Element, bindings: Sequence[ChannelBinding]) -> ChannelBinding | None:
    """Return the best channel binding that both sides support (XEP-0440).

    A server that names none is taken to support `tls-unique`, the common one of TLS libraries.
    """
    named = [
        one.get("type")
        for one in features.iterfind(
            f"{{{SASL_CB}}}sasl-channel-binding/{{{SASL_CB}}}channel-binding"
        )
    ]
    wanted = named or ["tls-unique"]
    return next((one for one in bindings if one.type in wanted), None)


async def _scram(client: ScramClient, mechanism: str, password: str, exchange: Exchange) -> None:
    answer = _accepted(await exchange(_auth(mechanism, client.first())))
    if answer.tag != CHALLENGE:
        raise ScramError("it skipped its own proof")
    derivation = client.challenge(_content(answer))
    key = await asyncio.to_thread(derivation.key, password)
    answer = _accepted(await exchange(_response(client.final(key))))
    client.verify(_content(answer))
    if answer.tag == CHALLENGE:
        # The proof may come as one more challenge, to be acknowledged (RFC 4422, 3.6).
        answer = _accepted(await exchange(_response("")))
    if answer.tag != SUCCESS:
        raise ScramError("it goes on asking after its proof")


async def _plain(username: str, password: str, exchange: Exchange) -> None:
    answer = _accepted(await exchange(_auth("PLAIN", f"\0{username}\0{password}")))
    if answer.tag != SUCCESS:
        raise ScramError("it challenges PLAIN, which has no challenge")


def _accepted(answer: Element) -> Element:
    if answer.tag == FAILURE:
        raise LoginRefusedError(*stanzas.condition_of(answer, SASL))
    return answer


def _auth(mechanism: str, content: str) -> Element:
    element = Element(f"{{{SASL}}}auth", {"mechanism": mechanism})
    element.text = b64encode(content.encode()).decode()
    return element


def _response(content: str) -> Element:
    element = Element(f"{{{SASL}}}response")
    element.text = b64encode(content.encode()).decode() or None
    return element


def _content(element: Element) -> str:
    try:
        return b64decode((element.text or "").strip(), validate=True).decode()
    except ValueError as error:  # no ASCII, no Base64, no UTF-8
        raise ScramError("its message is not Base64") from error
