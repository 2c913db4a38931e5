"""Finds causes in whom a program answers, and how. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import cast

from bridge.text import iso, name_of, searchable, visible
from bridge.wire.speech import (
    ANSWER_SECONDS,
    TURN_SECONDS,
    has_arguments,
    is_addressed,
    is_command,
    is_named,
    is_put_to,
    is_steady,
    unquoted,
)
from bridge.xmpp.checks.conduct import fallen
from bridge.xmpp.checks.evidence import (
    MAX_ACTS,
    MAX_ALIKE,
    Evidence,
    Finding,
    absent,
    how_said,
    list_of,
    words_of,
)
from bridge.xmpp.checks.exchanges import (
    ANSWERS,
    exchanges,
    form_of,
    is_encrypted,
    is_message,
    plain,
    regulars,
    speaks,
)
from bridge.xmpp.checks.questions import SHARE, Ask, LeftOut, asks_of, ids_of, left_out
from bridge.xmpp.model.events import MessageReceived, OccupantChanged, SubjectChanged
from bridge.xmpp.model.journal import Record

LEFT_OUT = 2
"""A sender whose messages got no answer this often in a row is left out. Once may be chance."""

LATE_MS = 5_000
"""An answer that took longer than this, in milliseconds, is late: people ask again by then."""

LONG = 10
"""A message that is so many times as long as another, of so many characters, differs in length."""

TWICE = (
    "Is the program running twice, or does it handle each message twice (in slixmpp, the events "
    "message and groupchat_message both come)?"
)
"""A hint about a program that answers twice."""

SLOW = "The program is slow, or waits for something slow."
"""A hint about a program that answers late."""

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
        "with a message that has no body that people can see",
        "xmppTrace shows the stanza: does the program send an empty text?",
    ),
    "error": (
        "with an error",
        "The program, or a library under it, refused the message: its log should say why.",
    ),
}
"""The words for each kind of answer that people in the room cannot read, and what to do about
it."""


def in_time(
    answers: Iterable[Mapping[str, object]], seconds: float = LATE_MS / 1000
) -> list[Mapping[str, object]]:
    """Return the answers to the bridge, as in `Evidence.answers`, that came within `seconds`."""
    return [it for it in answers if cast("float", it["answerMs"]) <= seconds * 1000]


def senders(evidence: Evidence) -> Finding:
    """Compare what the occupant answered with what it left without an answer.

    What it could not answer, since it was away or had no voice, it did not leave.
    """
    if evidence.occupant is None:
        return absent(evidence)
    who, asks = evidence.who, asks_of(evidence)
    asks = [ask for ask in asks if ask.answer or evidence.could_answer(ask.asked)]
    answered = [ask for ask in asks if ask.answer]
    groups = [
        group
        for group in left_out(evidence, asks)
        if len(group.asks) >= LEFT_OUT
        or not (evidence.answers or _is_explained(evidence, group, answered))
    ]
    # What it answered before, and no longer does, shows most.
    whats = {ask.what for ask in answered}
    groups.sort(key=lambda group: group.asks[-1].what in whats)
    is_answered = any(ask.asked.is_own for ask in answered)
    is_missed = evidence.is_silent and not is_answered and fallen(evidence) is None
    ours = evidence.past.heard if is_missed else None
    if ours and evidence.could_answer(ours) and (like := _like(evidence, answered, ours)):
        mine = [ask for ask in asks if ask.asked.is_own and not ask.answer]
        what = {ask.what for ask in mine if ask.asked.number == ours.number}
        theirs = [ask for group in groups for ask in group.asks if ask.what in what]
        left = sorted((ask.asked for ask in (*mine, *theirs)), key=lambda it: it.number)
        same = [ask for ask in like if plain(ask.asked) == plain(ours)]
        return _compared(evidence, (same or like)[-1], ours, left or [ours])
    if groups:
        says = evidence.programs.get(evidence.nickname)
        prompt = [ask for ask in answered if says or ask.seconds <= ANSWER_SECONDS]
        of_last = [ask for ask in prompt if ask.what == groups[-1].asks[-1].what]
        left = [ask.asked for ask in groups[-1].asks]
        if like := of_last or prompt:
            return _compared(evidence, like[-1], left[-1], left)
        names = list_of([*dict.fromkeys(group.sender for group in groups)][:MAX_ALIKE])
        detail = f"{who} left {_question(left[-1])} without an answer{_times(left)}; "
        detail += f"it was not seen to answer {names} or others."
        return Finding(None, detail, symptom=True)
    for look in (_misshapen, _anew, _unasked):
        if wrong := look(evidence, answered):
            return wrong
    if answered:
        last, detail = answered[-1], f"{who} answered {_question(answered[-1].asked)}"
        open_ = left_out(evidence, [ask for ask in asks if not ask.answer])
        missed = sum(ask.what == last.what for group in open_ for ask in group.asks)
        count = sum(ask.what == last.what for ask in asks)
        detail += f" after {_ms(last)}"
        if missed < LEFT_OUT or SHARE * missed < count:
            return Finding(True, f"{detail}.")
        detail += f", and left {missed} of {count} such messages without an answer."
        return Finding(None, detail, "Does it answer only so often?", symptom=True)
    return Finding(None, f"{who} was not seen to answer others.")


def _misshapen(evidence: Evidence, answered: Sequence[Ask]) -> Finding | None:
    """Return what is wrong with how a program answers others; None if nothing is.

    An occupant who does not say what it is must have answered others as only programs do. A person
    may encrypt, and may answer with a picture or a mark.
    """
    last = [ask for ask in answered if ask.what and not ask.asked.is_own][-ANSWERS:]
    says = evidence.programs.get(evidence.nickname)
    if not last or says is False:
        return None
    even = len(last) >= ANSWERS and is_steady([ask.seconds for ask in last])
    is_program = even or (len(last) >= LEFT_OUT and bool(says))
    detail = f"{evidence.who} answered {_question(last[-1].asked)}"
    if flaw := _unread(last):
        prompt = is_command(last[-1].asked.body) and last[-1].seconds <= ANSWER_SECONDS
        finding = Finding(False, f"{detail} {flaw[0]}, after {_ms(last[-1])}.", flaw[1])
        unclear = finding._replace(ok=None, symptom=True) if prompt else None
        return finding if is_program else unclear
    if flaw := _misdirected(evidence, last) if is_program else None:
        return Finding(False, f"{detail} {flaw[0]}, as it did before.", flaw[1])
    if flaw := _odd(asks_of(evidence), last) if len(last) >= ANSWERS else None:
        return Finding(None, f"{detail} {flaw[0]}, as it did before.", flaw[1], symptom=True)
    return None


def _anew(evidence: Evidence, answered: Sequence[Ask]) -> Finding | None:
    """Return that the occupant answered a command, and its correction again; None if not."""
    by_id = {id_: ask for ask in answered for id_ in ids_of(ask.asked)}
    for ask in reversed(answered):
        former = by_id.get(getattr(ask.asked.event, "replaces", None) or "")
        is_same = former and (former.asked.sender, former.what) == (ask.asked.sender, ask.what)
        if former and is_same and not getattr(ask.answer and ask.answer.event, "replaces", None):
            detail = f"{evidence.who} answered {_question(ask.asked)} anew, which corrects "
            detail += f"{words_of(former.asked.body)}, answered before."
            hint = "Unless that is wanted: let the program pass over corrections (XEP-0308)."
            return Finding(None, detail, hint, symptom=True)
    return None


def _unasked(evidence: Evidence, answered: Sequence[Ask]) -> Finding | None:
    """Return that the occupant answers talk, or what has no words, as commands; None if not."""
    answers = {ask.answer.body for ask in answered if ask.answer and is_command(plain(ask.asked))}
    name, known = searchable(evidence.nickname), {ask.answer for ask in answered}
    theirs = [
        (asked, answer)
        for asked, answer in pairwise(evidence.acts)
        if speaks(answer) and evidence.is_theirs(answer) and not evidence.is_theirs(asked)
        if is_message(asked) and 0 <= answer.at - asked.at <= ANSWER_SECONDS
    ]
    wordless = [it for it in _after_no_words(evidence) if it not in known]
    if len(wordless) >= LEFT_OUT and len({it.body for it in wordless}) == 1:
        detail = f"{evidence.who} said {words_of(wordless[0].body)} {len(wordless)} times, each "
        detail += "after something without words: a reaction, a chat state, a change of presence "
        detail += "or of the subject."
        hint = "Unless that is wanted: let the program pass over what has no body."
        return Finding(None, detail, hint, symptom=True)
    talk = [
        (asked, answer)
        for asked, answer in theirs
        if speaks(asked) and answer.body in answers
        if not (is_command(text := plain(asked)) or is_named(name, text))
    ]
    if len({plain(asked) for asked, _ in talk}) < LEFT_OUT:
        return None
    detail = f"{evidence.who} answered {_question(talk[-1][0])} with "
    detail += f"{words_of(talk[-1][1].body)}, as it answers commands."
    hint = "Does it look for a word anywhere in what is said? A pattern needs its beginning (^)."
    return Finding(None, detail, hint, symptom=True)


def _after_no_words(evidence: Evidence) -> list[Record]:
    """Return what the occupant said at once after a wordless act, if no words came shortly before.

    Clients send a chat state behind a message, too.
    """
    acts = sorted((*evidence.past.others, *evidence.past.spoken), key=attrgetter("number"))
    said, at = list[Record](), float("-inf")
    for before, act in pairwise(acts[-2 * MAX_ACTS :]):
        is_others = not evidence.is_theirs(before)
        if speaks(before):  # what it said may answer what others said
            at = before.at if is_others else float("-inf")
        is_changed = isinstance(before.event, OccupantChanged | SubjectChanged)
        is_wordless = is_others and (is_changed or (is_message(before) and not before.body))
        is_prompt = act.at - before.at <= ANSWER_SECONDS < act.at - at
        if is_wordless and is_prompt and speaks(act) and evidence.is_theirs(act):
            said.append(act)
    return said


def _unread(last: Sequence[Ask]) -> tuple[str, str] | None:
    """Return how the answers were given, if people cannot read them, and what to do about it."""
    events = [getattr(ask.answer, "event", None) for ask in last]
    hows = [how_said(event) for event in events if isinstance(event, MessageReceived)]
    if {*hows} == {"encrypted"} or "public" not in hows:
        return HOWS["encrypted" if hows[-1] == "encrypted" else "no-body"]
    return None


def _misdirected(evidence: Evidence, last: Sequence[Ask]) -> tuple[str, str] | None:
    """Return how all answers go to a wrong message, or come twice, and what to do about it."""
    again = {
        before.number
        for before, after in pairwise(evidence.acts)
        if before.body == after.body != "" and before.sender == after.sender
    }
    answers = [ask.answer for ask in last if ask.answer]
    if again.issuperset(it.number for it in answers):
        return "twice in the same words", TWICE
    ids = {id_ for act in evidence.acts for id_ in ids_of(act)}
    replied = [(getattr(ask.answer, "event", None), ids_of(ask.asked)) for ask in last]
    to_ids = [(getattr(event, "reply_to", None), asked) for event, asked in replied]
    if all(id_ in ids and id_ not in asked for id_, asked in to_ids):
        return "as a reply to another message", "Clients show such an answer beside that message."
    return None


def _odd(asks: Sequence[Ask], last: Sequence[Ask]) -> tuple[str, str] | None:
    """Return what is odd about the last answers, and what to do about it; it may be on purpose."""
    askers = {ask.asked.sender for ask in asks if ask.answer}
    if all(_is_to_another(ask, askers) for ask in last):
        return "by the name of another asker", "Does it mix up who asked?"
    bodies = {ask.answer.body for ask in last if ask.answer}
    asked = {ask.subject for ask in last}
    if len(bodies) == 1 and len(asked) == len(last):
        words = words_of(*bodies)
        return f"with {words}, which it says to everything", "Do the words name what is wrong?"
    if all(_is_behind(before, ask) for before, ask in pairwise(asks) if ask in last):
        return "with what the command before asked for", "Does it keep what it was asked last?"
    late = all(ask.seconds * 1000 > LATE_MS and is_command(ask.asked.body) for ask in last)
    if late:
        return f"late, after {_ms(last[-1])}", SLOW
    return None


def _is_behind(before: Ask, ask: Ask) -> bool:
    """Whether an answer has the arguments of the command before, and not its own."""
    text = plain(ask.answer) if ask.answer else ""
    return has_arguments(plain(before.asked), text) and not has_arguments(plain(ask.asked), text)


def _is_to_another(ask: Ask, askers: set[str]) -> bool:
    """Whether an answer is addressed to another asker, whom the question did not name."""
    asker, asked = ask.asked.sender, plain(ask.asked)
    text = plain(ask.answer) if ask.answer else ""
    to = {name for name in askers if is_put_to(searchable(name), text)}
    return bool(to) and not any(name == asker or is_named(searchable(name), asked) for name in to)


def is_left_out(evidence: Evidence) -> bool:
    """Whether the occupant left questions of others without an answer."""
    return bool(left_out(evidence, asks_of(evidence)))


def question_for(evidence: Evidence) -> str:
    """Return what to say so that the occupant answers: a ping in the form that it answers.

    Of a stranger's words it has only the nickname, and the signs around that.
    """
    name = evidence.nickname
    answered = [ask.asked for ask in asks_of(evidence) if ask.answer and ask.what]
    question = f"{form_of(answered[-1], name) if answered else '!'}ping"
    body = unquoted(answered[-1].body).lstrip() if answered else ""
    if is_command(question) or not is_addressed(searchable(name), body):
        return question if is_command(question) else f"{name}: ping"
    at, mark = "@" * body.startswith("@"), body.removeprefix("@")[len(name) :][:1]
    return f"{at}{name}{mark if mark in {*',:;>'} else ''} ping"


def knew(evidence: Evidence, ours: Record) -> str:
    """Return, as a sentence, that the occupant had answered the words of `ours` before.

    It also says since when the occupant has answered nobody. It is empty if there was no answer.
    """
    asks = asks_of(evidence)
    what = {ask.what for ask in asks if ask.asked.number == ours.number and ask.what}
    if not any(it.what in what for it in asks if it.answer and it.answer.number < ours.number):
        return ""
    since = _since_stopped(evidence, ours)
    return f"It had answered {words_of(ours.body)} before{f', {_from(since)}' if since else ''}."


def may_answer_next(evidence: Evidence) -> str:
    """Return what the bridge may say next so that a silent occupant answers; empty if nothing.

    It is a question in another form, if the occupant answers others and nobody in the form of the
    bridge's last message, or by its name, if it was not seen to answer. Else it is the same again,
    once: the occupant may answer only so often.
    """
    name, ours, asks = evidence.nickname, evidence.past.heard, asks_of(evidence)
    if ours is None or fallen(evidence) or evidence.programs.get(name) is False:
        return ""  # a person would be pestered
    answered = [ask for ask in asks if ask.answer and ask.what]
    if not answered:
        return f"{name}: ping" if is_command(plain(ours)) else ""
    if form_of(ours, name) not in {form_of(ask.asked, name) for ask in answered}:
        return question_for(evidence)
    same = [ask for ask in asks if ask.asked.is_own and plain(ask.asked) == plain(ours)]
    return ours.body if len(same) == 1 and ours.body == visible(ours.body) else ""


def left_before(evidence: Evidence, ours: Record) -> tuple[str, bool]:
    """Return what the bridge said in vain before `ours`, as a sentence, and if in the same words.

    The sentence is empty if the occupant answered what the bridge said before.
    """
    asks = asks_of(evidence)
    mine = [ask.asked for ask in asks if ask.asked.is_own]
    left = [ask.asked for ask in asks if ask.asked in mine[:-1] and not ask.answer]
    if not left or left[-1] != mine[-2] or not evidence.could_answer(left[-1]):
        return "", False
    when = f"{_question(left[-1])} at {iso(left[-1].at)}"
    differs = differences(evidence, ours, left[-1])
    is_same = plain(ours) == plain(left[-1])
    return f" It had left {when} without an answer. {differs}", is_same


def had_answered(evidence: Evidence, ours: Record) -> str:
    """Return, as a sentence, what the occupant answered of the bridge before it left `ours`."""
    mine = [ask for ask in asks_of(evidence) if ask.asked.is_own and ask.answer]
    if not mine:
        return ""
    ask = [*mine, *(ask for ask in mine if plain(ask.asked) == plain(ours))][-1]
    differs = differences(evidence, ask.asked, ours)
    return f" It answered {_question(ask.asked)} after {_ms(ask)}. {differs}"


def instead(evidence: Evidence) -> tuple[str, str]:
    """Return who answered the bridge at once where the occupant did not, and that as a sentence."""
    heard = evidence.past.heard if evidence.is_silent else None
    for act in reversed(evidence.past.others) if heard else ():
        seconds = act.at - heard.at if heard and act.number > heard.number else -1.0
        if 0.0 <= seconds <= ANSWER_SECONDS and speaks(act) and not act.is_own:
            said = f"{name_of(act.sender)} said {words_of(act.body)} {seconds * 1000:,.0f} ms"
            asked = f"the bridge's {words_of(heard.body if heard else '')}"
            return act.sender, f" {said} after {asked}: is that the program?"
    return "", ""


def spoke_after(evidence: Evidence) -> str:
    """Return, as a sentence, after what the occupant spoke at once, if it answered no question."""
    spoken = {it.number for it in evidence.past.spoken}
    theirs = [it for it in exchanges(evidence.acts) if it.answer.number in spoken]
    soon = [it for it in theirs if it.seconds <= ANSWER_SECONDS][-1:]
    if not soon or any(ask.answer for ask in asks_of(evidence)):
        return ""
    return f" It spoke {soon[0].seconds * 1000:,.0f} ms after {_question(soon[0].asked)}."


def _is_explained(evidence: Evidence, group: LeftOut, answered: Sequence[Ask]) -> bool:
    """Whether messages without an answer are no sign that anything is wrong.

    That is so in each of these cases:

    - The occupant answers others, and has never answered a message of this form.
    - It has since answered the same words of another sender.
    - It has never answered these words, and has answered others since: it may not know the command.
    """
    what, forms = group.asks[-1].what, [form_of(ask.asked, evidence.nickname) for ask in answered]
    since = [ask.what for ask in answered if ask.asked.number > group.last.number]
    is_known = any(ask.what == what for ask in answered)
    is_other = bool(forms) and form_of(group.last, evidence.nickname) not in forms
    return is_other or (what in since if is_known else bool(since))


def _like(evidence: Evidence, answered: Sequence[Ask], ours: Record) -> list[Ask]:
    """Return the messages of others that were answered at once and have the form of `ours`.

    If there are none, return all that were answered at once, provided that a program answered.
    """
    name, says = evidence.nickname, evidence.programs.get(evidence.nickname)
    fast = [ask for ask in answered if ask.seconds <= ANSWER_SECONDS and not ask.asked.is_own]
    like = [ask for ask in fast if form_of(ask.asked, name) == form_of(ours, name)]
    return like or (fast if says or name in regulars(evidence.acts) else [])


def _compared(evidence: Evidence, ask: Ask, last: Record, left: Sequence[Record]) -> Finding:
    """Return how a message that the occupant answered differs from the `last` that it `left`.

    If it answered nobody after the first that it left, it may have stopped: then the sender need
    not matter.
    """
    word = [plain(record).split()[:1] for record in (ask.asked, last)]
    is_same = word[0] == word[1] or is_encrypted(last)
    left_out = dict.fromkeys(record.sender for record in left)
    often = last.is_own or len(left) >= LEFT_OUT
    detail = f"{evidence.who} answered {_question(ask.asked)} after {_ms(ask)}, "
    runs = last.is_own and evidence.signal
    if not runs and (since := _since_stopped(evidence, left[0])):
        detail += f"{_from(since)}: it may have stopped. {differences(evidence, ask.asked, last)}"
        hint = f"Let {name_of(ask.asked.sender)} say again what was answered, word for word: if "
        hint += "that is not answered either, the program has stopped, and its own log should say "
        hint += "where."
        return Finding(False if often else None, detail, hint, symptom=True)
    again = ask.answer is not None and ask.answer.number > left[0].number
    # Another command may be one that it does not know, or fails in.
    different = _contrast(evidence, ask.asked, last)
    is_alike = all(it.startswith(("the affil", "the role", "the account")) for it in different)
    least = 1 if is_alike else LEFT_OUT  # if the messages differ, that may be the reason
    pause = _pause(evidence, left, least) if is_same and again else None
    same = [it.asked for it in asks_of(evidence) if it.answer and it.asked.sender == last.sender]
    before = [it for it in same if it.number < left[0].number and not _contrast(evidence, it, last)]
    others = [name for name in left_out if name != last.sender][:MAX_ALIKE]
    is_cause = is_same and ask.asked.sender not in left_out and often and again
    is_cause = is_cause and pause is None and not before
    if last.is_own:
        nor = f", nor what {list_of(others)} said" if others else ""
        detail += f"never the bridge's {words_of(last.body)}{nor}. "
    else:
        detail += f"and left {_question(last)} without an answer{_times(left)}. "
    hint = "Does it know only some people, accounts or commands? Say what was answered, word for "
    hint += "word, or let it know the sender."
    if pause is not None:
        detail += f"Each time it had answered somebody at most {pause:,.0f} s before: perhaps it "
        detail += "answers only so often. "
        who = "the bridge" if last.is_own else name_of(last.sender)
        hint = f"Let {who} say it before others do. {hint}"
    elif before:
        detail += f"It had answered {_question(before[-1])} before: does it answer only so often? "
    detail += differences(evidence, ask.asked, last)
    return Finding(False if often else None, detail, hint, symptom=not is_cause)


def _from(since: Sequence[Record]) -> str:
    times = f", though asked {len(since)} times" if len(since) > 1 else ""
    return f"and nobody since {_question(since[0])} at {iso(since[0].at)}{times}"


def _since_stopped(evidence: Evidence, left: Record) -> list[Record]:
    """Return the messages without an answer, `left` among them, if none was answered since that."""
    asks = asks_of(evidence)
    answered = max((ask.answer.number for ask in asks if ask.answer), default=0)
    since = (ask.asked for ask in asks if not ask.answer and ask.asked.number > answered)
    missed = [asked for asked in since if evidence.could_answer(asked)]
    return [] if answered > left.number else missed or [left]


def _pause(evidence: Evidence, left: Sequence[Record], least: int) -> float | None:
    """Return how long after an answer the messages that were `left` came, at most, in seconds.

    Return None if the occupant answered one that came as soon, or if too little is known of that.
    """
    asks = [ask for ask in asks_of(evidence) if ask.answer]
    answered = [ask.answer.at for ask in asks if ask.answer]

    def since(asked: Record) -> float:
        return asked.at - max((at for at in answered if at <= asked.at), default=float("-inf"))

    longest, pauses = max(map(since, left)), [since(ask.asked) for ask in asks]
    said = [*left, *(ask.asked for ask in asks[-1:])]
    words = {"".join(record.body.split()[:1]) for record in said}
    known = [pause for pause in pauses if pause < float("inf")]
    is_known = len(known) >= (least if longest <= TURN_SECONDS else LEFT_OUT)
    is_limited = len(words) == 1 and is_known and longest < min(pauses)
    return longest if is_limited else None


def _times(left: Sequence[Record]) -> str:
    times = f" {len(left)} times" if len(left) > 1 else ""
    return f"{times}, since {iso(left[0].at)}"


def _question(record: Record) -> str:
    """Return a message and its sender, for a sentence."""
    what = words_of(record.body) if record.body else "something"
    if how := getattr(record.event, "encrypted", None):
        what = f"what was encrypted ({words_of(how)})"
    return f"the bridge's {what}" if record.is_own else f"{what} of {name_of(record.sender)}"


def _ms(ask: Ask) -> str:
    return f"{ask.seconds * 1000:,.0f} ms"


def differences(evidence: Evidence, asked: Record, left: Record) -> str:
    """Return a sentence on how the sender and the message `left` differ from those `asked`."""
    least = "nothing that is seen (xmppTrace has both stanzas)"
    least = least if unquoted(asked.body) == unquoted(left.body) else "only the words"
    return f"What differs: {', '.join(_contrast(evidence, asked, left)) or least}."


def _contrast(evidence: Evidence, asked: Record, left: Record) -> list[str]:
    """Return how the sender and the message `left` differ from those `asked`."""
    whose = "the bridge's" if left.is_own else f"{name_of(left.sender)}'s"
    people = {other.nickname: other for other in evidence.status.occupants}
    them, us = (people.get(record.sender) for record in (asked, left))
    us = evidence.status.me if left.is_own else us
    different = list[str]()
    for what in ("affiliation", "role", "account"):
        theirs, own = getattr(them, what, None), getattr(us, what, None)
        if theirs and own and theirs != own:
            different.append(f"the {what} ({words_of(theirs)}, {whose} {words_of(own)})")
    if _is_plain(asked.sender) != _is_plain(left.sender):
        different.append("the characters in the nickname")
    theirs_said, own_said = unquoted(asked.body), unquoted(left.body)
    form, own_form = (form_of(record, evidence.nickname) for record in (asked, left))
    hidden = [visible(text) != text for text in (theirs_said, own_said)]
    if form != own_form:
        different.append("the form of the message")
    elif theirs_said != own_said and "".join(theirs_said.split()) == "".join(own_said.split()):
        different.append("the blanks")
    elif searchable(theirs_said).split()[:1] != searchable(own_said).split()[:1]:
        different.append("the command")
    elif theirs_said.split()[:1] != own_said.split()[:1]:
        different.append("how the command is spelt")
    if hidden[0] != hidden[1]:
        different.append("hidden characters")
    elif theirs_said.isascii() != own_said.isascii():
        different.append("characters other than ASCII")
    lengths = sorted(map(len, (theirs_said, own_said)))
    if lengths[1] > LONG * max(lengths[0], LONG):
        different.append("the length")
    marks = {"replaces": "whether it is a correction", "reply_to": "whether it is a reply"}
    marked = [[bool(getattr(it.event, mark, None)) for mark in marks] for it in (asked, left)]
    different += [it for it, a, b in zip(marks.values(), *marked, strict=True) if a != b]
    if marked[0] == marked[1] and (asked.body == theirs_said) != (left.body == own_said):
        different.append("whether it quotes")
    return different


def _is_plain(nickname: str) -> bool:
    """Whether a nickname has only characters that every program can handle."""
    return nickname.isascii() and all(it.isalnum() or it in "-_." for it in nickname)


def is_aside(evidence: Evidence, heard: Record) -> bool:
    """Whether the occupant may answer in private on purpose.

    It has answered another command in public, and this one to nobody.
    """
    asks = asks_of(evidence)
    ours = {ask.what for ask in asks if ask.asked.number == heard.number and ask.what}
    answered = {ask.what for ask in asks if ask.answer and ask.what}
    return bool(ours and answered) and not ours & answered


def encrypted(evidence: Evidence) -> Finding:
    """Find out whether one person's encrypted messages are left without an answer.

    Two people who encrypt may speak with each other. So it is a cause only if one person encrypts
    and got no answer to that, while others got answers.
    """
    who, public = evidence.who, [record for record in evidence.acts if is_message(record)]
    secret = [*filter(is_encrypted, public)]
    nicknames = {record.sender for record in secret}
    if all(evidence.is_theirs(record) for record in public):
        return Finding(None, "Nobody else has said anything.")
    if len(nicknames) != 1 or evidence.nickname in nicknames:
        return Finding(True, f"No single person writes to {who} with encryption.")
    (nickname,) = nicknames
    if [record for record in public if record.sender == nickname][-1] is not secret[-1]:
        return Finding(True, f"{name_of(nickname)} does not write with encryption any more.")
    asks = asks_of(evidence)
    theirs = [ask for ask in asks if ask.asked in secret]
    answered = [ask for ask in asks if ask.what and ask.answer]
    how = words_of(getattr(secret[-1].event, "encrypted", None))
    detail = f"{name_of(nickname)} wrote with encryption ({how}) at {iso(secret[-1].at)}, "
    detail += f"which {who} cannot read without its keys"
    hint = "Turn encryption off for this room in the client that gives the command."
    if not answered or len(secret) < LEFT_OUT or any(ask.answer for ask in theirs):
        return Finding(None, f"{detail}.", hint, remark=True)
    detail += f": it answered {_question(answered[-1].asked)} after {_ms(answered[-1])}, and left "
    detail += f"{name_of(nickname)} without an answer{_times(secret)}."
    return Finding(False, detail, hint)
