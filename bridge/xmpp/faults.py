"""Every way in which connecting, joining and speaking fails, with the setting to change. Pure.

Status, check, tools and log take their sentences from here. Conditions are those of RFC 6120 and
XEP-0045; below XMPP they are the names that the operating system and OpenSSL give
(`connection-refused`, `certificate-verify-failed`).
"""

from dataclasses import asdict, dataclass, replace
from enum import Enum
from socket import gaierror
from ssl import SSLCertVerificationError, SSLError
from typing import TYPE_CHECKING, NamedTuple

from bridge.text import quoted
from bridge.xmpp.errors import XmppError

if TYPE_CHECKING:
    from bridge.settings.table import Settings


class Retry(Enum):
    """Whether trying again can help."""

    AT_ONCE = "at once"
    """Nobody meant it: try again without a pause, and from the second failure on as `SOON`."""
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
    """The session is established; no step is left."""


@dataclass(frozen=True)
class Fault:
    """One failure: its condition, a sentence on what happened, and a hint on what to change."""

    condition: str
    message: str
    """A sentence on what happened. Text from a server or a room stands in it `quoted`."""
    hint: str
    """A sentence on what to do, naming the setting. It never has text from outside."""
    retry: Retry = Retry.SOON
    """When the participant tries again."""
    quotes: bool = False
    """Whether the message has text from a server or a room."""


@dataclass(frozen=True)
class Place:
    """The server, account and room of an attempt, as the sentences name them."""

    service: str
    """As the user would write it: `xmpp://host:port`."""
    domain: str
    account: str
    room: str
    nickname: str
    default: bool = True
    """Whether it is the default room, to which alone `MUC_PASSWORD` is sent."""

    @classmethod
    def of(cls, settings: "Settings", room: str | None = None) -> "Place":
        """Return where these settings lead: into `room`, or else into the default room."""
        return cls(
            service=str(settings.service or f"xmpp://{settings.domain}"),
            domain=settings.domain,
            account=settings.jid,
            room=room or settings.room,
            nickname=settings.nickname,
            default=room is None or room == settings.room,
        )

    @property
    def room_service(self) -> str:
        """The domain behind the `@` of the room."""
        return self.room.partition("@")[2]


class ConnectionFailedError(XmppError):
    """The server or the room was not reached, or the stream ended before an answer came."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        super().__init__(fault.message)


SERVICE_HINT = "Check that the server runs and that XMPP_SERVICE names its host and client port."


def of_exception(stage: Stage, error: BaseException, place: Place) -> Fault:
    """Classify an exception of the operating system, OpenSSL or the resolver in `stage`."""
    match error:
        case gaierror():
            return _of_resolver(place)
        case SSLCertVerificationError():
            return _of_certificate(str(getattr(error, "verify_message", None) or error), place)
        case SSLError():
            return _of_tls(stage, str(getattr(error, "reason", None) or error), place)
        case ConnectionRefusedError():
            return Fault(
                "connection-refused",
                f"Nothing listens at {place.service}.",
                SERVICE_HINT,
            )
        case TimeoutError():
            return of_silence(stage, None, place)
        case ConnectionError() | EOFError():
            return of_lost_connection(stage, place)
        case OSError():
            return Fault(
                "network-unreachable",
                f"{place.service} cannot be reached: {error.strerror or error}.",
                "Check the network of this machine and the host in XMPP_SERVICE.",
            )
    return Fault(
        "internal-server-error",
        f"The bridge itself broke while it was at the step {stage.value} ({type(error).__name__}).",
        "Please report this, with the log at LOG_LEVEL=DEBUG.",
    )


def of_lost_connection(stage: Stage, place: Place) -> Fault:
    """The server closed the connection without a stream error."""
    if stage in {Stage.TLS, Stage.CONNECT}:
        return Fault(
            "connection-reset",
            f"{place.service} hung up before the connection was secured.",
            "A port for direct TLS wants xmpps:// in XMPP_SERVICE, a STARTTLS port xmpp://.",
        )
    return Fault(
        "connection-reset",
        f"The connection to {place.service} was cut.",
        "The server or the network between ended it; the bridge tries again by itself.",
    )


def _of_resolver(place: Place) -> Fault:
    if place.service == f"xmpp://{place.domain}":  # no XMPP_SERVICE: the domain itself says where
        return Fault(
            "remote-server-not-found",
            f"Nothing tells where the server of {place.domain} is: no SRV record and no address.",
            "Check XMPP_DOMAIN and that this machine can resolve names, or name the server's host "
            "in XMPP_SERVICE.",
        )
    return Fault(
        "remote-server-not-found",
        f"The name in {place.service} has no address.",
        "Check the host in XMPP_SERVICE, and that this machine can resolve names.",
    )


def of_silence(stage: Stage, seconds: float | None, place: Place) -> Fault:
    """Nothing came back within the stage's deadline of `seconds`."""
    within = f" within {seconds:g} s" if seconds is not None else ""
    match stage:
        case Stage.STANDING:
            return Fault(
                "connection-timeout",
                f"{place.service} fell silent: no answer{within}.",
                "The network between may be down. The bridge tries again by itself.",
            )
        case Stage.JOIN:
            return Fault(
                "remote-server-timeout",
                f"The room {place.room} did not answer{within}.",
                f"Check that {place.room_service} is the server's room service: the domain in "
                "MUC_ROOM is usually not the one of the account, but conference.DOMAIN.",
            )
        case Stage.RESOLVE:
            return Fault(
                "remote-server-timeout",
                f"The name in {place.service} was not resolved{within}.",
                "Check the name servers of this machine, or give an address in XMPP_SERVICE.",
            )
        case _:
            return Fault(
                "connection-timeout",
                f"{place.service} did not answer{within} at the step {stage.value}.",
                f"{SERVICE_HINT} A firewall that drops packets looks like this.",
            )


