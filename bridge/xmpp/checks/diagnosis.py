"""Finds out from the evidence why an occupant does not answer or act as expected. Pure.

A new cause is one more function in `FINDINGS`.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import islice, pairwise
from math import inf
from typing import NamedTuple, cast

from bridge.text import iso, name_of, searchable, visible
from bridge.wire.speech import (
    ANSWER_SECONDS,
    LOOP_REPEATS,
    THREAD_SECONDS,
    TURN_SECONDS,
    is_put_to,
)
from bridge.xmpp.checks import answering, conduct, presence
from bridge.xmpp.checks.doubts import (
    after_another,
    aside,
    doubt,
    hands_on,
    is_twice,
    meanwhile,
    unasked,
    unless_to_another,
    with_words,
    worded,
)
from bridge.xmpp.checks.evidence import (
    MAX_ALIKE,
    MESSAGES,
    MISTAKABLE,
    Evidence,
    Finding,
    Outcome,
    absent,
    disguise,
    list_of,
    words_of,
)
from bridge.xmpp.checks.exchanges import plain
from bridge.xmpp.model.events import SendFailed
from bridge.xmpp.model.faults import Retry, of_bounce
from bridge.xmpp.model.journal import Record

PING_SECONDS = 5.0
"""Seconds for the answer to a ping, and for the answers to the further pings that show whether
others are silent too."""

ALIKE_TIMES = 3
"""An occupant who repeats this occupant's messages at least this often is named. Fewer repeats may
be chance, or a joke."""

WATCHED_SECONDS = 60.0
"""If the bridge has asked nothing, it says that nothing is wrong only after it has watched for this
time, or if the store has what happened before."""

LATE_PULSES = 3
"""An occupant who spoke at regular intervals has stopped after so many of them without a word."""

MUCH = 20
"""So many messages in a row are told, if they came faster than one a second."""

NOT_THERE = frozenset({"item-not-found", "recipient-unavailable"})
"""The conditions with which a room returns what is for an occupant who is not in it."""

_PROGRESS = re.compile(r"[\s\d.%…·=#█-]+")
"""Matches what a report of progress adds to what it had said before."""

UNLESS = "unless it answers what the bridge does not see, such as private messages"
"""The end of a sentence on a bot that may be answering private messages, which the bridge cannot
see. Any occupant could send the bot such messages to make it look broken."""


class Step(NamedTuple):
    """The call of a tool that leads on."""

    tool: str
    arguments: dict[str, object]


class Conclusion(NamedTuple):
    """What the evidence says of an occupant."""

    verdict: str
    """The outcome in a sentence, with what else has to be said."""
    findings: dict[str, Finding]
    """All findings by name, in the order in which they decide."""
    outcome: Outcome
    finding: str
    """The name of the finding that decides; empty if nothing is wrong, or too little was seen."""
    step: Step | None = None
    """What to call next; None if the room has nothing left to look at."""


def find(evidence: Evidence) -> Conclusion:
    """Return what the evidence says: the first cause, or that all is well, or what is missing."""
    findings = {name: look(evidence) for name, look in FINDINGS.items()}
    if findings["answer"].ok and findings["loop"].symptom:  # it also says something by itself
        findings["loop"] = findings["loop"]._replace(remark=True, symptom=False, ok=None)
    wrong = [
        name
        for name, finding in findings.items()
        if finding.symptom or (finding.ok is False and name not in OF_OTHERS)
    ]
    causes = [name for name in wrong if not findings[name].symptom]
    decides = [*causes, *wrong, ""][0]
    remarks = [it.detail for name, it in findings.items() if it.remark and name != decides]
    if causes:
        verdict = " ".join([findings[decides].detail, *remarks])
        step = _step(evidence, findings, decides)
        return Conclusion(verdict, findings, "cause", decides, step)
    answer, ground = findings["answer"], "" if wrong else _ground(evidence, findings)
    if ground:
        remarks = [it.detail for name, it in findings.items() if it.remark and name != "encrypted"]
        also = [findings[name].detail for name in OF_OTHERS if findings[name].ok is False]
        if evidence.ping is not None and evidence.ping.seconds is None and evidence.answers:
            also.append(findings["ping"].detail)  # it may have died since
        return Conclusion(" ".join([ground, *also, *remarks]), findings, "well", "")
    missing = answer if evidence.occupant else findings["present"]
    detail = f"It is not known whether anything is wrong with {evidence.who}: {missing.detail}"
    if decides:
        detail = f"{findings[decides].detail} The room does not show why."
    also = [findings["commands"].detail] if findings["commands"].ok is False else []
    verdict = " ".join([detail, *also, *remarks])
    return Conclusion(verdict, findings, "unknown", decides, _step(evidence, findings, decides))


def _ground(evidence: Evidence, findings: dict[str, Finding]) -> str:
    """Return why nothing is wrong, in a sentence; empty if too little was seen to say so."""
    past, answer = evidence.past, findings["answer"]
    if answer.ok:
        return f"Nothing is wrong: {answer.detail}"
    asked = past.sent is not None and evidence.named
    since = evidence.now if past.since is None else past.since
    watched = evidence.recorded or evidence.now - since >= WATCHED_SECONDS
    seen = findings["senders" if findings["senders"].ok else "said"]
    is_unclear = evidence.occupant is None or findings["commands"].ok is False
    if asked or not watched or not past.spoken or is_unclear:
        return ""
    return f"Nothing is wrong, as far as the bridge saw since {iso(since)}: {seen.detail}"


def _step(evidence: Evidence, findings: dict[str, Finding], decides: str) -> Step | None:
    """Return the call that leads on from what decides; None if there is none."""
    nickname, sent = evidence.nickname, evidence.past.sent
    if decides == "bridge":
        # A check would make a room anew that was destroyed, or enter where a moderator put us out.
        error = evidence.status.last_error
        is_out = error and (error.fault.condition == "gone" or error.fault.retry is Retry.MINUTE)
        return None if is_out else Step("xmppCheck", {})
    if decides and (other := findings[decides].leads_to):
        return Step("xmppDiagnose", {"nickname": other})
    heard = evidence.past.heard
    hangs = decides == "ping" and evidence.ping is not None and evidence.ping.seconds is None
    if hangs and heard and evidence.is_silent:  # it may answer once it is free again
        waits = evidence.now - heard.at < THREAD_SECONDS
        return Step("xmppWait", {"from": nickname, "timeoutSeconds": 30}) if waits else None
    is_gone = evidence.occupant is None and evidence.status.shows_all
    question = ""
    if decides == "" or (decides == "voice" and findings["voice"].ok is not False):
        question = answering.question_for(evidence)
    elif decides == "answer":
        if sent is not None and evidence.past.outcome is None:
            again = Step("xmppSend", {"message": sent.body, "awaitSeconds": 10})
            return Step("xmppCheck", {}) if findings["answer"].symptom else again
        if sent is not None and not findings["answer"].symptom:
            return None
        if _may_still_answer(evidence):
            return Step("xmppWait", {"from": nickname, "timeoutSeconds": 10})
        if findings["answer"].ok is None:
            question = answering.question_for(evidence)
    if evidence.is_silent and decides in {"answer", "senders"} and findings[decides].symptom:
        question = answering.may_answer_next(evidence)
    elif decides == "answer" and sent is not None and sent.body == question:
        question = ""
    asking = {"message": question, "awaitSeconds": 10, "from": nickname}
    return Step("xmppSend", asking) if question and not is_gone else None


def _may_still_answer(evidence: Evidence) -> bool:
    """Whether the occupant types, or another spoke so soon that the bridge waited no longer."""
    heard, others = evidence.past.heard, evidence.past.others
    seconds = evidence.now - heard.at if heard else THREAD_SECONDS
    if evidence.signal == "composing":
        return seconds < THREAD_SECONDS
    has_other = any(it.is_public and heard and it.number > heard.number for it in others)
    return has_other and seconds < answering.LATE_MS / 1000


def look_over(evidence: Evidence) -> tuple[Outcome, str, Finding]:
    """Return the outcome for a program, and the name and the finding that decide it.

    If none does, return under the name `program` why the occupant is taken for a program, and what
    it did.
    """
    conclusion = find(evidence)
    if name := conclusion.finding:
        return conclusion.outcome, name, conclusion.findings[name]
    says = evidence.programs.get(evidence.nickname)
    why = "says that it is a program" if says else "answers as programs do"
    seen = "answer" if evidence.past.outcome is not None else "senders"
    did = conclusion.findings[seen].detail.removeprefix(f"{evidence.who} ")
    detail, well = f"{evidence.who} {why}; it {did}", conclusion.outcome == "well"
    return conclusion.outcome, "program", Finding(well or None, detail)


def _ping(evidence: Evidence) -> Finding:
    who, ping, heard = evidence.who, evidence.ping, evidence.past.heard
    if evidence.occupant is None:
        return absent(evidence)
    if ping is None:
        return Finding(None, f"{who} was not pinged.")
    if ping.seconds is not None and ping.error is None:
        return Finding(True, f"{who} answered a ping after {ping.seconds * 1000:.3f} ms.")
    if ping.error is not None and ping.error.condition in NOT_THERE:
        detail = f"The room shows {who}, and answers a ping to it that it is not there "
        detail += f"({ping.error.condition}): it was put out, or lost, and the others were not "
        detail += f"told.{presence.reconfigured(evidence)}"
        hint = "Its own log says what it was told. If the room has become for members only, let an "
        hint += "admin of the room make it a member; otherwise let it join again."
        return Finding(False, detail, hint)
    if ping.error is not None and ping.seconds is not None:
        ok = True if ping.error.reachable else None
        return Finding(ok, ping.error.message, "" if ok else ping.error.hint)
    whose = ping.verdict[:1].lower() + ping.verdict[1:].rstrip(".")
    hint = "Ask xmppStatus whether the bridge is in the room, then call this again."
    if ping.alone:
        hint = "Its program hangs, or is busy with a message, its connection is dead, or it "
        hint += "ignores pings: look at the program."
    detail = f"{who} does not answer a ping within {PING_SECONDS:g} s ({whose})"
    if evidence.answers:
        return Finding(None, f"{detail}, but it has answered what the bridge said last.")
    if evidence.past.spoken and evidence.now - evidence.past.spoken[0].at <= WATCHED_SECONDS:
        if heard and evidence.is_silent and (before := answering.knew(evidence, heard)):
            return Finding(False, f"{detail}. {before}", hint)
        detail += ", but it has spoken in the last minute."
        is_missed = evidence.is_silent or answering.is_left_out(evidence)
        return Finding(None, detail, remark=is_missed)
    return Finding(False, f"{detail}.", hint)


def _loop(evidence: Evidence) -> Finding:
    # What is written to the end by corrections (XEP-0308), as by a language model, is no repeat.
    written = (it for it in evidence.past.spoken if not getattr(it.event, "replaces", None))
    who, spoken = evidence.who, [*islice(written, MESSAGES)]
    if not spoken:
        return Finding(None, f"{who} has said nothing that it could answer itself.")
    others = evidence.past.others
    repeats = named = asked = grows = 0
    same = None
    for before, after in pairwise(reversed(spoken)):
        if not max(repeats, named):  # the same words may answer what happened shortly before
            soon = (it for it in others if before.at - it.at <= answering.LATE_MS / 1000)
            asked = sum(it.number < before.number for it in soon)
        # If another occupant did something in between, this occupant may be answering that.
        in_a_row = not any(before.number < it.number < after.number for it in others)
        is_soon = after.at - before.at <= TURN_SECONDS
        # People in a hurry write "?", "??", "???"; a program that reports progress adds dots.
        text, added = before.body, after.body.replace(before.body, "", 1)
        has_words = any(map(str.isalnum, text))
        again = has_words and text in after.body and not _PROGRESS.fullmatch(added)
        to_self = all(is_put_to(searchable(evidence.nickname), plain(it)) for it in (before, after))
        repeats = repeats + 1 if in_a_row and is_soon and again else 0
        named = named + 1 if in_a_row and is_soon and to_self else 0
        grows = grows + (after.body != text) if repeats else 0
        if max(repeats, named) >= (least := max(LOOP_REPEATS, asked)):
            said = f"at {iso(after.at)} it said {words_of(after.body)}"
            hint = "Let the program ignore messages under its own nickname: the room sends each "
            hint += "back to its sender."
            if grows and repeats >= least:
                detail = f"{who} answers itself, {UNLESS}: {said}, which repeats what it had said "
                return Finding(False, f"{detail}before, and so on.", hint)
            is_same = repeats >= least
            what = "says the same" if is_same else "speaks to its own name"
            detail = f"{who} {what} again and again: {said}, as before. It answers itself, "
            detail += "or what the bridge does not see, or "
            detail += (
                "reports the same each time." if is_same else "begins with its name each time."
            )
            same = same or Finding(False, detail, hint, symptom=True)
    return same or Finding(True, f"{who} does not answer itself.")


def _answer(evidence: Evidence) -> Finding:
    who, sent = evidence.who, evidence.past.sent
    own = evidence.occupant is not None and evidence.occupant.own
    if sent is None or own:
        nothing = "does not answer itself" if own else "has said nothing in the room yet"
        return Finding(None, f"The bridge {nothing}.")
    if (heard := evidence.past.heard) is None:
        return _unheard(evidence, sent.body)
    if not evidence.answers:
        return _silence(evidence, sent.body, heard)
    prompt = answering.in_time(it for it in evidence.answers if it["how"] == "public")
    # What comes later may be about something else.
    first = [*prompt, *evidence.answers][0]
    after = f"after {first['answerMs']:,.0f} ms"
    if first["how"] != "public":
        words, hint = answering.HOWS[str(first["how"])]
        if first["how"] == "error":
            words += f", {first['condition']}"
            words += f", saying {words_of(first['text'])}" if first.get("text") else ""
        if first["how"] == "private" and answering.is_aside(evidence, heard):
            detail = f"{who} answered {words}, {after}, and other commands in public: on purpose?"
            return Finding(None, detail, hint, symptom=True)
        return Finding(False, f"{who} answered {words}, {after}.", hint)
    if is_twice(evidence, heard):
        detail = f"{who} answered twice in the same words, {UNLESS}."
        said = {it.body for it in evidence.past.spoken if it.number < heard.number}
        by_itself = first.get("body") in said and _loop(evidence).symptom
        return Finding(False, detail, answering.TWICE, symptom=by_itself)
    if when := unasked(evidence, first, is_late=not prompt):
        detail = f"{who} said {words_of(first.get('body'))} {after}, {when}: is that the answer?"
        return Finding(None, detail, "Say something else that it should answer.", symptom=True)
    if not prompt:
        return Finding(False, f"{who} answered late, {after}.", answering.SLOW)
    how = " by a reaction" if first.get("reactions") else ""
    # Some say at once that they are at work, and write the answer over that.
    last = [first, *(it for it in evidence.answers if it.get("replaces"))][-1]
    count = sum(it["how"] == "public" and not it.get("replaces") for it in evidence.answers)
    detail = f"{who} answered what the bridge said last{how}{with_words(last, count)} {after}"
    why, hint = doubt(evidence, first, last)
    if why:
        return Finding(None, f"{detail}{why}", hint, symptom=True)
    to_another = unless_to_another(evidence, heard)
    detail += f"{after_another(evidence, last.get('body'))}{to_another}."
    if to_another and cast("float", first["answerMs"]) > ANSWER_SECONDS * 1000:
        detail += meanwhile(evidence, heard)
        return Finding(None, detail, "Say it again while nobody else speaks.", symptom=True)
    left, is_same = answering.left_before(evidence, heard)
    if is_same:
        hint = "Does it answer only so often? Say it again, at other pauses."
        return Finding(None, f"{detail}{left}", hint, symptom=True)
    return Finding(True, f"{detail}{left}")


def _unheard(evidence: Evidence, body: str) -> Finding:
    """Say that the room did not pass on what the bridge said last; a cause if the room is alive."""
    detail = f"The room did not pass on what the bridge said last, {words_of(body)}"
    error = evidence.past.outcome.event if evidence.past.outcome else None
    if isinstance(error, SendFailed):
        fault = of_bounce(error.condition, error.text, evidence.place)
        return Finding(False, f"{detail}: {fault.message}", fault.hint)
    ping = evidence.ping
    if ping is not None and (ping.alone or ping.seconds is not None):
        return Finding(False, f"{detail}.", "Say it again by xmppSend, which says why.")
    hint = "It may do so yet, if the server is slow: see xmppHistory before it is said again."
    return Finding(False, f"{detail}.", hint, symptom=True)


def _alike_answers(evidence: Evidence) -> Finding:
    past, who, outcome = evidence.past, evidence.who, evidence.past.outcome
    like = set[str]()  # if the bridge asked nothing: others may say the same by chance
    if outcome is None and evidence.occupant is not None:
        like = {it.nickname for it in conduct.namesakes(evidence.status, evidence.occupant)}
    if not (like if outcome is None else worded(evidence)):
        return Finding(None, f"There is no public answer of {who} to compare with others.")
    pairs = [
        (other.sender, said, other)
        for said in past.spoken[:MESSAGES]
        for other in islice((it for it in past.others if it.is_public), MESSAGES)
        if said.body
        and said.body == other.body
        and other.sender != evidence.nickname
        and not getattr(other.event, "own", False)
        and (outcome is not None or other.sender in like)
    ]
    since = outcome.number if outcome else inf
    earlier = [name for name, said, other in pairs if since < other.number < said.number]
    later = {
        (name, said.number)
        for name, said, other in pairs
        if (said.number < other.number or not outcome)
        and abs(other.at - said.at) <= answering.LATE_MS / 1000
    }
    times = Counter(name for name, _ in later)
    often = [name for name, count in times.most_common() if count >= ALIKE_TIMES]
    names = [*dict.fromkeys([*often, *earlier])][:MAX_ALIKE]
    if not names:
        return Finding(True, f"No other occupant gives the answers of {who}.")
    how = f"{times[often[0]]} times" if often else "before it"
    detail = f"{list_of(names)} gave the same answer as {who}, {how}."
    return Finding(False, detail, answering.TWICE)


def _silence(evidence: Evidence, body: str, said: Record) -> Finding:
    who, occupant = evidence.who, evidence.occupant
    if occupant is None:
        return absent(evidence)
    if not evidence.named:
        return Finding(None, f"{who} has not answered {words_of(body)}, and need not.")
    if (fallen := conduct.fallen(evidence)) is not None:
        detail = f"{who} left the room {(fallen.at - said.at) * 1000:,.0f} ms after the bridge's "
        detail += f"{words_of(body)}, and came back: {conduct.way_out(fallen.event)}."
        is_other = evidence.past.mistakable
        detail += MISTAKABLE if is_other else ""
        hint = "Its program, or its connection, may have failed over that: its own log should say."
        return Finding(None if is_other else False, detail, hint, symptom=True)
    if (occupant.since or 0.0) > said.at:
        detail = f"{who} came into the room after the bridge had said {words_of(body)}."
        return Finding(None, detail)
    if why := disguise(body) or "hidden characters" * (visible(body) != body):
        detail = f"What the bridge said last has {why}, so this silence means nothing."
        return Finding(None, detail, "Type it anew instead of copying it.")
    if (other := evidence.elsewhere) is not None:
        detail = f"{who} said {words_of(other.body)} in another room, {words_of(other.room)}, "
        detail += f"{(other.at - said.at) * 1000:,.0f} ms after the bridge's {words_of(body)}."
        hint = "Let the program answer to the room from which the message came."
        if is_relay := hands_on(evidence, other.body):
            detail += f" {who} seems to hand on what is said here."
            hint = "If it should also answer here, say something that it answers."
        return Finding(None if is_relay else False, detail, hint, symptom=is_relay)
    titled = evidence.past.retitled
    if titled is not None and titled.number > said.number:
        subject = words_of(getattr(titled.event, "subject", ""))
        detail = f"{who} has not answered {words_of(body)}, and changed the room's subject to "
        detail += f"{subject} {(titled.at - said.at) * 1000:,.0f} ms later."
        hint = "Unless that was asked for: a message with a subject and no body changes the "
        hint += "subject. Put the answer into the body."
        return Finding(False, detail, hint, symptom=True)
    seconds = evidence.now - said.at
    hint = "Does it know that command, and may the bridge give it?"
    hint += "" if evidence.stream else " Its own log should show whether the message came."
    if seconds < THREAD_SECONDS:
        hint += " If it asks a model, wait for it by xmppWait, and look again."
    detail = f"{who} has not answered {words_of(body)}, said {seconds:,.1f} s ago."
    detail += answering.spoke_after(evidence) + answering.had_answered(evidence, said)
    detail += aside(evidence)
    if said.body != body:
        detail += f" The room had passed it on as {words_of(said.body)}."
    if evidence.signal:
        detail += f" It has sent {words_of(evidence.signal)} since, so it runs."
    instead, answered = answering.instead(evidence)
    # It may be the program, which did not get its nickname.
    leads_to = instead if instead and conduct.is_like(instead, evidence.nickname) else ""
    return Finding(False, f"{detail}{answered}", hint, symptom=True, leads_to=leads_to)


def _commands(evidence: Evidence) -> Finding:
    public = [*islice((it for it in evidence.past.others if it.is_public), MESSAGES)]
    newest = dict[str, Record]()
    for record in public:
        if disguise(record.body):
            newest.setdefault(record.sender, record)
    if not public:
        return Finding(None, "Nobody else has said anything.")
    if not newest:
        looked = f"looked at the last {len(public)}"
        return Finding(True, f"No message of others has hidden characters ({looked}).")
    commands = (
        f"{name_of(sender)} said {words_of(it.body)} at {iso(it.at)}, which has {disguise(it.body)}"
        for sender, it in [*newest.items()][:MAX_ALIKE]
    )
    hint = "A program takes it for another text: type it anew instead of copying it."
    return Finding(False, f"{'; '.join(commands)}.", hint)


def _said(evidence: Evidence) -> Finding:
    who, spoke = evidence.who, evidence.past.spoke
    if spoke is None:
        detail = f"{who} has said nothing while the bridge watched{evidence.since}."
        return Finding(None, detail)
    words = words_of(body) if (body := spoke.body) else "something without a body"
    when = f"at {iso(spoke.at)}" if spoke.is_live else "before the bridge came"
    detail = f"{who} last said {words} {when}.{_much(evidence.past.spoken[:MESSAGES])}"
    if (pulse := conduct.pulse(evidence)) is None:
        return Finding(True, detail)
    seconds, last = pulse[0], evidence.past.spoken[0]
    if evidence.occupant is None or evidence.now - last.at <= LATE_PULSES * seconds:
        detail += f" It speaks by itself every {seconds:,.0f} s."
        return Finding(True, detail, remark=evidence.is_silent)
    detail = f"{who} spoke by itself every {seconds:,.0f} s until {iso(last.at)}, and has stopped."
    hint = "Has it nothing more to say? Else its timer, or what it reports of, has stopped."
    return Finding(None, detail, hint, remark=True, symptom=True)


def _much(spoken: Sequence[Record]) -> str:
    """Return a sentence if an occupant said the same again and again, or very much at once."""
    bodies = [it.body for it in spoken if it.body]
    again = len(bodies) - len({*bodies})
    detail = f" {again} of its last {len(bodies)} messages repeat earlier ones."
    detail = detail if LATE_PULSES <= again >= len(bodies) / 2 else ""
    if len(spoken) >= MUCH and (seconds := spoken[0].at - spoken[MUCH - 1].at) <= MUCH:
        detail += f" It said {MUCH} messages in {seconds:,.1f} s."
    return detail


def _stream(evidence: Evidence) -> Finding:
    return evidence.stream or Finding(None, f"No log of {evidence.who} is known.")


FINDINGS: dict[str, Callable[[Evidence], Finding]] = {
    "bridge": presence.bridge,
    "present": presence.present,
    "voice": presence.voice,
    "stream": _stream,
    "ghost": conduct.ghost,
    "account": presence.account,
    "loop": _loop,
    "stays": conduct.stays,
    "history": conduct.history,
    "pair": conduct.pair,
    "encrypted": answering.encrypted,
    "room": conduct.room,
    "senders": answering.senders,
    "answer": _answer,
    "ping": _ping,
    "alike": _alike_answers,
    "commands": _commands,
    "said": _said,
}
"""The function for each cause. The first cause that applies is the verdict, unless it is one of
`OF_OTHERS`: what the server or the room did comes before what the program did, and a cause before
what it explains."""

OF_OTHERS = ("alike", "commands")
"""Causes that a stranger in the room can fake. So none of them becomes the verdict. The verdict
only gets a further sentence if no cause was found, for `alike` only if nothing is wrong."""
