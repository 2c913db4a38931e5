"""Everything that can happen in the room and on the way to it, as values and as JSON. Pure.

An event says what happened; `Journal` says when and in which order. Fields have the names that
users see, in camelCase there: `from_` is an occupant JID (`room@service/nickname`), `sender` the
nickname in it. `kind` is what users call such an event.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain, repeat
from operator import attrgetter
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias, get_args

from bridge.text import wire_name
from bridge.xmpp.model.faults import Fault

STATUS_CODES = {
    100: "everybody in the room can see full JIDs",
    101: "the affiliation changed while away from the room",
    102: "the room shows unavailable members now",
    103: "the room does not show unavailable members any more",
    104: "a setting of the room changed",
    110: "this is about the bridge itself",
    170: "the room logs what is said",
    171: "the room does not log any more",
    172: "the room shows real JIDs to everybody now",
    173: "the room shows real JIDs to moderators only now",
    174: "the room hides real JIDs from everybody now",
    201: "the room was made by joining it",
    210: "the room changed the nickname",
    301: "banned",
    303: "the nickname changed",
    307: "kicked",
    321: "put out: the affiliation changed",
    322: "put out: the room is for members only now",
    332: "put out: the room service shuts down",
    333: "put out for a technical reason, often a lost connection",
}
"""XEP-0045, section 16.6, in plain words."""

Kind: TypeAlias = Literal[
    "message", "join", "leave", "nick", "role", "subject", "config", "error", "connection", "gap"
]

KINDS: tuple[Kind, ...] = get_args(Kind)
"""What users call the kinds of events; each event class has one of them as its `kind`."""

UNKNOWN = "unknown"
"""The role and the affiliation of an occupant whose presence cannot be read."""

UNREADABLE = "unreadable-stanza"
"""Our condition for a stanza that cannot be read; no standard defines one."""

CAPTCHA_REQUIRED = "captcha-required"
"""Our condition for a room that wants a CAPTCHA solved; XEP-0158 defines none."""


class Phase(StrEnum):
    """How far we have come on the way into a room. The names are what users see."""

    UNCONFIGURED = "unconfigured"
    RESOLVING = "resolving"
    CONNECTING = "connecting"
    SECURING = "securing"
    AUTHENTICATING = "authenticating"
    JOINING = "joining"
    JOINED = "joined"
    WAITING = "waiting"
    """Pausing between two attempts."""
    FAILED = "failed"
    """Trying again cannot help, or not soon."""
    CLOSED = "closed"


class Source(StrEnum):
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

    def __str__(self) -> str:
        unverified = "" if self.verified else ", certificate not checked"
        return f"{self.version}, {self.cipher}{unverified}"


class Shared:
    """Marks the events that all occupants of the room see. A store records each event once.

    Several observers may report the same event. The store recognises it by its fields. It leaves
    out the fields in `bridge.store.pairing.VARYING`, which the room shows to some occupants only.
    """

    __slots__ = ()


class _MessageFields(NamedTuple):
    """The fields of `MessageReceived`.

    They are a tuple, which is made six times as fast as a frozen dataclass of so many fields: a
    room may send thousands of messages in a second.
    """

    from_: str
    sender: str
    body: str = ""
    """Empty where a message has none."""
    type: str = "groupchat"
    """`groupchat`, or `chat` for a private message from an occupant."""
    id: str | None = None
    stanza_id: str | None = None
    """Given by the room (XEP-0359)."""
    delayed_from: str | None = None
    """The original time of a delayed message (XEP-0203), as `bridge.text` writes times, and never
    in the future. If the stamp is no time, it is kept as it is."""
    stamped_at: str | None = None
    """The stamp itself, if the room did not make it, or it lies in the future."""
    stamped_by: str | None = None
    """Who made the stamp; None if the room did."""
    source: Source = Source.LIVE
    own: bool = False
    """We said it: this is the room's reflection."""
    reflects: str | None = None
    """Our id for the message, if the room gave it another id, and the text proved that the message
    is ours."""
    as_ours: bool = False
    """A former run may have said it: it is in the history, under our nickname or account."""
    jid: str | None = None
    """The sender's real JID, where the room shows it."""
    occupant_id: str | None = None
    """The room's id of the account (XEP-0421), where the room says that it gives such ids."""
    replaces: str | None = None
    """The id of the message that this one corrects (XEP-0308)."""
    reply_to: str | None = None
    """The id of the message that this one answers (XEP-0461)."""
    reacts_to: str | None = None
    """The id of the message that `reactions` are to (XEP-0444)."""
    reactions: tuple[str, ...] | None = None
    """An empty tuple takes all reactions back; None if the message is no reaction."""
    retracts: str | None = None
    """The id of the message that its sender (XEP-0424) or a moderator (XEP-0425) takes back."""
    moderated_by: str | None = None
    """The nickname of the moderator who takes the message back; a JID if the moderator is not in
    the room."""
    reason: str | None = None
    """Why the moderator takes the message back, in the moderator's words."""
    author: str | None = None
    """The nickname of the author of the message that a moderator takes back, if we saw the
    message."""
    languages: tuple[str, ...] = ()
    """The languages of the bodies that are not in `body` (RFC 6121, section 5.2.3); `und` for a
    body in no language."""
    marked: tuple[str, ...] = ()
    """Why people may see something else than `body`: `fallback` if their client understands the
    element for which the body is a substitute (XEP-0428), `xhtml` if it shows XHTML-IM
    (XEP-0071)."""
    encrypted: str | None = None
    """The name of the encryption (XEP-0380). A body only says that the message is encrypted."""
    payload: tuple[str, ...] = ()
    """The names of a message's elements, if it says nothing else: a chat state, a receipt."""


