"""Pairs what is asked of programs in a room with their answers. Pure.

A question is a command, words that a program has answered at once before, or a message that begins
with a program's name. Such a message needs a question mark, unless the program has answered such
messages before, or is the occupant that is looked at. Whether people owe each other an answer
cannot be known.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, pairwise
from math import inf
from typing import NamedTuple

from bridge.text import searchable
from bridge.wire import speech
from bridge.xmpp.checks.evidence import Evidence, disguise
from bridge.xmpp.checks.exchanges import form_of, is_encrypted, is_message, plain, speaks
from bridge.xmpp.model.journal import Record

TIMES = 2
"""How often a program must have answered words that are no command, or its name, before we take
them for a question to it."""

SHARE = 4
"""A program answers at least a quarter of all questions in the same words. Who answers fewer may do
so by chance."""

MAX_PROGRAMS = 20
"""Most programs of a room: the programs with the most answers."""


PATIENCE_SECONDS = 10.0
"""Another occupant's message counts as left without an answer after this time; after
`ANSWER_SECONDS` if the occupant has answered others before."""


class Ask(NamedTuple):
    """A message that asks something of programs, and its answer."""

    asked: Record
    to: frozenset[str]
    """The nicknames of the programs that may answer it; empty if none is known."""
    answer: Record | None = None
    """The first message that answers it; None if it has no answer."""
    what: str = ""
    """What it asks one occupant for: the first words, as far as a program looks at them; empty if
    the message is encrypted, or has hidden characters, so that a program sees something else."""

    @property
    def subject(self) -> str:
        """The last word of `what` without signs: `!ping` and `Robot: ping` ask for the same."""
        return "".join(filter(str.isalnum, "".join(self.what.split()[-1:])))

    @property
    def seconds(self) -> float:
        """How long the answer took; endless if there is none."""
        return self.answer.at - self.asked.at if self.answer else float("inf")


class LeftOut(NamedTuple):
    """Messages of one sender, all asking for the same, that an occupant left without an answer."""

    sender: str
    asks: Sequence[Ask]
    """The oldest first, from the last message that got an answer on."""

    @property
    def last(self) -> Record:
        """The newest of the messages."""
        return self.asks[-1].asked


def questions(acts: Iterable[Record]) -> list[Ask]:
    """Return what was asked in one room; `acts` are the room's events, the oldest first."""
    said = [act for act in acts if speaks(act) and act.is_live]
    texts = [*map(plain, said)]
    asking = {act.sender for act, text in zip(said, texts, strict=True) if speech.is_command(text)}
    total, prompt, by_name = Counter(map(_words, texts)), Counter[tuple[str, str]](), Counter[str]()
    for (asked, text), (answer, _) in pairwise(zip(said, texts, strict=True)):
        who = answer.sender
        if who not in {asked.sender, *asking} and answer.at - asked.at <= speech.ANSWER_SECONDS:
            prompt[_words(text), who] += 1
            by_name[who] += speech.is_addressed(searchable(who), text)
    answering, programs = defaultdict[str, set[str]](set), Counter[str]()
    for (words, who), count in prompt.items():
        if count >= (1 if speech.is_command(words) else TIMES) and SHARE * count >= total[words]:
            answering[words].add(who)
            programs[who] += count
    known = {name for name, _ in programs.most_common(MAX_PROGRAMS)}
    called = {name for name in known if by_name[name] >= TIMES}
    asked_of = [_asked_of(text, known, called, answering) for text in texts]
    return _paired(said, asked_of, asking)


def asks_of(evidence: Evidence) -> list[Ask]:
    """Return the public messages that ask the occupant for an answer, the oldest first.

    They are commands, messages that begin with the nickname, encrypted ones, and the words of the
    bridge if others say the same. While another may have had the nickname, nothing counts.
    """
    name, outcome = evidence.nickname, evidence.past.outcome
    unsure = [it.number for it in evidence.past.others if evidence.is_theirs(it)][:1]
    left = [it.number for it in evidence.past.gone if it.number > max(unsure, default=inf)]
    since = min(left, default=max(unsure, default=-inf))
    programs, acts = {name}, [it for it in evidence.acts if is_message(it) and it.number > since]
    ours = plain(outcome) if outcome else ""
    answering = {_words(ours): programs} if ours else {}
    asked_of = [
        programs if is_encrypted(act) else _asked_of(plain(act), programs, programs, answering)
        for act in acts
    ]
    mine = (None if evidence.is_theirs(act) else to for act, to in zip(acts, asked_of, strict=True))
    return [ask._replace(what=_what(ask.asked, name)) for ask in _paired(acts, [*mine], set())]


def _what(asked: Record, nickname: str) -> str:
    text = plain(asked)
    words = text.removeprefix("@").split()[: 1 + speech.is_addressed(searchable(nickname), text)]
    return "" if is_encrypted(asked) or disguise(asked.body) else " ".join(words)


