"""What went wrong, in the standards' words, with the setting to change. Pure.

The one table behind status, check, tools and log. Conditions are those of RFC 6120 (stream,
SASL and stanza errors) wherever it has one; below XMPP they are the names that the operating
system and OpenSSL give (`connection-refused`, `certificate-verify-failed`).
"""

from dataclasses import dataclass
from enum import Enum

MAX_SENTENCE_CHARACTERS = 1_000
"""Of a sentence of ours with somebody's own words in it: a server's text can have megabytes."""

MAX_LISTED_CHARACTERS = 200
"""Of the mechanisms a server offers, in a sentence."""


class Retry(Enum):
    """Whether trying again can help."""

    AT_ONCE = "at once"
    """Nobody meant it: come back now; if that does not hold, as with `SOON`."""
    SOON = "soon"
    """The cause may pass by itself: try again with growing pauses."""
    MINUTE = "minute"
    """A moderator put us out: come back, but not in their face."""
    LATER = "later"
    """Somebody has to change something elsewhere: look again now and then."""
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
    """Joined: nothing is left to do but to stay."""


@dataclass(frozen=True)
class Fault:
    """One cause of not being in the room, as everybody is told it."""

    condition: str
    message: str
    """A sentence: what happened."""
    hint: str
    """A sentence: what to do, naming the setting."""
    retry: Retry = Retry.SOON
    """What the participant does about it."""

    def __post_init__(self) -> None:
        for name in ("condition", "message", "hint"):
            text = getattr(self, name)
            if len(text) > MAX_SENTENCE_CHARACTERS:
                object.__setattr__(self, name, f"{text[:MAX_SENTENCE_CHARACTERS]}...")


@dataclass(frozen=True)
class Place:
    """Where we were going, for the sentences."""

    service: str
    """As the user would write it: `xmpp://host:port`."""
    domain: str
    account: str
    room: str
    nickname: str

    @property
    def room_service(self) -> str:
        """The domain behind the `@` of the room."""
        return self.room.partition("@")[2]


class ConnectionFailedError(Exception):
    """The room was not reached, or the stream ended before an answer came."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        super().__init__(fault.message)


SERVICE_HINT = "Check that the server runs and that XMPP_SERVICE names its host and client port."
_LOGIN_HINT = "Check XMPP_USERNAME and XMPP_PASSWORD."


def of_exception(stage: Stage, error: BaseException, place: Place) -> Fault:
    """Classify what the operating system, OpenSSL or the resolver raised in `stage`."""
    kinds = {cls.__name__ for cls in type(error).__mro__}
    if "gaierror" in kinds or "DNSError" in kinds:
        return Fault(
            "remote-server-not-found",
            f"The name in {place.service} has no address.",
            "Check the host in XMPP_SERVICE, and that this machine can resolve names.",
        )
    if "SSLCertVerificationError" in kinds:
        return _of_certificate(str(getattr(error, "verify_message", "")) or str(error), place)
    if "SSLError" in kinds:
        return _of_tls(stage, str(getattr(error, "reason", None) or error), place)
    match error:
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
    """The other side hung up without a word."""
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


def no_reflection(seconds: float, place: Place) -> Fault:
    """The room did not send a message back within the `seconds` its sender would wait."""
    return Fault(
        "remote-server-timeout",
        f"The room {place.room} sent nothing back within {seconds:g} s.",
        "The server may be slow or hold the message back; allow more timeoutSeconds.",
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
    """The file with further trust anchors is gone, or has none in it."""
    return Fault(
        "certificate-verify-failed",
        f"{place.service} was not asked for its certificate: {path} cannot be used to check it "
        f"({error.strerror or error}).",
        "XMPP_TLS_CA_FILE must name a readable file with certificates in PEM.",
        Retry.LATER,
    )


def starttls_failed(place: Place) -> Fault:
    """The server offers TLS, and then cannot do it (RFC 6120, section 5.4.2.2)."""
    return Fault(
        "tls-handshake-failed",
        f"{place.service} offers TLS and refuses to begin it.",
        "The server's TLS is broken, often the file of its certificate; its log says more.",
    )


def no_mechanism(offered: list[str], place: Place) -> Fault:
    """None of the server's SASL mechanisms may be used here."""
    listed = ", ".join(offered)[:MAX_LISTED_CHARACTERS] or "none"
    return Fault(
        "invalid-mechanism",
        f"{place.domain} offers no login that is safe here (it offers {listed}).",
        "Turn SCRAM-SHA-256 or SCRAM-SHA-1 on in the server. PLAIN is used over TLS with a "
        "verified certificate only.",
        Retry.LATER,
    )


