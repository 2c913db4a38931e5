"""What went wrong, in the standards' words, with the setting to change. Pure.

With `refusals`, which has what servers and rooms say, the one table behind status, check, tools
and log. Below XMPP the conditions are the names that the operating system and OpenSSL give
(`connection-refused`, `certificate-verify-failed`).
"""

from dataclasses import dataclass, replace
from enum import Enum
from socket import gaierror
from ssl import SSLCertVerificationError, SSLError
from typing import TYPE_CHECKING

from bridge.escaping import quoted

if TYPE_CHECKING:
    from bridge.settings.table import Settings


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
    """A sentence: what happened. A stranger's words in it are `quoted`."""
    hint: str
    """A sentence: what to do, naming the setting. All its words are ours."""
    retry: Retry = Retry.SOON
    """What the participant does about it."""
    quotes: bool = False
    """Whether the message has words that a stranger chose."""


@dataclass(frozen=True)
class Place:
    """Where we were going, for the sentences."""

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


class ConnectionFailedError(Exception):
    """The room was not reached, or the stream ended before an answer came."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        super().__init__(fault.message)


SERVICE_HINT = "Check that the server runs and that XMPP_SERVICE names its host and client port."


def of_exception(stage: Stage, error: BaseException, place: Place) -> Fault:
    """Classify what the operating system, OpenSSL or the resolver raised in `stage`."""
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
    """The check as a whole took longer than its caller would wait."""
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


def protocol_error(stage: Stage, reason: str, place: Place) -> Fault:
    """The other side does not speak XMPP as RFC 6120 has it."""
    return Fault(
        "undefined-condition",
        f"{place.service} answered oddly at the step {stage.value}: {reason}.",
        "Check that the port in XMPP_SERVICE is an XMPP client port, not a web or component port.",
    )


def unexpected_element(stage: Stage, name: str, place: Place) -> Fault:
    """The other side said something else than an answer: an element of this name."""
    odd = protocol_error(stage, f"an unexpected element {quoted(name)}", place)
    return replace(odd, quotes=True)


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
