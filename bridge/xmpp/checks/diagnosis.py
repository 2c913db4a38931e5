"""Finds out from the evidence why an occupant does not answer or act as expected. Pure.

A new cause is one more function in `FINDINGS`.
"""

from bisect import bisect, bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from itertools import islice, pairwise

from bridge.text import JOINERS, NAME_CHARACTERS, iso, name_of, quoted, searchable, visible
from bridge.wire.speech import COMMAND_CHARACTERS, LOOP_REPEATS, TURN_SECONDS
from bridge.xmpp.checks import conduct
from bridge.xmpp.checks.evidence import (
    Evidence,
    Finding,
    Past,
    Person,
    absent,
    body_of,
    is_public,
    list_of,
    sender_of,
    words_of,
)
from bridge.xmpp.model import events
from bridge.xmpp.model.journal import Record

PING_SECONDS = 5.0
"""Seconds for the answer to a ping, and for the answers to the further pings that show whether
others are silent too."""

LATE_MS = 5_000
"""An answer that took longer than this, in milliseconds, is late: people ask again by then."""

MESSAGES = 100
"""We compare so many of the occupant's newest messages with as many of the others'."""

ALIKE_TIMES = 3
"""An occupant who repeats this occupant's messages at least so many times is named. Fewer repeats
may be chance, or a joke."""

MAX_COMPARED = 500
"""We compare at most so many names with the name of an absent occupant. Each takes up to 0.1 ms."""

MAX_ALIKE = 3
"""Most names that a sentence lists."""

UNLESS = "unless it answers what the bridge does not see, such as private messages"
"""The end of a sentence on a bot that may be answering private messages, which the bridge cannot
see. Any occupant could send the bot such messages to make it look broken."""


def find(evidence: Evidence) -> tuple[str, dict[str, Finding]]:
    """Return the verdict in a sentence, and the findings by name."""
    findings = {name: look(evidence) for name, look in FINDINGS.items()}
    remarks = [finding.detail for finding in findings.values() if finding.remark]
    for name, finding in findings.items():
        if finding.ok is False and name not in OF_OTHERS:
            return " ".join([finding.detail, *remarks]), findings
    answer, verdict, additions = findings["answer"], "Nothing is wrong", ["alike"]
    if evidence.occupant is None:
        return findings["present"].detail, findings
    if not answer.ok:
        verdict = f"Nothing is found wrong with {evidence.who} as yet"
        additions = ["commands", "encrypted"]
    details = [findings[name].detail for name in additions if findings[name].ok is False]
    if evidence.ping is not None and evidence.ping.seconds is None and evidence.answers:
        details.append(findings["ping"].detail)  # it may have died since
    return " ".join([f"{verdict}: {answer.detail}", *details, *remarks]), findings


def look_over(evidence: Evidence) -> tuple[str, Finding]:
    """Return the name and the finding of the first cause that applies to a program.

    If no cause applies, return under the name `program` why the occupant is taken for a program.
    """
    says = evidence.programs.get(evidence.nickname)
    why = "says that it is a program" if says else "answers as evenly as a program"
    for name, finding in find(evidence)[1].items():
        if finding.ok is False and name not in OF_OTHERS:
            return name, finding
    return "program", Finding(True, f"{evidence.who} {why}; nothing is found wrong with it.")


def _bridge(evidence: Evidence) -> Finding:
    if evidence.status.connected:
        return Finding(True, "The bridge is in the room.")
    fault = evidence.status.out_of(evidence.room)
    return Finding(False, fault.message, fault.hint)


