"""What the bridge knows of an occupant who does not act as expected. Pure.

`bridge.xmpp.checks.diagnosis` looks for causes in this evidence.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import merge
from itertools import islice
from operator import attrgetter
from typing import Literal, NamedTuple, TypeAlias

from bridge.text import JOINERS, iso, name_of, named, quoted, searchable, visible
from bridge.wire.meaning import SIGNALS
from bridge.wire.speech import ANSWER_SECONDS, COMMAND_CHARACTERS, odd_letter
from bridge.xmpp.model import events
from bridge.xmpp.model.faults import Place
from bridge.xmpp.model.journal import Record
from bridge.xmpp.model.room import Occupant, RoomStatus
from bridge.xmpp.queries.iq_errors import DecodedError

DEPARTURES = 2
"""How many departures we keep: after the occupant, another person may have had the nickname."""

FLOOD = 60
"""So many changes of an occupant's presence are told, if they came faster than one a second."""

VISIBLE_ACTIONS = (
    events.OccupantPresence,
    events.OccupantLeft,
    events.NicknameChanged,
    events.SubjectChanged,
    events.StanzaDamaged,
)
"""The events, other than messages, in which an occupant does something that all in the room see. A
stanza that we cannot read counts too, since others may have read it and acted on it."""

TEXT_CHARACTERS = 100
"""Most characters of a message that a sentence quotes."""

MAX_ALIKE = 3
"""Most names that a sentence lists."""

MESSAGES = 100
"""How many of the occupant's newest messages we compare with as many of others."""

MAX_ACTS = 1_000
"""Most public acts of the occupant that we look at, and most of all others."""


Outcome: TypeAlias = Literal["cause", "well", "unknown"]
"""Whether a cause was found, or nothing is wrong, or too little was seen to say either."""


How: TypeAlias = Literal["public", "private", "encrypted", "no-body", "error"]
"""How an answer came."""


class Person(NamedTuple):
    """A person, identified by account, else by occupant id (XEP-0421). Nicknames change hands."""

    account: str | None = None
    """The bare real JID, where the room shows it."""
    id: str | None = None
    """The room's id of the account, where the room gives such ids."""

    @classmethod
    def of(cls, event: object) -> "Person":
        """Return the person that an event or an occupant names."""
        name = "real_jid" if isinstance(event, Occupant) else "jid"
        account = (getattr(event, name, None) or "").partition("/")[0]
        return cls(account or None, getattr(event, "occupant_id", None))

    def is_same(self, other: "Person") -> bool | None:
        """Whether both are the same person; None if the room shows too little to tell."""
        for own, theirs in zip(self, other, strict=True):
            if own and theirs:
                return own == theirs
        return None


UNIDENTIFIED = Person()
"""A person of whom the room shows neither account nor id."""

MISTAKABLE = " The room shows neither accounts nor ids: others may have had the nickname."
"""The end of a finding that depends on whether one person had a nickname, or several."""


class Finding(NamedTuple):
    """Whether one cause applies."""

    ok: bool | None
    """False: the cause applies, or is likely to. True: it does not. None: that is unknown."""
    detail: str
    """A sentence, in which the words of strangers are `quoted`."""
    hint: str = ""
    """What to do about it."""
    remark: bool = False
    """Whether the finding only adds its sentence to the verdict, and never is the verdict itself.
    Such a finding rests on likeness, on what an occupant says of itself, or on what the room does
    not show."""
    symptom: bool = False
    """Whether the finding says that something is wrong, but not why. With such a finding, a verdict
    never says that all is well."""
    leads_to: str = ""
    """The nickname of the occupant to look at instead."""


class Ping(NamedTuple):
    """The result of a ping."""

    seconds: float | None
    """The time until an answer or an error came; None if none did."""
    error: DecodedError | None
    verdict: str
    """The result in a sentence. If no answer came, it says who is silent: the occupant, or others
    too."""
    alone: bool
    """Whether only the occupant was silent, while the room and our server answered."""


