"""Every way in which connecting, joining, speaking and reading the archive fails. Pure.

Status, check, tools and log take their sentences from here. RFC 6120 and XEP-0045 define the
conditions. A failure below XMPP has the name that the operating system or OpenSSL gives it
(`connection-refused`, `certificate-verify-failed`).
"""

import re
from collections.abc import Sequence
from enum import Enum
from socket import gaierror
from ssl import SSLCertVerificationError, SSLError
from typing import NamedTuple

from bridge.settings.table import Settings
from bridge.text import quoted
from bridge.wire.meaning import MEANINGS, OUR_WORDS, REMOVALS, UNREACHED, first_row, rows_of
from bridge.xmpp.errors import XmppError

PLAIN_DOMAIN = re.compile("[a-z0-9.-]{1,100}")
"""A hint names a room service only if its name matches this: strangers must not be able to put
words into a hint."""


class Retry(Enum):
    """Whether trying again can help."""

    AT_ONCE = "at once"
    """The failure was an accident: try again without a pause, and from the second failure on as
    `SOON`."""
    SOON = "soon"
    """The cause may pass by itself: try again with growing pauses."""
    MINUTE = "minute"
    """A moderator kicked us: come back after a minute."""
    LATER = "later"
    """A person has to change something elsewhere first: try again at long intervals."""
    NEVER = "never"
    """Trying again does harm: wrong passwords lock accounts."""


class Stage(Enum):
    """The steps of one connection, in order."""

    RESOLVE = "resolve"
    CONNECT = "connect"
    TLS = "tls"
    SASL = "sasl"
    BIND = "bind"
    JOIN = "join"
    STANDING = "standing"
    """The session is established, and no step is left."""


class Fault(NamedTuple):
    """One failure: its condition, a sentence on what happened, and a hint on what to change."""

    condition: str
    message: str
    """A sentence on what happened. Text from a server or a room is `quoted` in it."""
    hint: str
    """A sentence on what to do, naming the setting. It never has text from outside."""
    retry: Retry = Retry.SOON
    """When the participant tries again."""
    quotes: bool = False
    """Whether the message has text from a server or a room."""


class Place(NamedTuple):
    """The server, account and room of an attempt, as the sentences name them."""

    service: str
    """As the user would write it: `xmpp://host:port`."""
    domain: str
    account: str
    room: str
    nickname: str
    default: bool = True
    """Whether `room` is the default room; `MUC_PASSWORD` is sent to no other."""
    has_password: bool = True
    """Whether `MUC_PASSWORD` is set."""
    anchors: str = ""
    """The path in `XMPP_TLS_CA_FILE`; empty if it is not set."""

    @classmethod
    def of(cls, settings: Settings, room: str | None = None) -> "Place":
        """Return the place for these settings, with `room`, or else the default room."""
        return cls(
            service=str(settings.service or f"xmpp://{settings.domain}"),
            domain=settings.domain,
            account=settings.jid,
            room=room or settings.room,
            nickname=settings.nickname,
            default=room is None or room == settings.room,
            has_password=settings.room_password is not None,
            anchors=str(settings.tls_ca_file or ""),
        )

    @property
    def room_service(self) -> str:
        """The domain of the room's JID."""
        return self.room.partition("@")[2]

    @property
    def usual_service(self) -> str:
        """The name that room services usually have."""
        return f"conference.{self.domain}"


class FaultError(XmppError):
    """Something failed because of `fault`."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        super().__init__(fault.message)


class ConnectionFailedError(FaultError):
    """The server or the room was not reached, or the stream ended before an answer came."""


class NotSentError(FaultError):
    """The connection had just ended, and nothing was sent to the room."""


class NotReflectedError(FaultError):
    """The room did not reflect the message. It is unknown whether the others got it."""


class BouncedError(FaultError):
    """The room, or a server on the way, returned the message."""


_ROWS = MEANINGS + rows_of("""
domain-without-address: remote-server-not-found; soon
    Nothing says where the server of {domain} is: no SRV record and no address.
    -> Check XMPP_DOMAIN and that this machine can resolve names, or name the server's host in
    XMPP_SERVICE.