def _present(evidence: Evidence) -> Finding:
    who, past, status = evidence.who, evidence.past, evidence.status
    if not status.connected:
        return Finding(None, f"Whether {who} is in the room cannot be seen.")
    if evidence.occupant is not None and evidence.occupant.own:
        hint = "Give the nickname of somebody else; xmppOccupants lists them."
        return Finding(False, f"{who} is the bridge itself.", hint)
    if evidence.occupant in status.unlisted:
        detail = f"{who} speaks in the room, and is not shown by the room."
        return Finding(True, detail, remark=True)
    if evidence.occupant is not None:
        former = _predecessor(evidence)
        return Finding(True, f"{who} is in the room.{former}", remark=bool(former))
    others = [occupant.nickname for occupant in status.others]
    alike = _alike(evidence.nickname, others)
    near = f"; in the room is {list_of(alike)}" if alike else ""
    if past.gone:
        (detail, hint), *before = map(_departure, past.gone)
        detail = f"{who} {detail}"
        for earlier, _ in before:
            detail += f"; before, {_who_before(past)} {earlier}"
        renamed = isinstance(past.gone[0].event, events.NicknameChanged)
        return Finding(False, f"{detail}{'' if renamed else near}.", hint)
    if not status.shows_all:
        detail = f"Whether {who} is in the room is unknown: the room does not show everybody, and "
        detail += f"{who} was not heard while the bridge watched{_since(evidence)}{near}."
        return Finding(None, detail, "Say what it should answer by xmppSend with awaitSeconds.")
    detail = f"{who} was never in the room while the bridge watched{_since(evidence)}{near}"
    if status.room_created:
        detail += "; the room was made by the bridge's joining it"
    if evidence.rooms:
        detail += f"; rooms of the service with a similar name: {list_of(evidence.rooms)}"
    hint = "Is the program running, and does it join this room under this nickname?"
    if near:
        hint = f"Case and hidden characters matter in a nickname. {hint}"
    return Finding(False, f"{detail}.", hint)


def _predecessor(evidence: Evidence) -> str:
    """Return a sentence on who had the nickname before; empty unless that was another person.

    If the room shows too little to tell, the person whom the room put out may have been another.
    """
    for gone in evidence.past.gone[:1]:
        same = evidence.past.person.is_same(Person.of(gone.event))
        was_put_out = events.STATUS_CODES.keys() & getattr(gone.event, "codes", ())
        if same is False or (same is None and was_put_out):
            return f" Before, {_who(same)} {_departure(gone)[0]}."
    return ""


def _who_before(past: Past) -> str:
    """Return who had the nickname before its last owner, for a sentence."""
    last, before = (Person.of(record.event) for record in past.gone)
    return _who(last.is_same(before))


def _who(same: bool | None) -> str:
    if same is None:
        return "it, or somebody else (the room shows neither accounts nor ids)"
    return "it" if same else "somebody else of this nickname"


def _departure(gone: Record) -> tuple[str, str]:
    """Return how an occupant left, or its new nickname, and what to do about it."""
    event, at = gone.event, iso(gone.at)
    if isinstance(event, events.NicknameChanged):
        return (
            f"took the nickname {name_of(event.new_nickname)} at {at}",
            "Ask about that nickname.",
        )
    assert isinstance(event, events.OccupantLeft)
    codes = sorted(event.codes & events.STATUS_CODES.keys())
    meanings = ", ".join(events.STATUS_CODES[code] for code in codes)
    detail = f"left the room at {at}: {meanings or 'it went by itself'}{_by(event.actor)}"
    if reason := event.reason or event.status:
        detail += f", saying {words_of(reason)}"
    if meanings:
        return detail, "The room put it out: see why, then let it join again."
    return detail, "It ended, or lost its connection: look at the program, and start it again."