@dataclass
class Past:
    """What the journal says of an occupant and of our messages, read from the newest event back."""

    nickname: str
    """As the room has it."""
    there: bool = True
    """Whether the occupant is in the room."""
    person: Person = UNIDENTIFIED
    """Who the occupant is, as far as the room shows it. If several people with the nickname have
    left, the last of them."""
    since: float | None = None
    """The time of the oldest event that was read, in seconds since the epoch."""
    gone: list[Record] = field(default_factory=list)
    """The last `DEPARTURES` events in which an occupant with the nickname left or changed it, the
    newest first."""
    moves: list[Record] = field(default_factory=list)
    """The events in which the occupant came or left, the newest first."""
    presence_on_entry: Record | None = None
    """The last event by which the room told us that the occupant was there, as we came in."""
    mistakable: bool = False
    """Whether `moves` may include moves of others, since the room shows neither accounts nor
    ids."""
    silenced: Record | None = None
    """The event in which the occupant last became a visitor, who has no voice."""
    changes: list[float] = field(default_factory=list)
    """When the occupant's presence changed, the newest `FLOOD` times, the newest first."""
    retitled: Record | None = None
    """The event in which the occupant last changed the room's subject."""
    configured: Record | None = None
    """The last event in which the room's configuration changed."""
    entered: Record | None = None
    """The event in which we last came into the room: before that we missed what was said."""
    spoke: Record | None = None
    """The message that the occupant said last, in private too."""
    sent: events.MessageSent | None = None
    """The message that we said last."""
    outcome: Record | None = None
    """The first answer to our message: its reflection, or the error that returned it."""
    replies: list[Record] = field(default_factory=list)
    """The occupant's live messages after ours, and the occupant's errors, the newest first."""
    spoken: list[Record] = field(default_factory=list)
    """The occupant's public messages while we watched, the newest first."""
    others: list[Record] = field(default_factory=list)
    """The public acts of all others, ourselves included, the newest first. The occupant may have
    reacted to them."""
    earlier: list[Record] = field(default_factory=list)
    """The public messages of others from before we came, the newest first: the room told us."""
    foreign: set[int] = field(default_factory=set)
    """The numbers of the events in which another person acted under the nickname."""
    had_other_rights: bool = False
    """Whether the occupant once was in the room without owning it, or another occupant owned it."""
    _former: set[str] = field(default_factory=set)
    """The nicknames that the occupant had before."""
    _outcomes: dict[str, Record] = field(default_factory=dict)

    @property
    def heard(self) -> Record | None:
        """Our last message, as the room passed it on; None if it did not."""
        is_heard = isinstance(getattr(self.outcome, "event", None), events.MessageReceived)
        return self.outcome if is_heard else None

    def read(self, records: Iterable[Record]) -> None:
        """Take in events, the newest first; all are older than those that were read before."""
        for record in records:
            self.add(record)

    def add(self, record: Record) -> None:
        """Take in the next older event."""
        self.since = record.at
        named = getattr(record.event, "sender", None) == self.nickname
        theirs = named and self._is_theirs(record)
        self._note_rights(record, named=named)
        match record.event:
            case events.MessageSent(id=id_):
                if self.sent is None:
                    self.sent, self.outcome = record.event, self._outcomes.get(id_)
            case events.SendFailed(id=id_):
                self._note(id_, record)
            case events.OccupantError() if theirs and self.sent is None:
                self.replies.append(record)
            case events.MessageReceived(own=own) as message:
                live = record.is_live
                if record.is_public and (live or not named):
                    mine = self.spoken if theirs and not own else self.others
                    (mine if live else self.earlier).append(record)
                if own:
                    self._note(message.reflects or message.id or "", record)
                elif theirs and not own:
                    self.spoke = self.spoke or record
                    if live and self.sent is None:
                        self.replies.append(record)
            case events.OccupantChanged() as change if theirs:
                self._note_change(change, record)
            case events.RoomConfigured():
                self.configured = self.configured or record
            case events.OccupantJoined() if named and record.earlier:
                self.presence_on_entry = self.presence_on_entry or record
            case event if isinstance(event, VISIBLE_ACTIONS) and not record.earlier:
                self._see(record, named=named)

    def _note_change(self, change: events.OccupantChanged, record: Record) -> None:
        """Note when the occupant's presence changed, and whether that took the voice."""
        if len(self.changes) < FLOOD:
            self.changes.append(record.at)
        if change.role == "visitor" and change.former_role is not None:
            self.silenced = self.silenced or record

    def _note_rights(self, record: Record, *, named: bool) -> None:
        """Note whether another owned the room then, or the occupant did not."""
        match record.event:
            case events.OccupantPresence(sender=sender, affiliation=affiliation) as seen:
                known = named or sender in self._former or self.person.is_same(Person.of(seen))
                same = bool(known) and record.number not in self.foreign
                owns = affiliation in {"owner", events.UNKNOWN}
                self.had_other_rights = self.had_other_rights or same != owns
            case events.NicknameChanged(new_nickname=new, sender=sender):
                if new in {self.nickname, *self._former}:
                    self._former.add(sender)

    def _is_theirs(self, record: Record) -> bool:
        """Whether the occupant did this, and not another person under the nickname."""
        person = Person.of(record.event)
        same = self.person.is_same(person)
        if same is False:
            self.foreign.add(record.number)
        if same:  # the room may have shown more at one time than at another
            self.person = Person(*(own or it for own, it in zip(self.person, person, strict=True)))
        # If the room shows neither account nor id, another may have had the nickname before.
        return len(self.gone) <= (0 if self.there else 1) if same is None else same

    def _see(self, record: Record, *, named: bool) -> None:
        """Take in a public act other than speaking."""
        match record.event:
            case events.OccupantLeft() | events.NicknameChanged() if named:
                if not (self.there or self.gone):
                    self.person = Person.of(record.event)
                self._part(record)
                self._move(record)
            case events.OccupantJoined(self_=own):  # no occupant reacts to our own presence
                if named and not own:
                    self._move(record)
                elif own:
                    self.entered = self.entered or record
                    if self.sent is None:  # what we said was before: they may greet us now
                        late = (it for it in self.replies if it.at - record.at > ANSWER_SECONDS)
                        self.replies = [*late]
                else:
                    self.others.append(record)
            case events.SubjectChanged() if named and record.number not in self.foreign:
                self.retitled = self.retitled or record
            case _ if not named:
                self.others.append(record)

    def _part(self, record: Record) -> None:
        """Keep a departure. Frequent departures of one person do not displace another person's."""
        if len(self.gone) == DEPARTURES:
            last, before, person = (Person.of(it.event) for it in (*self.gone, record))
            if not (last.is_same(before) and last.is_same(person) is False):
                return
            self.gone.pop()
        self.gone.append(record)

    def _move(self, record: Record) -> None:
        """Take in that the occupant came or left, unless another person of that nickname did."""
        same = self.person.is_same(Person.of(record.event))
        if same is not False:
            self.moves.append(record)
        self.mistakable = self.mistakable or same is None

    def _note(self, id_: str, record: Record) -> None:
        if self.sent is None:
            self._outcomes[id_] = record  # reading goes back, so the oldest stays