no-xmpp: remote-server-not-found; later
    The domain {domain} offers no XMPP: an SRV record of it says so.
    -> Check XMPP_DOMAIN (or the domain in XMPP_USERNAME), or name the server's host in
    XMPP_SERVICE.
service-without-address: remote-server-not-found; soon
    The name in {service} has no address.
    -> Check the host in XMPP_SERVICE, and that this machine can resolve names.
refused: connection-refused; soon
    Nothing listens at {service}.
    -> Check that the server runs and that XMPP_SERVICE names its host and client port.
unreachable: network-unreachable; soon
    {service} cannot be reached: {reason}.
    -> Check the network of this machine and the host in XMPP_SERVICE.
broken: internal-server-error; soon
    The bridge itself broke while it was at the step {stage} ({reason}).
    -> Please report this, with the log at LOG_LEVEL=DEBUG.
hung-up: connection-reset; soon
    {service} hung up before the connection was secured.
    -> A port for direct TLS wants xmpps:// in XMPP_SERVICE, a STARTTLS port xmpp://.
cut: connection-reset; soon
    The connection to {service} was cut.
    -> The server or the network between ended it; the bridge tries again by itself.
silent-standing: connection-timeout; soon
    {service} fell silent: no answer{within}.
    -> The network between may be down. The bridge tries again by itself.
silent-join: remote-server-timeout; soon
    The room {room} did not answer{within}.
    -> Check that {room_service} is the server's room service: the domain in MUC_ROOM is usually
    not the account's domain, but conference.{domain}.
silent-join-with-service: remote-server-timeout; soon
    The room {room} did not answer{within}, though its service {room_service} does.
    -> The room may be overloaded or broken; the bridge tries again by itself.
silent-join-without-service: service-unavailable; soon
    The room {room} did not answer{within}, and {room_service} offers no service.
    -> Check the domain in MUC_ROOM: usually it is not the account's domain, but
    conference.{domain}.
unfinished-join: remote-server-timeout; soon
    The room {room} began to answer, and did not let us in{within}.
    -> The room may be overloaded or broken; the bridge tries again by itself.
silent-resolve: remote-server-timeout; soon
    The name in {service} was not resolved{within}.
    -> Check the name servers of this machine, or give an address in XMPP_SERVICE.
silent-starttls: connection-timeout; soon
    {service} did not answer{within} at the step {stage}.
    -> A port for direct TLS waits like this for its client to begin: try xmpps:// in XMPP_SERVICE.
    Otherwise check that the server runs and that XMPP_SERVICE names its host and client port.
silent-connect silent-tls silent-sasl silent-bind: connection-timeout; soon
    {service} did not answer{within} at the step {stage}.
    -> Check that the server runs and that XMPP_SERVICE names its host and client port. A firewall
    that drops packets looks like this.
long-check: connection-timeout; soon
    The check was given up after {seconds:g} s, at the step {step}: {service} or the network answers
    very slowly.
    -> Check the network between, and the load of the server; the times of the steps before show
    where they went.
protocol: undefined-condition; soon
    {service} answered oddly at the step {stage}: {reason}.
    -> Check that the port in XMPP_SERVICE is an XMPP client port, not a web or component port.
protocol-later: undefined-condition; soon
    The stream of {service} broke at the step {stage}: {reason}.
    -> The port is right, since XMPP was spoken there: the server, or a proxy in between, sends what
    no client can read. The server's log may say more; the bridge tries again by itself.
no-starttls: encryption-required; later
    {service} offers no TLS, and no password goes over a bare connection.
    -> Turn TLS on in the server; or, on a machine you trust, set XMPP_ALLOW_PLAINTEXT=1 (SCRAM
    only, the password itself is never sent).
starttls-refused: tls-handshake-failed; soon
    {service} offers TLS and refuses to begin it.
    -> The server's TLS is broken, often the file of its certificate; its log says more.
tls-handshake: tls-handshake-failed; soon
    No TLS connection to {service}: {reason}.
    -> The server's TLS settings do not fit this machine's; the server's log says more.
not-direct-tls: wrong-version-number; later
    {service} does not begin with TLS.
    -> If that is a STARTTLS port (5222), write xmpp:// instead of xmpps:// in XMPP_SERVICE; else
    name the direct TLS port (5223): this may be no XMPP port at all.
