"""Pairs what is asked of programs in a room with their answers. Pure.

A question is a command, words that a program has answered at once before, or a message to a
program by name: one with a question mark, or any if the program answers such messages. Whether
people owe each other an answer cannot be known.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from bridge.text import searchable
from bridge.wire.speech import (
    ANSWER_SECONDS,
    COMMAND_CHARACTERS,
    THREAD_SECONDS,
    TURN_SECONDS,
    is_addressed,
    is_command,
)
from bridge.xmpp.checks.evidence import body_of, sender_of
from bridge.xmpp.checks.exchanges import speaks
from bridge.xmpp.model.events import Source
from bridge.xmpp.model.journal import Record

TIMES = 2
"""How often a program has to answer words that are no command, or its name, to be asked by them."""

SHARE = 4
"""A program answers at least one in so many questions of the same words; chance does not."""

MAX_PROGRAMS = 20
"""Most programs of a room: those with the most answers."""


class Inquiry(NamedTuple):
    """A message that asks something of a program, and its answer."""

    asked: Record
    answer: Record | None = None
    """The first message that answers it; None if it has no answer."""
    to: frozenset[str] = frozenset()
    """The nicknames of the programs that may answer it; empty if none is known."""


def questions(acts: Iterable[Record]) -> list[Inquiry]:
    """Return what was asked in one room; `acts` are the room's events, the oldest first."""
    said = [act for act in acts if speaks(act) and _is_live(act)]
    texts = [searchable(body_of(act)[:COMMAND_CHARACTERS]).strip() for act in said]
    asking = {sender_of(act) for act, text in zip(said, texts, strict=True) if is_command(text)}
    total, prompt, by_name = Counter(map(_words, texts)), Counter[tuple[str, str]](), Counter[str]()
    for (asked, text), (answer, _) in pairwise(zip(said, texts, strict=True)):
        who = sender_of(answer)
        if who not in {sender_of(asked), *asking} and answer.at - asked.at <= ANSWER_SECONDS:
            prompt[_words(text), who] += 1
            by_name[who] += is_addressed(searchable(who), text)
    answering, programs = defaultdict[str, set[str]](set), Counter[str]()
    for (words, who), count in prompt.items():
        if count >= (1 if is_command(words) else TIMES) and SHARE * count >= total[words]:
            answering[words].add(who)
            programs[who] += count
    known = {name for name, _ in programs.most_common(MAX_PROGRAMS)}
    called = {name for name in known if by_name[name] >= TIMES}
    asked_of = [_asked_of(text, known, called, answering) for text in texts]
    return _paired(said, asked_of, asking)


def is_unanswered(question: Inquiry, end: float, gaps: Iterable[tuple[float, float]]) -> bool:
    """Whether no answer is sure: records go on for long enough, and have no gap in that time.

    `end` is when the records end. A gap is a time from which events may be missing.
    """
    since = question.asked.at
    until = since + TURN_SECONDS
    whole = all(last < since or first > until for first, last in gaps)
    return question.answer is None and end >= until and whole


def _paired(
    said: Sequence[Record], asked_of: Sequence[set[str] | None], asking: set[str]
) -> list[Inquiry]:
    """Pair questions with answers; for each message it is given who is asked, None if nobody is."""
    asked, waiting = list[Inquiry](), list[int]()
    for act, to in zip(said, asked_of, strict=True):
        who = sender_of(act)
        waiting = [it for it in waiting if act.at - asked[it].asked.at <= THREAD_SECONDS]
        mine = [it for it in waiting if who in asked[it].to or not (asked[it].to or who in asking)]
        reply = [it for it in mine if getattr(act.event, "reply_to", None) in _ids(asked[it].asked)]
        prompt = [it for it in mine if act.at - asked[it].asked.at <= ANSWER_SECONDS]
        if chosen := reply or prompt[:1] or mine[-1:]:
            asked[chosen[0]] = asked[chosen[0]]._replace(answer=act)
            waiting.remove(chosen[0])
        elif to is not None:
            asked.append(Inquiry(act, to=frozenset(to - {who})))
            waiting.append(len(asked) - 1)
    return asked


def _asked_of(
    text: str, programs: set[str], called: set[str], answering: Mapping[str, set[str]]
) -> set[str] | None:
    """Return which programs a text asks, none if that is unknown; None if it is no question."""
    addressable = programs if text.endswith("?") else called
    to = {name for name in addressable if is_addressed(searchable(name), text)}
    to = to or answering.get(_words(text), set())
    return to or (programs if is_command(text) else None)


def _words(text: str) -> str:
    """Return what programs tell questions apart by: the first word of a command, or all words."""
    return text.split()[0] if is_command(text) else text


def _ids(record: Record) -> set[str]:
    ids = (getattr(record.event, name, None) for name in ("id", "stanza_id"))
    return {id_ for id_ in ids if id_}


def _is_live(act: Record) -> bool:
    return getattr(act.event, "source", None) is Source.LIVE
