"""How a client gets its session: TLS, SASL, a resource, resumption. State and rules. Pure."""

import re
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from sys import intern
from xml.etree.ElementTree import Element

from bridge.capture.causes import cause, meaning
from bridge.capture.client import Entity
from bridge.capture.finding import Disproof, Finding, Outcome, Severity, recovered
from bridge.capture.stanza import FOOTER, MAX_TEXT, STANZA_TAGS, Stanza, outline
from bridge.text import counted, quoted
from bridge.wire import names
from bridge.wire.names import SASL, SASL2, SM, TLS, condition_of, local, split

FAILED = f"{{{SM}}}failed"
OLD_MECHANISMS = frozenset({"DIGEST-MD5", "CRAM-MD5"})
"""Mechanisms that libraries and servers often have wrong (RFC 6331). The server speaks first."""
BY_PASSWORD = ("PLAIN", "LOGIN", "SCRAM-", *OLD_MECHANISMS)
"""How the names of mechanisms begin that check a password."""
MALFORMED = frozenset({"malformed-request", "incorrect-encoding"})
"""The conditions of a message of SASL that the server cannot read (RFC 6120, 6.5)."""
MAX_REFUSALS = 16
"""We remember at most so many refused logins of a stream; servers end the stream before."""
_JID = f"{{{names.BIND}}}bind/{{{names.BIND}}}jid"
EMPTY = frozenset({"", "="})
"""Data of no length (RFC 6120, 6.4.2)."""


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
    is_securing: bool = False
    """Whether TLS was asked for, and nothing else has passed since but the client's presence."""
    lacks_tls: bool = False
    """Whether it was found that the client did not begin TLS."""
    offer: str = ""
    """The words for the place of the server's latest offer; empty if the log has none."""
    mechanisms: tuple[str, ...] = ()
    mechanism: str = ""
    """The SASL mechanism under way; empty before and after."""
    binding_flag: str = ""
    """The GS2 flag that the client sent: `n`, `y` or `p` (RFC 5802, section 7)."""
    names_jid: bool = False
    """Whether the user name that the client sent has an at sign."""
    tried: bool = False
    challenges: int = 0
    is_empty: bool = False
    """Whether the latest data of the client, in `auth` or a response, was empty, or had an empty
    user name."""
    judged: Finding | None = None
    """Why `tap` refuses the login by the failure that comes next, in the server's place."""
    refusals: tuple[Finding, ...] = ()
    """The findings that a login was refused, of the latest tries."""
    authenticated: bool = False
    lacks_header: bool = False
    """Whether the log has no header of the client since the login."""
    bind: Stanza | None = None
    """The client's latest request for a resource, as its `outline`."""
    bind_refused: Finding | None = None
    """The finding that the server refused that request, if the client has not gone on since."""
    is_managed: bool = False
    """Whether the client has asked for stream management (XEP-0198)."""
    misuse: Stanza | None = None
    """The client's latest stanza, if it used stream management before it had asked for it."""
    asked: str = ""
    """What the client asked for last of stream management: `enable` or `resume`."""
    counted: dict[bool, int] = field(default_factory=dict)
    """How many stanzas the client sent (True) and got (False) since stream management began; empty
    if that is not known."""
    excess: tuple[Stanza, int] | None = None
    """An acknowledgement of more stanzas than have passed, and how many it acknowledges."""
    resumption_id: str = ""
    """The id with which the client can resume the session (XEP-0198, section 5)."""

    def take(self, client: Entity, stanza: Stanza) -> Iterator[Outcome]:
        """Take a stanza, and yield what it shows to be wrong."""
        element = stanza.element
        if element.tag in STANZA_TAGS and self.counted:
            self.counted[stanza.sent] += 1
        rules = _RULES.get((element.tag, stanza.sent), ())
        if element.tag in {names.ACK, names.ACK_REQUEST} or self.excess or self.misuse:
            rules = overcounted, unmanaged, *rules
        for rule in rules:
            yield from rule(self, client, stanza)
        space, name = split(element.tag)
        self.is_securing = self.is_securing and stanza.sent and name == "presence"
        match space:
            case names.SASL | names.SASL2:
                self._take_sasl(client, name, element)
                self._take_management(client, element, sent=stanza.sent)
            case names.SM:
                self._take_management(client, element, sent=stanza.sent)
            case names.TLS | names.COMPRESS if name != "failure":
                self.is_securing = space == TLS
                self.began_tls = self.began_tls or self.is_securing
                self.restarting = name in {"proceed", "compressed"}
            case names.STREAMS if name in {"stream", "features"}:
                client.is_complete = client.is_complete or client.count == 1
                if name == "stream":
                    self._take_header(client, stanza)
                else:
                    self._take_features(element)
                    self.offer = f" ({stanza.place.words})"
                self.restarting = False
            case "" if name == "handshake":
                client.is_component, self.tried = True, True
                if not stanza.sent:
                    self.authenticated = client.bound = True
            case "" if name in STANZA_TAGS:
                if name == "iq":
                    self.tried = self.tried or stanza.sent  # so did a client log in before SASL
                    self._take_bind(client, stanza)
                if not (stanza.sent or client.account):  # what came is addressed to the client
                    client.account = element.get("to", "")[:MAX_TEXT]

    def lose(self) -> None:
        """Allow for a hole in the log, which may hide a login."""
        self.mechanism, self.mechanisms, self.authenticated = "", (), True
        self.offers_tls = self.requires_tls = False
        self.counted.clear()
        self.excess = self.misuse = None
        self.is_managed = True

    def forget(self) -> None:
        """Keep how far the client has come, since no further stanza comes."""
        self.bind = self.bind_refused = self.misuse = self.excess = None
        self.refusals = ()
        self.mechanisms, self.offer, self.offers_tls, self.counted = (), "", False, {}

    def _take_header(self, client: Entity, stanza: Stanza) -> None:
        self.headers += 1
        self.has_own_header = self.has_own_header or stanza.sent
        kind, sender = stanza.element.get("xmlns"), stanza.element.get("from", "")
        self.tried = self.tried or kind == names.SERVER  # servers know each other by dialback, too
        if kind == names.COMPONENT:
            client.is_component = True
            sender = stanza.element.get("to", "") if stanza.sent else sender
        if stanza.sent or client.is_component:
            client.account = client.account or sender[:MAX_TEXT]
        self.lacks_header = self.lacks_header and self.has_own_header and not stanza.sent
        if stanza.sent:
            client.host = intern(stanza.element.get("to", "")[:MAX_TEXT])
        elif self.mechanism:
            self.mechanism, self.authenticated = "", True  # the log lost `success`

    def _take_features(self, features: Element) -> None:
        offered = features.find(f"{{{TLS}}}starttls")
        self.offers_tls = offered is not None
        self.requires_tls = offered is not None and offered.find(f"{{{TLS}}}required") is not None
        listed = [it for space in (SASL, SASL2) for it in features.iter(f"{{{space}}}mechanism")]
        texts = [(it.text or "").strip()[:MAX_TEXT] for it in listed[:32]]
        self.mechanisms = (*dict.fromkeys(texts),)
        # A server offers a resource once the client has logged in (RFC 6120, 7.3.1).
        is_offered = not listed and features.find(f"{{{names.BIND}}}bind") is not None
        self.authenticated = self.authenticated or is_offered

    def _take_sasl(self, client: Entity, name: str, element: Element) -> None:
        match name:
            case "auth" | "authenticate":
                self.mechanism = element.get("mechanism", "?")[:MAX_TEXT]
                self.challenges, self.tried, self.names_jid = 0, True, False
                initial = element.text or element.findtext(f"{{{SASL2}}}initial-response") or ""
                is_hidden = name == "auth" and len(element) > 0
                self.is_empty = initial.strip() in EMPTY and not is_hidden
                with suppress(ValueError):
                    first = b64decode(initial.strip()[:4])[:1].decode("ascii", "replace")
                    self.binding_flag = first if self.mechanism.startswith("SCRAM") else ""
                    data = b64decode(initial.strip()[:MAX_TEXT])
                    _, mark, named = data.partition(b"\0" if self.mechanism == "PLAIN" else b",n=")
                    user = re.split(b"[\0,]", named)[0]
                    self.names_jid = b"@" in user
                    self.is_empty = self.is_empty or (bool(mark) and not user)
            case "challenge":
                self.challenges, self.tried = self.challenges + 1, True
            case "response":
                # A logger may put an element into the place of what it hides.
                self.is_empty = (element.text or "").strip() in EMPTY and len(element) == 0
            case "failure":
                self.mechanism, self.tried = "", True  # aioxmpp logs no login of the client's
            case "success":
                client.is_anonymous = self.mechanism == "ANONYMOUS"
                self.mechanism, self.authenticated, self.restarting = "", True, True
                self.lacks_header = element.tag == f"{{{SASL}}}success"
                jid = element.findtext(f"{{{SASL2}}}authorization-identifier") or client.account
                client.account = jid[:MAX_TEXT]
                if element.find(f"{{{names.BIND2}}}bound") is not None:
                    client.bound = True

    def _take_bind(self, client: Entity, stanza: Stanza) -> None:
        """Take a request for a resource, or its answer. No other answer names the account."""
        element = stanza.element
        payload = element.find(f"{{{names.BIND}}}bind")
        if stanza.sent and payload is not None:
            self.bind, self.bind_refused = outline(stanza), None
        elif not stanza.sent and self.answers_bind(client, element) and payload is not None:
            jid = payload.findtext(f"{{{names.BIND}}}jid")
            if jid and element.get("type") == "result":
                client.account, client.bound = jid[:MAX_TEXT], True

    def answers_bind(self, client: Entity, answer: Element) -> bool:
        """Whether the server answers the request for a resource, or may do so in an excerpt."""
        if client.other_side(answer.get("from")):
            return False
        if self.bind is None:
            return not client.bound and not client.is_complete
        return answer.get("id", "")[:MAX_TEXT] == self.bind.element.get("id", "")

    def _take_management(self, client: Entity, element: Element, *, sent: bool) -> None:
        """Take what is said of stream management, by itself or within SASL2."""
        tags = {name for space, name in (split(it.tag) for it in element.iter()) if space == SM}
        if sent and tags & {"enable", "resume"}:
            self.is_managed, self.asked = True, "resume" if "resume" in tags else "enable"
            self.counted = {True: 0, False: 0} if "enable" in tags else {}
        elif "enabled" in tags:
            enabled = next(element.iter(f"{{{SM}}}enabled"))
            self.is_managed, self.resumption_id = True, enabled.get("id", "")[:MAX_TEXT]
            if self.counted:
                self.counted[False] = 0
        elif "resumed" in tags:
            client.bound = self.is_managed = True
            resumed = next(element.iter(f"{{{SM}}}resumed"))
            self.resumption_id = resumed.get("previd", "")[:MAX_TEXT]
            client.is_complete = False  # it has the rooms of the former stream
            self.counted = {}


