"""Everything that can happen in the room and on the way to it, as values. Pure.

An event says what happened; `Journal` says when and in which order. Fields have the names that
users see, as `bridge.mcp.schema.wire_name` spells them: `from_` is an occupant JID
(`room@service/nickname`), `sender` the nickname in it.
"""

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from bridge.xmpp.faults import Fault


class Phase(Enum):
    """How far the participant has come. The names are what users see."""

    UNCONFIGURED = "unconfigured"
    RESOLVING = "resolving"
    CONNECTING = "connecting"
    SECURING = "securing"
    AUTHENTICATING = "authenticating"
    JOINING = "joining"
    JOINED = "joined"
    WAITING = "waiting"
    """Between two attempts."""
    FAILED = "failed"
    """Trying again cannot help, or not soon."""
    CLOSED = "closed"


class Source(Enum):
    """How a message came to us."""

    LIVE = "live"
    HISTORY = "history"
    """Sent by the room on joining, with a delay stamp (XEP-0045, section 7.2.13)."""
    ARCHIVE = "archive"


@dataclass(frozen=True)
class Tls:
    """What protects the connection."""

    version: str
    cipher: str
    verified: bool


@dataclass(frozen=True, slots=True)
class MessageReceived:
    """Somebody, or we ourselves by reflection, said something in the room."""

    from_: str
    sender: str
    body: str
    """Empty where a message has none."""
    type: str = "groupchat"
    """`groupchat`, or `chat` for a private message from an occupant."""
    id: str | None = None
    stanza_id: str | None = None
    """Given by the room (XEP-0359)."""
    delayed_from: str | None = None
    """The original time of a delayed message (XEP-0203), ISO 8601 UTC."""
    source: Source = Source.LIVE
    own: bool = False
    """We said it: this is the room's reflection."""
    jid: str | None = None
    """The sender's real JID, where the room shows it."""
    replaces: str | None = None
    """The id of the message that this one corrects (XEP-0308)."""
    reply_to: str | None = None
    """The id of the message that this one answers (XEP-0461)."""
    reacts_to: str | None = None
    """The id of the message that `reactions` are to (XEP-0444); none of them takes all back."""
    reactions: tuple[str, ...] = ()
    retracts: str | None = None
    """The id of the message that is taken back (XEP-0424), or was by a moderator (XEP-0425)."""
    encrypted: str | None = None
    """By what (XEP-0380): the body, if there is one, stands in for what cannot be read here."""
    payload: tuple[str, ...] = ()
    """Names of the elements in a message that has nothing else to tell: a chat state, a receipt."""


@dataclass(frozen=True)
class MessageSent:
    """We handed a message to the room; its reflection is still to come."""

    from_: str
    body: str
    id: str


@dataclass(frozen=True)
class SendFailed:
    """The room, or a server on the way, returned our message."""

    id: str
    condition: str
    text: str | None = None


@dataclass(frozen=True)
class OccupantJoined:
    """Somebody is in the room: they entered, or were there when we came."""

    from_: str
    sender: str
    role: str
    affiliation: str
    show: str | None = None
    status: str | None = None
    jid: str | None = None
    """The real JID, where the room shows it."""
    self_: bool = False
    codes: frozenset[int] = frozenset()
    """Status codes (XEP-0045, section 15.6)."""
    reason: str | None = None
    actor: str | None = None


@dataclass(frozen=True)
class OccupantChanged:
    """Somebody's role, affiliation, show or status text is another than before."""

    from_: str
    sender: str
    role: str
    affiliation: str
    former_role: str
    former_affiliation: str
    show: str | None = None
    status: str | None = None
    jid: str | None = None
    self_: bool = False
    codes: frozenset[int] = frozenset()
    reason: str | None = None
    actor: str | None = None
    """Who did it, where the room says so."""


@dataclass(frozen=True)
class AffiliationChanged:
    """Somebody who is not in the room has another affiliation now (XEP-0045, section 9)."""

    jid: str
    affiliation: str
    reason: str | None = None
    actor: str | None = None


@dataclass(frozen=True)
class OccupantLeft:
    """Somebody left the room, or was put out of it."""

    from_: str
    sender: str
    self_: bool = False
    codes: frozenset[int] = frozenset()
    reason: str | None = None
    actor: str | None = None
    status: str | None = None
    jid: str | None = None
    """The real JID, where the room shows it."""


@dataclass(frozen=True)
class NicknameChanged:
    """Somebody goes on under another nickname (status code 303)."""

    from_: str
    sender: str
    new_nickname: str
    self_: bool = False


@dataclass(frozen=True)
class RoomDestroyed:
    """The room is no more (XEP-0045, section 10.9)."""

    reason: str | None = None
    venue: str | None = None
    """Where its owner says to go instead; shown, never followed."""


@dataclass(frozen=True)
class SubjectChanged:
    """The room has a subject; an empty one is none."""

    subject: str
    sender: str | None = None


@dataclass(frozen=True)
class RoomConfigured:
    """The room's configuration changed, as its status codes tell (XEP-0045, section 10.2)."""

    codes: frozenset[int]


@dataclass(frozen=True)
class RoomError:
    """The room, or a server on the way, refused our presence."""

    condition: str
    text: str | None = None
    venue: str | None = None
    """With `gone`: where to go instead."""


@dataclass(frozen=True)
class ConnectionChanged:
    """The participant's phase changed, and why."""

    phase: Phase
    fault: Fault | None = None
    attempt: int = 0
    """Attempts since it was last in the room."""
    retry_seconds: float | None = None
    """Until the next attempt, where one is planned."""


@dataclass(frozen=True)
class Connected:
    """The stream is authenticated and bound; the room comes next."""

    jid: str
    service: str
    tls: Tls | None
    sasl: str
    resumed: bool = False
    """The former session goes on: we are still in the room (XEP-0198)."""


@dataclass(frozen=True)
class Joined:
    """We are in the room, under this nickname."""

    from_: str
    sender: str
    created: bool
    """Joining made the room (status code 201)."""


@dataclass(frozen=True)
class Gap:
    """A time when nothing could be seen, and that the room could not fill in afterwards."""

    since: float
    """Seconds since the epoch."""
    until: float


Event: TypeAlias = (
    MessageReceived
    | Gap
    | MessageSent
    | SendFailed
    | OccupantJoined
    | OccupantChanged
    | OccupantLeft
    | AffiliationChanged
    | RoomConfigured
    | NicknameChanged
    | RoomDestroyed
    | SubjectChanged
    | RoomError
    | ConnectionChanged
    | Connected
    | Joined
)
