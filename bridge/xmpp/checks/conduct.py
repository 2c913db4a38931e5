"""Finds causes in how a program and the others in a room treat each other. Pure.

`bridge.xmpp.checks.diagnosis` has the causes that lie in one occupant alone, and names all causes.
"""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from bridge.text import iso, name_of, searchable, visible
from bridge.wire.speech import ANSWER_SECONDS, is_command
from bridge.xmpp.checks.evidence import (
    MISTAKABLE,
    Evidence,
    Finding,
    Person,
    Ping,
    absent,
    body_of,
    is_own,
    list_of,
    occupant_of,
    sender_of,
    words_of,
)
from bridge.xmpp.checks.exchanges import (
    Answered,
    alternations,
    exchanges,
    form_of,
    is_commanded,
    is_fast,
    is_message,
    regulars,
    speaks,
)
from bridge.xmpp.model import events
from bridge.xmpp.model.journal import Record
from bridge.xmpp.model.room import MAKE_PERSISTENT, TEMPORARY, Occupant, RoomStatus

STAYS = 3
"""An occupant who leaves and comes back so often within `STAYS_SECONDS` "comes and goes"."""

STAYS_SECONDS = 3_600.0
"""The seconds in which departures are counted."""

REGULAR = 0.1
"""Departures are regular if the times between them differ by no more than this fraction."""

HISTORY_SECONDS = 5.0
"""A message that a program says within so many seconds after it came may answer the history."""

HISTORY_ANSWERS = 2
"""An occupant answers the history if it answers so many of its messages. A single message that
seems to be an answer may be chance."""

HISTORY_MESSAGES = 50
"""We assume that a room's history has at most so many messages; rooms send 20 by default."""

QUOTED_CHARACTERS = 3
"""Another message may contain a text of fewer characters by chance."""

MAX_NAMESAKES = 3
"""We ping at most so many occupants because they may be the same program."""

_SUFFIX = re.compile(r"[\W_\d]+|[\W_][0-9a-f]{8,}")
"""What a program adds to a nickname that is taken."""


def namesakes(status: RoomStatus, occupant: Occupant) -> list[Occupant]:
    """Return the occupants who may be the same program: the same person, or a similar nickname."""
    others = [other for other in status.others if other.jid != occupant.jid]
    person = Person.of(occupant)
    are_same = [(other, person.is_same(Person.of(other))) for other in others]
    same = [other for other, is_same in are_same if is_same]
    like = [
        other
        for other, is_same in are_same
        if is_same is None and _is_like(other.nickname, occupant.nickname)
    ]
    return [*same, *like][:MAX_NAMESAKES]


def _is_like(nickname: str, other: str) -> bool:
    short, long = sorted((searchable(nickname), searchable(other)), key=len)
    return long.startswith(short) and bool(_SUFFIX.fullmatch(long[len(short) :]))


def ghost(evidence: Evidence) -> Finding:
    """Find out whether a dead session of the program has its nickname.

    A similar nickname alone proves nothing. A dead session of another person is no fault of the
    occupant.
    """
    if evidence.occupant is None or evidence.ping is None:
        return absent(evidence)
    if evidence.ping.seconds is None and evidence.answers:
        return Finding(True, f"{evidence.who} has answered the bridge, so it is no dead session.")
    person = Person.of(evidence.occupant)
    for nickname, ping in evidence.namesakes.items():
        pair = (evidence.nickname, evidence.ping), (nickname, ping)
        for (dead, its), (alive, other) in (pair, pair[::-1]):
            if its.alone and its.seconds is None and _answers(other):
                namesake = occupant_of(evidence.status, nickname)
                same = namesake is not None and person.is_same(Person.of(namesake))
                why = "is of the same account" if same else "has a like name"
                remark = not same or dead == nickname
                return Finding(
                    None if remark else False,
                    f"{name_of(dead)} does not answer a ping, and {name_of(alive)}, which {why}, "
                    f"does: {name_of(dead)} {'may' if remark else 'seems to'} be left over from a "
                    f"lost connection, and {'' if remark else 'to '}hold the nickname.",
                    "A moderator can kick it, or it goes when the server gives its session up. Let "
                    "the program leave the room before it ends, and take its nickname back.",
                    remark,
                )
    if not evidence.namesakes:
        return Finding(None, f"Nobody else in the room seems to be {evidence.who}, too.")
    return Finding(True, f"{evidence.who} and {list_of([*evidence.namesakes])} are alike in that.")