only-direct-tls: wrong-version-number; later
    {service} answers by TLS where XML was due.
    -> That is a port for direct TLS: write xmpps:// instead of xmpp:// in XMPP_SERVICE, or name the
    STARTTLS port (5222).
tls-broke: tls-failed; soon
    TLS with {service} broke: {reason}.
    -> Something between garbles what is sent, or the server ended TLS; the bridge tries again by
    itself.
anchors-unusable: certificate-verify-failed; later
    {service} was not asked for its certificate: XMPP_TLS_CA_FILE names {anchors}, which cannot be
    used to check it ({reason}).
    -> XMPP_TLS_CA_FILE must name a readable file with certificates in PEM.
certificate-name: certificate-verify-failed; later
    The certificate of {service} cannot be trusted: {reason}.
    -> The certificate must name the XMPP domain {domain}: check XMPP_DOMAIN, or the server's
    certificate.
certificate-time: certificate-verify-failed; later
    The certificate of {service} cannot be trusted: {reason}.
    -> Renew the server's certificate, or set this machine's clock.
certificate-issuer: certificate-verify-failed; later
    The certificate of {service} cannot be trusted: {reason}.
    -> If you trust who signed it, give their certificate in XMPP_TLS_CA_FILE.
anchors-useless: certificate-verify-failed; later
    The certificate of {service} cannot be trusted: {reason}. No certificate in {anchors}
    has signed it.
    -> If you trust who signed it, add their certificate to that file, which XMPP_TLS_CA_FILE names.
no-mechanism: invalid-mechanism; later
    {domain} offers no login that is safe here (it offers {listed}).
    -> Turn SCRAM-SHA-256 or SCRAM-SHA-1 on in the server. PLAIN is used over TLS with a verified
    certificate only.
downgraded: aborted; later
    The login of {account} was given up: what {domain} offers was changed on the way, as the
    server's own hash of its offer shows (XEP-0474).
    -> Something in between weakens the login, and may read along. Check XMPP_SERVICE and the
    network; the password is not known to be wrong.
binding-unsupported: unsupported-channel-binding-type; later
    {domain} ties logins to the TLS connection by {types} only, which the bridge does not have here.
    -> Over a checked certificate the bridge may log in without it, by SCRAM or PLAIN: name who
    signed it in XMPP_TLS_CA_FILE (xmpp-bridge init helps), without NODE_TLS_REJECT_UNAUTHORIZED=0.
    Or let the server offer TLS 1.2, too.
unproven-server: bad-server-signature; later
    {service} could not prove that it is the server of {account}: {reason}.
    -> Something may be listening in between. Check XMPP_SERVICE and the certificate.
password-missing: not-authorized; later
    The room {room} wants a password, and MUC_PASSWORD is not set.
    -> Set MUC_PASSWORD to the room's password.
password-not-sent: not-authorized; later
    The room {room} wants a password, and MUC_PASSWORD is for the default room only.
    -> Put the room first in MUC_ROOM, and its password into MUC_PASSWORD.
malformed-room: jid-malformed; later
    The room {room} has {character} in its name, which no address may have.
    -> Correct MUC_ROOM.
malformed-nickname: jid-malformed; later
    The nickname {nickname} has {character} in it, which no nickname may have.
    -> Correct MCP_BOT_NICKNAME.
missing-room: item-not-found; later
    The room {room} does not exist, and was not joined, since joining would make it.
    -> Check MUC_ROOM; a check without --room-must-exist makes the room.
no-room-service: service-unavailable; later
    {room_service} answers, but is no room service.
    -> Check the domain in MUC_ROOM: usually it is not the account's domain, but
    conference.{domain}.
service-gone: *; soon
    {room_service}, the service of the room {room}, cannot be reached ({condition}).
    -> It was stopped, or is cut off from {domain}: its operator knows. The bridge tries again by
    itself. If it was never in this room, check the domain in MUC_ROOM.
unreached: service-unavailable; soon
    The message to {room} came back ({condition}){why}: its service {room_service} may be gone.
    -> xmppStatus says so as soon as the bridge has asked the service. Otherwise something on the
    way refuses the message, and the server's log says more.
