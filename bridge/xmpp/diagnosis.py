"""Why somebody in a room does not do what is expected of them, found in what is known. Pure.

A new cause is one more function in `FINDINGS`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import pairwise
from typing import NamedTuple

from bridge.text import iso, quoted, searchable, visible
from bridge.xmpp.events import (
    STATUS_CODES,
    Event,
    MessageReceived,
    MessageSent,
    NicknameChanged,
    OccupantChanged,
    OccupantError,
    OccupantLeft,
    SendFailed,
    Source,
)
from bridge.xmpp.iq_errors import DecodedError
from bridge.xmpp.journal import Record
from bridge.xmpp.room import Occupant, RoomStatus

PING_SECONDS = 5.0
"""For the answer to a ping, and to those that tell whose silence it is."""

LATE_MS = 5_000
"""An answer that took longer, in milliseconds, is late: people ask again by then."""

MESSAGES = 100
"""The newest messages, in which hidden characters and loops are looked for."""

LOOP_SECONDS = 10.0
"""Between two messages in a row of a bot that answers itself, at most."""

LOOP_REPEATS = 3
"""Messages in a row, each of which repeats the one before, that make a loop."""

MAX_COMPARED = 500
"""Names that are compared with the one that is not there, 0.1 ms each at worst."""

MAX_ALIKE = 3
"""Names like it that are told."""

NAME_CHARACTERS = 60
"""Of a name in a sentence."""

TEXT_CHARACTERS = 100
"""Of somebody's words in a sentence."""


class Ping(NamedTuple):
    """What came of a ping."""

    seconds: float | None
    """Until the answer came, an error too; None: none came."""
    error: DecodedError | None
    verdict: str
    """What it means, in a sentence: where it is a silence, whose."""
    alone: bool
    """Whether the room and our server did answer."""


class Finding(NamedTuple):
    """Whether one cause is the case."""

    ok: bool | None
    """False: it is, or is likely. None: it cannot be told."""
    detail: str
    """A sentence. What strangers chose stands in it `quoted`."""
    hint: str = ""
    """What to do about it."""


@dataclass
class Past:
    """What the journal tells of one occupant and of what we said, read from its newest event on."""

    nickname: str
    """As the room has it."""
    since: float | None = None
    """When the oldest of the events was."""
    gone: Record | None = None
    """How they last left, or changed the nickname."""
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
    messages: list[Record] = field(default_factory=list)
    """The last `MESSAGES` that were said while we watched, the newest first."""
    _outcomes: dict[str, Record] = field(default_factory=dict)

    def add(self, record: Record) -> None:
        """Take in the next older event."""
        self.since = record.at
        theirs = getattr(record.event, "sender", None) == self.nickname
        match record.event:
            case MessageSent(id=id_):
                if self.sent is None:
                    self.sent, self.outcome = record.event, self._outcomes.get(id_)
            case SendFailed(id=id_):
                self._note(id_, record)
            case OccupantError() if theirs and self.sent is None:
                self.replies.append(record)
            case MessageReceived(own=own, source=source, id=id_):
                if source is Source.LIVE and len(self.messages) < MESSAGES:
                    self.messages.append(record)
                if own and id_ is not None:
                    self._note(id_, record)
                elif theirs and not own:
                    self.spoke = self.spoke or record
                    if self.sent is None:
                        self.replies.append(record)
            case OccupantLeft() | NicknameChanged() if theirs:
                self.gone = self.gone or record
            case OccupantChanged(role="visitor", former_role=str()) if theirs:
                self.silenced = self.silenced or record

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
        return _name(self.nickname)


def occupant_of(status: RoomStatus, nickname: str) -> Occupant | None:
    """Return who has this nickname, as it is or as it is shown."""
    for one in status.occupants:
        if nickname in {one.nickname, visible(one.nickname)}:
            return one
    return None


def find(evidence: Evidence) -> tuple[str, dict[str, Finding]]:
    """Return the verdict in a sentence, and what was found, by name."""
    found = {name: look(evidence) for name, look in FINDINGS.items()}
    for one in found.values():
        if one.ok is False:
            return one.detail, found
    answered = found["answer"]
    if answered.ok:
        return f"Nothing is wrong: {answered.detail}", found
    return f"Nothing is found wrong with {evidence.who} as yet: {answered.detail}", found


