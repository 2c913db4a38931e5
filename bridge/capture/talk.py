"""What a client hears and says in its rooms, and what answers what. State and rules. Pure."""

import re
from collections import deque
from collections.abc import Iterator
from enum import Enum, auto
from typing import NamedTuple
from xml.etree.ElementTree import Element

from bridge.capture.causes import cause
from bridge.capture.client import Entity
from bridge.capture.finding import Disproof, Finding, Outcome, key_of_finding
from bridge.capture.rooms import Rooms
from bridge.capture.stanza import MAX_TEXT, QUOTED, LogPlace, Stanza, spaces_of
from bridge.capture.waiting import PATIENCE_STANZAS, AwaitedStanzas
from bridge.newest import Newest
from bridge.text import counted, one_line, quoted, searchable
from bridge.wire import names, speech
from bridge.wire.meaning import ENCRYPTIONS, SIGNALS

PROMPT_STANZAS = PATIENCE_STANZAS // 2 + 1
"""In a log without times, an answer is prompt among so many stanzas after the message."""

MAX_ANSWERED = 64
"""We remember at most so many bodies that were answered."""

MIN_ANSWERS = 2
"""If a client has answered the same words so many times, it should answer them. For words such as
`!ping`, one answer is enough."""

MIN_LEFT = 2
"""A client that has answered before may pass over fewer: a command may be for another program."""

MAX_HISTORY = 8
"""We remember at most so many messages of the history that ask for an answer."""

MAX_TURNS = 2 * speech.MAX_CIRCLE * speech.LOOP_ROUNDS
"""We look for a loop in so many messages. A program may say several in its turn."""

MIN_ARGUMENTS = 8
"""Characters of the arguments of a command that do not come back by chance."""

BODILESS = SIGNALS | {
    names.MUC_USER,
    "jabber:x:conference",
    names.DATA_FORMS,  # such as the request for voice (XEP-0045, section 7.13)
    names.REACTIONS,
    names.RETRACT,
    names.FASTEN,
}
"""With a payload in one of these namespaces, a message needs no body."""


class Claim(Enum):
    """How much a message asks the client for an answer."""

    NONE = auto()
    COMMAND = auto()
    """It is a command, which may be for another program."""
    MENTION = auto()
    """It names the client somewhere."""
    QUESTION = auto()
    """It is put to the client, or the client has answered the same words before."""


WHISPER = "whisper"
"""The key of findings that a command was answered in private."""

_ARCHIVED = f"{{{names.MAM}}}result/{{urn:xmpp:forward:0}}forwarded/{{*}}message"

_DIGITS = re.compile(r"\d+")

_SILENCE = {Claim.QUESTION: "silent", Claim.MENTION: "mentioned"}
"""The cause if such a message is not answered."""