def tls(login: LoginState, client: Entity, stanza: Stanza) -> Iterator[Finding]:
    """Find that TLS is required, and the client does not begin it."""
    element = stanza.element
    is_refused = login.requires_tls and not (login.began_tls or client.ended)
    if element.tag == f"{{{SASL}}}failure":
        is_required = element.find(f"{{{SASL}}}encryption-required") is not None
        is_refused = is_required and not login.began_tls
    elif element.tag == names.FEATURES:  # they come after the client's login
        required = element.find(f"{{{TLS}}}starttls/{{{TLS}}}required")
        is_refused = login.has_own_header and login.mechanism != "" and required is not None
    elif element.tag == names.STREAM_ERROR and login.offers_tls and not login.began_tls:
        is_violation = condition_of(element)[0] == "policy-violation"
        is_refused = is_refused or is_violation
    elif element.tag != FOOTER:
        is_refused = is_refused and stanza.sent
    if is_refused and not login.lacks_tls:
        login.lacks_tls = True
        is_offered = login.offers_tls or not login.mechanisms  # or the log lost the offer
        words = ("", "client") if is_offered else (", though it offers no STARTTLS", "server")
        yield cause("no-tls", stanza.place, offer=words[0] + login.offer, side=words[1])


def unoffered_tls(login: LoginState, client: Entity, stanza: Stanza) -> Iterator[Finding]:
    """Find that the client begins TLS although the server does not offer it."""
    del client
    if login.mechanisms and not (login.offers_tls or login.began_tls):
        yield cause("unoffered-tls", stanza.place, offer=login.offer)


