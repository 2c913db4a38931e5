"""Logs in: chooses a SASL mechanism and runs its exchange (RFC 6120, section 6)."""

import asyncio
import secrets
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias
from xml.etree.ElementTree import Element

from bridge.settings.table import Settings
from bridge.text import quoted
from bridge.wire import scram
from bridge.wire.names import SASL, condition_of
from bridge.wire.scram import HASHES, ChannelBinding, ScramClient, ScramError
from bridge.xmpp.link.from_slixmpp import ForbiddenCharacterError, sasl_prepared
from bridge.xmpp.link.offer import Offer
from bridge.xmpp.model import faults
from bridge.xmpp.model.faults import ConnectionFailedError, Fault, Place

CHALLENGE, SUCCESS, FAILURE = (f"{{{SASL}}}{name}" for name in ("challenge", "success", "failure"))
ANSWERS = (CHALLENGE, SUCCESS, FAILURE)
"""The answers that a server may give."""

PLUS = {f"{name}-PLUS": None for name in HASHES}.keys()
"""The mechanisms with channel binding, best first."""

Exchange: TypeAlias = Callable[[Element], Awaitable[Element]]
"""Sends an element and returns the answer, one of `ANSWERS`."""


class LoginRefusedError(ConnectionFailedError):
    """The server refused a login (RFC 6120, section 6.4.5)."""

    def __init__(self, refusal: Fault, flag: str) -> None:
        self.refusal = refusal
        """The fault without the advice to try again without channel binding."""
        self.flag = flag
        """The login's flag for channel binding (RFC 5802, section 7): `p` if the login was bound,
        `y` if we could have bound it, `n` if not. Empty without SCRAM, and if channel binding
        cannot be the reason."""
        advice = faults.BINDING_ADVICE.get(flag, "")
        if refusal.condition in faults.EXPLAINED:
            advice = ""
        super().__init__(refusal._replace(hint=refusal.hint + advice))


async def log_in(
    settings: Settings,
    place: Place,
    offer: Offer,
    exchange: Exchange,
    *,
    bindings: Sequence[ChannelBinding] | None,
    genuine: bool,
    on_finding: Callable[[str], None] = lambda _: None,
) -> tuple[str, str | None]:
    """Log in with the best mechanism of `offer`.

    Return the name of the mechanism, and the type of its channel binding, or None without one.

    `bindings` are the channel bindings of this connection, best first. If None, log in by SCRAM as
    a client that knows no channel binding. `genuine` says that the server's certificate was
    verified, which PLAIN and weak SCRAM parameters require. Only one mechanism is tried, so that
    the server counts a wrong password once. Raises `ConnectionFailedError`, or `ScramError` if the
    server fails to prove itself.

    If the certificate was not checked, an impostor could relay a login that has no channel binding
    to the real server. So if the server then offers channel binding, we log in with channel binding
    or not at all.
    """
    offered = offer.mechanisms
    on_finding(f"offered: {quoted(', '.join(offered)) if offered else 'nothing'}")
    if offer.channel_bindings:
        on_finding(f"channel bindings: {quoted(', '.join(offer.channel_bindings))}")
    if offer.unused:
        on_finding(f"offered, but not used: {offer.unused}")
    login = _Login(settings, place, offer, exchange, genuine=genuine)
    binding = _common_binding(offer.channel_bindings, bindings or ())
    best = [*PLUS, *HASHES] if binding is not None else [*HASHES]
    mechanism = next((name for name in best if name in offered), None)
    if lacks_binding(offer, bindings or (), genuine=genuine):
        raise ConnectionFailedError(without_binding(offer, place))
    if mechanism is not None:
        bound = binding if mechanism in PLUS else None
        on_finding(f"chosen: {mechanism}{f', bound to TLS by {bound.type}' if bound else ''}")
        could_bind = bindings is not None and (bool(bindings) or not genuine)
        await login.by_scram(mechanism, bound, could_bind=could_bind and PLUS.isdisjoint(offered))
        return mechanism, None if bound is None else bound.type
    if "PLAIN" in offered and genuine and bindings is not None:
        on_finding("chosen: PLAIN")
        await login.by_plain()
        return "PLAIN", None
    raise ConnectionFailedError(faults.no_mechanism(offered, place, offer.unused))