def _answers(ping: Ping) -> bool:
    return ping.seconds is not None and (ping.error is None or ping.error.reachable)


def pair(evidence: Evidence) -> Finding:
    """Find out whether the occupant and another one answer each other without end."""
    for run in alternations(evidence.acts, evidence.nickname):
        nicknames = [sender_of(record) for record in run[:2]]
        if evidence.bridges & {*nicknames} or is_commanded(run):
            continue
        declared = [evidence.programs.get(nickname) for nickname in nicknames]
        first, second = map(name_of, nicknames)
        fast = is_fast(run)
        if fast or all(declared):
            detail = f"{first} and {second} answer each other: {len(run)} messages in turn until "
            detail += f"{iso(run[-1].at)}; {first} began at {iso(run[0].at)}, with "
            detail += f"{words_of(body_of(run[0]))}."
            hint = "Let each ignore what programs say. It also ends if one of them answers "
            hint += "commands only, and says nothing that is a command to the other."
            # Even if both say that they are programs, slow turns prove nothing: people speak so,
            # too.
            return Finding(False if fast else None, detail, hint, remark=not fast)
    if not evidence.past.spoken:
        return Finding(None, f"{evidence.who} has said nothing that could be answered.")
    return Finding(True, f"{evidence.who} and no other program answer each other in turn.")


def partners(evidence: Evidence) -> set[str]:
    """Return the nicknames of all who may be in a loop with the occupant, and its own."""
    return {
        sender_of(record)
        for run in alternations(evidence.acts, evidence.nickname)
        for record in run[:2]
    }