class Heard(NamedTuple):
    """A message that was received or sent."""

    room: str
    """The other side's bare JID."""
    nickname: str
    """The other side's resource."""
    body: str
    is_public: bool
    """Whether the whole room reads it, and not the client alone."""
    seconds: float | None
    number: int
    """How many stanzas had passed, with this one."""
    place: LogPlace
    claim: Claim = Claim.NONE


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
        """How often the client answered a message, by its `key_of`, since it last ignored it."""
        self.heard: Heard | None = None
        """The latest live message of another occupant that the client has not answered yet."""
        self.reflection: Heard | None = None
        """The client's own message as the room passed it on, if no occupant spoke after it."""
        self.self_answers = 0
        """How many times in a row the client at once repeated its own reflected message."""
        self.history: list[Heard] = []
        """The latest messages of the history that should have been answered when they were new.
        Empty once an occupant has spoken after the client joined."""
        self.echoes = 0
        """How many messages had the arguments of commands of the history."""
        self.guess: tuple[str, Finding] | None = None
        """A command of the history with what the client said after it, as `_exchange` joins them,
        and the finding to yield once that proves to be an answer."""
        self.is_crowded = False
        """Whether messages came in quick succession, so that an answer may be to any of them."""
        self.failed: Disproof | None = None
        """The disproof of the finding that the program failed on `heard`: an answer yields it."""
        self.answering = ""
        """The nickname of the occupant whom the client answered last."""
        self.answers_in_public = False
        """Whether the client has answered a command in public. Then it is no fault that it answers
        others in private: it does so on purpose."""
        self.asides = Newest[str, int](MAX_ANSWERED)
        """How often the client answered the same words outside the room, by place and `key_of`."""
        self.encrypts = False
        """Whether the client has shown that it encrypts."""
        self.accounts = Newest[str, str](MAX_ANSWERED)
        """The bare JIDs of occupants, where the room shows them, by the occupant JID."""
        self.turns = deque[speech.Utterance](maxlen=MAX_TURNS)
        """The latest live messages in `said.room`, in which programs may answer each other."""
        self.repeats = False
        """Whether the client's latest two messages are alike but for numbers."""
        self.astray = Newest[str, str](MAX_ANSWERED)
        """The type and address of what the client sent in place of an answer to the room, by the
        number of the message that it had just heard."""
        self.asked = 0
        """How many live messages named the client or were commands, since it last did anything."""
        self.asked_at: LogPlace | None = None
        """Where the first of them is."""
        self.has_answered = False
        """Whether the client has said or done anything in a room after such a message."""
        self.said: Heard | None = None
        """The latest message that the client sent to a room."""

    def take(self, client: Entity, rooms: Rooms, stanza: Stanza) -> Iterator[Outcome]:
        """Take a stanza, and yield what it shows to be wrong."""
        element = stanza.element
        if element.tag != "message":
            if stanza.sent and _acts(rooms, element):
                self.react()
            elif element.tag == "presence" and not stanza.sent:
                self._take_presence(element)
            return
        other = element.get("to" if stanza.sent else "from", "")[:MAX_TEXT]
        is_room = not stanza.sent and "/" not in other and rooms.at(other) is not None
        archived = element.find(_ARCHIVED) if is_room else None  # (XEP-0313, 6.1.2)
        body = element.findtext("body") or ""
        if archived is not None:
            other = f"{other}/{archived.get('from', '').partition('/')[2]}"
            body = archived.findtext("{*}body") or ""
        jid, _, nickname = other.partition("/")
        room = jid.lower()
        message = Heard(
            room,
            nickname,
            body[:MAX_TEXT],
            element.get("type") == "groupchat",
            stanza.seconds,
            client.count,
            stanza.place,
            Claim.NONE if stanza.sent else self.claim_of(rooms, body, room),
        )
        aside = list[Finding]()
        if stanza.sent:
            aside = [*misplaced(self, client, rooms, message, element)]
            yield from aside
            yield from looped(self, rooms, message, element)
            yield from former_name(self, rooms, message)
        if element.get("type") == "error":
            if stanza.sent or (rooms.at(room) and not nickname):  # the room refused the answer
                self.react()
        elif stanza.sent:
            is_astray = not aside and _is_astray(rooms, message)
            yield from self._take_sent(rooms, message, element, is_astray=is_astray)
        elif archived is not None:
            if nickname and message.claim is not Claim.NONE:
                self.history = [*self.history, message][-MAX_HISTORY:]
        else:
            yield from unreadable(self, rooms, message, element)
            if message.body:
                self._take_received(rooms, message, stanza)

    def just_heard(self, message: Heard) -> Heard | None:
        """Return what the client heard just before it sent a message, if it did."""
        return self.heard if self.heard and is_prompt(self.heard, message) else None

    def late(self, client: Entity, stanza: Stanza, count: int) -> Iterator[Finding]:
        """Find the messages that were not answered in time."""
        for kind, awaited in self.waiting.expired(stanza, count) if client.has_sent else ():
            about = awaited.stanza.element.get("from", "")
            words = {"what": quoted(awaited.what, QUOTED), "within": awaited.patience(stanza)}
            if kind == "silent" and (other := self.astray.get(str(awaited.number))):
                kind, words["other"] = "astray", other
                words["room"] = quoted(names.lower_bare(about))
            yield cause(kind, awaited.stanza.place, about=about, **words)

    def fail(self, client: Entity, failure: Stanza) -> Iterator[Finding]:
        """Find that the program failed on the message at hand; an answer takes that back."""
        heard = self.heard
        if heard is None or heard.claim is Claim.NONE:
            return
        if not is_prompt(heard, heard._replace(seconds=failure.seconds, number=client.count)):
            return
        for key in [key for key in self.waiting.open if key[1] == str(heard.number)]:
            del self.waiting.open[key]
        sentence = failure.element.text or ""
        words = {"what": quoted(heard.body, QUOTED), "failure": sentence}
        finding = cause("raised", heard.place, sentence, about=heard.room, **words)
        self.failed = Disproof(finding.key)
        yield finding

    def exited(self, client: Entity, end: Stanza) -> Finding:
        """Find that the program ended by a fault, on the message at hand if there is one."""
        at_hand = [it.what for it in self.waiting.open.values()]
        heard = self.heard
        if heard and is_prompt(heard, heard._replace(seconds=end.seconds, number=client.count)):
            at_hand = at_hand or [heard.body]
        said = quoted(at_hand[-1], QUOTED) if at_hand else ""
        before = f" It had not answered the message {said}." if said else ""
        return cause(
            "exited", end.place, how=one_line(end.element.text or "", QUOTED), before=before
        )

    def conclusion(self) -> Iterator[Finding]:
        """Note that the client answered nothing of what it may have been asked last.

        Given a command, note that the log ends too soon to tell what answers it.
        """
        left = [it.stanza.place for it in self.waiting.open.values()] if self._command else []
        asked, at = (len(left), left[0]) if left else (self.asked, self.asked_at)
        least = MIN_LEFT if self.has_answered else 1
        if at is not None and (left or (asked >= least and not self._command)):
            none = "did not answer", "answered none"
            were = f"{'was a command' if asked == 1 else 'were commands'}, and it {none[asked > 1]}"
            were += "".join(f", but sent a message {it}" for it in [*self.astray.values()][-1:])
            since = " since it last spoke" if self.has_answered and not left else ""
            yield cause("unheard", at, messages=f"{counted(asked, 'message')}{since}", were=were)

    def react(self) -> None:
        """Note that the client did something that may answer the message that it heard."""
        self.has_answered = self.has_answered or self.asked > 0
        self.asked, self.asked_at = 0, None
        self.waiting.open.clear()
        self.astray.clear()

    def lose(self) -> None:
        """Allow for a hole in the log, or for words that may be another client's.

        Later messages answer nothing that came before, and continue no turns.
        """
        self.waiting.open.clear()
        self.heard = self.reflection = self.said = self.guess = None
        self.history = []
        self.turns.clear()

    def claim_of(self, rooms: Rooms, body: str, room: str) -> Claim:
        """Return how much a message asks the client for an answer."""
        if self._command:
            return Claim.QUESTION if body.startswith(self._command) else Claim.NONE
        known = rooms.by_jid.get(room)
        name = self._nickname or (known.nickname if known else "")
        words = speech.unquoted(body)
        names_it = speech.is_named(name, words)
        answers = self.answered.get(key_of(body), 0)
        if (names_it and speech.is_put_to(name, words)) or (
            answers and answers >= (1 if speech.is_command(body) else MIN_ANSWERS)
        ):
            return Claim.QUESTION
        if names_it:
            return Claim.MENTION
        return Claim.COMMAND if speech.is_command(words) else Claim.NONE

    def is_answer_aside(self, heard: Heard, place: str) -> bool:
        """Whether what the client says in this `place` answers what it heard.

        It does if the message names the client or is put to it. It does if the message is a
        command, and the client answers in private or without a body. Otherwise it does once the
        client has reacted `MIN_ANSWERS` times in this way, unless the user gave a command.
        """
        words = f"{place} {key_of(heard.body)}"
        times = self.asides.get(words, 0) + 1
        self.asides.add(words, times)
        is_plain = heard.claim is Claim.NONE or (
            heard.claim is Claim.COMMAND and place in {"encrypted", "elsewhere"}
        )
        return not self._command and times >= MIN_ANSWERS if is_plain else True

    def answers_itself(self, message: Heard, element: Element) -> bool:
        """Whether the client's message repeats its own message that has just come back."""
        return (
            self.reflection is not None
            and self.reflection.body in (element.findtext("body") or "")
            and element.find(names.REPLACE) is None
            and is_prompt(self.reflection, message)
        )

    def _take_received(self, rooms: Rooms, message: Heard, stanza: Stanza) -> None:
        element, nickname = stanza.element, message.nickname
        is_own = not nickname or rooms.is_own(message.room, nickname)
        if rooms.is_history(element, message.room):
            if not is_own and message.claim is not Claim.NONE:
                self.history = [*self.history, message][-MAX_HISTORY:]
            return
        if message.is_public and is_own:
            self.reflection = message if nickname else None
            return
        self.reflection, self.history, self.echoes = None, [], 0
        self.self_answers = 0
        self._take_turn(message)
        if self.heard is not None:
            if self.answered:
                self.answered.pop(key_of(self.heard.body), None)
            self.is_crowded = is_prompt(self.heard, message)
        self.heard, self.failed = message, None
        if message.claim is Claim.NONE:
            return
        self.asked += 1
        self.asked_at = self.asked_at or message.place
        kind = _SILENCE.get(message.claim)
        if kind and element.find(names.REPLACE) is None:
            key = kind, str(message.number), message.room
            self.waiting.add(key, stanza, message.number, message.body)

    def _take_presence(self, presence: Element) -> None:
        """Remember the account of an occupant, if the room shows it (XEP-0045, 7.2.3).

        What is said next may be about the presence, such as a greeting.
        """
        self.turns.clear()
        item = presence.find(f"{names.EXTENSION}/{names.ITEM}")
        if item is not None and (jid := item.get("jid")):
            self.accounts.add(presence.get("from", "")[:MAX_TEXT], names.lower_bare(jid)[:MAX_TEXT])

    def _take_turn(self, message: Heard, *, is_sent: bool = False) -> None:
        """Take a live message, with which programs may answer each other."""
        is_next = message.is_public and (self.said is None or self.said.room == message.room)
        if not is_next or (message.seconds is None and not self._is_turn(message, is_sent)):
            self.turns.clear()
        text, at = key_of(message.body)[: speech.COMMAND_CHARACTERS], message.seconds or 0.0
        self.turns.append(speech.Utterance(message.nickname, at, text, number=message.number))

    def _is_turn(self, message: Heard, is_sent: bool) -> bool:
        """Whether in a log without times a message is probably a program's answer.

        What the client hears has to repeat the client's words or its sender's own, since a person
        may be alone with the client.
        """
        before = self.heard if is_sent else self.said
        if before is None or not is_prompt(before, message):
            return is_sent and before is None  # the client goes on with its turn
        if is_sent or (before.body != "" and before.body in message.body):
            return True
        own = [form_without_numbers(it.text) for it in self.turns if it.who == message.nickname]
        return self.repeats and form_without_numbers(message.body) in own[-1:]

    def _take_sent(
        self, rooms: Rooms, message: Heard, element: Element, *, is_astray: bool
    ) -> Iterator[Outcome]:
        spaces = spaces_of(element)
        is_encrypted = not spaces.isdisjoint(ENCRYPTIONS)
        if is_encrypted and not self.encrypts:
            self.encrypts = True
            yield Disproof("unreadable ", is_of_all=True)
        heard = self.just_heard(message)
        if heard is not None and heard.is_public and is_astray:
            to, type_ = element.get("to", "")[:MAX_TEXT], element.get("type") or "normal"
            self.astray.add(str(heard.number), f"of type {quoted(type_)} to {quoted(to)}")
        elif message.body or spaces.isdisjoint(SIGNALS):  # signals answer nothing
            self.react()
        if not message.body and not is_encrypted:
            return
        yield from self._take_late_answer(message)
        self.self_answers = self.self_answers + 1 if self.answers_itself(message, element) else 0
        yield from self._take_own_turn(rooms, message)
        if heard and (heard.room, heard.is_public) == (message.room, message.is_public):
            if self.failed is not None:
                yield self.failed
            yield from self._take_answer(heard, message)
        forms = [form_without_numbers(each.body) for each in (self.said, message) if each]
        self.repeats = len({*forms}) == 1
        self.said = message
        # Besides a private word, the room may still get its answer.
        if message.is_public or heard is None or not heard.is_public:
            self.heard, self.is_crowded = None, False

    def _take_own_turn(self, rooms: Rooms, message: Heard) -> Iterator[Finding]:
        """Find that the client and other programs answer each other."""
        room = rooms.at(message.room)
        own = message._replace(nickname=room.nickname if room else "")
        self._take_turn(own, is_sent=True)
        for circle in speech.circles(self.turns):
            is_newest = circle.turns[-1].number == message.number
            if is_newest and circle.is_fast and not circle.is_commanded:
                *others, _ = sorted(circle.names, key=lambda name: name == circle.turns[-1].who)
                other, count = " and ".join(map(quoted, others)), circle.size * speech.LOOP_ROUNDS
                yield cause("loop", message.place, about=message.room, count=count, other=other)

    def _take_answer(self, heard: Heard, message: Heard) -> Iterator[Disproof]:
        """Note that a message was answered where it was asked."""
        words = key_of(heard.body)
        if not self.is_crowded:  # otherwise it may be the answer to another message
            self.answered.add(words, self.answered.get(words, 0) + 1)
        self.answering = heard.nickname
        if message.is_public and speech.is_command(heard.body):
            self.answers_in_public = True
            yield Disproof(f"private {WHISPER} ", is_of_all=True)

    def _take_late_answer(self, message: Heard) -> Iterator[Disproof]:
        """Note that a message was answered, in a log without times, which hides how late."""
        for key, late in [*self.waiting.overdue.items()]:
            asker = late.stanza.element.get("from", "")
            if message.room == names.lower_bare(asker) and late.stanza.seconds is None:
                is_next = self.heard is not None and str(self.heard.number) == key[1]
                if is_next or speech.is_named(asker.partition("/")[2], message.body):
                    del self.waiting.overdue[key]
                    yield Disproof(key_of_finding(key[0], "", message.room))