unreached: *; soon
    The message to {room} came back ({condition}){why}: its service {room_service} was not reached.
    -> The service may be stopped or cut off. xmppStatus says so as soon as the bridge has asked it.
no-reflection: remote-server-timeout; soon
    The room {room} sent nothing back within {seconds:g} s.
    -> The server may be slow or hold the message back; allow more timeoutSeconds.
unproved: unproved; soon
    Something came back under our nickname within {seconds:g} s, but with neither the id nor the
    text of our message: nothing proves that the room {room} passed it on.
    -> xmppHistory shows what came. A filter or a gateway may rewrite what is said there.
same-text: resource-constraint; soon
    The room {room} has not yet sent back an earlier message with the same text.
    -> Wait, or change the text: the room gives no ids back, so only the text tells messages apart.
leave-unconfirmed: remote-server-timeout; soon
    The room {room} did not confirm within {seconds:g} s that we left.
    -> The room service may be overloaded; our occupant goes with its connection all the same.
moved: gone; later
    The room {room} was destroyed{why}. Its owner names a new place: {venue}.
    -> Set MUC_ROOM to the new place if you trust that owner, or to another room.
ghost: not-acceptable; at once
    The room {room} does not count us among its occupants any more, and did not say why.
    -> The bridge goes back by itself; the room service may have been restarted.
archive-missing: feature-not-implemented; soon
    The room {room} keeps no archive that can be asked (XEP-0313).
    -> Without `archive`, xmppHistory shows what the bridge itself has seen. The room's owner, or
    the server's operator, can turn archiving on (Prosody: muc_mam, ejabberd: mod_mam).
archive-refused: forbidden not-authorized registration-required; soon
    The room {room} does not let us read its archive.
    -> Without `archive`, xmppHistory shows what the bridge itself has seen. Ask an owner of the
    room for membership.
archive-refused: *; soon
    The room {room} refused to read from its archive.
    -> Without `archive`, xmppHistory shows what the bridge itself has seen.
archive-position: item-not-found; soon
    The archive of {room} does not know the place in `since`, or no longer does.
    -> Give a time in `after` instead, or leave `since` out for the newest.
archive-silent: remote-server-timeout; soon
    The archive of {room} did not answer in time.
    -> A narrower span (`after`, `before`) or a smaller `limit` may help.
archive-odd: undefined-condition; soon
    The archive of {room} answered oddly: it sent far more than was requested.
    -> Without `archive`, xmppHistory shows what the bridge itself has seen.
silent-room: remote-server-timeout; soon
    The room {room} has been silent for {seconds:.0f} s, even to pings.
    -> {room_service} may be down, or cut off from {domain}.
""")
"""Every failure, with the value of its `Retry`. `{why}` is the text of an error in brackets."""


def of(
    situation: str,
    place: Place,
    *,
    condition: str | None = None,
    text: str | None = None,
    quotes: bool = False,
    **words: object,
) -> Fault:
    """Return the fault of a situation in the table.

    `condition` selects the row if a situation has several. `text` is the explanation that the
    server or the room sent. `words` fill in the names in braces that `place` does not have. If
    `words` have text from a server or a room, the text must be `quoted`, and `quotes` must be set.
    """
    row = first_row(_ROWS, situation, condition)
    condition = condition or row.conditions[0]
    names: dict[str, object] = {**OUR_WORDS, **place._asdict(), **words}
    names |= {"room_service": place.room_service, "usual_service": place.usual_service}
    names["condition"] = condition
    message = row.message.format(why=f" ({quoted(text)})" if text else "", **names)
    if "{why}" not in row.message:
        message += quoted_text(text)
    hint = row.hint.format(**names)
    return Fault(condition, message, hint, Retry(row.outcome), quotes or bool(text))


def quoted_text(text: str | None) -> str:
    """Return a sentence that quotes the text of an error; empty without a text."""
    return f" It says: {quoted(text)}." if text else ""


def guesses_service(fault: Fault, place: Place) -> bool:
    """Whether the hint ends with a guess at the name of the room service."""
    return fault.hint.endswith(f" {place.usual_service}.")


def with_services(fault: Fault, place: Place, services: Sequence[str]) -> Fault:
    """Return `fault` with the server's room services; the first one replaces the guess."""
    if not services:
        return fault
    hint = fault.hint
    if PLAIN_DOMAIN.fullmatch(services[0]):
        if guesses_service(fault, place):
            hint = f"{hint.removesuffix(f'{place.usual_service}.')}{services[0]}."
        else:
            hint = f"Check the domain in MUC_ROOM: perhaps it is {services[0]}. {hint}"
    listed = ", ".join(map(quoted, services))
    message = f"{fault.message} Room services of {place.domain}: {listed}."
    return fault._replace(message=message, hint=hint, quotes=True)


