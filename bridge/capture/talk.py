"""What a client hears and says in its rooms, and what answers what. State and rules. Pure."""

from collections.abc import Iterator
from typing import NamedTuple
from xml.etree.ElementTree import Element

from bridge.capture.causes import cause
from bridge.capture.client import Entity
from bridge.capture.finding import Disproof, Finding, Outcome, key_of_finding
from bridge.capture.rooms import Rooms
from bridge.capture.stanza import MAX_TEXT, QUOTED, Stanza, spaces_of
from bridge.capture.waiting import PATIENCE_STANZAS, AwaitedStanzas
from bridge.newest import Newest
from bridge.text import quoted
from bridge.wire import names
from bridge.wire.meaning import ENCRYPTIONS, SIGNALS
from bridge.wire.speech import (
    ANSWER_SECONDS,
    LOOP_MESSAGES,
    SELF_ANSWERS,
    is_command,
    is_named,
)

PROMPT_STANZAS = PATIENCE_STANZAS // 2 + 1
"""In a log without times, an answer is prompt among so many stanzas after the message."""

MAX_ANSWERED = 64
"""We remember at most so many bodies that were answered."""

MIN_ANSWERS = 2
"""If a client has answered the same words so many times, it should answer them. For words such as
`!ping`, one answer is enough."""

BODILESS = SIGNALS | {
    names.MUC_USER,
    "jabber:x:conference",
    names.DATA_FORMS,  # such as the request for voice (XEP-0045, section 7.13)
    names.REACTIONS,
    names.RETRACT,
    names.FASTEN,
}
"""With a payload in one of these namespaces, a message needs no body."""


class Heard(NamedTuple):
    """A message that was received or sent."""

    room: str
    nickname: str
    body: str
    is_public: bool
    """Whether the whole room reads it, and not the client alone."""
    seconds: float | None
    number: int
    """How many stanzas had passed, with this one."""