class MessageReceived(_MessageFields):
    """An occupant said something in the room; or we did, and the room reflected it.

    All occupants see a message of the type `groupchat`. The class is not `Shared`, since private
    messages belong to it too.
    """

    __slots__ = ()
    kind: ClassVar[Kind] = "message"


@dataclass(frozen=True)
class MessageSent:
    """We handed a message to the room; its reflection is still to come."""

    kind: ClassVar[Kind] = "message"
    from_: str
    sender: str
    body: str
    id: str


@dataclass(frozen=True)
class SendFailed:
    """The room, or a server on the way, returned our message."""

    kind: ClassVar[Kind] = "error"
    id: str
    """The id of our message; empty if the error has none."""
    condition: str
    text: str | None = None
    by: str | None = None
    """The JID of the entity that refused the message, if the error names it (RFC 6120, section
    8.3.1)."""


@dataclass(frozen=True)
class OccupantError:
    """An occupant answered a message with an error, which only we get."""

    kind: ClassVar[Kind] = "error"
    from_: str
    sender: str
    condition: str
    text: str | None = None
    id: str | None = None
    """The id of the message that the error claims to answer. That proves nothing: all occupants see
    our ids."""


@dataclass(frozen=True)
class OccupantPresence(Shared):
    """What a presence says of an occupant."""

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
    """Status codes (XEP-0045, section 16.6)."""
    reason: str | None = None
    actor: str | None = None
    """Who caused the change, if the room says so."""
    payload: tuple[str, ...] = ()
    """The names of the extension elements in the presence."""
    occupant_id: str | None = None
    """The room's id of the account (XEP-0421), where the room says that it gives such ids."""
    sessions: int = 0
    """How many sessions with this nickname the presence shows by their real JIDs."""


@dataclass(frozen=True)
class OccupantJoined(OccupantPresence):
    """An occupant is in the room: they entered, or were there when we came."""

    kind: ClassVar[Kind] = "join"


@dataclass(frozen=True)
class OccupantChanged(OccupantPresence):
    """An occupant's role, affiliation, show, status text or payload has changed."""

    kind: ClassVar[Kind] = "role"
    former_role: str | None = None
    """None if it is the same as before."""
    former_affiliation: str | None = None
    """None if it is the same as before."""
    former_payload: tuple[str, ...] | None = None
    """None if it is the same as before."""


@dataclass(frozen=True)
class AffiliationChanged(Shared):
    """The affiliation of an account that is not in the room has changed (XEP-0045, section 9)."""

    kind: ClassVar[Kind] = "role"
    jid: str
    affiliation: str
    reason: str | None = None
    actor: str | None = None


@dataclass(frozen=True)
class OccupantLeft(Shared):
    """An occupant left the room, or was put out of it."""

    kind: ClassVar[Kind] = "leave"
    from_: str
    sender: str
    self_: bool = False
    codes: frozenset[int] = frozenset()
    reason: str | None = None
    actor: str | None = None
    status: str | None = None
    jid: str | None = None
    """The real JID, where the room shows it."""
    occupant_id: str | None = None
    """The room's id of the account (XEP-0421), where the room says that it gives such ids."""


@dataclass(frozen=True)
class NicknameChanged(Shared):
    """An occupant goes on under another nickname (status code 303)."""

    kind: ClassVar[Kind] = "nick"
    from_: str
    sender: str
    new_nickname: str
    self_: bool = False
    jid: str | None = None
    """The real JID, where the room shows it."""
    occupant_id: str | None = None
    """The room's id of the account (XEP-0421), where the room says that it gives such ids."""


