"""What is known of an occupant who does not do what is expected of them. Pure.

`bridge.xmpp.checks.diagnosis` looks for causes in it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import merge
from itertools import islice
from operator import attrgetter
from typing import NamedTuple

from bridge.text import name_of, quoted
from bridge.wire.meaning import SIGNALS
from bridge.xmpp.model import events
from bridge.xmpp.model.journal import Record
from bridge.xmpp.model.room import Occupant, RoomStatus
from bridge.xmpp.queries.iq_errors import DecodedError

DEPARTURES = 2
"""How many departures are kept: somebody else may have had the nickname after the occupant."""

VISIBLE_ACTIONS = (
    events.OccupantPresence,
    events.OccupantLeft,
    events.NicknameChanged,
    events.SubjectChanged,
    events.StanzaDamaged,
)
"""The events, other than messages, in which an occupant does something that everybody sees. A
stanza that we cannot read counts too, since others may have read it and acted on it."""

TEXT_CHARACTERS = 100
"""Most characters of somebody's words in a sentence."""

MAX_ACTS = 1_000
"""Most public acts of the occupant, and of others, that are looked at together."""


class Person(NamedTuple):
    """Who somebody is: by account, else by occupant id (XEP-0421). Nicknames change hands."""

    account: str | None = None
    """The bare real JID, where the room shows it."""
    id: str | None = None
    """The room's id of the account, where the room gives such ids."""

    @classmethod
    def of(cls, event: object) -> "Person":
        """Return who an event, or an occupant, says that somebody is."""
        name = "real_jid" if isinstance(event, Occupant) else "jid"
        account = (getattr(event, name, None) or "").partition("/")[0]
        return cls(account or None, getattr(event, "occupant_id", None))

    def is_same(self, other: "Person") -> bool | None:
        """Whether both are the same person; None if the room shows too little to tell."""
        for own, theirs in zip(self, other, strict=True):
            if own and theirs:
                return own == theirs
        return None


NOBODY = Person()
"""Somebody of whom the room shows neither."""

MISTAKABLE = " The room shows neither accounts nor ids: others may have had the nickname."
"""The end of a finding for which people of one nickname had to be told apart."""


class Finding(NamedTuple):
    """Whether one cause applies."""

    ok: bool | None
    """False: the cause applies, or is likely to. True: it does not. None: that is unknown."""
    detail: str
    """A sentence, in which the words of strangers are `quoted`."""
    hint: str = ""
    """What to do about it."""
    remark: bool = False
    """Whether it is never the verdict, but adds its sentence to it: it rests on likeness, on what
    somebody says of itself, or on what the room does not show."""


class Ping(NamedTuple):
    """The result of a ping."""

    seconds: float | None
    """The time until an answer or an error came; None if none did."""
    error: DecodedError | None
    verdict: str
    """The result in a sentence. If no answer came, it says who is silent: the occupant, or others
    too."""
    alone: bool
    """Whether the occupant alone did not answer: the room and our server did."""


@dataclass
class Past:
    """What the journal has on one occupant and on our messages, read from the newest event back."""

    nickname: str
    """As the room has it."""
    there: bool = True
    """Whether they are in the room."""
    person: Person = NOBODY
    """Who they are, as far as the room shows it; of somebody who left, who left last."""
    since: float | None = None
    """The time of the oldest event that was read."""
    gone: list[Record] = field(default_factory=list)
    """The last `DEPARTURES` events in which somebody with the nickname left or changed it, the
    newest first."""
    moves: list[Record] = field(default_factory=list)
    """The events in which they came or left, the newest first."""
    mistakable: bool = False
    """Whether `moves` may have those of others, since the room shows neither accounts nor ids."""
    silenced: Record | None = None
    """The event in which they last became a visitor, who has no voice."""
    spoke: Record | None = None
    """The message that they said last, in private too."""
    sent: events.MessageSent | None = None
    """The message that we said last."""
    outcome: Record | None = None
    """The reflection of our message, or the error that returned it, whichever came first."""
    replies: list[Record] = field(default_factory=list)
    """What they said live after our message, and their errors, the newest first."""
    spoken: list[Record] = field(default_factory=list)
    """What they said in public while we watched, the newest first."""
    others: list[Record] = field(default_factory=list)
    """What everybody else did in public, ourselves included, the newest first. The occupant may
    have reacted to it."""
    foreign: set[int] = field(default_factory=set)
    """The numbers of what somebody else did under the nickname."""
    _outcomes: dict[str, Record] = field(default_factory=dict)

    def add(self, record: Record) -> None:
        """Take in the next older event."""
        self.since = record.at
        named = getattr(record.event, "sender", None) == self.nickname
        theirs = named and self._is_theirs(record)
        match record.event:
            case events.MessageSent(id=id_):
                if self.sent is None:
                    self.sent, self.outcome = record.event, self._outcomes.get(id_)
            case events.SendFailed(id=id_):
                self._note(id_, record)
            case events.OccupantError() if theirs and self.sent is None:
                self.replies.append(record)
            case events.MessageReceived(own=own, source=source) as message:
                live = source is events.Source.LIVE
                if live and is_public(record):
                    (self.spoken if theirs and not own else self.others).append(record)
                if own:
                    self._note(message.reflects or message.id or "", record)
                elif theirs and not own:
                    self.spoke = self.spoke or record
                    if live and self.sent is None:
                        self.replies.append(record)
            case events.OccupantChanged(role="visitor", former_role=str()) if theirs:
                self.silenced = self.silenced or record
            case event if isinstance(event, VISIBLE_ACTIONS) and not record.earlier:
                self._see(record, named=named)

    def _is_theirs(self, record: Record) -> bool:
        """Whether the one who did this under the nickname is the occupant."""
        person = Person.of(record.event)
        same = self.person.is_same(person)
        if same is False:
            self.foreign.add(record.number)
        if same:  # the room may have shown more at one time than at another
            self.person = Person(*(own or it for own, it in zip(self.person, person, strict=True)))
        # Where neither is shown, somebody else may have had the nickname before they came.
        return len(self.gone) <= (0 if self.there else 1) if same is None else same

    def _see(self, record: Record, *, named: bool) -> None:
        """Take in what somebody did that everybody saw, other than speaking."""
        match record.event:
            case events.OccupantLeft() | events.NicknameChanged() if named:
                if not (self.there or self.gone):
                    self.person = Person.of(record.event)
                self._part(record)
                self._move(record)
            case events.OccupantJoined(self_=own):  # nobody reacts to what tells us of ourselves
                if named and not own:
                    self._move(record)
                elif not own:
                    self.others.append(record)
            case _ if not named:
                self.others.append(record)

    def _part(self, record: Record) -> None:
        """Keep a departure. Who comes and goes often hides no earlier one of somebody else."""
        if len(self.gone) == DEPARTURES:
            last, before, person = (Person.of(it.event) for it in (*self.gone, record))
            if not (last.is_same(before) and last.is_same(person) is False):
                return
            self.gone.pop()
        self.gone.append(record)

    def _move(self, record: Record) -> None:
        """Take in that the occupant came or left, unless that was somebody else of the name."""
        same = self.person.is_same(Person.of(record.event))
        if same is not False:
            self.moves.append(record)
        self.mistakable = self.mistakable or same is None

    def _note(self, id_: str, record: Record) -> None:
        if self.sent is None:
            self._outcomes[id_] = record  # the oldest stays