def _bridge(evidence: Evidence) -> Finding:
    status = evidence.status
    if not status.connected:
        fault = status.out_of(evidence.room)
        return Finding(False, fault.message, fault.hint)
    return Finding(True, "The bridge is in the room.")


def _present(evidence: Evidence) -> Finding:
    who = evidence.who
    if not evidence.status.connected:
        return Finding(None, f"Whether {who} is in the room cannot be seen.")
    if evidence.occupant is not None:
        if evidence.occupant.own:
            return Finding(
                False,
                f"{who} is the bridge itself.",
                "Give the nickname of somebody else; xmppOccupants lists them.",
            )
        return Finding(True, f"{who} is in the room.")
    others = [one.nickname for one in evidence.status.occupants if not one.own]
    alike = _alike(evidence.nickname, others)
    near = f"; in the room is {_list(alike)}" if alike else ""
    gone = evidence.past.gone
    if gone is None:
        since = "" if evidence.past.since is None else f", since {iso(evidence.past.since)}"
        detail = f"{who} was never in the room while the bridge watched{since}"
        if near:
            hint = "Case and hidden characters matter in a nickname."
            return Finding(False, f"{detail}{near}.", hint)
        if evidence.status.room_created:
            near = "; the room was made by the bridge's joining it"
        if evidence.rooms:
            near += f"; rooms of the service with a similar name: {_list(evidence.rooms)}"
        return Finding(
            False,
            f"{detail}{near}.",
            "Is the program running, and in this room? Compare its room and nickname with these.",
        )
    at = iso(gone.at)
    if isinstance(gone.event, NicknameChanged):
        detail = f"{who} is called {_name(gone.event.new_nickname)} since {at}."
        return Finding(False, detail, "Ask about that nickname.")
    codes: frozenset[int] = getattr(gone.event, "codes", frozenset())
    meaning = [STATUS_CODES[one] for one in sorted(codes) if one in STATUS_CODES]
    detail = f"{who} left the room at {at}: {_departure(gone.event, meaning)}{near}."
    if meaning:
        return Finding(False, detail, "The room put it out: see why, then let it join again.")
    return Finding(
        False, detail, "It ended, or lost its connection: look at the program, and start it again."
    )


def _departure(event: Event, meaning: list[str]) -> str:
    actor, reason, status = (getattr(event, one, None) for one in ("actor", "reason", "status"))
    said = reason or status
    return (
        (", ".join(meaning) or "it went by itself")
        + (f" by {_name(actor)}" if actor else "")
        + (f", saying {_text(said)}" if said else "")
    )


def _voice(evidence: Evidence) -> Finding:
    occupant, who = evidence.occupant, evidence.who
    if occupant is None:
        return _nobody(evidence)
    if occupant.role != "visitor":
        return Finding(True, f"{who} may speak (role {quoted(occupant.role)}).")
    taken, spoke = evidence.past.silenced, evidence.past.spoke
    if spoke is not None and _is_public(spoke) and (taken is None or spoke.number > taken.number):
        return Finding(True, f"{who} is a visitor, and the room lets visitors speak.")
    when = ""
    if taken is not None:
        by = f" by {_name(actor)}" if (actor := getattr(taken.event, "actor", None)) else ""
        when = f" (voice was taken at {iso(taken.at)}{by})"
    if evidence.status.moderated is False:
        # Only a moderated room must refuse it (XEP-0045, 7.4); servers differ in others.
        detail = f"{who} is a visitor{when}; the room is not moderated, so it may be heard."
        return Finding(None, detail, "Should it not be heard, a moderator can give it voice.")
    return Finding(
        False,
        f"{who} has no voice: it is a visitor, and the room passes on nothing that it says{when}.",
        "A moderator can give it voice (role participant), the owner membership for good.",
    )


