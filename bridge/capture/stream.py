"""The state of one client's stream, as the rules read it. Pure, and within bounds.

`taking` says how each stanza changes it. A rule sees it before the stanza at hand was taken in.
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
"""The time after which a request counts as not answered."""

PATIENCE_STANZAS = 5
"""In a log without times, the number of further stanzas after which it does."""

PATIENCE = (
    f"before {PATIENCE_STANZAS} further stanzas came",
    f"within {PATIENCE_SECONDS:g} s",
)
"""The words for that time, without times and with them."""

MAX_ROOMS = 64
"""The most rooms of a stream that are followed; a client has fewer. The oldest is forgotten."""

MAX_ROOMS_SHOWN = 8
"""The most rooms whose names are kept once the stream is over."""

MAX_MESSAGES = 64
"""The most sent messages, and bodies that were answered, that are remembered."""

MIN_ANSWERS = 2
"""After so many answers to the same words, these words should be answered. Of words such as `!ping`
one answer is enough."""

MAX_WAITING = 64
"""The most requests whose answers are waited for; the oldest is forgotten."""


class RoomState(Enum):
    """How far the client is in a room."""

    ASKED = auto()
    """It has asked to be let in."""
    INSIDE = auto()
    """The client's own presence has come back."""
    REFUSED = auto()
    """The room refused to let it in."""
    REMOVED = auto()
    """The room put it out."""
    LEFT = auto()
    """It has left."""


@dataclass(eq=False, slots=True)
class Room:
    """A room as the client has it."""

    jid: str
    nickname: str
    """The nickname that the room last confirmed, or else the one that was asked for."""
    state: RoomState
    place: LogPlace
    """Where the client asked, or was refused or put out."""
    has_muc: bool = True
    """Whether the presence with which it asked had the `muc` element."""
    former_nickname: str = ""
    """The nickname that was asked for, if the room confirmed another one."""
    was_inside: bool = False
    """Whether it was inside when it asked: some send the `muc` element with each presence."""
    had_conflict: bool = False
    """Whether a nickname was refused since it was taken."""

    @property
    def is_taken(self) -> bool:
        """Whether the client has a seat in it, or has asked for one."""
        return self.state in {RoomState.ASKED, RoomState.INSIDE}


Question: TypeAlias = tuple[str, str, str]
"""What has to be answered: its kind, its id, and the other side."""


class Awaited(NamedTuple):
    """Something that has to be answered."""

    stanza: Stanza
    number: int
    """How many stanzas had passed."""
    what: str
    """What names it: a message, or the tag of what is asked."""


class Heard(NamedTuple):
    """A message that was received."""

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
    """What begins each message that should be answered; empty if the user did not say."""
    nickname: str = ""
    """The nickname that the user names; empty if the log has to tell."""
    account: str = ""
    """The full JID, or as much of it as is known."""
    first: Stanza | None = None
    """The first stanza. It, `last` and `last_sent` are kept as their `outline`."""
    last: Stanza | None = None
    last_sent: Stanza | None = None
    last_bad: Stanza | None = None
    """The latest that the client sent and that is no XML, if the log shows why."""
    count: int = 0
    """How many stanzas, in both directions, have passed."""
    is_complete: bool = False
    """Whether the log has the stream from its beginning, without a hole."""
    holes: int = 0
    """The number of stanzas that the log has only in part, of this stream or between its own."""
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
    """Whether the client has a resource, a new one or that of the session that it resumed."""
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
    """What has to be answered, oldest first."""
    overdue: Newest[Question, Awaited] = field(default_factory=lambda: Newest(MAX_WAITING))
    """What was not answered in time, and still may be."""
    disproved: list[str] = field(default_factory=list)
    """The keys of the findings of which the latest stanza shows that they were wrong."""
    early_answer: tuple[Question, int] = ("", "", ""), 0
    """The latest answer to nothing that waited, and how many stanzas had passed: some libraries log
    an answer before its request, since they log what they sent once it is written."""
    answered: Newest[str, int] = field(default_factory=lambda: Newest(MAX_MESSAGES))
    """How often the client answered a message, by its `key_of`. Words that it once passed over are
    taken out: a client that speaks unasked seems to answer whatever was said just before."""
    heard: Heard | None = None
    """The latest live message of somebody else that the client has not answered yet."""
    reflection: Heard | None = None
    """The client's own message as the room passed it on, if nobody has spoken after it."""
    self_answers: int = 0
    """How many times in a row the client repeated its reflection at once."""
    history: Heard | None = None
    """The latest message of the history that should have been answered when it was new, as long as
    nobody has spoken after the client joined."""
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
        """Whether a message should be answered: a command, or one that names the client."""
        if self.command:
            return body.startswith(self.command)
        known = self.rooms.get(room)
        name = self.nickname or (known.nickname if known else "")
        # What is quoted was said before (XEP-0461, section 3).
        if is_named(name, "\n".join(line for line in body.split("\n") if line[:1] != ">")):
            return True
        return self.answered.get(key_of(body), 0) >= (1 if is_command(body) else MIN_ANSWERS)

    def repeats(self, body: str) -> bool:
        """Whether a message has the same words as the one before it."""
        return self.said is not None and self.said.body == body[:MAX_TEXT]

    def answers_itself(self, stanza: Stanza) -> bool:
        """Whether a message that is sent repeats the client's own, which has just come back."""
        reflection, body = self.reflection, stanza.element.findtext("body") or ""
        return (
            reflection is not None
            and reflection.body in body
            and stanza.element.find(REPLACE) is None
            and self.is_prompt(reflection, stanza)
        )

    def is_prompt(self, before: Heard, stanza: Stanza) -> bool:
        """Whether `stanza` came soon after what was heard."""
        if stanza.seconds is not None and before.seconds is not None:
            return 0 <= stanza.seconds - before.seconds <= ANSWER_SECONDS
        return self.count - before.number <= PATIENCE_STANZAS // 2

    def expired(self, stanza: Stanza) -> list[tuple[str, Awaited]]:
        """Take out, and return with its kind, what was not answered in time before `stanza`."""
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
        """Note that the client did something that may answer what it heard."""
        for key in [key for key in self.waiting if key[0] == "silent"]:
            del self.waiting[key]

    def forget_talk(self) -> None:
        """Forget what was said: what comes next answers none of it, and continues no turns."""
        self.heard = self.reflection = self.history = self.said = None
        self.turns = 0

    def forget(self) -> None:
        """Forget what only rules need: no further stanza comes."""
        self.messages.clear()
        self.waiting.clear()
        self.overdue.clear()
        self.answered.clear()
        self.forget_talk()
        while len(self.rooms) > MAX_ROOMS_SHOWN:
            self.rooms.popitem()

    def other_side(self, jid: str | None) -> str:
        """Return who is asked or answers; empty for the client's own server."""
        jid = (jid or "").lower()
        account = lower_bare(self.account)
        return "" if jid in {account, self.account.lower(), self.domain} else jid


def key_of(body: str) -> str:
    """Return the part of a body by which messages are compared."""
    return body[:MAX_TEXT].casefold()