@dataclass(frozen=True)
class RoomDestroyed(Shared):
    """The room is no more (XEP-0045, section 10.9)."""

    kind: ClassVar[Kind] = "leave"
    reason: str | None = None
    venue: str | None = None
    """The address to which the owner directs occupants. The bridge shows it, and never follows
    it."""


@dataclass(frozen=True)
class SubjectChanged(Shared):
    """The room has this subject now; with an empty text it has none."""

    kind: ClassVar[Kind] = "subject"
    subject: str
    sender: str | None = None


@dataclass(frozen=True)
class RoomConfigured(Shared):
    """The room's configuration changed; the status codes say how (XEP-0045, section 10.2)."""

    kind: ClassVar[Kind] = "config"
    codes: frozenset[int] = frozenset()
    changed: tuple[str, ...] = ()
    """Each option that has changed, with its former and its new value, as the room shows them to
    all."""


@dataclass(frozen=True)
class RoomError:
    """The room, or a server on the way, refused our presence."""

    kind: ClassVar[Kind] = "error"
    condition: str
    text: str | None = None
    venue: str | None = None
    """The address to go to instead, if the condition is `gone`."""


@dataclass(frozen=True)
class StanzaDamaged:
    """A stanza from the room cannot be read, except for its sender."""

    kind: ClassVar[Kind] = "error"
    from_: str
    """Empty if the sender cannot be read either. Then the event is of the connection as a whole."""
    sender: str
    reason: str
    """Why it cannot be read, without any text from the stanza."""
    condition: str = UNREADABLE


@dataclass(frozen=True)
class ConnectionChanged:
    """The connection, or our membership in one room, has entered another phase."""

    kind: ClassVar[Kind] = "connection"
    phase: Phase
    fault: Fault | None = None
    attempt: int = 0
    """Attempts since we were last in the room."""
    next_attempt_in_ms: int | None = None
    """None if no attempt is planned."""


@dataclass(frozen=True)
class Connected:
    """The stream is authenticated and bound; the rooms come next."""

    kind: ClassVar[Kind] = "connection"
    jid: str
    service: str
    tls: Tls | None
    sasl: str
    resumed: bool = False
    """The former session goes on: we are still in our rooms (XEP-0198)."""


@dataclass(frozen=True)
class Joined:
    """We are in the room, under this nickname."""

    kind: ClassVar[Kind] = "connection"
    from_: str
    sender: str
    created: bool
    """Joining made the room (status code 201)."""


@dataclass(frozen=True)
class Gap:
    """A time in which we saw nothing. The room could not send us everything from it later."""

    kind: ClassVar[Kind] = "gap"
    from_: str
    """When it began, as `bridge.text` writes times."""
    to: str
    """When it ended."""


Event: TypeAlias = (
    MessageReceived
    | Gap
    | MessageSent
    | SendFailed
    | OccupantError
    | OccupantJoined
    | OccupantChanged
    | OccupantLeft
    | AffiliationChanged
    | RoomConfigured
    | NicknameChanged
    | RoomDestroyed
    | SubjectChanged
    | RoomError
    | StanzaDamaged
    | ConnectionChanged
    | Connected
    | Joined
)

_ENCODED_APART = frozenset({"own", "as_ours", "fault", "tls", "resumed", "created", "sessions"})
"""Fields that `_encode_apart` has a case for."""

_SHOWN_EMPTY = frozenset({"sender", "subject", "reactions", "formerPayload"})
"""Fields that are encoded even if empty. An empty `sender` is the room itself; an empty `subject`
removes the subject; empty `reactions` take all reactions back; after an empty `formerPayload`,
there is a payload now."""


def _wire_names(cls: type[Event]) -> dict[str, str]:
    """Map each field that is encoded without conversion to its name in camelCase."""
    names = (name for name in cls.__match_args__ if name not in _ENCODED_APART)
    return {name: wire_name(name) for name in ("kind", *names)}


_WIRE_NAMES = {cls: _wire_names(cls) for cls in get_args(Event)}
_VALUES = {cls: attrgetter(*names) for cls, names in _WIRE_NAMES.items()}


def encode(event: Event) -> dict[str, object]:
    """Return the exact form of `event`: its fields, under the names that users see.

    A field that says nothing (None, False, 0, no text, no codes) is left out. The texts are as they
    came: the code that shows them escapes them. `direction` is `in` if the room sent the event, and
    `out` if we sent it.
    """
    encoded: dict[str, object] = {"kind": event.kind}
    if event.kind not in {"connection", "gap"}:
        encoded["direction"] = "out" if isinstance(event, MessageSent) else "in"
    names, values = _WIRE_NAMES[type(event)], _VALUES[type(event)](event)
    as_they_are = zip(names.values(), values, strict=True)
    for name, value in chain(as_they_are, _encode_apart(event).items()):
        if value or (value is not None and name in _SHOWN_EMPTY):
            # A comprehension would make intake 1.5 % dearer.
            encoded[name] = list(value) if type(value) is tuple else value
    return encoded