def form_without_numbers(body: str) -> str:
    """Return a body without its digits: what a program says again and again differs in them."""
    return _DIGITS.sub("", key_of(body))


def key_of(body: str) -> str:
    """Return the part of a body by which we compare messages."""
    return body[:MAX_TEXT].casefold()


def is_prompt(before: Heard, after: Heard) -> bool:
    """Whether a message came soon after another."""
    if after.seconds is not None and before.seconds is not None:
        return 0 <= after.seconds - before.seconds <= speech.ANSWER_SECONDS
    return after.number - before.number <= PROMPT_STANZAS


def misplaced(
    talk: Talk, client: Entity, rooms: Rooms, message: Heard, element: Element
) -> Iterator[Finding]:
    """Find answers that the client sent where the room does not read them, and errors to a room."""
    room, nickname = message.room, message.nickname
    if element.get("type") == "error":
        # To a bare JID, only what a room sent is answered so; the log may lack the join.
        may_be_room = "@" in room and not (client.is_complete or element.get("from"))
        is_room = rooms.at(room) or (may_be_room and client.other_side(room))
        if is_room and not nickname:
            text = names.error_of(element).text
            words = {"whom": "the whole", "why": text or "", "then": ""}
            yield cause("error-to-room", message.place, about=room, **words)
        return
    heard = talk.just_heard(message)
    if heard is None or not (rooms.at(heard.room) and heard.is_public and _has_content(element)):
        return
    name = _where(heard, talk, rooms, message, element)
    if not name or not talk.is_answer_aside(heard, name):
        return
    words = {"what": quoted(heard.body, QUOTED), "other": quoted(room)}
    is_whisper = name == "private" and heard.claim is Claim.COMMAND
    key = WHISPER if is_whisper else ""
    if not (is_whisper and talk.answers_in_public):
        yield cause(name, message.place, key, about=heard.room, **words)


