"""How a client gets its session: TLS, SASL, a resource, resumption. State and rules. Pure."""

from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from bridge.capture.causes import cause, meaning
from bridge.capture.client import Entity
from bridge.capture.finding import Finding
from bridge.capture.stanza import FOOTER, MAX_TEXT, Stanza
from bridge.text import quoted
from bridge.wire import names
from bridge.wire.names import SASL, SASL2, SM, TLS, condition_of, split

RESUME, FAILED = f"{{{SM}}}resume", f"{{{SM}}}failed"


@dataclass(eq=False, slots=True)
class LoginState:
    """How far the client is on the way to its session."""

    headers: int = 0
    """How many headers, of both sides, have passed."""
    has_own_header: bool = False
    """Whether the log has the client's headers, and so the ends of its streams, too."""
    restarting: bool = False
    """Whether the next header continues the stream, after TLS or SASL (RFC 6120, 4.3.3)."""
    offers_tls: bool = False
    requires_tls: bool = False
    began_tls: bool = False
    mechanisms: tuple[str, ...] = ()
    mechanism: str = ""
    """The SASL mechanism under way; empty before and after."""
    binding_flag: str = ""
    """The GS2 flag that the client sent: `n`, `y` or `p` (RFC 5802, section 7)."""
    tried: bool = False
    challenged: bool = False
    authenticated: bool = False
    resuming: bool = False
    """Whether the latest stanza of the client asks to resume a session."""
    resumption_id: str = ""
    """The id with which the client can resume the session (XEP-0198, section 5)."""

    def take(self, client: Entity, stanza: Stanza) -> Iterator[Finding]:
        """Take a stanza, and yield what it shows to be wrong."""
        for rule in self._rules(stanza):
            yield from rule(self, client, stanza)
        element = stanza.element
        space, name = split(element.tag)
        match space:
            case names.SASL | names.SASL2:
                self._take_sasl(client, name, element)
            case names.SM:
                self._take_management(client, element)
            case names.TLS if name != "failure":
                self.began_tls, self.restarting = True, name == "proceed"
            case names.STREAMS if name in {"stream", "features"}:
                client.is_complete = client.is_complete or client.count == 1
                if name == "stream":
                    self._take_header(client, stanza)
                else:
                    self._take_features(element)
                self.restarting = False
            case "" if not stanza.sent and name == "message" and element.get("type") != "error":
                client.account = client.account or element.get("to", "")[:MAX_TEXT]
            case "" if not stanza.sent and name == "iq":
                if jid := element.findtext(f"{{{names.BIND}}}bind/{{{names.BIND}}}jid"):
                    client.account, client.bound = jid[:MAX_TEXT], True
        if stanza.sent:
            self.resuming = element.tag == RESUME

    def lose(self) -> None:
        """Allow for a hole in the log, which may hide a login."""
        self.mechanism, self.mechanisms, self.authenticated = "", (), True
        self.offers_tls = self.requires_tls = False

    @staticmethod
    def _rules(stanza: Stanza) -> tuple["_Rule", ...]:
        """Return the rules that look at a stanza."""
        match split(stanza.element.tag), stanza.sent:
            case (_, "stream"), True:
                return (given_up,)
            case (_, "/stream"), True:
                return tls, given_up
            case (names.SASL | names.SASL2, "auth" | "authenticate"), True:
                return (tls,)
            case ("", "iq"), True:
                return (tls,)
            case (names.SASL | names.SASL2, "failure"), False:
                return tls, refused
            case (_, "/stream"), False:
                return (tls,)
            case (names.STREAMS, "error"), False:
                return tls, session
            case (names.SM, "failed"), False:
                return (session,)
            case ("", "presence"), True:
                return (session,)
        return ()

    def _take_header(self, client: Entity, stanza: Stanza) -> None:
        self.headers += 1
        self.has_own_header = self.has_own_header or stanza.sent
        if stanza.sent:
            client.account = client.account or stanza.element.get("from", "")[:MAX_TEXT]
        elif self.mechanism:
            self.mechanism, self.authenticated = "", True  # the log lost `success`

    def _take_features(self, features: Element) -> None:
        offered = features.find(f"{{{TLS}}}starttls")
        self.offers_tls = offered is not None
        self.requires_tls = offered is not None and offered.find(f"{{{TLS}}}required") is not None
        listed = [it for space in (SASL, SASL2) for it in features.iter(f"{{{space}}}mechanism")]
        self.mechanisms = tuple((it.text or "").strip()[:MAX_TEXT] for it in listed[:32])

    def _take_sasl(self, client: Entity, name: str, element: Element) -> None:
        match name:
            case "auth" | "authenticate":
                self.mechanism = element.get("mechanism", "?")[:MAX_TEXT]
                self.challenged, self.tried = False, True
                initial = element.text or element.findtext(f"{{{SASL2}}}initial-response") or ""
                with suppress(ValueError):
                    first = b64decode(initial.strip()[:4])[:1].decode("ascii", "replace")
                    self.binding_flag = first if self.mechanism.startswith("SCRAM") else ""
            case "challenge":
                self.challenged = self.tried = True
            case "failure":
                self.mechanism, self.tried = "", True  # aioxmpp logs no login of the client's
            case "success":
                self.mechanism, self.authenticated, self.restarting = "", True, True
                jid = element.findtext(f"{{{SASL2}}}authorization-identifier") or client.account
                client.account = jid[:MAX_TEXT]
                if element.find(f"{{{names.BIND2}}}bound") is not None:
                    client.bound = True
                self._take_management(client, element)

    def _take_management(self, client: Entity, element: Element) -> None:
        """Take what the server says of stream management, by itself or within `success`."""
        if (enabled := next(element.iter(f"{{{SM}}}enabled"), None)) is not None:
            self.resumption_id = enabled.get("id", "")[:MAX_TEXT]
        elif next(element.iter(f"{{{SM}}}resumed"), None) is not None:
            client.bound = True
            client.is_complete = False  # it has the rooms of the former stream


