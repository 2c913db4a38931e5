"""Explains the error that an address answers to an IQ request. Pure.

Conditions are those of RFC 6120, section 8.3.3. What they mean depends on the kind of address:
XEP-0045 and XEP-0410 for rooms, RFC 6121, section 8.5, for accounts.
"""

from dataclasses import dataclass
from enum import Enum

from bridge.text import quoted
from bridge.xmpp.faults import quoted_text


class TargetKind(Enum):
    """The kind of an address: the same error means different things from each."""

    SERVER = "server"
    """Our own server."""
    ROOM = "room"
    """The room that we are in."""
    SELF = "self"
    """Our own occupant JID in it."""
    OCCUPANT = "occupant"
    DOMAIN = "domain"
    """Another server, or a service of one."""
    ACCOUNT = "account"
    """An account, one of its sessions, or another room."""


@dataclass(frozen=True)
class DecodedError:
    """An error answer with its explanation."""

    condition: str
    message: str
    """A sentence or two. The address and its text stand in it `quoted`: both may be foreign."""
    hint: str
    reachable: bool
    """Whether the error still proves that the target is there."""


SILENCE = "remote-server-timeout"
"""The condition of no answer at all: the one that servers use between themselves."""

_FORBIDDEN = frozenset(
    {
        "forbidden",
        "not-allowed",
        "not-authorized",
        "policy-violation",
        "registration-required",
    }
)
_OUR_STANDING = "The bridge looks after that by itself; xmppStatus tells how it stands."


def of_silence(target: TargetKind, address: str, seconds: float) -> DecodedError:
    """Explain that no answer came within `seconds`."""
    match target:
        case TargetKind.SELF:
            hint = "This alone does not mean that we are out of the room. Ping server, then self."
        case TargetKind.SERVER:
            hint = "The connection may be half dead; the bridge finds that out by itself."
        case TargetKind.ROOM | TargetKind.OCCUPANT:
            hint = "Ping self to see whether the room answers at all."
        case TargetKind.DOMAIN | TargetKind.ACCOUNT:
            hint = "Ping server to see whether our own server answers."
    message = f"{quoted(address)} did not answer within {seconds:g} s."
    return DecodedError(SILENCE, message, hint, False)


def of_error(
    condition: str, text: str | None, target: TargetKind, address: str, asked: str
) -> DecodedError:
    """Explain the error that `address` answered to requests called `asked` ("pings")."""
    message, hint, reachable = _decoded(condition, target, quoted(address), asked)
    return DecodedError(condition, message + quoted_text(text), hint, reachable)


def _decoded(condition: str, target: TargetKind, address: str, asked: str) -> tuple[str, str, bool]:
    if target is TargetKind.SELF:
        return _of_self(condition, asked)
    match condition:
        case "service-unavailable" | "feature-not-implemented":
            return _of_unsupported(condition, target, address, asked)
        case "item-not-found" | "recipient-unavailable":
            return _of_absence(target, address)
        case "not-acceptable" if target in {TargetKind.OCCUPANT, TargetKind.ROOM}:
            return "The room says that we are not in it.", _OUR_STANDING, False
        case "gone" | "redirect":
            return (
                f"{address} is gone for good, or has moved.",
                "Ask its owner for the new address.",
                False,
            )
        case "subscription-required":
            return (
                f"{address} answers that only to those on its contact list.",
                "Somebody in the room is asked by nickname.",
                False,
            )
        case "remote-server-not-found":
            return (
                f"Our server finds no XMPP server for {address}.",
                "Check the domain: a typo, or a domain without XMPP (no SRV record).",
                False,
            )
        case "remote-server-timeout":
            return (
                f"Our server found the one of {address} but got no answer from it.",
                "Try again later; that server, or the network between the two, may be down.",
                False,
            )
        case "jid-malformed":
            return f"{address} is no address to its server.", "Check how it is written.", False
        case "internal-server-error" | "resource-constraint":
            return (
                f"{address} answers that it cannot answer now.",
                "It is overloaded or broken; try again later.",
                target in {TargetKind.SERVER, TargetKind.ROOM},
            )
    if condition in _FORBIDDEN:
        return _of_forbidden(target, address, asked)
    return (
        f"{address} answered with the error {condition}.",
        "Somebody there answers; what it means is theirs to say.",
        target in {TargetKind.SERVER, TargetKind.ROOM},
    )


def _of_self(condition: str, asked: str) -> tuple[str, str, bool]:
    """Explain the answer to a self-ping (XEP-0410, section 3.1), as `keepalive.verdict` decides."""
    match condition:
        case "service-unavailable" | "feature-not-implemented":
            message = f"In the room: whoever answers under our nickname does not know {asked}."
            return message, "Nothing is wrong.", True
        case "remote-server-not-found" | "remote-server-timeout":
            message = "Undecided: the server of the room cannot be reached just now."
            return message, "Ask again later. " + _OUR_STANDING, False
        case "item-not-found":
            message = "Out: the room knows nobody under our nickname."
            return message, "If it was changed just now, ask again. " + _OUR_STANDING, False
        case _:
            message = f"Out: the room does not pass our own questions to us ({condition})."
            return message, _OUR_STANDING, False


def _of_unsupported(
    condition: str, target: TargetKind, address: str, asked: str
) -> tuple[str, str, bool]:
    match target:
        case TargetKind.SELF | TargetKind.OCCUPANT:
            message = f"{address} is in the room; their client does not know {asked}."
            return message, "Nothing is wrong: they are there.", True
        case TargetKind.ROOM:
            message = f"The room answers; like most rooms it does not know {asked}."
            return message, "It is there. Ping self to see whether we are in it.", True
        case TargetKind.SERVER | TargetKind.DOMAIN:
            message = f"{address} answers, but does not know {asked}."
            return message, "It is there.", True
        case TargetKind.ACCOUNT if condition == "feature-not-implemented":
            message = f"{address} answers, but does not know {asked}."
            return message, "Somebody is there.", True
        case TargetKind.ACCOUNT:
            message = (
                f"The server of {address} answers in its place: nobody is logged in there, or "
                f"they do not know {asked}, or it keeps that to itself."
            )
            hint = (
                "Servers answer the same for an account that does not exist. Somebody in the room "
                "is asked by nickname."
            )
            return message, hint, False


def _of_absence(target: TargetKind, address: str) -> tuple[str, str, bool]:
    match target:
        case TargetKind.SELF | TargetKind.OCCUPANT:
            message = f"{address} is not in the room: they left, or changed their nickname."
            return message, "xmppOccupants lists who is there.", False
        case TargetKind.ROOM:
            return f"There is no room {address}.", _OUR_STANDING, False
        case TargetKind.SERVER | TargetKind.DOMAIN | TargetKind.ACCOUNT:
            message = f"Nobody is there under the address {address}."
            return message, "Check how it is written.", False


def _of_forbidden(target: TargetKind, address: str, asked: str) -> tuple[str, str, bool]:
    match target:
        case TargetKind.SERVER | TargetKind.ROOM:
            return f"{address} answers, but allows us no {asked}.", "It is there.", True
        case TargetKind.SELF | TargetKind.OCCUPANT:
            return (
                "The room does not pass such questions on to those in it.",
                "A setting of the room: its owner can allow them.",
                False,
            )
        case TargetKind.DOMAIN | TargetKind.ACCOUNT:
            hint = (
                "Ours may not speak to other servers (federation is off), or that one keeps to "
                "those it knows."
            )
            return f"A server on the way to {address} does not allow {asked} there.", hint, False