def meanings_of(event: object) -> list[str]:
    """Return what the status codes of an event mean, as far as they are known."""
    known = STATUS_CODES.keys() & getattr(event, "codes", ())
    return [STATUS_CODES[code] for code in sorted(known)]


def decode(exact: Mapping[str, Any]) -> Event:
    """Return the event that has this exact form, for filters and findings.

    TLS values, and texts such as "logged in" that `encode` adds, are not restored. Raises
    `ValueError` if `exact` is not the form of an event.
    """
    for name, value in exact.items():
        item_type = int if name == "codes" else str
        items = value if isinstance(value, list) else ()
        fits = all(isinstance(item, item_type) for item in items)
        if not (fits and isinstance(value, _TYPES.get(name, ()))):
            raise ValueError(f"no event has such a {name}")
    cls = _class_of(exact)
    values: dict[str, Any] = dict.fromkeys(_required_by(cls), "")
    values |= {field: exact[name] for field, name in _WIRE_NAMES[cls].items() if name in exact}
    del values["kind"]
    for name in values.keys() & _DECODED.keys():
        values[name] = _DECODED[name](values[name])
    if "condition" in exact and cls is ConnectionChanged:
        condition, text, hint = map(exact.get, ("condition", "text", "hint"), repeat(""))
        values["fault"] = Fault(condition, text, hint, quotes=True)
    made: Event = cls(**values)
    return made


def _required_by(cls: type[Event]) -> list[str]:
    """Return the fields of a class that have no default; they come first."""
    maker = cls.__new__ if issubclass(cls, tuple) else cls.__init__
    names = cls.__match_args__
    return [*names[: len(names) - len(maker.__defaults__ or ())]]


def _class_of(exact: Mapping[str, Any]) -> type[Event]:
    match exact:
        case {"direction": "out"}:
            return MessageSent
        case {"kind": "error", "condition": "unreadable-stanza"}:
            return StanzaDamaged
        case {"kind": "error"} if "sender" in exact:
            return OccupantError
        case {"kind": "error"} if "id" not in exact:
            return RoomError
        case {"kind": "leave", "destroyed": True}:
            return RoomDestroyed
        case {"kind": "role"} if "sender" not in exact:
            return AffiliationChanged
        case {"kind": "connection"} if "phase" not in exact:
            return Connected if "service" in exact else Joined
    if (cls := _CLASSES.get(exact.get("kind", ""))) is None:
        raise ValueError("a kind that no event has")
    return cls


_CLASSES: dict[str, type[Event]] = {cls.kind: cls for cls in reversed(get_args(Event))}
"""The first class of each kind."""

_LISTS = ("payload", "former_payload", "changed", "reactions", "languages", "marked")
"""The fields that hold several texts."""

_DECODED: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(_LISTS, tuple),
    "codes": frozenset,
    "source": Source,
    "phase": Phase,
}
"""The functions that restore values of fields that have another type in the exact form."""


_TYPES: dict[str, type] = {
    **dict.fromkeys((name for names in _WIRE_NAMES.values() for name in names.values()), str),
    **dict.fromkeys(("direction", "text", "hint", "tls", "reason", "condition"), str),
    **dict.fromkeys(("self", "reflection", "destroyed"), bool),
    **dict.fromkeys(("attempt", "nextAttemptInMs", "events"), int),
    **dict.fromkeys(("codes", "meaning", *map(wire_name, _LISTS)), list),
}
"""The types of the fields of the exact form; `events` is in gaps of the recorder."""


def _encode_apart(event: Event) -> dict[str, object]:
    """Return the fields whose values are not encoded as they are."""
    match event:
        case MessageReceived(own=own, source=source):
            return {"reflection": own and source is Source.LIVE}
        case MessageSent():
            return {"type": "groupchat", "source": Source.LIVE}
        case RoomDestroyed():
            return {"destroyed": True}
        case ConnectionChanged(fault=Fault(condition=condition, message=message, hint=hint)):
            return {"condition": condition, "text": message, "hint": hint}
        case Connected(tls=tls, resumed=resumed):
            text = "the former session goes on" if resumed else "logged in"
            return {"text": text, "tls": "none" if tls is None else str(tls)}
        case Joined(created=created):
            made = ", which joining made: is MUC_ROOM spelt right?" if created else ""
            return {"text": f"in the room{made}"}
        case object(codes=frozenset() as codes) if codes:
            return {"codes": sorted(codes), "meaning": meanings_of(event)}
    return {}