class Evidence(NamedTuple):
    """Everything by which `diagnosis` decides whether a cause applies."""

    nickname: str
    """The nickname as the room has it; if nobody has it, as the caller wrote it."""
    room: str
    status: RoomStatus
    occupant: Occupant | None
    past: Past
    now: float
    answers: Sequence[Mapping[str, object]] = ()
    """The answers to what we said last, the oldest first: `how`, `answerMs`, `body` and more."""
    ping: Ping | None = None
    """The result of a ping; None if they are not in the room."""
    rooms: Sequence[str] = ()
    """Rooms of the service with similar names, looked up if the occupant is not in the room."""
    namesakes: Mapping[str, Ping] = {}
    """The results of pings to those who may be the same program, by nickname."""
    programs: Mapping[str, bool] = {}
    """Whether somebody is a program, by nickname; only of those who say what they are."""
    bridges: frozenset[str] = frozenset()
    """The nicknames of other debug bridges: they say what their agents have them say."""
    named: bool = True
    """Whether the caller named the occupant. If not, others may have been asked to answer."""

    @property
    def who(self) -> str:
        """The nickname, for a sentence."""
        return name_of(self.nickname)

    def is_theirs(self, record: Record) -> bool:
        """Whether the occupant did this, as far as the room tells people of one nickname apart."""
        return (
            sender_of(record) == self.nickname
            and not is_own(record)
            and record.number not in self.past.foreign
        )

    @property
    def acts(self) -> list[Record]:
        """What was done in public, by the occupant and by others, the oldest first.

        What clients send by themselves is left out, and what others did under the nickname.
        """
        others = (act for act in self.past.others if act.number not in self.past.foreign)
        parts = (list(islice(part, MAX_ACTS)) for part in (self.past.spoken, others))
        acts = merge(*map(reversed, parts), key=attrgetter("number"))
        return [act for act in acts if not is_signal(getattr(act.event, "payload", ()))]


def occupant_of(status: RoomStatus, nickname: str) -> Occupant | None:
    """Return the occupant with this nickname, which may be written as `visible` escapes it.

    It may be somebody who spoke and is not shown by the room.
    """
    for occupant in (*status.occupants, *status.unlisted):
        if nickname in {occupant.nickname, occupant.visible_nickname}:
            return occupant
    return None


def is_public(record: Record) -> bool:
    """Whether it is something said to everybody in the room."""
    return getattr(record.event, "type", None) == "groupchat"


def is_signal(payload: object) -> bool:
    """Whether nothing but `SIGNALS` is in the payload of a message."""
    names = payload if isinstance(payload, list | tuple) else ()
    spaces = {str(name).rpartition("(")[2].removesuffix(")") for name in names}
    return bool(spaces) and spaces <= SIGNALS


def list_of(nicknames: Sequence[str]) -> str:
    """Return several names for a sentence."""
    return ", ".join(map(name_of, nicknames))


def words_of(text: object) -> str:
    """Return somebody's words for a sentence."""
    return quoted(str(text), TEXT_CHARACTERS)


def sender_of(record: Record) -> str:
    """Return the nickname of whoever did it; empty if it was the room, or nobody."""
    return str(getattr(record.event, "sender", ""))


def body_of(record: Record) -> str:
    """Return what was said; empty if nothing was."""
    return str(getattr(record.event, "body", ""))


def absent(evidence: Evidence) -> Finding:
    """Return the finding about an occupant who is not there to be looked at."""
    return Finding(None, f"{evidence.who} is not there to be looked at.")


def is_own(record: Record) -> bool:
    """Whether it is something that the bridge said."""
    return bool(getattr(record.event, "own", False))
