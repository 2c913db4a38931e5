"""The state of one client's stream, as the rules read it. Pure, and within bounds.

`taking` says how each stanza changes the state. A rule sees the state before the stanza at hand is
taken in.
"""

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple, TypeAlias

from bridge.capture.finding import key_of_finding
from bridge.capture.stanza import MAX_TEXT, LogPlace, Stanza, outline
from bridge.newest import Newest
from bridge.wire.names import REPLACE, lower_bare
from bridge.wire.speech import ANSWER_SECONDS, is_command, is_named

PATIENCE_SECONDS = 10.0
"""A request counts as unanswered after so many seconds."""

PATIENCE_STANZAS = 5
"""In a log without times, a request counts as unanswered after so many further stanzas."""

PATIENCE = (
    f"before {PATIENCE_STANZAS} further stanzas came",
    f"within {PATIENCE_SECONDS:g} s",
)
"""The words for that wait, in a log without times and in one with times."""

MAX_ROOMS = 64
"""We follow at most so many rooms of a stream, and forget the oldest. A client has fewer."""

MAX_ROOMS_SHOWN = 8
"""We keep the names of at most so many rooms once the stream is over."""

MAX_MESSAGES = 64
"""We remember at most so many sent messages, and as many bodies that were answered."""

MIN_ANSWERS = 2
"""If a client has answered the same words so many times, it should answer them. For words such as
`!ping`, one answer is enough."""

MAX_WAITING = 64
"""We wait for the answers to at most so many requests, and forget the oldest."""


class RoomState(Enum):
    """How far the client is in a room."""

    ASKED = auto()
    """The client has asked to be let in."""
    INSIDE = auto()
    """The client's own presence has come back."""
    REFUSED = auto()
    """The room refused to let the client in."""
    REMOVED = auto()
    """The room put the client out."""
    LEFT = auto()
    """The client has left."""


@dataclass(eq=False, slots=True)
class Room:
    """A room as the client sees it."""

    jid: str
    nickname: str
    """The nickname that the room last confirmed, or else the one that the client asked for."""
    state: RoomState
    place: LogPlace
    """Where the client asked, or where the room refused it or put it out."""
    has_muc: bool = True
    """Whether the presence with which the client asked had the `muc` element."""
    former_nickname: str = ""
    """The nickname that the client asked for, if the room confirmed another one."""
    was_inside: bool = False
    """Whether the client was inside when it asked: some clients send the `muc` element with each
    presence."""
    had_conflict: bool = False
    """Whether the room refused a nickname because another occupant had it."""

    @property
    def is_taken(self) -> bool:
        """Whether the client has a seat in the room, or has asked for one."""
        return self.state in {RoomState.ASKED, RoomState.INSIDE}


Question: TypeAlias = tuple[str, str, str]
"""A stanza that has to be answered: its kind, its id, and the other side."""


class Awaited(NamedTuple):
    """A stanza that has to be answered."""

    stanza: Stanza
    number: int
    """How many stanzas had passed before it."""
    what: str
    """The words that name it: a message, or the tag of the request."""


class Heard(NamedTuple):
    """A received message."""

    room: str
    nickname: str
    body: str
    is_public: bool
    """Whether the whole room reads it, and not the client alone."""
    seconds: float | None
    number: int