def of_long_check(step: str, seconds: float, place: Place) -> Fault:
    """The whole check took longer than its limit of `seconds`."""
    return Fault(
        "connection-timeout",
        f"The check was given up after {seconds:g} s, at the step {step}: {place.service} or the "
        "network answers very slowly.",
        "Check the network between, and the load of the server; the times of the steps before "
        "show where they went.",
    )


def no_starttls(place: Place) -> Fault:
    """The server offers no TLS on a plain port."""
    return Fault(
        "encryption-required",
        f"{place.service} offers no TLS, and no password goes over a bare connection.",
        "Turn TLS on in the server; or, on a machine you trust, set XMPP_ALLOW_PLAINTEXT=1 "
        "(SCRAM only, the password itself is never sent).",
        Retry.LATER,
    )


def unusable_anchors(path: str, error: OSError, place: Place) -> Fault:
    """The file with further trust anchors cannot be read, or has no certificate in it."""
    return Fault(
        "certificate-verify-failed",
        f"{place.service} was not asked for its certificate: {path} cannot be used to check it "
        f"({error.strerror or error}).",
        "XMPP_TLS_CA_FILE must name a readable file with certificates in PEM.",
        Retry.LATER,
    )


def starttls_failed(place: Place) -> Fault:
    """The server offers STARTTLS and answers it with a failure (RFC 6120, section 5.4.2.2)."""
    return Fault(
        "tls-handshake-failed",
        f"{place.service} offers TLS and refuses to begin it.",
        "The server's TLS is broken, often the file of its certificate; its log says more.",
    )


def protocol_error(stage: Stage, reason: str, place: Place) -> Fault:
    """The other side breaks RFC 6120: `reason` is a clause in our own words."""
    return Fault(
        "undefined-condition",
        f"{place.service} answered oddly at the step {stage.value}: {reason}.",
        "Check that the port in XMPP_SERVICE is an XMPP client port, not a web or component port.",
    )


def unexpected_element(stage: Stage, name: str, place: Place) -> Fault:
    """The server sent an element of this name where an answer was due."""
    fault = protocol_error(stage, f"an unexpected element {quoted(name)}", place)
    return replace(fault, quotes=True)


def _of_certificate(reason: str, place: Place) -> Fault:
    lowered = reason.lower()
    if "mismatch" in lowered or "not valid for" in lowered:
        hint = (
            f"The certificate must name the XMPP domain {place.domain}: check XMPP_DOMAIN, "
            "or the server's certificate."
        )
    elif "expired" in lowered or "not yet valid" in lowered:
        hint = "Renew the server's certificate, or set this machine's clock."
    else:
        hint = "If you trust who signed it, give their certificate in XMPP_TLS_CA_FILE."
    return Fault(
        "certificate-verify-failed",
        f"The certificate of {place.service} cannot be trusted: {reason}.",
        hint,
        Retry.LATER,
    )