class Talk:
    """What was said in the rooms of one stream."""

    def __init__(self, command: str = "", nickname: str = "") -> None:
        self._command = command
        """The beginning of each message that should be answered; empty if the user gave none."""
        self._nickname = nickname
        """The nickname that the user gave; empty if the log has to show it."""
        self.waiting = AwaitedStanzas()
        """The messages that have to be answered."""
        self.answered = Newest[str, int](MAX_ANSWERED)
        """How often the client answered a message, by its `key_of`. Removed once the client ignores
        the same words: the earlier answer was probably chance."""
        self.heard: Heard | None = None
        """The latest live message of another occupant that the client has not answered yet."""
        self.reflection: Heard | None = None
        """The client's own message as the room passed it on, if no occupant spoke after it."""
        self.self_answers = 0
        """How many times in a row the client at once repeated its own reflected message."""
        self.history: Heard | None = None
        """The latest message of the history that should have been answered when it was new. None
        once an occupant has spoken after the client joined."""
        self.turns = 0
        """How many messages the client and `heard.nickname` have said in turns, each at once."""
        self.partner = ""
        """The nickname of the occupant who says every other message."""
        self.said: Heard | None = None
        """The latest message that the client sent to a room."""

    def take(self, client: Entity, rooms: Rooms, stanza: Stanza) -> Iterator[Outcome]:
        """Take a stanza, and yield what it shows to be wrong."""
        element = stanza.element
        if element.tag != "message":
            if stanza.sent and _acts(rooms, element):
                self.react()
            return
        if stanza.sent:
            yield from misplaced(self, client, rooms, stanza)
            yield from looped(self, client, stanza)
            yield from former_name(self, client, rooms, stanza)
        if element.get("type") == "error":
            return
        body, from_ = element.findtext("body") or "", element.get("from", "")[:MAX_TEXT]
        message = Heard(
            names.lower_bare(element.get("to", "")[:MAX_TEXT] if stanza.sent else from_),
            from_.partition("/")[2],
            body[:MAX_TEXT],
            element.get("type") == "groupchat",
            stanza.seconds,
            client.count,
        )
        if stanza.sent:
            yield from self._take_sent(client, stanza, message)
        elif body:
            self._take_received(client, rooms, stanza, message)

    def late(self, stanza: Stanza, count: int) -> Iterator[Finding]:
        """Find the messages that were not answered in time."""
        for kind, awaited in self.waiting.expired(stanza, count):
            heard = awaited.stanza
            about = heard.element.get("from", "")
            words = {"what": quoted(awaited.what, QUOTED), "within": awaited.patience(stanza)}
            yield cause(kind, heard.place, about=about, **words)

    def react(self) -> None:
        """Note that the client did something that may answer the message that it heard."""
        self.waiting.open.clear()

    def lose(self) -> None:
        """Allow for a hole in the log, or for words that may be another client's.

        Later messages answer nothing that came before, and continue no turns.
        """
        self.waiting.open.clear()
        self.heard = self.reflection = self.history = self.said = None
        self.turns = 0

    def forget(self) -> None:
        """Forget everything, since no further stanza comes."""
        self.lose()
        self.waiting.clear()
        self.answered.clear()

    def should_answer(self, rooms: Rooms, body: str, room: str) -> bool:
        """Whether the client should answer a message: it is a command, or names the client."""
        if self._command:
            return body.startswith(self._command)
        known = rooms.at(room)
        name = self._nickname or (known.nickname if known else "")
        # Quoted lines were said before (XEP-0461, section 3).
        if is_named(name, "\n".join(line for line in body.split("\n") if line[:1] != ">")):
            return True
        return self.answered.get(key_of(body), 0) >= (1 if is_command(body) else MIN_ANSWERS)

    def answers_itself(self, client: Entity, stanza: Stanza) -> bool:
        """Whether the client's message repeats its own message that has just come back."""
        reflection, body = self.reflection, stanza.element.findtext("body") or ""
        return (
            reflection is not None
            and reflection.body in body
            and stanza.element.find(names.REPLACE) is None
            and is_prompt(reflection, client, stanza)
        )

    def _take_received(self, client: Entity, rooms: Rooms, stanza: Stanza, message: Heard) -> None:
        element, body = stanza.element, stanza.element.findtext("body") or ""
        nickname = message.nickname
        is_own = not nickname or rooms.is_own(element.get("from", ""))
        should_answer = self.should_answer(rooms, body, message.room)
        if names.is_stamped(element):
            if not is_own and should_answer:
                self.history = message
            return
        if message.is_public and is_own:
            self.reflection = message if nickname else None
            return
        self.reflection = self.history = None
        self.self_answers = 0
        is_turn = self._is_turn(client, stanza, body)
        self.turns = self.turns + 1 if is_turn and nickname == self.partner else 1
        self.partner = nickname
        if self.heard is not None:
            self.answered.pop(key_of(self.heard.body), None)
        self.heard = message
        if element.find(names.REPLACE) is None and self.should_answer(rooms, body, message.room):
            key = "silent", str(client.count), message.room
            self.waiting.add(key, stanza, client.count, body)

    def _is_turn(self, client: Entity, stanza: Stanza, body: str) -> bool:
        """Whether this answers the client so soon that it is probably a program's answer.

        A command counts as a person's, who gives it again. In a log without times, the message has
        to repeat the client's words, since a person may be alone with the client.
        """
        said = self.said
        if said is None or is_command(body) or not is_prompt(said, client, stanza):
            return False
        return stanza.seconds is not None or (said.body != "" and said.body in body)

    def _take_sent(self, client: Entity, stanza: Stanza, message: Heard) -> Iterator[Disproof]:
        element = stanza.element
        if message.body or spaces_of(element).isdisjoint(SIGNALS):  # signals answer nothing
            self.react()
        if not message.body and not spaces_of(element) & ENCRYPTIONS.keys():
            return
        heard = self.heard
        yield from self._take_late_answer(message)
        self.self_answers = self.self_answers + 1 if self.answers_itself(client, stanza) else 0
        self.turns += 1
        if heard is not None and is_prompt(heard, client, stanza):
            if message.room == heard.room and message.is_public == heard.is_public:
                words = key_of(heard.body)
                self.answered.add(words, self.answered.get(words, 0) + 1)
        else:
            self.turns = 0
        self.said, self.heard = message, None

    def _take_late_answer(self, message: Heard) -> Iterator[Disproof]:
        """Note that a message was answered, in a log without times, which hides how late."""
        for key, late in [*self.waiting.overdue.items()]:
            asker = late.stanza.element.get("from", "")
            if message.room == names.lower_bare(asker) and late.stanza.seconds is None:
                is_next = self.heard is not None and str(self.heard.number) == key[1]
                if is_next or is_named(asker.partition("/")[2], message.body):
                    del self.waiting.overdue[key]
                    yield Disproof(key_of_finding("silent", "", message.room))


def key_of(body: str) -> str:
    """Return the part of a body by which we compare messages."""
    return body[:MAX_TEXT].casefold()


