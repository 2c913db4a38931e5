"""Explains an error that answers an IQ request. Pure.

RFC 6120, section 8.3.3, defines the conditions. Their meaning depends on the kind of address:
XEP-0045 and XEP-0410 for rooms, RFC 6121, section 8.5, for accounts.
"""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from bridge.text import quoted
from bridge.wire.meaning import first_row, rows_of
from bridge.xmpp.model.faults import quoted_text


class TargetKind(Enum):
    """The kind of an address. From each kind the same error means something else."""

    SERVER = "server"
    """Our own server."""
    ROOM = "room"
    """The room that we are in."""
    SELF = "self"
    """Our own occupant JID in the room."""
    OCCUPANT = "occupant"
    """Another occupant of the room."""
    DOMAIN = "domain"
    """Another server, or a service of a server."""
    GONE = "gone"
    """An address in our room, if the room's service is gone: a server answers in its place."""
    ACCOUNT = "account"
    """An account, one of its sessions, or another room."""


IN_ROOM = frozenset({TargetKind.ROOM, TargetKind.SELF, TargetKind.OCCUPANT})
"""The kinds of addresses in our room. They are gone if the room's service is gone."""


class Target(NamedTuple):
    """An address to ask."""

    kind: TargetKind
    address: str
    """The JID, prepared."""
    own: str = ""
    """Our own occupant JID, if the address is our room or an occupant; else empty."""


@dataclass(frozen=True)
class DecodedError:
    """An error answer with its explanation."""

    condition: str
    message: str
    """A sentence or two. The address and the text of the error are `quoted`, since others chose
    them."""
    hint: str
    outcome: str
    """What the error proves: `reachable`, `in`, `out`, `gone` or `undecided`."""

    @property
    def reachable(self) -> bool:
        """Whether the error proves that the target is there."""
        return self.outcome in {"reachable", "in"}


_ROWS = rows_of("""
gone: *; gone
    The service of the room cannot be reached: a server answers in its place ({condition}).
    -> It was stopped, or is starting anew: its operator knows. {standing}
self: service-unavailable feature-not-implemented; in
    In the room: the client that answers under our nickname does not know {asked}.
    -> Nothing is wrong.
self: remote-server-not-found remote-server-timeout; undecided
    Undecided: the server of the room cannot be reached just now.
    -> Ask again later. {standing}
self: item-not-found; out
    Out: the room has no occupant under our nickname.
    -> If it was changed just now, ask again. {standing}
self: *; out
    Out: our own questions do not reach us through the room ({condition}).
    -> {standing}
occupant: service-unavailable feature-not-implemented; reachable
    {address} is in the room; their client does not know {asked}.
    -> Nothing is wrong: they are there.
room: service-unavailable feature-not-implemented; reachable
    The room answers; like most rooms it does not know {asked}.
    -> It is there. Ping self to see whether we are in it.
server domain: service-unavailable feature-not-implemented; reachable
    {address} answers, but does not know {asked}.
    -> It is there.
account: feature-not-implemented; reachable
    {address} answers, but does not know {asked}.
    -> Somebody is there.
account: service-unavailable; undecided
    The server of {address} answers in its place: nobody is logged in there, or they do not know
    {asked}, or it does not tell.
    -> Servers answer the same for an account that does not exist. Somebody in the room is asked by
    nickname.
occupant: item-not-found recipient-unavailable; undecided
    {address} is not in the room under this nickname: case matters, or they left or changed it.
    -> xmppOccupants lists who is there.
room: item-not-found recipient-unavailable; undecided
    There is no room {address}.
    -> {standing}
*: item-not-found recipient-unavailable; undecided
    Nobody is there under the address {address}.
    -> Check how it is written.
occupant room: not-acceptable; undecided
    The room says that we are not in it.
    -> {standing}
*: gone redirect; undecided
    {address} is gone for good, or has moved.
    -> Ask its owner for the new address.
*: subscription-required; undecided
    {address} answers that only to those on its contact list.
    -> Somebody in the room is asked by nickname.
*: remote-server-not-found; undecided
    Our server finds no XMPP server for {address}.
    -> Check the domain: a typo, or a domain without XMPP (no SRV record).
*: remote-server-timeout; undecided
    Our server found the server of {address} but got no answer from it.
    -> Try again later; that server, or the network between the two, may be down.
*: jid-malformed; undecided
    {address} is no address to its server.
    -> Check how it is written.
server room: internal-server-error resource-constraint; reachable
    {address} answers that it cannot answer now.
    -> It is overloaded or broken; try again later.
*: internal-server-error resource-constraint; undecided
    {address} answers that it cannot answer now.
    -> It is overloaded or broken; try again later.
server: forbidden not-allowed not-authorized policy-violation registration-required; reachable
    {address} answers, but allows us no {asked}.
    -> It is there.
occupant: forbidden not-allowed not-authorized policy-violation registration-required; undecided
    The room does not pass such questions on to its occupants.
    -> A setting of the room: its owner can allow them.
*: forbidden not-allowed not-authorized policy-violation registration-required; undecided
    {address}, or a server on the way to it, does not allow {asked}.
    -> Our server may not speak to others (federation is off), or the other server speaks only to
    servers that it knows.
server room: *; reachable
    {address} answered with the error {condition}.
    -> It is there. Its operator knows what the error means.
*: *; undecided
    {address} answered with the error {condition}.
    -> Something there answers. Its operator or its user knows what the error means.
""")
"""What an error means, by the kind of the address and the condition.

The outcome is `reachable` if the error proves that the address is there, otherwise `undecided`. If
the room's service is `gone`, so are the room and all in it. An error that answers a self-ping
(XEP-0410, section 3.1) proves that we are `in` the room or `out` of it, or it is `undecided`.
Another of our sessions under the same nickname may have sent it, and an error about a room that
cannot be reached proves nothing.
"""

_STANDING = "xmppStatus says whether the bridge is in the room, and when it tries again."


def of_silence(target: TargetKind, address: str, seconds: float) -> DecodedError:
    """Explain that no answer came within `seconds`."""
    match target:
        case TargetKind.SELF:
            hint = "This alone does not mean that we are out of the room."
        case TargetKind.SERVER:
            hint = "The connection may be half dead; the bridge finds that out by itself."
        case TargetKind.OCCUPANT:
            hint = "Their client may hang, or leave pings without an answer."
        case _:
            hint = "It may be down, or leave what it does not know without an answer."
    message = f"{quoted(address)} did not answer within {seconds:g} s."
    return DecodedError("remote-server-timeout", message, hint, "undecided")


def of_error(
    condition: str, text: str | None, target: TargetKind, address: str, asked: str
) -> DecodedError:
    """Explain the error that `address` answered to requests called `asked` ("pings")."""
    row = first_row(_ROWS, target.value, condition)
    message = row.message.format(address=quoted(address), asked=asked, condition=condition)
    hint = row.hint.format(standing=_STANDING)
    return DecodedError(condition, message + quoted_text(text), hint, row.outcome)