def _where(heard: Heard, talk: Talk, rooms: Rooms, message: Heard, element: Element) -> str:
    """Return the name of the place where the client answers, if the room does not read it there."""
    jid, body = message.room, element.findtext("body") or ""
    if jid == heard.room:
        if spaces_of(element) & ENCRYPTIONS.keys():
            return "encrypted"
        if not message.is_public:
            return "private" if message.nickname == heard.nickname else ""
        return "" if searchable(body).strip() else "bodiless"
    if heard.body in body:  # the client passes it on, which is no answer
        return ""
    if rooms.at(jid):
        return "elsewhere" if message.is_public else ""
    asker = talk.accounts.get(f"{heard.room}/{heard.nickname}", "")
    name, at, _ = jid.partition("@")
    is_asker = jid == asker or (not asker and at and name == heard.nickname.lower())
    return "private" if is_asker and not message.is_public else ""


def _is_astray(rooms: Rooms, message: Heard) -> bool:
    """Whether a message is for its own sender, or outside the room, or of a type for no room."""
    is_seat = rooms.at(message.room) is not None and message.nickname != ""
    is_other = is_seat and not rooms.is_own(message.room, message.nickname)
    return bool(message.body) and not (message.is_public or is_other)


def unreadable(talk: Talk, rooms: Rooms, message: Heard, element: Element) -> Iterator[Finding]:
    """Find that an encrypted message reached a client that has not shown that it can read it.

    In a room it counts only from an occupant whom the client was last answering: people there may
    write to each other.
    """
    room, nickname = message.room, message.nickname
    if talk.encrypts or (message.is_public and nickname != talk.answering):
        return
    encryptions = spaces_of(element) & ENCRYPTIONS.keys()
    if encryptions and not (rooms.is_history(element, room) or rooms.is_own(room, nickname)):
        from_ = element.get("from", "")[:MAX_TEXT]
        words = {"other": quoted(from_), "with_": ENCRYPTIONS[min(encryptions)]}
        yield cause("unreadable", message.place, about=message.room, **words)