def _of_tls(stage: Stage, reason: str, place: Place) -> Fault:
    if stage is not Stage.TLS:
        return Fault(
            "tls-failed",
            f"TLS with {place.service} broke: {reason}.",
            "Something between garbles what is sent, or the server ended TLS; the bridge tries "
            "again by itself.",
        )
    if "WRONG_VERSION_NUMBER" in reason.upper() and place.service.startswith("xmpps:"):
        return Fault(
            "wrong-version-number",
            f"{place.service} does not begin with TLS.",
            "That is a STARTTLS port: write xmpp:// instead of xmpps:// in XMPP_SERVICE, or "
            "name the direct TLS port (5223).",
            Retry.LATER,
        )
    return Fault(
        "tls-handshake-failed",
        f"No TLS connection to {place.service}: {reason}.",
        "The server's TLS settings do not fit this machine's; the server's log says more.",
    )


# What servers and rooms answer.


def quoted_text(text: str | None) -> str:
    """Return a sentence that quotes the text of an error; empty without a text."""
    return f" It says: {quoted(text)}." if text else ""


def _in_brackets(text: str | None) -> str:
    return f" ({quoted(text)})" if text else ""


def no_mechanism(offered: list[str], place: Place) -> Fault:
    """None of the server's SASL mechanisms may be used here."""
    listed = quoted(", ".join(offered)) if offered else "none"
    return Fault(
        "invalid-mechanism",
        f"{place.domain} offers no login that is safe here (it offers {listed}).",
        "Turn SCRAM-SHA-256 or SCRAM-SHA-1 on in the server. PLAIN is used over TLS with a "
        "verified certificate only.",
        Retry.LATER,
        quotes=bool(offered),
    )


def untrusted_server(reason: str, place: Place) -> Fault:
    """The server did not prove that it knows the account (RFC 5802, section 9)."""
    return Fault(
        "bad-server-signature",
        f"{place.service} could not prove that it is the server of {place.account}: {reason}.",
        "Something may be listening in between. Check XMPP_SERVICE and the certificate.",
        Retry.LATER,
    )


class _Row(NamedTuple):
    """What is said of one condition; names in braces are filled in from the `Place`."""

    message: str
    hint: str
    retry: Retry = Retry.SOON


_LOGIN_REFUSED = _Row(
    "{domain} refused the login of {account}", "Check XMPP_USERNAME and XMPP_PASSWORD.", Retry.NEVER
)
_SASL_FAILURES = {
    "not-authorized": _LOGIN_REFUSED,
    "credentials-expired": _LOGIN_REFUSED,
    "account-disabled": _LOGIN_REFUSED,
    "invalid-authzid": _LOGIN_REFUSED,
    "temporary-auth-failure": _Row(
        "{domain} cannot check logins just now",
        "The server's account store has a problem; the bridge tries again by itself.",
    ),
}
"""RFC 6120, section 6.5. The text of the failure, in brackets, and a full stop follow."""
_OTHER_SASL_FAILURE = _Row(
    "The login of {account} failed",
    "Check XMPP_USERNAME and XMPP_PASSWORD. The server's log says more.",
    Retry.LATER,
)

_STREAM_ERRORS = {
    "host-unknown": _Row(
        "{service} does not serve the domain {domain}.",
        "Check XMPP_DOMAIN (or the domain in XMPP_USERNAME).",
        Retry.LATER,
    ),
    "host-gone": _Row(
        "{service} no longer serves the domain {domain}.",
        "Check XMPP_SERVICE and XMPP_DOMAIN: the domain may have moved.",
        Retry.LATER,
    ),
    "conflict": _Row(
        "Another session took over this one.",
        "Another program logs in with the same account and resource; the bridge tries again.",
    ),
    "system-shutdown": _Row(
        "{domain} is shutting down.",
        "The bridge comes back by itself when the server does.",
    ),
    "policy-violation": _Row(
        "{domain} ended the connection for breaking one of its rules.",
        "Too much or too fast, or TLS is required; the server's log names the rule.",
    ),
    "not-authorized": _Row(
        "{domain} ended the connection: not authorized.",
        "Check XMPP_USERNAME and XMPP_PASSWORD.",
    ),
    "see-other-host": _Row(
        "{service} sends its clients to another server.",
        "It is not followed; if you trust the server that it names, set XMPP_SERVICE to that.",
        Retry.LATER,
    ),
    "resource-constraint": _Row(
        "{domain} has no room for another connection just now.",
        "The bridge tries again by itself.",
    ),
}
"""RFC 6120, section 4.9.3."""
_OTHER_STREAM_ERROR = _Row(
    "{domain} ended the connection ({condition}).",
    "The server's log says more; the bridge tries again by itself.",
)