class Evidence(NamedTuple):
    """Everything by which `diagnosis` decides whether a cause applies."""

    nickname: str
    """The nickname as the room has it; if no occupant has it, as the caller wrote it."""
    room: str
    status: RoomStatus
    occupant: Occupant | None
    past: Past
    now: float
    answers: Sequence[Mapping[str, object]] = ()
    """The answers to our last message, the oldest first: `how`, `answerMs`, `body` and more."""
    ping: Ping | None = None
    """The result of a ping; None if the occupant is not in the room."""
    rooms: Sequence[str] = ()
    """Rooms of the service with similar names, looked up if the occupant is not in the room."""
    namesakes: Mapping[str, Ping] = {}
    """The results of pings to occupants who may be the same program, by nickname."""
    programs: Mapping[str, bool] = {}
    """Whether an occupant is a program, by nickname; occupants who do not say are left out."""
    bridges: frozenset[str] = frozenset()
    """The nicknames of other debug bridges. Their agents decide what these say."""
    placed: str = ""
    """A sentence if the nickname names a room, or is in another room of the bridge only."""
    named: bool = True
    """Whether the caller named the occupant. If not, others may have been asked to answer."""
    recorded: bool = False
    """Whether the store has what happened before the bridge came."""
    stream: Finding | None = None
    """What a capture of the occupant's own stream says; None if there is no capture."""
    aside_ms: float | None = None
    """Milliseconds after our message at which the occupant's account wrote to our own address,
    outside the room; None if it did not."""
    elsewhere: Record | None = None
    """What the occupant said in another room of the bridge at once after our last message, if
    nobody else had spoken there."""

    def pinged(self, pings: Mapping[str, Ping]) -> "Evidence":
        """Return the evidence with the results of pings, by nickname."""
        others = {name: it for name, it in pings.items() if name != self.nickname}
        return self._replace(ping=pings.get(self.nickname), namesakes=others)

    @property
    def place(self) -> Place:
        """The server, account and room of the bridge, as sentences about errors name them."""
        account, _, _ = (self.status.jid or "").partition("/")
        domain = account.rpartition("@")[2]
        return Place(self.status.service, domain, account, self.room, self.status.nickname)

    @property
    def since(self) -> str:
        """The end of a sentence that says since when the bridge watches; empty if unknown."""
        return "" if self.past.since is None else f", since {iso(self.past.since)}"

    @property
    def is_silent(self) -> bool:
        """Whether the occupant should have answered the bridge, and has not."""
        return self.past.heard is not None and self.named and not self.answers

    @property
    def signal(self) -> str:
        """The first signal that the occupant has sent since the bridge's message; empty if none."""
        payloads = (getattr(it.event, "payload", ()) for it in self.past.replies)
        signals = (name.split()[0] for names in payloads if is_signal(names) for name in names)
        return next(signals, "")

    @property
    def came_back(self) -> bool:
        """Whether the occupant left, and is there again."""
        left = (isinstance(move.event, events.OccupantLeft) for move in self.past.moves)
        return self.occupant is not None and any(left)

    @property
    def who(self) -> str:
        """The nickname, for a sentence."""
        return name_of(self.nickname)

    def is_theirs(self, record: Record) -> bool:
        """Whether the occupant did this, as far as the room shows who had the nickname."""
        is_under_it = record.sender == self.nickname and not record.is_own
        return is_under_it and record.number not in self.past.foreign

    def was_there(self, record: Record) -> bool:
        """Whether the occupant was in the room at the time of an event, as far as we saw."""
        moves = self.past.moves  # the newest first
        before = next((move for move in moves if move.number < record.number), None)
        first = before or (moves[-1] if moves else None)
        came = first is None or isinstance(first.event, events.OccupantJoined)
        return came if before or not moves else not came

    @property
    def muted(self) -> Record | None:
        """The event in which the occupant became a visitor, if nothing of it came since."""
        taken, spoken = self.past.silenced, self.past.spoken
        is_visitor = self.occupant is not None and self.occupant.role == "visitor"
        is_mute = taken is not None and not (spoken and spoken[0].number > taken.number)
        return taken if is_visitor and is_mute else None

    def could_answer(self, record: Record) -> bool:
        """Whether the occupant was in the room at the time of an event, and could be heard."""
        is_heard = self.muted is None or record.number < self.muted.number
        return is_heard and self.was_there(record)

    @property
    def acts(self) -> list[Record]:
        """The public acts of the occupant and of others, the oldest first.

        Stanzas that clients send by themselves are left out, and so are acts of others under the
        nickname.
        """
        others = (act for act in self.past.others if act.number not in self.past.foreign)
        parts = (list(islice(part, MAX_ACTS)) for part in (self.past.spoken, others))
        acts = merge(*map(reversed, parts), key=attrgetter("number"))
        return [act for act in acts if not is_signal(getattr(act.event, "payload", ()))]


