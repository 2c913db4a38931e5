"""What a page shows, as values and as JSON; docs/page.md describes each field. Pure.

Times are whole milliseconds since the epoch. If the source names no zone, its times are read as
UTC. If it has no times, positions in it stand in their place.
"""

from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Literal, TypeAlias

from bridge.text import wire_name

FORMAT = 1
"""The version of the JSON form. It rises with each change that a reader has to know about."""

MAX_EVENTS = 10_000
"""Most events on a page, the newest. A browser opens a page with so many within two seconds."""

Zone: TypeAlias = Literal["utc", "unknown", "none"]
"""What the times are: `utc`; as in the log, which names no zone (`unknown`); positions (`none`)."""


@dataclass(frozen=True, slots=True)
class Presence:
    """A time during which an occupant was in the room with the same role and affiliation."""

    from_: int
    to: int | None = None
    """None if the occupant was still there at the end."""
    role: str = ""
    affiliation: str = ""
    before: bool = False
    """Whether the occupant was there before the records begin."""
    left: str = ""
    """Why the occupant left at the end of this time, and who put it out, if the room says so."""


@dataclass(frozen=True, slots=True)
class Lane:
    """An occupant's nickname, and when the occupant was in the room."""

    name: str
    self_: bool = False
    """Whether it is the bridge itself, or the client whose stream it is."""
    spans: tuple[Presence, ...] = ()
    folded: str = ""
    """`bridge` for the lane of a bridge that came for a moment and said nothing."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened at a moment."""

    id: str
    at: int
    kind: str
    """One of `bridge.xmpp.model.events.KINDS`, or `stanza`."""
    text: str
    """One line that says what happened."""
    lane: int | None = None
    """The index of the occupant's lane; None for the room, the server or the connection."""
    direction: str = ""
    body: str = ""
    """What a message says, as the page shows it."""
    severity: str = ""
    where: str = ""
    """The file and the line of a log."""
    time: str = ""
    """The time as the log has it; empty if the times are UTC."""
    stanzas: tuple[str, ...] = ()
    answer: str = ""
    """The id of the event that answers this question."""
    answer_ms: int | None = None
    """Milliseconds until the answer; None without an answer, or without times."""
    answered: bool = True
    """False for a question that certainly got no answer."""
    folded: str = ""
    """What the event belongs to that a page folds: `bridge`, `history` or `connecting`."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A stage of a connection, or a step of a scenario, with its duration."""

    name: str
    from_: int
    to: int
    ok: bool
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Hole:
    """A time from which events may be missing in the records."""

    from_: int
    to: int
    text: str


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a rule found."""

    name: str
    severity: str
    message: str
    hint: str
    clause: str
    at: int | None = None
    event: str = ""
    """The id of the event that it is about."""
    where: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """A room, a connection, a stream or a scenario."""

    id: str
    kind: Literal["room", "connection", "stream", "scenario"]
    title: str
    from_: int
    to: int
    outcome: str = ""
    """`passed` or `failed` for a scenario; otherwise empty."""
    verdict: str = ""
    lanes: tuple[Lane, ...] = ()
    events: tuple[Event, ...] = ()
    stages: tuple[Bar, ...] = ()
    gaps: tuple[Hole, ...] = ()
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Timeline:
    """Everything that a page shows."""

    source: Literal["log", "explain", "expect"]
    title: str
    made_at: int
    made_by: str
    zone: Zone
    pseudonyms: bool
    notice: str
    """Whose words are on the page, and whether names are replaced. A reader sees this first."""
    parts: tuple[Part, ...]
    left_out: int = 0
    """How many older events are left out."""
    verdict: str = ""


def encode(timeline: Timeline) -> dict[str, Any]:
    """Return the JSON form. A field with its default is left out."""
    encoded: dict[str, Any] = {"format": FORMAT, **_encoded(timeline)}
    return encoded


def _encoded(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_encoded(item) for item in value]
    if not is_dataclass(value):
        return value
    encoded = {}
    for field in fields(value):
        content = getattr(value, field.name)
        if content is not field.default and content != field.default:
            encoded[wire_name(field.name)] = _encoded(content)
    return encoded