_JOIN_ERRORS = {
    "not-authorized": _Row(
        "The room {room} wants a password, and ours does not fit.",
        "Set MUC_PASSWORD to the room's password.",
        Retry.LATER,
    ),
    "forbidden": _Row(
        "{account} is banned from the room {room}, or may not reach {room_service} at all.",
        "Check the domain in MUC_ROOM; if it is right, ask an admin of the room to lift the ban.",
        Retry.LATER,
    ),
    "registration-required": _Row(
        "The room {room} is for members only, and {account} is none.",
        "Ask an admin of the room to make the account a member.",
        Retry.LATER,
    ),
    "item-not-found": _Row(
        "The room {room} does not exist, or is locked while its owner sets it up.",
        "Check MUC_ROOM; if it is right, let the owner finish its configuration.",
    ),
    "not-allowed": _Row(
        "The room {room} does not exist, and {account} may not create it.",
        "Check MUC_ROOM, or create the room first.",
        Retry.LATER,
    ),
    "not-acceptable": _Row(
        "The room {room} does not accept the nickname {nickname}.",
        "Set MCP_BOT_NICKNAME to the nickname that is registered for the account, or another.",
        Retry.LATER,
    ),
    "conflict": _Row(
        "The nickname {nickname} is taken in the room {room}.",
        "Set MCP_BOT_NICKNAME to a free one.",
    ),
    "service-unavailable": _Row(
        "The room {room} is full, or {room_service} is no room service.",
        "Check the domain in MUC_ROOM; if it is right, wait for somebody to leave.",
    ),
    "remote-server-not-found": _Row(
        "{domain} knows no server {room_service}.",
        "Check the domain in MUC_ROOM: usually conference.DOMAIN.",
        Retry.LATER,
    ),
    "remote-server-timeout": _Row(
        "{domain} cannot reach {room_service}.",
        "Check the domain in MUC_ROOM, and the connection between the two servers.",
    ),
    "jid-malformed": _Row(
        "The room {room} or the nickname {nickname} has characters that the server refuses.",
        "Check MUC_ROOM and MCP_BOT_NICKNAME.",
        Retry.LATER,
    ),
    "resource-constraint": _Row(
        "The room service {room_service} has no room for more just now.",
        "The bridge tries again by itself.",
    ),
}
"""XEP-0045, section 7.2."""
_NOT_THE_DEFAULT_ROOM = _Row(
    "The room {room} wants a password, and MUC_PASSWORD is for the default room only.",
    "Put the room first in MUC_ROOM, and its password into MUC_PASSWORD.",
    Retry.LATER,
)
_OTHER_JOIN_ERROR = _Row(
    "The room {room} refused us ({condition}).", "Check MUC_ROOM; the server's log says more."
)


def of_sasl(condition: str, text: str | None, place: Place) -> Fault:
    """Classify a SASL failure (RFC 6120, section 6.5)."""
    row = _SASL_FAILURES.get(condition, _OTHER_SASL_FAILURE)
    return _fault(row, condition, f"{_in_brackets(text)}.", bool(text), place)


def of_stream_error(condition: str, text: str | None, place: Place) -> Fault:
    """Classify a stream error (RFC 6120, section 4.9.3)."""
    row = _STREAM_ERRORS.get(condition, _OTHER_STREAM_ERROR)
    return _fault(row, condition, quoted_text(text), bool(text), place)


def of_join_error(condition: str, text: str | None, place: Place, venue: str | None) -> Fault:
    """Classify a refused join (XEP-0045, section 7.2)."""
    if condition == "gone":
        return destroyed(text, venue, place)
    row = _JOIN_ERRORS.get(condition, _OTHER_JOIN_ERROR)
    if condition == "not-authorized" and not place.default:
        row = _NOT_THE_DEFAULT_ROOM
    return _fault(row, condition, quoted_text(text), bool(text), place)