def tls(login: LoginState, client: Entity, stanza: Stanza) -> Iterator[Finding]:
    """Find that TLS is required, and the client does not begin it."""
    element = stanza.element
    is_refused = login.requires_tls and not (login.began_tls or client.ended)
    if element.tag == f"{{{SASL}}}failure":
        is_refused = element.find(f"{{{SASL}}}encryption-required") is not None
    elif element.tag == names.STREAM_ERROR and login.offers_tls and not login.began_tls:
        is_violation = condition_of(element)[0] == "policy-violation"
        is_refused = is_refused or is_violation
    elif element.tag != FOOTER:
        is_refused = is_refused and stanza.sent
    if is_refused:
        yield cause("no-tls", stanza.place)


def given_up(login: LoginState, client: Entity, stanza: Stanza) -> Iterator[Finding]:
    """Find that the client gave the login up, or did not try it."""
    if stanza.element.tag == names.HEADER and login.restarting:
        return
    if login.authenticated or client.ended or not client.is_complete:
        return
    if login.mechanism:
        when = "after the server's challenge" if login.challenged else "before the server answered"
        yield cause("given-up", stanza.place, mechanism=quoted(login.mechanism), when=when)
    elif login.mechanisms and not login.tried:
        offered = quoted(", ".join(login.mechanisms))
        yield cause("no-mechanism", stanza.place, offered=offered)


def refused(login: LoginState, client: Entity, stanza: Stanza) -> Iterator[Finding]:
    """Find why the server refused the login."""
    condition, text = condition_of(stanza.element)
    if condition == "encryption-required":
        return  # `tls` finds that
    message, hint = meaning("sasl", condition, client, text)
    offers_binding = any(name.endswith("-PLUS") for name in login.mechanisms)
    name = "refused-login"
    if condition in {"not-authorized", "malformed-request"}:
        if login.binding_flag == "p":
            name = "bound"
        elif login.binding_flag == "y" and offers_binding:
            name = "downgrade"
    yield cause(name, stanza.place, condition, message=message, hint=hint)


def session(login: LoginState, client: Entity, stanza: Stanza) -> Iterator[Finding]:
    """Find what disturbs the session: conflicts, refused resumption, a negative priority."""
    element = stanza.element
    if element.tag == names.STREAM_ERROR:
        condition, text = condition_of(element)
        if condition == "conflict":
            message, _ = meaning("stream", condition, client, text)
            yield cause("conflict", stanza.place, message=message)
    elif element.tag == FAILED:
        if login.resuming:
            yield cause("resumption", stanza.place)
    elif stanza.sent and not element.get("to"):
        priority = (element.findtext("priority") or "").strip()
        if priority.startswith("-"):
            yield cause("priority", stanza.place, priority=quoted(priority, 5))


_Rule = Callable[[LoginState, Entity, Stanza], Iterator[Finding]]