@dataclass(eq=False, slots=True)
class Stream:
    """The state of one stream."""

    command: str = ""
    """The beginning of each message that should be answered; empty if the user did not give it."""
    nickname: str = ""
    """The nickname that the user gave; empty if the log has to show it."""
    account: str = ""
    """The full JID, or as much of it as is known."""
    first: Stanza | None = None
    """The first stanza. It, `last` and `last_sent` are kept as their `outline`."""
    last: Stanza | None = None
    last_sent: Stanza | None = None
    last_bad: Stanza | None = None
    """The latest stanza of the client that is no XML, if the log shows why."""
    count: int = 0
    """How many stanzas, in both directions, have passed."""
    is_complete: bool = False
    """Whether the log has the stream from its beginning, without a hole."""
    holes: int = 0
    """How many stanzas, of this stream or between its own, the log has only in part."""
    headers: int = 0
    """How many headers, of both sides, have passed."""
    has_own_header: bool = False
    """Whether the log has the client's headers, and so the ends of its streams, too."""
    tried_login: bool = False
    offers_tls: bool = False
    requires_tls: bool = False
    began_tls: bool = False
    mechanisms: tuple[str, ...] = ()
    mechanism: str = ""
    """The SASL mechanism under way; empty before and after."""
    binding_flag: str = ""
    """The GS2 flag that the client sent: `n`, `y` or `p` (RFC 5802, section 7)."""
    challenged: bool = False
    authenticated: bool = False
    bound: bool = False
    """Whether the client has a resource: a new one, or the resource of the session that it
    resumed."""
    resumption_id: str = ""
    """The id with which the client can resume the session (XEP-0198, section 5)."""
    ended: bool = False
    """Whether the server or the client has ended the stream."""
    restarting: bool = False
    """Whether the next header continues the stream, after TLS or SASL (RFC 6120, 4.3.3)."""
    rooms: Newest[str, Room] = field(default_factory=lambda: Newest(MAX_ROOMS))
    messages: Newest[str, Stanza] = field(default_factory=lambda: Newest(MAX_MESSAGES))
    """The newest messages that the client sent, by id, each as its `outline`."""
    waiting: Newest[Question, Awaited] = field(default_factory=lambda: Newest(MAX_WAITING))
    """The stanzas that have to be answered, oldest first."""
    overdue: Newest[Question, Awaited] = field(default_factory=lambda: Newest(MAX_WAITING))
    """The stanzas that were not answered in time, and still may be."""
    disproved: list[str] = field(default_factory=list)
    """The keys of the findings that the latest stanza shows to be wrong."""
    early_answer: tuple[Question, int] = ("", "", ""), 0
    """The latest answer without a waiting request, and how many stanzas had passed. Some libraries
    log an answer before its request, since they log a request only once it is written."""
    answered: Newest[str, int] = field(default_factory=lambda: Newest(MAX_MESSAGES))
    """How often the client answered a message, by its `key_of`. Removed once the client ignores the
    same words: the earlier answer was probably chance."""
    heard: Heard | None = None
    """The latest live message of another occupant that the client has not answered yet."""
    reflection: Heard | None = None
    """The client's own message as the room passed it on, if no occupant has spoken after it."""
    self_answers: int = 0
    """How many times in a row the client at once repeated its own reflected message."""
    history: Heard | None = None
    """The latest message of the history that should have been answered when it was new. None once
    an occupant has spoken after the client joined."""
    turns: int = 0
    """How many messages the client and `heard.nickname` have said in turns, each at once."""
    partner: str = ""
    """The nickname of the occupant who says every other message."""
    said: Heard | None = None
    """The latest message that the client sent to a room."""

    @property
    def domain(self) -> str:
        """The domain of the account; empty if that is not known."""
        return lower_bare(self.account).partition("@")[2]

    def room(self, jid: str) -> Room | None:
        """Return the room of a JID, if the client asked to be let into it."""
        return self.rooms.get(lower_bare(jid))

    def is_own(self, from_: str) -> bool:
        """Whether this is the client's own occupant JID."""
        room = self.room(from_)
        return room is not None and from_.partition("/")[2] == room.nickname

    def names_it(self, body: str, room: str) -> bool:
        """Whether the client should answer a message: it is a command, or names the client."""
        if self.command:
            return body.startswith(self.command)
        known = self.rooms.get(room)
        name = self.nickname or (known.nickname if known else "")
        # Quoted lines were said before (XEP-0461, section 3).
        if is_named(name, "\n".join(line for line in body.split("\n") if line[:1] != ">")):
            return True
        return self.answered.get(key_of(body), 0) >= (1 if is_command(body) else MIN_ANSWERS)

    def repeats(self, body: str) -> bool:
        """Whether a message has the same words as the message before it."""
        return self.said is not None and self.said.body == body[:MAX_TEXT]

    def answers_itself(self, stanza: Stanza) -> bool:
        """Whether the client's message repeats its own message that has just come back."""
        reflection, body = self.reflection, stanza.element.findtext("body") or ""
        return (
            reflection is not None
            and reflection.body in body
            and stanza.element.find(REPLACE) is None
            and self.is_prompt(reflection, stanza)
        )

    def is_prompt(self, before: Heard, stanza: Stanza) -> bool:
        """Whether `stanza` came soon after the message `before`."""
        if stanza.seconds is not None and before.seconds is not None:
            return 0 <= stanza.seconds - before.seconds <= ANSWER_SECONDS
        return self.count - before.number <= PATIENCE_STANZAS // 2

    def expired(self, stanza: Stanza) -> list[tuple[str, Awaited]]:
        """Take out what was not answered in time before `stanza`; return it with its kind."""
        late = []
        while self.waiting:
            key, waiting = next(iter(self.waiting.items()))
            if stanza.seconds is not None and waiting.stanza.seconds is not None:
                if stanza.seconds - waiting.stanza.seconds < PATIENCE_SECONDS:
                    break
            elif self.count - waiting.number < PATIENCE_STANZAS:
                break
            del self.waiting[key]
            late.append((key[0], waiting))
            self.overdue.add(key, waiting)
        return late

    def wait(self, kind: str, id_: str, other: str, stanza: Stanza, what: str) -> None:
        """Expect an answer, unless the log has it just before the request."""
        key = kind, id_[:MAX_TEXT], other[:MAX_TEXT]
        answered, number = self.early_answer
        if answered == key and self.count - number <= PATIENCE_STANZAS:
            return
        self.waiting.add(key, Awaited(outline(stanza), self.count, what[:MAX_TEXT]))

    def answer(self, kind: str, id_: str, other: str) -> None:
        """Note that the answer has come."""
        key = kind, id_[:MAX_TEXT], other[:MAX_TEXT]
        if late := self.overdue.pop(key, None):
            if id_:
                self.disproved.append(key_of_finding(kind, late.what, ""))
        elif self.waiting.pop(key, None) is None and id_:
            # Acknowledgements have no id, and may come unasked.
            self.early_answer = key, self.count

    def react(self) -> None:
        """Note that the client did something that may answer the message that it heard."""
        for key in [key for key in self.waiting if key[0] == "silent"]:
            del self.waiting[key]

    def forget_talk(self) -> None:
        """Forget the talk so far: later messages answer none of it, and continue no turns."""
        self.heard = self.reflection = self.history = self.said = None
        self.turns = 0

    def forget(self) -> None:
        """Forget the fields that only rules need, since no further stanza comes."""
        self.messages.clear()
        self.waiting.clear()
        self.overdue.clear()
        self.answered.clear()
        self.forget_talk()
        while len(self.rooms) > MAX_ROOMS_SHOWN:
            self.rooms.popitem()

    def other_side(self, jid: str | None) -> str:
        """Return the address that is asked or answers; empty for the client's own server."""
        jid = (jid or "").lower()
        account = lower_bare(self.account)
        return "" if jid in {account, self.account.lower(), self.domain} else jid


def key_of(body: str) -> str:
    """Return the part of a body by which we compare messages."""
    return body[:MAX_TEXT].casefold()