class _Login:
    """One login, by one mechanism."""

    def __init__(
        self, settings: Settings, place: Place, offer: Offer, exchange: Exchange, *, genuine: bool
    ) -> None:
        """Raises `ConnectionFailedError` if SASLprep forbids the name or the password."""
        self._place = place
        self._offer = offer
        self._exchange = exchange
        self._genuine = genuine
        self._flag = ""
        """The login's flag for channel binding, as in `LoginRefusedError`."""
        try:
            self._username = sasl_prepared(settings.username)
            self._password = sasl_prepared(settings.password.reveal())
        except ForbiddenCharacterError as error:
            fault = faults.of_sasl("malformed-request", "characters SASLprep forbids", place)
            raise ConnectionFailedError(fault) from error

    async def by_scram(
        self, mechanism: str, bound: ChannelBinding | None, *, could_bind: bool
    ) -> None:
        """Log in by SCRAM (RFC 5802); `bound` is the channel binding to use, if any.

        Raises `ConnectionFailedError`, or `ScramError` if the server fails to prove itself.
        """
        client = ScramClient(
            mechanism,
            self._username,
            secrets.token_urlsafe(24),
            bound,
            could_bind=could_bind,
            least_iterations=1 if self._genuine else scram.LEAST_UNTRUSTED_ITERATIONS,
        )
        self._flag = client.flag
        answer = await self._ask(_element("auth", client.first(), mechanism=mechanism))
        if answer.tag != CHALLENGE:
            raise ScramError("it skipped its own proof")
        client.challenge(_content(answer))
        # Check this before we send the proof: an attacker who changed the offer on the way could
        # use it.
        if not client.was_offered(self._offer.mechanisms, self._offer.channel_bindings):
            raise ConnectionFailedError(faults.of("downgraded", self._place))
        final = await asyncio.to_thread(client.final, self._password)
        answer = await self._ask(_element("response", final))
        client.verify(_content(answer))
        if answer.tag == CHALLENGE:
            # The server's proof may come as one more challenge, which we acknowledge (RFC 4422,
            # section 3.6).
            answer = await self._ask(_element("response", ""))
        if answer.tag != SUCCESS:
            raise ScramError("it goes on asking after its proof")

    async def by_plain(self) -> None:
        """Log in by PLAIN (RFC 4616), which tells the server the password; raises as `by_scram`."""
        secret = f"\0{self._username}\0{self._password}"
        answer = await self._ask(_element("auth", secret, mechanism="PLAIN"))
        if answer.tag != SUCCESS:
            raise ScramError("it challenges PLAIN, which has no challenge")

    async def _ask(self, element: Element) -> Element:
        """Send an element and return the answer; raises `LoginRefusedError`."""
        answer = await self._exchange(element)
        if answer.tag == FAILURE:
            condition, text = condition_of(answer)
            refusal = faults.of_sasl(condition, text, self._place, genuine=self._genuine)
            is_clear = not self._genuine or faults.blames_password(text)
            raise LoginRefusedError(refusal, "" if is_clear else self._flag)
        return answer


def lacks_binding(offer: Offer, bindings: Sequence[ChannelBinding], *, genuine: bool) -> bool:
    """Whether we cannot log in for want of a channel binding.

    The server offers logins with channel bindings, but none that we have. It offers no other login,
    or we may take no other, since its certificate is not `genuine`.
    """
    if PLUS.isdisjoint(offer.mechanisms) or _common_binding(offer.channel_bindings, bindings):
        return False
    return not genuine or {*HASHES, "PLAIN"}.isdisjoint(offer.mechanisms)


def without_binding(offer: Offer, place: Place) -> Fault:
    """Return the fault of a server that has no channel binding in common with us."""
    named = offer.channel_bindings
    types = quoted(", ".join(named)) if named else "a type that it does not name"
    return faults.of("binding-unsupported", place, quotes=bool(named), types=types)


def _common_binding(
    offered: Sequence[str], bindings: Sequence[ChannelBinding]
) -> ChannelBinding | None:
    """Return the best channel binding that both sides support (XEP-0440).

    If the server names none, it is assumed to support `tls-unique`, which TLS libraries commonly
    have.
    """
    types = offered or ("tls-unique",)
    return next((binding for binding in bindings if binding.type in types), None)


def _element(name: str, content: str, **attributes: str) -> Element:
    element = Element(f"{{{SASL}}}{name}", attributes)
    element.text = b64encode(content.encode()).decode() or None
    return element


def _content(element: Element) -> str:
    try:
        return b64decode((element.text or "").strip(), validate=True).decode()
    except ValueError as error:  # no ASCII, no Base64, no UTF-8
        raise ScramError("its message is not Base64") from error