def similar_named(rooms: Sequence[str]) -> str:
    """Return a sentence that lists rooms with similar names, to append; empty without rooms."""
    return f" Rooms with similar names: {', '.join(map(quoted, rooms))}." if rooms else ""


def of_exception(stage: Stage, error: BaseException, place: Place) -> Fault:
    """Classify an exception of the operating system, OpenSSL or the resolver in `stage`."""
    match error:
        case gaierror() if place.service == f"xmpp://{place.domain}":
            return of("domain-without-address", place)  # there is no XMPP_SERVICE
        case gaierror():
            return of("service-without-address", place)
        case SSLCertVerificationError():
            return _of_certificate(str(getattr(error, "verify_message", None) or error), place)
        case SSLError():
            return _of_tls(stage, str(getattr(error, "reason", None) or error), place)
        case ConnectionRefusedError():
            return of("refused", place)
        case TimeoutError():
            return of_silence(stage, None, place)
        case ConnectionError() | EOFError():
            return of_lost_connection(stage, place)
        case OSError():
            return of("unreachable", place, reason=error.strerror or error)
    return of("broken", place, stage=stage.value, reason=type(error).__name__)


def of_lost_connection(stage: Stage, place: Place) -> Fault:
    """Return the fault of a connection that the server closed without a stream error."""
    return of("hung-up" if stage in {Stage.TLS, Stage.CONNECT} else "cut", place)


def of_silence(stage: Stage, seconds: float | None, place: Place) -> Fault:
    """Return the fault of a stage in which nothing came back within `seconds`."""
    within = f" within {seconds:g} s" if seconds is not None else ""
    is_starttls = stage is Stage.TLS and place.service.startswith("xmpp:")
    situation = "silent-starttls" if is_starttls else f"silent-{stage.value}"
    return of(situation, place, within=within, stage=stage.value)


def protocol_error(stage: Stage, reason: str, place: Place) -> Fault:
    """Return the fault of a server that breaks RFC 6120; `reason` is a clause of ours."""
    # Before TLS is up, the port may be wrong.
    situation = "protocol" if stage in {Stage.CONNECT, Stage.TLS} else "protocol-later"
    return of(situation, place, stage=stage.value, reason=reason)


def unexpected_element(stage: Stage, name: str, place: Place) -> Fault:
    """Return the fault of a server that sent this element instead of an answer."""
    reason = f"an unexpected element {quoted(name)}"
    return protocol_error(stage, reason, place)._replace(quotes=True)


def _of_certificate(reason: str, place: Place) -> Fault:
    lowered = reason.lower()
    if "mismatch" in lowered or "not valid for" in lowered:
        situation = "certificate-name"
    elif "expired" in lowered or "not yet valid" in lowered:
        situation = "certificate-time"
    else:
        situation = "anchors-useless" if place.anchors else "certificate-issuer"
    return of(situation, place, reason=reason.removesuffix("."))


def _of_tls(stage: Stage, reason: str, place: Place) -> Fault:
    if stage is not Stage.TLS:
        return of("tls-broke", place, reason=reason)
    if "WRONG_VERSION_NUMBER" in reason.upper() and place.service.startswith("xmpps:"):
        return of("not-direct-tls", place)
    return of("tls-handshake", place, reason=reason)


def no_mechanism(offered: Sequence[str], place: Place, unused: str = "") -> Fault:
    """Return the fault of a server whose SASL mechanisms we do not use.

    `unused` is a clause on what else the server offers.
    """
    listed = quoted(", ".join(offered)) if offered else "none"
    if unused:
        listed += f"; and {unused}, which the bridge does not use"
    return of("no-mechanism", place, quotes=bool(offered or unused), listed=listed)