def _account(evidence: Evidence) -> Finding:
    occupant, who = evidence.occupant, evidence.who
    if occupant is None:
        return _nobody(evidence)
    if occupant.account is None:
        return Finding(None, "The room does not show the bridge whose accounts are in it.")
    same = [
        "the bridge itself" if one.own else _name(one.nickname)
        for one in evidence.status.occupants
        if one.jid != occupant.jid and one.account == occupant.account
    ]
    if not same:
        return Finding(True, f"Nobody else in the room has the account of {who}.")
    return Finding(
        False,
        f"{who} has the same account as {', '.join(same[:MAX_ALIKE])}.",
        "Is the program running twice? Let each program have an account of its own.",
    )


def _ping(evidence: Evidence) -> Finding:
    who, ping = evidence.who, evidence.ping
    if evidence.occupant is None or ping is None:
        return _nobody(evidence)
    if ping.seconds is not None:
        if ping.error is None:
            return Finding(True, f"{who} answered a ping after {ping.seconds * 1000:.3f} ms.")
        ok = True if ping.error.reachable else None
        return Finding(ok, ping.error.message, "" if ok else ping.error.hint)
    whose = ping.verdict[:1].lower() + ping.verdict[1:].rstrip(".")
    return Finding(
        False,
        f"{who} does not answer a ping within {PING_SECONDS:g} s ({whose}).",
        "Its program hangs, its connection is dead, or it ignores pings: look at the program."
        if ping.alone
        else "Ask xmppStatus how the bridge and the room stand, then call this again.",
    )


def _loop(evidence: Evidence) -> Finding:
    who = evidence.who
    public = [one for one in reversed(evidence.past.messages) if _is_public(one)]
    repeats = 0
    for before, after in pairwise(public):
        in_a_row = {_sender(before), _sender(after)} == {evidence.nickname}
        soon = after.at - before.at <= LOOP_SECONDS
        body = _body(before)
        again = bool(body) and body in _body(after)
        repeats = repeats + 1 if in_a_row and soon and again else 0
        if repeats == LOOP_REPEATS:
            return Finding(
                False,
                f"{who} answers itself: at {iso(after.at)} it said {_text(_body(after))}, which "
                "repeats what it had said before, and so on.",
                "Let the program ignore messages under its own nickname: the room sends each back "
                "to its sender.",
            )
    return Finding(True, f"{who} does not answer itself.")


def _answer(evidence: Evidence) -> Finding:
    who, sent, outcome = evidence.who, evidence.past.sent, evidence.past.outcome
    if sent is None:
        return Finding(
            None,
            "The bridge has said nothing in the room yet.",
            "Say what should be answered by xmppSend with awaitSeconds, then call this again.",
        )
    if outcome is None or not isinstance(outcome.event, MessageReceived):
        return Finding(
            False,
            f"The room did not pass on what the bridge said last, {_text(sent.body)}.",
            "Say it again by xmppSend, which tells why.",
        )
    answers = evidence.answers
    if not answers:
        return _silence(evidence, sent.body, outcome)
    times = [f"{one['answerMs']:,.0f}" for one in answers]
    public = [one for one in answers if one["how"] == "public"]
    if not public:
        how = str(answers[0]["how"])
        words, hint = HOWS[how]
        if how == "error":
            text = answers[0].get("text")
            words += f", {answers[0]['condition']}" + (f", saying {_text(text)}" if text else "")
        return Finding(False, f"{who} answered {words}, after {times[0]} ms.", hint)
    bodies = [one["body"] for one in public if "replaces" not in one]
    if len(bodies) > len(set(bodies)):
        return Finding(False, f"{who} answered twice in the same words.", TWICE)
    for record in evidence.past.messages:
        if record.number > outcome.number and _is_public(record) and _body(record) in bodies:
            sender = _sender(record)
            if sender != evidence.nickname and not getattr(record.event, "own", False):
                detail = f"{who} and {_name(sender)} gave the same answer, one each."
                return Finding(False, detail, TWICE)
    first = public[0]["answerMs"]
    late = isinstance(first, float) and first > LATE_MS
    if late:
        return Finding(
            False,
            f"{who} answered late, after {first:,.0f} ms.",
            "The program is slow, or waits for something slow.",
        )
    return Finding(True, f"{who} answered what the bridge said last after {first:,.0f} ms.")


