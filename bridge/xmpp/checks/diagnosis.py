"""Why somebody in a room does not do what is expected of them, found in what is known. Pure.

A new cause is one more function in `FINDINGS`.
"""

from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from itertools import islice, pairwise
from typing import NamedTuple

from bridge.text import JOINERS, iso, quoted, searchable, visible
from bridge.xmpp.checks.evidence import NAME_CHARACTERS, Evidence, Past, is_public
from bridge.xmpp.model.events import (
    STATUS_CODES,
    MessageReceived,
    NicknameChanged,
    Source,
    SubjectChanged,
)
from bridge.xmpp.model.journal import Record

PING_SECONDS = 5.0
"""For the answer to a ping, and to those that tell whose silence it is."""

LATE_MS = 5_000
"""An answer that took longer, in milliseconds, is late: people ask again by then."""

MESSAGES = 100
"""The newest messages of the occupant, in which loops are looked for, and as many of others, in
which hidden characters are."""

ALIKE_TIMES = 3
"""Times that another occupant says what this one says, after it, until that is told: fewer may be
chance, or somebody's joke."""

LOOP_SECONDS = 10.0
"""Between two messages in a row of a bot that answers itself, at most."""

LOOP_REPEATS = 3
"""Messages in a row, each of which repeats the one before, that make a loop."""

MAX_COMPARED = 500
"""Names that are compared with the one that is not there, 0.1 ms each at worst."""

MAX_ALIKE = 3
"""Names like it that are told."""

TEXT_CHARACTERS = 100
"""Of somebody's words in a sentence."""

COMMAND_CHARACTERS = 200
"""Of a message, in which hidden characters are looked for: commands are short, and a message of
250 kB takes half a second."""


class Finding(NamedTuple):
    """Whether one cause is the case."""

    ok: bool | None
    """False: it is, or is likely. None: it cannot be told."""
    detail: str
    """A sentence. What strangers chose stands in it `quoted`."""
    hint: str = ""
    """What to do about it."""


def find(evidence: Evidence) -> tuple[str, dict[str, Finding]]:
    """Return the verdict in a sentence, and what was found, by name."""
    found = {name: look(evidence) for name, look in FINDINGS.items()}
    for name, one in found.items():
        if one.ok is False and name not in OF_OTHERS:
            return one.detail, found
    answered = found["answer"]
    if answered.ok:
        verdict, beside = "Nothing is wrong", found["alike"]
    else:
        verdict = f"Nothing is found wrong with {evidence.who} as yet"
        beside = found["commands"]
    verdict += f": {answered.detail}"
    return verdict + f" {beside.detail}" * (beside.ok is False), found


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
    if not evidence.past.gone:
        since = "" if evidence.past.since is None else f", since {iso(evidence.past.since)}"
        detail = f"{who} was never in the room while the bridge watched{since}{near}"
        if evidence.status.room_created:
            detail += "; the room was made by the bridge's joining it"
        if evidence.rooms:
            detail += f"; rooms of the service with a similar name: {_list(evidence.rooms)}"
        return Finding(
            False,
            f"{detail}.",
            "Case and hidden characters matter in a nickname. " * bool(near)
            + "Is the program running, and in this room? Compare its room and nickname with these.",
        )
    last, *before = evidence.past.gone
    detail = f"{who} {_departure(last)}" + "".join(
        f"; before, it {_departure(one)}" for one in before
    )
    if isinstance(last.event, NicknameChanged):
        return Finding(False, f"{detail}.", "Ask about that nickname.")
    if _meaning(last):
        hint = "The room put it out: see why, then let it join again."
    else:
        hint = "It ended, or lost its connection: look at the program, and start it again."
    return Finding(False, f"{detail}{near}.", hint)


def _meaning(gone: Record) -> list[str]:
    codes: frozenset[int] = getattr(gone.event, "codes", frozenset())
    return [STATUS_CODES[one] for one in sorted(codes) if one in STATUS_CODES]


def _departure(gone: Record) -> str:
    event, at = gone.event, iso(gone.at)
    if isinstance(event, NicknameChanged):
        return f"is called {_name(event.new_nickname)} since {at}"
    actor, reason, status = (getattr(event, one, None) for one in ("actor", "reason", "status"))
    said = reason or status
    return (
        f"left the room at {at}: "
        + (", ".join(_meaning(gone)) or "it went by itself")
        + (f" by {_name(actor)}" if actor else "")
        + (f", saying {_text(said)}" if said else "")
    )