def _fault(row: _Row, condition: str, ending: str, quotes: bool, place: Place) -> Fault:
    """Return the fault of a row; `ending` follows its message as it is."""
    names = asdict(place) | {"room_service": place.room_service, "condition": condition}
    return Fault(condition, row.message.format_map(names) + ending, row.hint, row.retry, quotes)


def no_room_service(place: Place) -> Fault:
    """The domain of MUC_ROOM is not a room service, by its own account (XEP-0045, section 6.1)."""
    return Fault(
        "service-unavailable",
        f"{place.room_service} answers, but is no room service.",
        "Check the domain in MUC_ROOM: usually it is not the one of the account, but "
        "conference.DOMAIN.",
        Retry.LATER,
    )


def bounced(condition: str, text: str | None, place: Place) -> Fault:
    """The room returned a message instead of passing it on (XEP-0045, section 7.4)."""
    return Fault(
        condition,
        f"The room {place.room} refused the message{_in_brackets(text)}.",
        "In a moderated room the account needs voice: ask a moderator of it.",
        quotes=bool(text),
    )


def no_goodbye(seconds: float, place: Place) -> Fault:
    """The room did not confirm that we left (XEP-0045, section 7.14)."""
    return Fault(
        "remote-server-timeout",
        f"The room {place.room} did not confirm within {seconds:g} s that we left.",
        "The room service may be overloaded; our occupant goes with its connection all the same.",
    )


def destroyed(reason: str | None, venue: str | None, place: Place) -> Fault:
    """The room was destroyed (XEP-0045, section 10.9)."""
    message = f"The room {place.room} was destroyed{_in_brackets(reason)}."
    hint = "Set MUC_ROOM to a room that exists."
    if venue:
        message += f" Its owner names a new place: {quoted(venue)}."
        hint = "Set MUC_ROOM to the new place if you trust whoever named it, or to another room."
    return Fault("gone", message, hint, Retry.LATER, bool(reason or venue))


def put_out(codes: frozenset[int], reason: str | None, actor: str | None, place: Place) -> Fault:
    """Classify our removal from the room (XEP-0045, section 15.6)."""
    by = f" by {quoted(actor)}" if actor else ""
    why = _in_brackets(reason)
    if 301 in codes:
        return Fault(
            "forbidden",
            f"We were banned from the room {place.room}{by}{why}.",
            "Ask an admin of the room to lift the ban.",
            Retry.LATER,
            bool(by or why),
        )
    if codes & {321, 322}:
        return Fault(
            "registration-required",
            f"The room {place.room} is for members only now, and {place.account} is none.",
            "Ask an admin of the room to make the account a member.",
            Retry.LATER,
        )
    if 307 in codes and not codes & {330, 332, 333}:
        return Fault(
            "not-allowed",
            f"We were kicked from the room {place.room}{by}{why}.",
            "The bridge goes back by itself after a minute; talk to the moderator.",
            Retry.MINUTE,
            bool(by or why),
        )
    return Fault(
        "recipient-unavailable",
        f"The room {place.room} dropped us{why}.",
        "The bridge goes back by itself.",
        Retry.AT_ONCE,
        bool(why),
    )


def ghost(place: Place) -> Fault:
    """The room has removed us without telling us (XEP-0410)."""
    return Fault(
        "not-acceptable",
        f"The room {place.room} had lost us without a word.",
        "The bridge goes back by itself; the room service may have been restarted.",
        Retry.AT_ONCE,
    )


def of_silent_room(seconds: float, place: Place) -> Fault:
    """The room has sent nothing for `seconds`, not even answers to pings."""
    return Fault(
        "remote-server-timeout",
        f"The room {place.room} has been silent for {seconds:.0f} s, even to pings.",
        f"{place.room_service} may be down, or cut off from {place.domain}.",
    )


def no_reflection(seconds: float, place: Place) -> Fault:
    """The room did not send a message back within the `seconds` its sender would wait."""
    return Fault(
        "remote-server-timeout",
        f"The room {place.room} sent nothing back within {seconds:g} s.",
        "The server may be slow or hold the message back; allow more timeoutSeconds.",
    )
