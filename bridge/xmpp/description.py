"""What an address says of itself, as values: who it is, what it can do, what runs there. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

ROOM_INFO = "http://jabber.org/protocol/muc#roominfo"
"""The form in which a room tells of its configuration (XEP-0045, section 15.5)."""

ARCHIVE = "urn:xmpp:mam:"
"""What the features of an archive begin with, whatever their version (XEP-0313)."""


@dataclass(frozen=True)
class Identity:
    """One answer to "who are you" (XEP-0030, section 3.1)."""

    category: str
    type: str
    name: str | None = None


@dataclass(frozen=True)
class Field:
    """One field of a form that extends the answer (XEP-0128)."""

    form: str
    """The form's `FORM_TYPE`; empty where it has none."""
    name: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class Software:
    """What runs there (XEP-0092)."""

    name: str | None
    version: str | None
    os: str | None


@dataclass(frozen=True)
class Description:
    """All of one answer to disco#info; each feature once, in the order they came."""

    identities: tuple[Identity, ...] = ()
    features: tuple[str, ...] = ()
    fields: tuple[Field, ...] = ()

    @property
    def is_room(self) -> bool:
        """Whether this is a place to chat in; the service that holds rooms says the same."""
        return any(one.category == "conference" for one in self.identities)


@dataclass(frozen=True)
class RoomConfiguration:
    """How a room is set up, as far as it says so; None is what it does not say."""

    public: bool | None
    """Whether it is listed."""
    moderated: bool | None
    members_only: bool | None
    persistent: bool | None
    password_protected: bool | None
    anonymity: str | None
    """`non-anonymous`: everybody sees real JIDs; `semi-anonymous`: moderators do."""
    archived: bool
    """Whether the room keeps an archive (XEP-0313)."""
    logs: str | None
    """Where the room's logs can be read."""
    title: str | None
    description: str | None
    language: str | None
    occupants: int | None


def room_configuration(told: Description) -> RoomConfiguration:
    """Return how a room is set up, from its features and its form (XEP-0045, section 6.4)."""
    features = frozenset(told.features)

    def either(yes: str, no: str) -> bool | None:
        """Return which of two opposites the room has; None if it claims both, or neither."""
        return None if (yes in features) == (no in features) else yes in features

    said = {one.name: one.values[0] for one in told.fields if one.form == ROOM_INFO and one.values}
    hidden = either("muc_semianonymous", "muc_nonanonymous")
    names = (one.name for one in told.identities if one.category == "conference" and one.name)
    return RoomConfiguration(
        public=either("muc_public", "muc_hidden"),
        moderated=either("muc_moderated", "muc_unmoderated"),
        members_only=either("muc_membersonly", "muc_open"),
        persistent=either("muc_persistent", "muc_temporary"),
        password_protected=either("muc_passwordprotected", "muc_unsecured"),
        anonymity=None if hidden is None else "semi-anonymous" if hidden else "non-anonymous",
        archived=any(one.startswith(ARCHIVE) for one in features),
        logs=said.get("muc#roominfo_logs") or None,
        title=_first(said.get("muc#roomconfig_roomname"), *names),
        description=_first(
            said.get("muc#roominfo_description"), said.get("muc#roomconfig_roomdesc")
        ),
        language=_first(said.get("muc#roominfo_lang"), said.get("muc#roomconfig_lang")),
        occupants=_count(said),
    )


def _first(*texts: str | None) -> str | None:
    return next((one for one in texts if one), None)


MAX_DIGITS = 9
"""Of a number that is believed: rooms have fewer occupants, and uptimes fewer seconds."""


def whole_number(text: str | None) -> int | None:
    """Return the number that `text` is, if it is a plausible count."""
    text = (text or "").strip()
    if not (text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS):
        return None
    return int(text)


def _count(said: Mapping[str, str]) -> int | None:
    return whole_number(said.get("muc#roominfo_occupants"))


def unique(texts: Iterable[str]) -> tuple[str, ...]:
    """Return each text once, the empty one never, in the order they came."""
    return tuple(dict.fromkeys(one for one in texts if one))