def _voice(evidence: Evidence) -> Finding:
    occupant, who = evidence.occupant, evidence.who
    if occupant is None:
        return _nobody(evidence)
    if occupant.role != "visitor":
        return Finding(True, f"{who} may speak (role {quoted(occupant.role)}).")
    taken, spoken = evidence.past.silenced, evidence.past.spoken
    if spoken and (taken is None or spoken[0].number > taken.number):
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
    others = [one.number for one in reversed(evidence.past.others)]
    repeats = 0
    for before, after in pairwise(reversed(evidence.past.spoken[:MESSAGES])):
        # Whatever anybody did in between may be what it answers.
        in_a_row = bisect(others, before.number) == bisect(others, after.number)
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
    if _is_twice(evidence.past, outcome):
        return Finding(False, f"{who} answered twice in the same words.", TWICE)
    first = public[0]["answerMs"]
    if isinstance(first, float) and first > LATE_MS:
        return Finding(
            False,
            f"{who} answered late, after {first:,.0f} ms.",
            "The program is slow, or waits for something slow.",
        )
    return Finding(True, f"{who} answered what the bridge said last after {first:,.0f} ms.")


def _is_twice(past: Past, outcome: Record) -> bool:
    """Whether it gave one answer more often than anybody can have asked for it.

    What others did from shortly before the bridge spoke may have been answered as well.
    """
    asking = [
        one.number
        for one in reversed(past.others)
        if one.number > outcome.number
        # A subject may be what the room tells whoever enters.
        or (one.at >= outcome.at - LATE_MS / 1000 and not isinstance(one.event, SubjectChanged))
    ]
    times = Counter[str]()
    for reply in _worded(past):
        times[_body(reply)] += 1
        if times[_body(reply)] > max(1, bisect(asking, reply.number)):
            return True
    return False


def _worded(past: Past) -> list[Record]:
    """Return the first `MESSAGES` public answers with words of their own, the oldest first."""
    worded = (
        one
        for one in reversed(past.replies)
        if is_public(one) and _body(one) and getattr(one.event, "replaces", None) is None
    )
    return [*islice(worded, MESSAGES)]


def _alike_answers(evidence: Evidence) -> Finding:
    past, who, outcome = evidence.past, evidence.who, evidence.past.outcome
    answers = _worded(past)
    if outcome is None or not answers:
        return Finding(None, f"There is no public answer of {who} to compare with others.")
    others = [
        one
        for one in islice(filter(is_public, past.others), MESSAGES)
        if _sender(one) != evidence.nickname and not getattr(one.event, "own", False)
    ]
    pairs = [
        (_sender(one), said, one)
        for said in past.spoken[:MESSAGES]
        for one in others
        if _body(said) and _body(said) == _body(one)
    ]
    first = [sender for sender, said, one in pairs if outcome.number < one.number < said.number]
    after = {
        (sender, said.number)
        for sender, said, one in pairs
        if said.number < one.number and one.at - said.at <= LATE_MS / 1000
    }
    times = Counter(sender for sender, _ in after)
    often = [sender for sender, count in times.most_common() if count >= ALIKE_TIMES]
    told = [*dict.fromkeys([*often, *first])][:MAX_ALIKE]
    if not told:
        return Finding(True, f"Nobody gave the answer of {who} before it, or again and again.")
    how = f"{times[often[0]]} times" if often else "before it"
    return Finding(False, f"{_list(told)} gave the same answer as {who}, {how}.", TWICE)


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
    public = [*islice(filter(is_public, evidence.past.others), MESSAGES)]
    disguised = [one for one in public if _is_disguised(_body(one)[:COMMAND_CHARACTERS])]
    newest = dict[str, Record]()
    for one in disguised:
        newest.setdefault(_sender(one), one)
    told = [
        f"{_name(sender)} said {_text(_body(one))} at {iso(one.at)}"
        for sender, one in [*newest.items()][:MAX_ALIKE]
    ]
    if not told:
        count = len(public)
        return Finding(True, f"None of the last {count} messages of others has hidden characters.")
    return Finding(
        False,
        f"{', '.join(told)}, which has hidden characters.",
        "A program takes it for another text: type it anew instead of copying it.",
    )


def _is_disguised(text: str) -> bool:
    shown = text.rstrip("".join(JOINERS))  # after which the next character is cut off
    return visible(shown) != shown


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
    "alike": _alike_answers,
    "commands": _commands,
    "said": _said,
}
"""What is looked at; the first that is not so is the verdict, unless it is one of `OF_OTHERS`."""

OF_OTHERS = frozenset({"alike", "commands"})
"""What anybody in the room can bring about alone: it stands beside a verdict, never in its place,
and where the bot did answer, hidden characters of others do not even stand there."""


def _nobody(evidence: Evidence) -> Finding:
    return Finding(None, f"{evidence.who} is not there to be looked at.")


def _alike(name: str, names: Sequence[str]) -> list[str]:
    """Return those of `names` that a reader may take for `name`, the likest first."""
    seen = defaultdict[str, list[str]](list)
    for one in names[:MAX_COMPARED]:
        seen[searchable(one[:NAME_CHARACTERS])].append(one)
    wanted = searchable(name[:NAME_CHARACTERS])
    found = get_close_matches(wanted, seen, MAX_ALIKE)
    return [one for like in found for one in seen[like]][:MAX_ALIKE]


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
