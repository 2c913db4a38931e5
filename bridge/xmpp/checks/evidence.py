"""What is known of an occupant who does not do what is expected of them. Pure.

`bridge.xmpp.checks.diagnosis` looks for causes in it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from bridge.text import quoted, visible
from bridge.xmpp.model.events import (
    ConnectionChanged,
    MessageReceived,
    MessageSent,
    NicknameChanged,
    OccupantChanged,
    OccupantError,
    OccupantJoined,
    OccupantLeft,
    OccupantPresence,
    Phase,
    SendFailed,
    Source,
    SubjectChanged,
)
from bridge.xmpp.model.journal import Record
from bridge.xmpp.model.room import Occupant, RoomStatus
from bridge.xmpp.queries.iq_errors import DecodedError

DEPARTURES = 2
"""How often they left, the last times: somebody else may have had the nickname after them."""

NAME_CHARACTERS = 60
"""Of a name in a sentence."""


class Ping(NamedTuple):
    """What came of a ping."""

    seconds: float | None
    """Until the answer came, an error too; None: none came."""
    error: DecodedError | None
    verdict: str
    """What it means, in a sentence: where it is a silence, whose."""
    alone: bool
    """Whether the room and our server did answer."""


@dataclass
class Past:
    """What the journal tells of one occupant and of what we said, read from its newest event on."""

    nickname: str
    """As the room has it."""
    there: bool = True
    """Whether they are in the room."""
    since: float | None = None
    """When the oldest of the events was."""
    gone: list[Record] = field(default_factory=list)
    """How the last `DEPARTURES` who had the nickname left, or changed it, the newest first."""
    silenced: Record | None = None
    """How they last became a visitor."""
    spoke: Record | None = None
    """What they last said, in private too."""
    sent: MessageSent | None = None
    """What we last said."""
    outcome: Record | None = None
    """The reflection of that, or the error with which it came back first."""
    replies: list[Record] = field(default_factory=list)
    """What they said after that, and their errors, the newest first."""
    spoken: list[Record] = field(default_factory=list)
    """What they said in public while we watched, the newest first."""
    others: list[Record] = field(default_factory=list)
    """What everybody else did in public, we too, the newest first: it may be why they spoke."""
    _outcomes: dict[str, Record] = field(default_factory=dict)
    _telling: bool = False
    """Whether the room was telling who was there before us: nobody did anything."""

    def add(self, record: Record) -> None:
        """Take in the next older event."""
        self.since = record.at
        named = getattr(record.event, "sender", None) == self.nickname
        # Before they came, somebody else may have had the nickname.
        theirs = named and len(self.gone) <= (not self.there)
        match record.event:
            case MessageSent(id=id_):
                if self.sent is None:
                    self.sent, self.outcome = record.event, self._outcomes.get(id_)
            case SendFailed(id=id_):
                self._note(id_, record)
            case OccupantError() if theirs and self.sent is None:
                self.replies.append(record)
            case MessageReceived(own=own, source=source, id=id_):
                if source is Source.LIVE and is_public(record):
                    (self.spoken if theirs and not own else self.others).append(record)
                if own and id_ is not None:
                    self._note(id_, record)
                elif theirs and not own:
                    self.spoke = self.spoke or record
                    if self.sent is None:
                        self.replies.append(record)
            case OccupantLeft() | NicknameChanged() if named:
                self.gone += [record][: DEPARTURES - len(self.gone)]
            case OccupantChanged(role="visitor", former_role=str()) if theirs:
                self.silenced = self.silenced or record
            case _ if not named:
                self._add_deed(record)

    def _add_deed(self, record: Record) -> None:
        match record.event:
            case OccupantJoined(self_=True):
                self._telling = True
            case ConnectionChanged(phase=Phase.JOINING):
                self._telling = False
            case OccupantPresence() | OccupantLeft() | NicknameChanged() | SubjectChanged():
                self.others += [] if self._telling else [record]

    def _note(self, id_: str, record: Record) -> None:
        if self.sent is None:
            self._outcomes[id_] = record  # the oldest stays


class Evidence(NamedTuple):
    """All that findings are made of."""

    nickname: str
    """Whom it concerns: as the room has it, or as it was asked for."""
    room: str
    status: RoomStatus
    occupant: Occupant | None
    past: Past
    now: float
    answers: Sequence[Mapping[str, object]] = ()
    """Theirs to what we said last, the oldest first: `how`, `answerMs`, `body` and more."""
    ping: Ping | None = None
    """What came of a ping, where they are in the room."""
    rooms: Sequence[str] = ()
    """Rooms of the service with similar names; looked up where they are not."""

    @property
    def who(self) -> str:
        """The nickname, for a sentence."""
        return quoted(self.nickname, NAME_CHARACTERS)


def occupant_of(status: RoomStatus, nickname: str) -> Occupant | None:
    """Return who has this nickname, as it is or as it is shown."""
    for one in status.occupants:
        if nickname in {one.nickname, visible(one.nickname)}:
            return one
    return None


def is_public(record: Record) -> bool:
    """Whether it is something said to everybody in the room."""
    return getattr(record.event, "type", None) == "groupchat"