def occupant_of(status: RoomStatus, nickname: str) -> Occupant | None:
    """Return the occupant with this nickname, which may be written as `visible` escapes it.

    The occupant may be a speaker whom the room does not list.
    """
    for occupant in status.everybody:
        if nickname in {occupant.nickname, occupant.visible_nickname}:
            return occupant
    return None


def is_signal(payload: object) -> bool:
    """Whether a message's payload has only `SIGNALS`."""
    names = payload if isinstance(payload, list | tuple) else ()
    spaces = {str(name).rpartition("(")[2].removesuffix(")") for name in names}
    return bool(spaces) and spaces <= SIGNALS


def how_said(message: events.MessageReceived) -> How | None:
    """Return how people get a message; None if it has only signals. They see reactions.

    A message that takes another back says nothing, whatever clients show that do not know of it.
    """
    if message.retracts:
        return None
    if message.encrypted:
        return "encrypted"
    if not searchable(message.body or "").strip() and not message.reactions:
        return None if is_signal(message.payload) or message.reactions is not None else "no-body"
    return "private" if message.type == "chat" else "public"


def list_of(nicknames: Sequence[str]) -> str:
    """Return several names for a sentence."""
    return ", ".join(map(name_of, nicknames))


def words_of(text: object) -> str:
    """Return the text of a message, quoted for a sentence."""
    return quoted(str(text), TEXT_CHARACTERS)


def disguise(body: str) -> str:
    """Return what makes a command another text than it seems, for a sentence; empty if nothing.

    We look at its beginning, where a command is.
    """
    # A joiner at the end may only seem hidden, because the next character is cut off.
    whole = body[:COMMAND_CHARACTERS].rstrip("".join(JOINERS))
    if visible(whole) != whole:
        return "hidden characters"
    odd = odd_letter(whole)
    return f"{quoted(odd)} ({named(odd)}) in place of the usual character" if odd else ""


def absent(evidence: Evidence) -> Finding:
    """Return the finding about an occupant who is not in the room, and cannot be examined."""
    return Finding(None, f"{evidence.who} is not there to be looked at.")