def layer_refused(login: LoginState, client: Entity, stanza: Stanza) -> Iterator[Finding]:
    """Find that the server could not begin TLS, or compresses no stream."""
    del login, client
    name = "tls-refused" if split(stanza.element.tag)[0] == TLS else "uncompressed"
    why = next((local(each.tag) for each in stanza.element), "")
    yield cause(name, stanza.place, why=why)


def given_up(login: LoginState, client: Entity, stanza: Stanza) -> Iterator[Finding]:
    """Find that the client gave the login up, or did not try it."""
    if stanza.element.tag == names.HEADER and (login.restarting or login.mechanism):
        return  # it goes on, perhaps behind a `success` that the log lost
    if login.authenticated or client.ended or not (client.is_complete and client.has_received):
        return
    if login.mechanism:
        words = {"mechanism": quoted(login.mechanism), "when": _when(login)}
        yield cause("given-up", stanza.place, **words)
    elif login.is_securing and stanza.element.tag == FOOTER:
        yield cause("left-at-tls", stanza.place)
    elif login.offer and not login.tried and (login.mechanisms or not login.offers_tls):
        if not (login.mechanisms or login.headers):
            return  # the client may be in: by SASL2, the features behind its login may be empty
        is_doubtful = stanza.seconds is None or not login.has_own_header
        if stanza.element.tag == names.HEADER and is_doubtful:
            return  # it may be another client, or another day, or the log lost STARTTLS
        name = "no-mechanism" if login.mechanisms else "no-login"
        offered = quoted(", ".join(login.mechanisms))
        offered += "" if login.offers_tls or login.began_tls else " without STARTTLS"
        yield cause(name, stanza.place, offered=offered, offer=login.offer)