def stays(evidence: Evidence) -> Finding:
    """Find out whether the occupant leaves and comes back again and again."""
    who, moves = evidence.who, evidence.past.moves
    lately = [move for move in reversed(moves) if evidence.now - move.at <= STAYS_SECONDS]
    left = [
        before
        for before, after in pairwise(lately)
        if isinstance(before.event, events.OccupantLeft)
        and isinstance(after.event, events.OccupantJoined)
    ]
    if len(left) < STAYS:
        if evidence.occupant is None and not moves:
            return absent(evidence)
        return Finding(True, f"{who} does not come and go.")
    between = [after.at - before.at for before, after in pairwise(left)]
    period = median(between)
    regular = max(between) - min(between) <= REGULAR * period
    every = f"every {_duration(period)}" if regular else f"within {_duration(sum(between))}"
    codes = {code for move in left for code in getattr(move.event, "codes", ())}
    why = [events.STATUS_CODES[code] for code in sorted(codes & events.STATUS_CODES.keys())]
    detail = f"{who} comes and goes: it left and came back {len(left)} times, {every}, at last at "
    detail += f"{iso(left[-1].at)} ({', '.join(why) or 'it went by itself'})."
    detail += MISTAKABLE if evidence.past.mistakable else ""
    hint = "Its own log should say why its connection ends; xmpp-bridge explain reads such logs."
    if regular:
        hint = (
            "So regular: an idle timeout? A server, a proxy or a router may end connections that "
            f"are silent for long: let the program ping more often. {hint}"
        )
    return Finding(False, detail, hint)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(max(round(seconds), 1), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def history(evidence: Evidence) -> Finding:
    """Find out whether the occupant answered old messages when it came in."""
    who, acts = evidence.who, evidence.acts
    came = _entries(evidence)[-1:]
    if not came:
        return Finding(None, f"{who} was not seen to come into the room.")
    said = list[Record]()
    for act in acts:
        if act.number > came[0].number:
            soon = act.at - came[0].at <= HISTORY_SECONDS
            if not (soon and speaks(act) and evidence.is_theirs(act)):
                break
            said.append(act)
            if len(said) == HISTORY_MESSAGES:
                break
    spoke, greetings = bool(said), _greetings(evidence)
    said = [act for act in said if body_of(act) not in greetings]
    before = [act for act in acts if act.number < came[0].number and speaks(act)]
    answers = {
        body_of(exchange.answer): exchange.asked
        for exchange in exchanges(before)
        if evidence.is_theirs(exchange.answer)
        and exchange.seconds <= ANSWER_SECONDS
        and not _came_between(evidence, exchange)
    }
    asked = [act for act in before if not evidence.is_theirs(act)][-HISTORY_MESSAGES:]
    again = [reply for reply in said if body_of(reply) in answers]
    if not again and not (again := _several(said, asked)):
        return Finding(True if spoke else None, f"{who} did not answer the history when it came.")
    detail = f"{who} answered what had been said before it came at {iso(came[0].at)}: it said "
    detail += f"{words_of(body_of(again[0]))}"
    if (first := answers.get(body_of(again[0]))) is not None:
        detail += f", as to {words_of(body_of(first))} of {name_of(sender_of(first))} before"
    if len(again) > 1:
        detail += f", and more: {len(again)} messages in all"
    return Finding(
        False,
        f"{detail}.{MISTAKABLE if evidence.past.mistakable else ''}",
        "Let the program ignore messages with a delay stamp (XEP-0203), or ask for no history when "
        "it enters (maxstanzas 0).",
    )


def _entries(evidence: Evidence) -> list[Record]:
    """Return the events in which the occupant came, the oldest first."""
    moves = reversed(evidence.past.moves)
    return [move for move in moves if isinstance(move.event, events.OccupantJoined)]


def _greetings(evidence: Evidence) -> set[str]:
    """Return what the occupant says each time it has come, before any other occupant acts."""
    entries, said = _entries(evidence), list[set[str]]()
    for came in entries:
        said.append(set())
        for act in evidence.acts:
            if act.number > came.number:
                soon = act.at - came.at <= HISTORY_SECONDS
                if not (soon and evidence.is_theirs(act)):
                    break
                said[-1].add(body_of(act))
    return set.intersection(*said) if len(said) > 1 else set()


def _came_between(evidence: Evidence, exchange: Answered) -> bool:
    """Whether the occupant came after the question, and so can know it only from the history."""
    numbers = range(exchange.asked.number, exchange.answer.number)
    return any(entry.number in numbers for entry in _entries(evidence))


def _several(said: Sequence[Record], asked: Sequence[Record]) -> list[Record]:
    """Return what was `said` if it answers several of the messages that were `asked` before."""
    ids = {getattr(it.event, "id", None) for it in asked} - {None}
    bodies = {text for it in asked if len(text := body_of(it)) >= QUOTED_CHARACTERS}
    replies, answered = list[Record](), set[str | None]()
    for reply in said:
        to = {getattr(reply.event, "reply_to", None)} & ids
        if to := to or {text for text in bodies if text in body_of(reply)}:
            replies.append(reply)
            answered |= to
    if min(len(replies), len(answered)) >= HISTORY_ANSWERS:
        return replies
    commands = Counter(form for it in asked if is_command(form := searchable(body_of(it))))
    for text, count in Counter(map(body_of, said)).items():
        if count >= HISTORY_ANSWERS and count in commands.values():
            return [reply for reply in said if body_of(reply) == text]
    return []


def senders(evidence: Evidence) -> Finding:
    """Compare the bridge with the occupants whom this occupant does answer."""
    who, outcome, acts = evidence.who, evidence.past.outcome, evidence.acts
    if outcome is None or not isinstance(outcome.event, events.MessageReceived):
        return Finding(None, "The bridge has said nothing that could be answered.")
    if not evidence.named:
        return Finding(None, f"{who} need not be who should have answered.")
    theirs = [it for it in exchanges(acts) if evidence.is_theirs(it.answer)]
    if evidence.answers or any(is_own(exchange.asked) for exchange in theirs):
        return Finding(True, f"{who} answers the bridge.")
    form, programs = form_of(outcome, evidence.nickname), evidence.programs
    is_program = programs.get(evidence.nickname) or evidence.nickname in regulars(acts)
    fast = [exchange for exchange in theirs if exchange.seconds <= ANSWER_SECONDS]
    like = [exchange for exchange in fast if form_of(exchange.asked, evidence.nickname) == form]
    if not (chosen := (like or (fast if is_program else []))[-1:]):
        return Finding(None, f"{who} was not seen to answer others.")
    ((asked, _),) = chosen
    return Finding(
        False,
        f"{who} answered {words_of(body_of(asked))} of {name_of(sender_of(asked))} after "
        f"{chosen[0].seconds * 1000:,.0f} ms, never the bridge's {words_of(body_of(outcome))}. "
        f"{_differences(evidence, asked, outcome)}",
        "Does it know only some people, accounts or commands? Say what was answered, word for "
        "word, or let it know the bridge.",
    )


def _differences(evidence: Evidence, asked: Record, ours: Record) -> str:
    """Return a sentence on how the sender and the message `asked` differ from the bridge's."""
    us, others = evidence.status.me, evidence.status.others
    them = next((other for other in others if other.nickname == sender_of(asked)), None)
    different = list[str]()
    for what in ("affiliation", "role", "account"):
        theirs, own = getattr(them, what, None), getattr(us, what, None)
        if theirs and own and theirs != own:
            different.append(f"the {what} ({words_of(theirs)}, the bridge's {words_of(own)})")
    theirs_said, own_said = body_of(asked), body_of(ours)
    form, own_form = (form_of(record, evidence.nickname) for record in (asked, ours))
    hidden = [visible(text) != text for text in (theirs_said, own_said)]
    if form != own_form:
        different.append("the form of the message")
    elif searchable(theirs_said).split()[:1] != searchable(own_said).split()[:1]:
        different.append("the command")
    elif theirs_said.split()[:1] != own_said.split()[:1]:
        different.append("how the command is spelt")
    if hidden[0] != hidden[1]:
        different.append("hidden characters")
    if bool(getattr(asked.event, "reply_to", None)) != bool(getattr(ours.event, "reply_to", None)):
        different.append("that one is a reply")
    return f"What differs: {', '.join(different) or 'nothing that is seen, but the words'}."


def encrypted(evidence: Evidence) -> Finding:
    """Find out whether what others say reaches the occupant encrypted."""
    public = [record for record in reversed(evidence.acts) if is_message(record)]
    others = [record for record in public if sender_of(record) != evidence.nickname]
    if not others:
        return Finding(None, "Nobody else has said anything.")
    secret = [record for record in others if getattr(record.event, "encrypted", None)]
    encrypts = any(
        getattr(record.event, "encrypted", None)
        for record in public
        if sender_of(record) == evidence.nickname
    )
    newest = dict[str, Record]()
    for record in others:
        newest.setdefault(sender_of(record), record)
    answered = {
        sender_of(exchange.asked)
        for exchange in exchanges(evidence.acts)
        if sender_of(exchange.answer) == evidence.nickname
    }
    is_only_one = len({sender_of(record) for record in secret}) == 1
    for nickname, record in newest.items():
        if record in secret and not encrypts and (is_only_one or nickname in answered):
            how = getattr(record.event, "encrypted", None)
            return Finding(
                False,
                f"{name_of(nickname)} wrote with encryption ({words_of(how)}) at "
                f"{iso(record.at)}, which {evidence.who} cannot read without its keys.",
                "Turn encryption off for this room in the client of whoever gives the command.",
            )
    also = f"{evidence.who} writes with encryption itself"
    return Finding(True, f"What others say is not encrypted, or {also}.")


def room(evidence: Evidence) -> Finding:
    """Find out whether the bridge is alone in a room that goes when all leave."""
    persistent = evidence.status.persistent
    if persistent is None:
        return Finding(None, "The room does not say whether it stays when all have left.")
    if persistent:
        return Finding(True, "The room is persistent.")
    if evidence.status.others:
        return Finding(True, f"{TEMPORARY}.")
    return Finding(False, f"{TEMPORARY}, and nobody else is in it now.", MAKE_PERSISTENT)