def left_out(evidence: Evidence, asks: Sequence[Ask]) -> list[LeftOut]:
    """Return the messages that the occupant left without an answer, the newest group last.

    A message does not count if the occupant was away, or if it speaks about the occupant. Nor does
    it count if another occupant said something at once: then it may be for another program.
    `answering.encrypted` looks at encrypted messages.
    """
    name, acts = evidence.nickname, evidence.acts
    answered = [ask for ask in asks if ask.answer]
    answers = {ask.what for ask in answered}
    forms = {form_of(ask.asked, name) for ask in answered} | {searchable(name)}
    patience = speech.ANSWER_SECONDS if answered else PATIENCE_SECONDS
    spoke = [(act.at, act.number, act.sender) for act in acts if speaks(act)]

    def is_left(ask: Ask) -> bool:
        at, who = ask.asked.at, ask.asked.sender
        text = plain(ask.asked)
        is_about = speech.is_addressed(searchable(name), text) and not speech.is_put_to(
            searchable(name), text
        )
        if is_about and ask.what not in answers:
            return False
        known = form_of(ask.asked, name) in forms
        seconds = speech.ANSWER_SECONDS if known else PATIENCE_SECONDS
        others = [
            nickname
            for time, number, nickname in spoke[bisect_left(spoke, (at,)) :]
            if time - at <= seconds and number > ask.asked.number and nickname not in {who, name}
        ]
        return not others and evidence.now - at >= patience and evidence.was_there(ask.asked)

    def same(ask: Ask) -> tuple[str, str]:
        return ask.asked.sender, ask.what

    groups = list[LeftOut]()
    for (sender, _), several in groupby(sorted(asks, key=same), key=same):
        group = [*several]
        last = max((ask.answer.number for ask in group if ask.answer), default=None)
        after = [it for it in group if not it.answer and (last is None or it.asked.number > last)]
        since = [ask for ask in after if is_left(ask)]
        if since and since[0].what and not since[0].asked.is_own:
            groups.append(LeftOut(sender, since))
    return sorted(groups, key=lambda group: group.last.number)


def is_unanswered(question: Ask, end: float, gaps: Iterable[tuple[float, float]]) -> bool:
    """Whether it is sure that no answer came: the records go on for long enough, without a gap.

    `end` is when the records end. A gap is a time from which events may be missing.
    """
    since = question.asked.at
    until = since + speech.TURN_SECONDS
    whole = all(last < since or first > until for first, last in gaps)
    return question.answer is None and end >= until and whole


def _paired(
    said: Sequence[Record], asked_of: Sequence[set[str] | None], asking: set[str]
) -> list[Ask]:
    """Pair questions with answers; `asked_of` is what `_asked_of` returns for each message.

    `asking` has the senders of commands, who answer no question to unknown programs. A correction
    (XEP-0308) takes the place of its sender's message that has no answer yet.
    """
    asked, waiting = list[Ask](), list[int]()
    for act, to in zip(said, asked_of, strict=True):
        who = act.sender
        waiting = [it for it in waiting if act.at - asked[it].asked.at <= speech.THREAD_SECONDS]
        mine = [it for it in waiting if who in asked[it].to or not (asked[it].to or who in asking)]
        to_id = getattr(act.event, "reply_to", None)
        reply = [it for it in mine if to_id in ids_of(asked[it].asked)] if to_id else []
        mine = [it for it in mine if not is_encrypted(asked[it].asked)] or mine  # it reads those
        prompt = [it for it in mine if act.at - asked[it].asked.at <= speech.ANSWER_SECONDS]
        if chosen := reply or prompt[:1] or mine[-1:]:
            asked[chosen[0]] = asked[chosen[0]]._replace(answer=act)
            waiting.remove(chosen[0])
        elif to is not None:
            ask, former = Ask(act, frozenset(to - {who})), getattr(act.event, "replaces", None)
            own = (it for it in waiting if asked[it].asked.sender == who)
            corrected = [it for it in own if former in ids_of(asked[it].asked)]
            if corrected:
                asked[corrected[0]] = ask
            else:
                asked.append(ask)
                waiting.append(len(asked) - 1)
    return asked


def _asked_of(
    text: str, programs: set[str], called: set[str], answering: Mapping[str, set[str]]
) -> set[str] | None:
    """Return which programs a text asks, none if that is unknown; None if it is no question."""
    addressable = programs if text.endswith("?") else called
    to = {name for name in addressable if speech.is_addressed(searchable(name), text)}
    to = to or answering.get(_words(text), set())
    return to or (programs if speech.is_command(text) else None)


def _words(text: str) -> str:
    """Return what programs tell questions apart by: the first word of a command, or all words."""
    return text.split()[0] if speech.is_command(text) else text


def ids_of(record: Record) -> set[str]:
    """Return the ids by which another message can name this one."""
    ids = (getattr(record.event, name, None) for name in ("id", "stanza_id"))
    return {id_ for id_ in ids if id_}