def _when(login: LoginState) -> str:
    return "after the server's challenge" if login.challenges else "before the server answered"


def refused(login: LoginState, client: Entity, stanza: Stanza) -> Iterator[Finding]:
    """Find why the server refused the login."""
    condition, text = condition_of(stanza.element)
    if condition == "encryption-required" and login.lacks_tls:
        return  # `tls` has found that
    name = _blamed(login, condition)
    others = [each for each in login.mechanisms if each not in OLD_MECHANISMS]
    mechanism = quoted(login.mechanism) if login.mechanism else "its mechanism"
    words = {"mechanism": mechanism, "others": quoted(", ".join(others)), "when": _when(login)}
    words |= meaning("sasl", condition, client, text)
    finding = login.judged or cause(name, stanza.place, condition, **words)
    login.judged = None
    login.refusals = (*login.refusals, finding)[:MAX_REFUSALS]
    yield finding
    if name == "refused-login" and login.binding_flag == "y":
        yield cause("flag", stanza.place)


def accepted(login: LoginState, client: Entity, stanza: Stanza) -> Iterator[Outcome]:
    """Find that the client logged in after all, or in a way that other servers refuse."""
    is_bind = stanza.element.find(_JID) is not None and login.answers_bind(client, stanza.element)
    if stanza.element.tag == "iq" and not is_bind:
        return
    offered = [name for name in login.mechanisms if name.endswith("-PLUS")]
    if login.mechanism and login.binding_flag == "y" and offered:
        words = {"mechanism": quoted(login.mechanism), "offered": quoted(", ".join(offered))}
        yield cause("could-bind", stanza.place, **words)
    yield from recovered(login.refusals, " A later try on the same stream succeeded.")
    login.refusals = ()


def _blamed(login: LoginState, condition: str) -> str:
    """Return what a refused login is about: if nothing else is known, the password."""
    if condition == "aborted":
        return "given-up"
    if condition not in {"not-authorized", "undefined-condition", *MALFORMED}:
        return "refused-login"
    offers_binding = any(name.endswith("-PLUS") for name in login.mechanisms)
    if login.binding_flag == "p":
        return "bound"
    if login.binding_flag == "y" and (offers_binding or condition == "malformed-request"):
        return "downgrade"
    is_first = login.challenges == (login.mechanism in OLD_MECHANISMS)
    # The client's part of these is never empty until the server has answered it.
    has_data = login.mechanism.startswith(("PLAIN", "SCRAM-", *OLD_MECHANISMS))
    if login.is_empty and has_data and (is_first or login.challenges == 1):
        return "empty-response"
    if login.mechanism in OLD_MECHANISMS and {*login.mechanisms} - OLD_MECHANISMS:
        return "old-mechanism"
    if login.names_jid:
        return "jid-for-name"
    if condition in MALFORMED:
        return "malformed-response"
    is_other = login.mechanism not in {"", "?"} and not login.mechanism.startswith(BY_PASSWORD)
    return "no-password" if is_other else "refused-login"


def bind(login: LoginState, client: Entity, stanza: Stanza) -> Iterator[Finding]:
    """Find that the server refused the client a resource."""
    element = stanza.element
    if element.get("type") != "error" or not login.answers_bind(client, element):
        return
    error = names.error_of(element)
    # Without its address, the client had no resource yet; not each server repeats the request.
    is_bare = error.condition == "conflict" and not element.get("to") and len(element) == 1
    if login.bind is None and element.find(f"{{{names.BIND}}}bind") is None and not is_bare:
        return
    words = {"condition": error.condition, "why": error.text or ""}
    finding = cause("bind-refused", stanza.place, error.condition, **words)
    gave_up = finding.message.removesuffix(".") + ", and the client gave up."
    login.bind_refused = finding._replace(severity=Severity.ERROR, message=gave_up)
    yield finding