def _silence(evidence: Evidence, body: str, said: Record) -> Finding:
    who, occupant = evidence.who, evidence.occupant
    if occupant is None:
        return _nobody(evidence)
    if (occupant.since or 0.0) > said.at:
        return Finding(
            None,
            f"{who} came into the room after the bridge had said {_text(body)}.",
            "Say it again by xmppSend with awaitSeconds, then call this again.",
        )
    if visible(body) != body:
        return Finding(
            None,
            "What the bridge said last has hidden characters, so its silence tells nothing.",
            "Type it anew, send it by xmppSend with awaitSeconds, then call this again.",
        )
    return Finding(
        False,
        f"{who} has not answered {_text(body)}, said {evidence.now - said.at:,.1f} s ago.",
        "Is that a command it knows, and may the bridge give it? Its own log should say that it "
        "got the message.",
    )


TWICE = (
    "Is the program running twice, or does it handle each message twice (in slixmpp, the events "
    "message and groupchat_message both come)?"
)
"""Why somebody may answer twice."""

HOWS = {
    "private": (
        "in private, so that nobody but the bridge reads it",
        "Let the program answer the room (type groupchat, without the nickname in the address).",
    ),
    "encrypted": (
        "with an encrypted message, which nobody without its keys can read",
        "Turn encryption off for this room in the program.",
    ),
    "no-body": (
        "with a message that has no body, so that people see nothing",
        "xmppTrace shows the stanza: does the program send an empty text?",
    ),
    "error": (
        "with an error",
        "The program, or a library under it, refused the message: its log should say why.",
    ),
}
"""An answer that people in the room cannot read, in words, and what to do."""


def _commands(evidence: Evidence) -> Finding:
    public = filter(_is_public, evidence.past.messages)
    others = [one for one in public if _sender(one) != evidence.nickname]
    for record in others:
        body = _body(record)
        if visible(body) != body:
            return Finding(
                False,
                f"{_name(_sender(record))} said {_text(body)} at {iso(record.at)}, which has "
                "hidden characters.",
                "A program takes it for another text: type it anew instead of copying it.",
            )
    count = len(others)
    return Finding(True, f"None of the last {count} messages of others has hidden characters.")


def _said(evidence: Evidence) -> Finding:
    who, spoke, since = evidence.who, evidence.past.spoke, evidence.past.since
    if spoke is None:
        watched = "" if since is None else f", since {iso(since)}"
        return Finding(None, f"{who} has said nothing while the bridge watched{watched}.")
    words = _text(body) if (body := _body(spoke)) else "something without a body"
    live = getattr(spoke.event, "source", None) is Source.LIVE
    when = f"at {iso(spoke.at)}" if live else "before the bridge came"
    return Finding(True, f"{who} last said {words} {when}.")


FINDINGS: dict[str, Callable[[Evidence], Finding]] = {
    "bridge": _bridge,
    "present": _present,
    "voice": _voice,
    "account": _account,
    "ping": _ping,
    "loop": _loop,
    "answer": _answer,
    "commands": _commands,
    "said": _said,
}
"""What is looked at; the first that is not so is the verdict."""


def _nobody(evidence: Evidence) -> Finding:
    return Finding(None, f"{evidence.who} is not there to be looked at.")


def _alike(name: str, names: Sequence[str]) -> list[str]:
    """Return those of `names` that a reader may take for `name`, the likest first."""
    seen = {searchable(one[:NAME_CHARACTERS]): one for one in names[:MAX_COMPARED]}
    wanted = searchable(name[:NAME_CHARACTERS])
    return [seen[one] for one in get_close_matches(wanted, seen, MAX_ALIKE)]


def _name(name: object) -> str:
    return quoted(str(name), NAME_CHARACTERS)


def _text(text: object) -> str:
    return quoted(str(text), TEXT_CHARACTERS)


def _list(names: Sequence[str]) -> str:
    return ", ".join(map(_name, names))


def _sender(record: Record) -> str:
    return str(getattr(record.event, "sender", ""))


def _body(record: Record) -> str:
    return str(getattr(record.event, "body", ""))


def _is_public(record: Record) -> bool:
    return getattr(record.event, "type", None) == "groupchat"