def _voice(evidence: Evidence) -> Finding:
    occupant, who = evidence.occupant, evidence.who
    if occupant is None:
        return absent(evidence)
    if occupant.role == events.UNKNOWN:
        seen = "shows no role" if occupant in evidence.status.occupants else "is not shown"
        return Finding(None, f"Whether {who} may speak is unknown: its presence {seen}.")
    if occupant.role != "visitor":
        return Finding(True, f"{who} may speak (role {quoted(occupant.role)}).")
    taken, spoken = evidence.past.silenced, evidence.past.spoken
    came = taken.at if taken else occupant.since or 0.0
    if spoken and spoken[0].at > came:
        return Finding(True, f"{who} is a visitor, and the room lets visitors speak.")
    when = f" (since it came at {iso(occupant.since)})" if occupant.since else ""
    if taken is not None:
        when = f" (voice was taken at {iso(taken.at)}{_by(getattr(taken.event, 'actor', None))})"
    if evidence.status.moderated is False:
        # Only a moderated room must refuse the message (XEP-0045, 7.4). Elsewhere, servers differ.
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
        return absent(evidence)
    if occupant.account is None:
        return Finding(None, "The room does not show the bridge whose accounts are in it.")
    same = [
        "the bridge itself" if other.own else name_of(other.nickname)
        for other in evidence.status.occupants
        if other.jid != occupant.jid and other.account == occupant.account
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
        return absent(evidence)
    if ping.seconds is not None and ping.error is None:
        return Finding(True, f"{who} answered a ping after {ping.seconds * 1000:.3f} ms.")
    if ping.error is not None and ping.seconds is not None:
        ok = True if ping.error.reachable else None
        return Finding(ok, ping.error.message, "" if ok else ping.error.hint)
    whose = ping.verdict[:1].lower() + ping.verdict[1:].rstrip(".")
    hint = "Ask xmppStatus whether the bridge is in the room, then call this again."
    if ping.alone:
        hint = (
            "Its program hangs, its connection is dead, or it ignores pings: look at the program."
        )
    detail = f"{who} does not answer a ping within {PING_SECONDS:g} s ({whose})"
    if evidence.answers:
        return Finding(None, f"{detail}, but it has answered what the bridge said last.")
    return Finding(False, f"{detail}.", hint)


def _loop(evidence: Evidence) -> Finding:
    who, spoken = evidence.who, evidence.past.spoken[:MESSAGES]
    if not spoken:
        return Finding(None, f"{who} has said nothing that it could answer itself.")
    others = [record.number for record in reversed(evidence.past.others)]
    asking = [record.at for record in reversed(evidence.past.others)]
    repeats = asked = 0
    for before, after in pairwise(reversed(spoken)):
        if not repeats:  # the same words may answer what happened shortly before
            last = bisect(others, before.number)
            asked = last - bisect_left(asking, before.at - LATE_MS / 1000, hi=last)
        # If another occupant did something in between, this occupant may be answering that.
        in_a_row = bisect(others, before.number) == bisect(others, after.number)
        soon = after.at - before.at <= TURN_SECONDS
        text = body_of(before)  # people in a hurry write "?", "??", "???"
        again = text in body_of(after) and any(map(str.isalnum, text))
        repeats = repeats + 1 if in_a_row and soon and again else 0
        if repeats >= max(LOOP_REPEATS, asked):
            return Finding(
                False,
                f"{who} answers itself, {UNLESS}: at {iso(after.at)} it said "
                f"{words_of(body_of(after))}, which repeats what it had said before, and so on.",
                "Let the program ignore messages under its own nickname: the room sends each back "
                "to its sender.",
            )
    return Finding(True, f"{who} does not answer itself.")


def _answer(evidence: Evidence) -> Finding:
    who, sent, outcome = evidence.who, evidence.past.sent, evidence.past.outcome
    if sent is None:
        hint = "Say what should be answered by xmppSend with awaitSeconds, then call this again."
        return Finding(None, "The bridge has said nothing in the room yet.", hint)
    if outcome is None or not isinstance(outcome.event, events.MessageReceived):
        detail = f"The room did not pass on what the bridge said last, {words_of(sent.body)}"
        condition = getattr(outcome and outcome.event, "condition", "")
        if condition.startswith("remote-server-"):
            detail += f": the room's service could not be reached ({condition})"
        return Finding(False, f"{detail}.", "Say it again by xmppSend, which says why.")
    if not evidence.answers:
        return _silence(evidence, sent.body, outcome)
    public = [answer for answer in evidence.answers if answer["how"] == "public"]
    first = [*public, *evidence.answers][0]
    after = f"after {first['answerMs']:,.0f} ms"
    if not public:
        words, hint = HOWS[str(first["how"])]
        if first["how"] == "error":
            words += f", {first['condition']}"
            words += f", saying {words_of(first['text'])}" if first.get("text") else ""
        return Finding(False, f"{who} answered {words}, {after}.", hint)
    if _is_twice(evidence, outcome):
        return Finding(False, f"{who} answered twice in the same words, {UNLESS}.", TWICE)
    if isinstance(first["answerMs"], float) and first["answerMs"] > LATE_MS:
        hint = "The program is slow, or waits for something slow."
        return Finding(False, f"{who} answered late, {after}.", hint)
    detail = f"{who} answered what the bridge said last {after}"
    return Finding(True, f"{detail}{_unless_to_another(evidence, outcome)}.")


def _unless_to_another(evidence: Evidence, outcome: Record) -> str:
    """Return whom else the occupant may have answered, for the end of a sentence.

    They are the occupants who spoke after the bridge. There are none if the occupant said more than
    others asked. An occupant who said the same as this one did not ask for it.
    """
    replies = [reply for reply in reversed(evidence.past.replies) if is_public(reply)]
    reply = [*replies, outcome][0]
    asked = [
        sender_of(other)
        for other in evidence.past.others
        if is_public(other)
        and body_of(other) not in {"", body_of(reply)}
        and outcome.number < other.number < reply.number
    ]
    if not asked or len(replies) > len(asked):
        return ""
    names = list_of([*dict.fromkeys(asked)][:MAX_ALIKE])
    return f", unless that was to {names}, who spoke meanwhile"


def _is_twice(evidence: Evidence, outcome: Record) -> bool:
    """Whether the occupant gave the same answer more often than others can have asked for it.

    Everything that others did since shortly before the bridge spoke counts as a question.
    """
    asking = [
        record.number
        for record in reversed(evidence.past.others)
        if record.number > outcome.number or record.at >= outcome.at - LATE_MS / 1000
    ]
    times = Counter[str]()
    for reply in _worded(evidence):
        times[body_of(reply)] += 1
        if times[body_of(reply)] > max(1, bisect(asking, reply.number)):
            return True
    return False


def _worded(evidence: Evidence) -> list[Record]:
    """Return the first `MESSAGES` public answers that have a body and correct no other message."""
    worded = (
        reply
        for reply in reversed(evidence.past.replies)
        if is_public(reply) and body_of(reply) and getattr(reply.event, "replaces", None) is None
    )
    return [*islice(worded, MESSAGES)]


def _alike_answers(evidence: Evidence) -> Finding:
    past, who, outcome = evidence.past, evidence.who, evidence.past.outcome
    if outcome is None or not _worded(evidence):
        return Finding(None, f"There is no public answer of {who} to compare with others.")
    pairs = [
        (sender_of(other), said, other)
        for said in past.spoken[:MESSAGES]
        for other in islice(filter(is_public, past.others), MESSAGES)
        if body_of(said)
        and body_of(said) == body_of(other)
        and sender_of(other) != evidence.nickname
        and not getattr(other.event, "own", False)
    ]
    earlier = [name for name, said, other in pairs if outcome.number < other.number < said.number]
    later = {
        (name, said.number)
        for name, said, other in pairs
        if said.number < other.number and other.at - said.at <= LATE_MS / 1000
    }
    times = Counter(name for name, _ in later)
    often = [name for name, count in times.most_common() if count >= ALIKE_TIMES]
    names = [*dict.fromkeys([*often, *earlier])][:MAX_ALIKE]
    if not names:
        return Finding(True, f"Nobody gave the answer of {who} before it, or again and again.")
    how = f"{times[often[0]]} times" if often else "before it"
    return Finding(False, f"{list_of(names)} gave the same answer as {who}, {how}.", TWICE)


def _silence(evidence: Evidence, body: str, said: Record) -> Finding:
    who, occupant = evidence.who, evidence.occupant
    if occupant is None:
        return absent(evidence)
    if not evidence.named:
        return Finding(None, f"{who} need not be who should have answered.")
    if (occupant.since or 0.0) > said.at:
        return Finding(
            None,
            f"{who} came into the room after the bridge had said {words_of(body)}.",
            "Say it again by xmppSend with awaitSeconds, then call this again.",
        )
    if visible(body) != body:
        return Finding(
            None,
            "What the bridge said last has hidden characters, so this silence means nothing.",
            "Type it anew, send it by xmppSend with awaitSeconds, then call this again.",
        )
    return Finding(
        False,
        f"{who} has not answered {words_of(body)}, said {evidence.now - said.at:,.1f} s ago.",
        "Is that a command it knows, and may the bridge give it? Its own log should say that it "
        "got the message.",
    )


TWICE = (
    "Is the program running twice, or does it handle each message twice (in slixmpp, the events "
    "message and groupchat_message both come)?"
)
"""A hint about a program that answers twice."""

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
"""The words for each kind of answer that people in the room cannot read, and what to do about
it."""


def _commands(evidence: Evidence) -> Finding:
    public = [*islice(filter(is_public, evidence.past.others), MESSAGES)]
    newest = dict[str, Record]()
    for record in public:
        if _is_disguised(body_of(record)[:COMMAND_CHARACTERS]):
            newest.setdefault(sender_of(record), record)
    if not public:
        return Finding(None, "Nobody else has said anything.")
    if not newest:
        count = len(public)
        return Finding(
            True, f"No message of others has hidden characters (looked at: the last {count})."
        )
    commands = ", ".join(
        f"{name_of(sender)} said {words_of(body_of(record))} at {iso(record.at)}"
        for sender, record in [*newest.items()][:MAX_ALIKE]
    )
    hint = "A program takes it for another text: type it anew instead of copying it."
    return Finding(False, f"{commands}, which has hidden characters.", hint)


def _is_disguised(text: str) -> bool:
    # A joiner at the end may only seem hidden, because the next character is cut off.
    whole = text.rstrip("".join(JOINERS))
    return visible(whole) != whole


def _said(evidence: Evidence) -> Finding:
    who, spoke = evidence.who, evidence.past.spoke
    if spoke is None:
        detail = f"{who} has said nothing while the bridge watched{_since(evidence)}."
        return Finding(None, detail)
    words = words_of(body) if (body := body_of(spoke)) else "something without a body"
    live = getattr(spoke.event, "source", None) is events.Source.LIVE
    when = f"at {iso(spoke.at)}" if live else "before the bridge came"
    return Finding(True, f"{who} last said {words} {when}.")


FINDINGS: dict[str, Callable[[Evidence], Finding]] = {
    "bridge": _bridge,
    "present": _present,
    "ghost": conduct.ghost,
    "voice": _voice,
    "account": _account,
    "ping": _ping,
    "loop": _loop,
    "pair": conduct.pair,
    "stays": conduct.stays,
    "history": conduct.history,
    "senders": conduct.senders,
    "answer": _answer,
    "alike": _alike_answers,
    "commands": _commands,
    "encrypted": conduct.encrypted,
    "room": conduct.room,
    "said": _said,
}
"""The function for each cause. The first cause that applies is the verdict, unless it is one of
`OF_OTHERS`."""

OF_OTHERS = frozenset({"alike", "commands", "encrypted", "room"})
"""Causes that a stranger in the room can fake, and the cause that lies in the room alone. So none
of them becomes the verdict. The verdict only gets a further sentence: the one for `alike` if the
occupant has answered, otherwise the ones for `commands` and `encrypted`."""


def _since(evidence: Evidence) -> str:
    """Return the end of a sentence that says since when the bridge watches; empty if unknown."""
    return "" if (since := evidence.past.since) is None else f", since {iso(since)}"


def _by(actor: str | None) -> str:
    return f" by {name_of(actor)}" if actor else ""


def _alike(name: str, names: Sequence[str]) -> list[str]:
    """Return the names that a reader may take for `name`, the most similar first."""
    spellings = defaultdict[str, list[str]](list)
    for other in names[:MAX_COMPARED]:
        spellings[searchable(other[:NAME_CHARACTERS])].append(other)
    close = get_close_matches(searchable(name[:NAME_CHARACTERS]), spellings, MAX_ALIKE)
    return [other for spelling in close for other in spellings[spelling]][:MAX_ALIKE]