def untrusted_server(reason: str, place: Place) -> Fault:
    """The server did not prove that it knows the account (RFC 5802, section 9)."""
    return Fault(
        "bad-server-signature",
        f"{place.service} could not prove that it is the server of {place.account}: {reason}.",
        "Something may be listening in between. Check XMPP_SERVICE and the certificate.",
        Retry.LATER,
    )


def protocol_error(stage: Stage, reason: str, place: Place) -> Fault:
    """The other side does not speak XMPP as RFC 6120 has it."""
    return Fault(
        "undefined-condition",
        f"{place.service} answered oddly at the step {stage.value}: {reason}.",
        "Check that the port in XMPP_SERVICE is an XMPP client port, not a web or component port.",
    )


def of_sasl(condition: str, text: str | None, place: Place) -> Fault:
    """Classify a SASL failure (RFC 6120, section 6.5)."""
    said = f" ({text})" if text else ""
    match condition:
        case "not-authorized" | "credentials-expired" | "account-disabled" | "invalid-authzid":
            return Fault(
                condition,
                f"{place.domain} refused the login of {place.account}{said}.",
                _LOGIN_HINT,
                Retry.NEVER,
            )
        case "temporary-auth-failure":
            return Fault(
                condition,
                f"{place.domain} cannot check logins just now{said}.",
                "The server's account store has a problem; the bridge tries again by itself.",
            )
        case _:
            return Fault(
                condition,
                f"The login of {place.account} failed{said}.",
                f"{_LOGIN_HINT} The server's log says more.",
                Retry.LATER,
            )


_STREAM_FAULTS: dict[str, tuple[str, str, Retry]] = {
    "host-unknown": (
        "{service} does not serve the domain {domain}.",
        "Check XMPP_DOMAIN (or the domain in XMPP_USERNAME).",
        Retry.LATER,
    ),
    "host-gone": (
        "{service} no longer serves the domain {domain}.",
        "Check XMPP_SERVICE and XMPP_DOMAIN: the domain may have moved.",
        Retry.LATER,
    ),
    "conflict": (
        "Another session took over this one.",
        "Another program logs in with the same account and resource; the bridge tries again.",
        Retry.SOON,
    ),
    "system-shutdown": (
        "{domain} is shutting down.",
        "The bridge comes back by itself when the server does.",
        Retry.SOON,
    ),
    "policy-violation": (
        "{domain} ended the connection for breaking one of its rules.",
        "Too much or too fast, or TLS is required; the server's log names the rule.",
        Retry.SOON,
    ),
    "not-authorized": (
        "{domain} ended the connection: not authorized.",
        "Check XMPP_USERNAME and XMPP_PASSWORD.",
        Retry.SOON,
    ),
    "see-other-host": (
        "{service} sends its clients to another server.",
        "It is not followed; if you trust the server that it names, set XMPP_SERVICE to that.",
        Retry.LATER,
    ),
    "resource-constraint": (
        "{domain} has no room for another connection just now.",
        "The bridge tries again by itself.",
        Retry.SOON,
    ),
}


def of_stream_error(condition: str, text: str | None, place: Place) -> Fault:
    """Classify a stream error (RFC 6120, section 4.9.3)."""
    message, hint, retry = _STREAM_FAULTS.get(
        condition,
        (
            "{domain} ended the connection ({condition}).",
            "The server's log says more; the bridge tries again by itself.",
            Retry.SOON,
        ),
    )
    message = message.format(service=place.service, domain=place.domain, condition=condition)
    return Fault(condition, f"{message} It says: {text}" if text else message, hint, retry)