BINDING_ADVICE = {
    "p": " If user name and password are right, something in between ends TLS, and so the server "
    "refuses a login with channel binding: a check tries once more without it.",
    "y": " If user name and password are right, the server's offer of channel binding was lost on "
    "the way: a check tries once more without mentioning it.",
}
"""Other causes that a refusal may have, by the login's flag for channel binding (RFC 5802, section
7)."""

EXPLAINED = frozenset({"account-disabled", "credentials-expired"})
"""If a login is refused with one of these conditions, the reason is certain."""

_BOUND = {
    "p": "Something in between ends TLS, often a proxy: let it pass TLS on, or give it the "
    "certificate of the server, or turn channel binding off in the server.",
    "y": "Something in between cuts the offer of channel binding out of what the server says, or "
    "the server misjudges the connection: its log says more.",
}
"""What to do if the login was refused because of channel binding."""


def of_sasl(condition: str, text: str | None, place: Place, *, genuine: bool = True) -> Fault:
    """Classify a SASL failure (RFC 6120, section 6.5).

    The hint says which settings cannot be the cause; `genuine` says that the server's certificate
    was verified.
    """
    fault = of("sasl", place, condition=condition, text=text)
    if fault.retry is Retry.SOON:
        return fault
    right = "XMPP_SERVICE and the domain are right: the server's certificate proves it."
    if not genuine:
        right = (
            "That XMPP_SERVICE leads to the right server is not proven: no certificate was checked."
        )
    return fault._replace(hint=f"{fault.hint} {right} The rooms were not tried yet.")


def blames_password(text: str | None) -> bool:
    """Whether the text of a refusal is about the password, and not about channel binding.

    ejabberd names the one or the other. If a server names neither, the cause may be either.
    """
    words = (text or "").lower()
    return "password" in words and "binding" not in words


def after_second_login(refusal: Fault, flag: str, second: Fault | None) -> Fault:
    """Return the fault of a refused login, after a second login without channel binding.

    `flag` is the first login's flag for channel binding. `second` is why the second login failed;
    None if it did not.
    """
    outcome, hint = "succeeded: the password is right", _BOUND[flag]
    if second is not None:
        outcome, hint = f"failed, too ({second.condition})", refusal.hint
    second_login = f"A second login that did not mention channel binding {outcome}."
    return refusal._replace(message=f"{refusal.message} {second_login}", hint=hint)


def of_stream_error(condition: str, text: str | None, place: Place, stage: Stage) -> Fault:
    """Classify a stream error (RFC 6120, section 4.9.3) that came in `stage`."""
    barred = condition == "policy-violation" and stage in {Stage.TLS, Stage.SASL}
    return of("barred" if barred else "stream", place, condition=condition, text=text)


def of_join_error(condition: str, text: str | None, place: Place, venue: str | None) -> Fault:
    """Classify a refused join (XEP-0045, section 7.2)."""
    if condition == "gone":
        return of_destruction(text, venue, place)
    if condition == "not-authorized" and not place.default:
        return of("password-not-sent", place, text=text)
    if condition == "not-authorized" and not place.has_password:
        return of("password-missing", place, text=text)
    return of("join", place, condition=condition, text=text)


def of_bounce(condition: str, text: str | None, place: Place) -> Fault:
    """Classify the error with which a message came back from a room (XEP-0045, section 7.4)."""
    situation = "unreached" if condition in UNREACHED else "bounced"
    return of(situation, place, condition=condition, text=text)


def of_destruction(reason: str | None, venue: str | None, place: Place) -> Fault:
    """Return the fault of a room that was destroyed (XEP-0045, section 10.9)."""
    if not venue:
        return of("destroyed", place, text=reason)
    return of("moved", place, text=reason, quotes=True, venue=quoted(venue))


def of_removal(codes: frozenset[int], reason: str | None, actor: str | None, place: Place) -> Fault:
    """Classify our removal from the room (XEP-0045, section 16.6)."""
    situation = next((REMOVALS[code] for code in REMOVALS if code in codes), "dropped")
    by = f" by {quoted(actor)}" if actor and situation in {"banned", "kicked"} else ""
    return of(situation, place, text=reason, quotes=bool(by), by=by)