def looped(talk: Talk, rooms: Rooms, message: Heard, element: Element) -> Iterator[Finding]:
    """Find that the client answers itself, or the history."""
    body = element.findtext("body") or ""
    if not message.is_public or not body:
        return
    room = message.room
    if talk.reflection and is_prompt(talk.reflection, message):
        repeats = talk.self_answers + 1 if talk.answers_itself(message, element) else 0
        if repeats >= speech.SELF_ANSWERS:
            seat, renamed = rooms.at(room), ""
            if seat and seat.former_nickname:
                asked, got = quoted(seat.former_nickname), quoted(seat.nickname)
                renamed = f" It asked for the nickname {asked} there, and got {got}."
            yield cause("answers-itself", message.place, about=room, renamed=renamed)
    elif talk.history and is_prompt(talk.history[-1], message):
        yield from _answers_history(talk, message, body)
    elif heard := talk.just_heard(message):
        yield from _guessed(talk, heard, body)


def _answers_history(talk: Talk, message: Heard, body: str) -> Iterator[Finding]:
    """Find that the client answers the history, by what it says after it.

    A client that enters may greet, in several messages. An answer begins with the asker's name, is
    said again for the next command, or has the arguments of commands.
    """
    latest = talk.history[-1]
    repeats = len(talk.history) > 1 and talk.said is not None and talk.said.body == message.body
    echoed = [each for each in talk.history if speech.has_arguments(each.body, body)]
    talk.echoes += bool(echoed)
    what = quoted(latest.body, QUOTED)
    finding = cause("answers-history", message.place, about=message.room, what=what)
    if (
        any(speech.is_addressed(each.nickname, body) for each in talk.history)
        or repeats
        or talk.echoes > 1
        or any(len(each.body.partition(" ")[2]) >= MIN_ARGUMENTS for each in echoed)
    ):
        yield finding
    elif talk.guess is None:
        talk.guess = _exchange(latest.body, body), finding


def _guessed(talk: Talk, heard: Heard, body: str) -> Iterator[Finding]:
    """Find that the client answered the history, since it now answers the same command alike."""
    if talk.guess is not None and talk.guess[0] == _exchange(heard.body, body):
        yield talk.guess[1]
        talk.guess = None


def _exchange(asked: str, answer: str) -> str:
    """Return what is the same whenever a command is answered alike: its first word, the answer."""
    words = key_of(asked).split() if speech.is_command(asked) else [key_of(asked)]
    return f"{words[0]} {key_of(answer)}"


def former_name(talk: Talk, rooms: Rooms, message: Heard) -> Iterator[Finding]:
    """Find that the client answers to a nickname that it does not have in the room."""
    room, heard = rooms.at(message.room), talk.just_heard(message)
    if room is None or not room.is_inside or not room.former_nickname:
        return
    if heard is None or not message.is_public:
        return
    former, nickname = room.former_nickname, room.nickname
    if speech.is_named(former, heard.body) and not speech.is_named(nickname, heard.body):
        words = {"former": quoted(former), "nickname": quoted(nickname)}
        yield cause("old-name", message.place, about=room.jid, **words)


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