_JOIN_FAULTS: dict[str, tuple[str, str, Retry]] = {
    "not-authorized": (
        "The room {room} wants a password, and ours does not fit.",
        "Set MUC_PASSWORD to the room's password.",
        Retry.LATER,
    ),
    "forbidden": (
        "{account} is banned from the room {room}, or may not reach {room_service} at all.",
        "Check the domain in MUC_ROOM; if it is right, ask an admin of the room to lift the ban.",
        Retry.LATER,
    ),
    "registration-required": (
        "The room {room} is for members only, and {account} is none.",
        "Ask an admin of the room to make the account a member.",
        Retry.LATER,
    ),
    "item-not-found": (
        "The room {room} does not exist, or is locked while its owner sets it up.",
        "Check MUC_ROOM; if it is right, let the owner finish its configuration.",
        Retry.SOON,
    ),
    "not-allowed": (
        "The room {room} does not exist, and {account} may not create it.",
        "Check MUC_ROOM, or create the room first.",
        Retry.LATER,
    ),
    "not-acceptable": (
        "The room {room} does not accept the nickname {nickname}.",
        "Set MCP_BOT_NICKNAME to the nickname that is registered for the account, or another.",
        Retry.LATER,
    ),
    "conflict": (
        "The nickname {nickname} is taken in the room {room}.",
        "Set MCP_BOT_NICKNAME to a free one.",
        Retry.SOON,
    ),
    "service-unavailable": (
        "The room {room} is full, or {room_service} is no room service.",
        "Check the domain in MUC_ROOM; if it is right, wait for somebody to leave.",
        Retry.SOON,
    ),
    "remote-server-not-found": (
        "{domain} knows no server {room_service}.",
        "Check the domain in MUC_ROOM: usually conference.DOMAIN.",
        Retry.LATER,
    ),
    "remote-server-timeout": (
        "{domain} cannot reach {room_service}.",
        "Check the domain in MUC_ROOM, and the connection between the two servers.",
        Retry.SOON,
    ),
    "jid-malformed": (
        "The room {room} or the nickname {nickname} has characters that the server refuses.",
        "Check MUC_ROOM and MCP_BOT_NICKNAME.",
        Retry.LATER,
    ),
    "resource-constraint": (
        "The room service {room_service} has no room for more just now.",
        "The bridge tries again by itself.",
        Retry.SOON,
    ),
}


def of_join_error(condition: str, text: str | None, place: Place, venue: str | None) -> Fault:
    """Classify a refused join (XEP-0045, section 7.2)."""
    if condition == "gone":
        return destroyed(text, venue, place)
    message, hint, retry = _JOIN_FAULTS.get(
        condition,
        (
            "The room {room} refused us ({condition}).",
            "Check MUC_ROOM; the server's log says more.",
            Retry.SOON,
        ),
    )
    message = message.format(
        room=place.room,
        account=place.account,
        nickname=place.nickname,
        domain=place.domain,
        room_service=place.room_service,
        condition=condition,
    )
    return Fault(condition, f"{message} It says: {text}" if text else message, hint, retry)


def destroyed(reason: str | None, venue: str | None, place: Place) -> Fault:
    """The room was destroyed (XEP-0045, section 10.9)."""
    said = f" ({reason})" if reason else ""
    hint = (
        f"Its owner names {venue} as the new place; set MUC_ROOM if you trust that."
        if venue
        else "Set MUC_ROOM to a room that exists."
    )
    return Fault("gone", f"The room {place.room} was destroyed{said}.", hint, Retry.LATER)


def put_out(codes: frozenset[int], reason: str | None, actor: str | None, place: Place) -> Fault:
    """Classify our being put out of the room (XEP-0045, section 15.6)."""
    by = f" by {actor}" if actor else ""
    why = f" ({reason})" if reason else ""
    if 301 in codes:
        return Fault(
            "forbidden",
            f"We were banned from the room {place.room}{by}{why}.",
            "Ask an admin of the room to lift the ban.",
            Retry.LATER,
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
        )
    return Fault(
        "recipient-unavailable",
        f"The room {place.room} dropped us{why}.",
        "The bridge goes back by itself.",
        Retry.AT_ONCE,
    )


def ghost(place: Place) -> Fault:
    """The room does not know us any more, and never said so (XEP-0410)."""
    return Fault(
        "not-acceptable",
        f"The room {place.room} had lost us without a word.",
        "The bridge goes back by itself; the room service may have been restarted.",
        Retry.AT_ONCE,
    )


def of_silent_room(seconds: float, place: Place) -> Fault:
    """The room has said nothing for so long, asked or not."""
    return Fault(
        "remote-server-timeout",
        f"The room {place.room} has been silent for {seconds:.0f} s, even to pings.",
        f"{place.room_service} may be down, or cut off from {place.domain}.",
    )


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