def is_prompt(before: Heard, client: Entity, stanza: Stanza) -> bool:
    """Whether `stanza` came soon after the message `before`."""
    if stanza.seconds is not None and before.seconds is not None:
        return 0 <= stanza.seconds - before.seconds <= ANSWER_SECONDS
    return client.count - before.number <= PROMPT_STANZAS


def misplaced(talk: Talk, client: Entity, rooms: Rooms, stanza: Stanza) -> Iterator[Finding]:
    """Find answers that the client sent where the room does not read them, and errors to a room."""
    element, heard = stanza.element, talk.heard
    jid, _, nickname = element.get("to", "").partition("/")
    jid = names.lower_bare(jid)
    if element.get("type") == "error":
        if rooms.at(jid) and not nickname:
            yield cause("error-to-room", stanza.place, about=jid, room=quoted(jid))
        return
    if heard is None or not rooms.at(heard.room) or not heard.is_public:
        return
    if not is_prompt(heard, client, stanza):
        return
    if not _has_content(element) or not talk.should_answer(rooms, heard.body, heard.room):
        return
    is_public = element.get("type") == "groupchat"
    name = ""
    if jid != heard.room:
        is_relayed = heard.body in (element.findtext("body") or "")
        name = "elsewhere" if rooms.at(jid) and is_public and not is_relayed else ""
    elif spaces_of(element) & ENCRYPTIONS.keys():
        name = "encrypted"
    elif not is_public:
        name = "private"
    elif not element.findtext("body"):
        name = "bodiless"
    if name:
        words = {"what": quoted(heard.body, QUOTED), "room": quoted(heard.room)}
        yield cause(name, stanza.place, about=jid, other=quoted(jid), **words)


def looped(talk: Talk, client: Entity, stanza: Stanza) -> Iterator[Finding]:
    """Find that the client answers itself, the history, or another program."""
    element = stanza.element
    body = element.findtext("body") or ""
    if element.get("type") != "groupchat" or not body:
        return
    jid = names.lower_bare(element.get("to", ""))
    name, what, other = "", "", ""
    if (reflection := talk.reflection) and is_prompt(reflection, client, stanza):
        repeats = talk.self_answers + 1 if talk.answers_itself(client, stanza) else 0
        name = "answers-itself" if repeats >= SELF_ANSWERS else ""
    elif (history := talk.history) and is_prompt(history, client, stanza):
        # A client that enters may greet, in several messages.
        repeats_itself = talk.said is not None and talk.said.body == body[:MAX_TEXT]
        is_answer = is_named(history.nickname, body) or repeats_itself
        name, what = ("answers-history" if is_answer else ""), history.body
    elif (heard := talk.heard) and is_prompt(heard, client, stanza):
        name = "loop" if talk.turns + 1 >= LOOP_MESSAGES else ""
        other = heard.nickname
    if name:
        words = {"what": quoted(what, QUOTED), "other": quoted(other), "room": quoted(jid)}
        yield cause(name, stanza.place, about=jid, count=LOOP_MESSAGES, **words)


def former_name(talk: Talk, client: Entity, rooms: Rooms, stanza: Stanza) -> Iterator[Finding]:
    """Find that the client answers to a nickname that it does not have in the room."""
    element, heard = stanza.element, talk.heard
    room = rooms.at(element.get("to", ""))
    if room is None or not room.is_inside or not room.former_nickname:
        return
    if element.get("type") != "groupchat" or not heard or not is_prompt(heard, client, stanza):
        return
    former, nickname = room.former_nickname, room.nickname
    if is_named(former, heard.body) and not is_named(nickname, heard.body):
        words = {"former": quoted(former), "nickname": quoted(nickname)}
        yield cause("old-name", stanza.place, about=room.jid, room=quoted(room.jid), **words)


def _has_content(message: Element) -> bool:
    """Whether a message has content, or should: it is no mere marker, receipt or the like."""
    if message.find("subject") is not None:
        return False
    spaces = spaces_of(message)
    return bool(message.findtext("body")) or spaces.isdisjoint(BODILESS)


def _acts(rooms: Rooms, element: Element) -> bool:
    """Whether a presence or a request of the client is for one of its rooms."""
    to = element.get("to", "")
    if element.tag == "presence":
        jid, _, nickname = to[:MAX_TEXT].partition("/")
        return rooms.at(jid) is not None or bool(nickname and "@" in jid)
    return element.tag == "iq" and element.get("type") == "set" and rooms.at(to) is not None