def given_up_bind(login: LoginState, client: Entity, stanza: Stanza) -> Iterator[Outcome]:
    """Find that the client gave up since it got no resource."""
    del stanza
    if (closed := login.bind_refused) and not (client.bound or client.ended):
        yield Disproof(closed.key)
        yield closed
        login.bind_refused = None


def unmanaged(login: LoginState, client: Entity, stanza: Stanza) -> Iterator[Outcome]:
    """Find that the client uses stream management that it has not asked for.

    If the server uses it too, the log lost that it was enabled.
    """
    is_use = stanza.element.tag in {names.ACK, names.ACK_REQUEST}
    if is_use and not stanza.sent:
        yield Disproof("unmanaged ", is_of_all=True)
        login.is_managed, login.misuse = True, None
    elif login.misuse is not None:
        what = local(login.misuse.element.tag)
        yield cause("unmanaged", login.misuse.place, element=what)
    is_early = is_use and client.is_complete and not login.is_managed
    login.misuse = outline(stanza) if is_early else None


def overcounted(login: LoginState, client: Entity, stanza: Stanza) -> Iterator[Finding]:
    """Find that a side acknowledges more than was sent to it.

    An acknowledgement is judged at the next stanza: some libraries log it just before the stanza
    that it acknowledges.
    """
    del client
    if login.excess is not None:
        before, handled = login.excess
        count = login.counted.get(not before.sent, handled)
        login.excess = None
        if handled > count:
            who = "client" if before.sent else "server"
            words = {"who": who, "handled": counted(handled, "stanza"), "count": str(count)}
            yield cause("overcounted", before.place, who, **words)
    if stanza.element.tag == names.ACK and login.counted:
        number = stanza.element.get("h", "")
        if number.isdecimal() and len(number) < 10:
            login.excess = outline(stanza), int(number)


def secret(login: LoginState, client: Entity, stanza: Stanza) -> Iterator[Finding]:
    """Find that the server refused a component's handshake (XEP-0114, 3)."""
    if client.is_component and not login.authenticated and not client.ended:
        condition, text = condition_of(stanza.element)
        if condition == "not-authorized":
            yield cause("secret", stanza.place, why=text)


def session(login: LoginState, client: Entity, stanza: Stanza) -> Iterator[Finding]:
    """Find what disturbs the session: a refused resumption, a negative priority."""
    element = stanza.element
    if element.tag == FAILED:
        if login.asked == "resume" or not (login.asked or client.is_complete):
            yield cause("resumption", stanza.place)
        elif not client.bound and client.is_complete:
            condition, text = condition_of(element)
            yield cause("unable", stanza.place, condition=condition, why=text)
    elif not element.get("to"):
        priority = (element.findtext("priority") or "").strip()
        if priority.startswith("-"):
            yield cause("priority", stanza.place, priority=quoted(priority, 5))


_Rule = Callable[[LoginState, Entity, Stanza], Iterator[Outcome]]

_RULES: dict[tuple[str, bool], tuple[_Rule, ...]] = {
    (names.HEADER, True): (given_up, given_up_bind),
    (FOOTER, True): (tls, given_up, given_up_bind),
    (FOOTER, False): (tls,),
    (names.STREAM_ERROR, False): (tls, secret),
    (names.FEATURES, False): (tls,),
    (f"{{{TLS}}}starttls", True): (unoffered_tls,),
    (f"{{{TLS}}}failure", False): (layer_refused,),
    (f"{{{names.COMPRESS}}}failure", False): (layer_refused,),
    (FAILED, False): (session,),
    ("iq", True): (tls,),
    ("iq", False): (bind, accepted),
    ("presence", True): (session,),
}
for _space in (SASL, SASL2):
    for _tag in (f"{{{_space}}}auth", f"{{{_space}}}authenticate"):
        _RULES[_tag, True] = (tls,)
    _RULES[f"{{{_space}}}failure", False] = tls, refused
    _RULES[f"{{{_space}}}success", False] = (accepted,)
"""The rules that look at a stanza, by its tag and whether the client sent it."""
