"""Logging in: the choice of a SASL mechanism and its exchange (RFC 6120, section 6)."""

import asyncio
import secrets
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, TypeAlias
from xml.etree.ElementTree import Element

from slixmpp.util.sasl.client import saslprep
from slixmpp.util.stringprep_profiles import StringPrepError

from bridge.escaping import quoted
from bridge.settings.table import Settings
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
"""What a server may answer."""

Exchange: TypeAlias = Callable[[Element], Awaitable[Element]]
"""Sends one element and returns the answer: one of the three above."""


class LoginResult(NamedTuple):
    """How we logged in."""

    mechanism: str
    channel_binding: str | None
    """The type that ties the login to the TLS connection; None if the mechanism does not."""


class LoginRefusedError(XmppError):
    """The server said no; `condition` is one of RFC 6120, section 6.5."""

    def __init__(self, condition: str, text: str | None = None) -> None:
        self.condition = condition
        self.text = text
        super().__init__(condition)


class NoMechanismError(XmppError):
    """None of the mechanisms `offered` may be used here."""

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

    `bindings` are the channel bindings that this connection has, best first; `genuine` says that
    the server's certificate was checked, so that it may be trusted with more. One mechanism is
    tried, so that a wrong password counts once with the server. Raises
    `LoginRefusedError`, `NoMechanismError`, or `ScramError` when the server is not genuine.

    Whoever poses as a server that is not known to be genuine can pass the login on to the real one,
    unless it is bound to this connection. So none is let go unbound there that could be bound.
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
    """Return a channel binding that both sides have (XEP-0440).

    A server that names none has those of its TLS library, of which `tls-unique` is the one that
    is common, where the connection has it at all.
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
