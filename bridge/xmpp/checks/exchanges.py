"""Finds out who answers whom in a room, and who answers as only programs can. Pure.

A program answers fast and evenly. People do so by chance only. Where a person may look like a
program, we ask for more evidence.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

from bridge.text import searchable
from bridge.wire import speech
from bridge.xmpp.model import events
from bridge.xmpp.model.journal import Record

ANSWERS = 3
"""An occupant with at least this many even answers is a program."""


class Answered(NamedTuple):
    """A message, and the message of another occupant that follows it."""

    asked: Record
    answer: Record

    @property
    def seconds(self) -> float:
        """How long the answer took."""
        return self.answer.at - self.asked.at


def exchanges(acts: Sequence[Record]) -> list[Answered]:
    """Return each message that has an answer; the answer is the next event."""
    return [
        Answered(asked, answer)
        for asked, answer in pairwise(acts)
        if speaks(asked)
        and speaks(answer)
        and asked.sender != answer.sender
        and answer.at - asked.at <= speech.THREAD_SECONDS
    ]


def regulars(acts: Sequence[Record]) -> set[str]:
    """Return the nicknames of the occupants who answer as only programs do, given the room's acts.

    Such an occupant is in a loop of programs, or

    - has answered at least `ANSWERS` messages of others that have the same form,
    - has answered at least half of all messages of that form,
    - was always fast and even in these answers, and
    - was fast in at least half of all its answers.
    """
    answers = defaultdict[tuple[str, str], list[Answered]](list)
    fast, total = Counter[str](), Counter[str]()
    for exchange in exchanges(acts):
        who = exchange.answer.sender
        if speech.is_command(plain(exchange.answer)):
            continue  # a person in a hurry gives it again after each answer
        answers[who, form_of(exchange.asked, who)].append(exchange)
        total[who] += 1
        fast[who] += exchange.seconds <= speech.ANSWER_SECONDS
    texts = [(act.number, act.sender, plain(act)) for act in acts if speaks(act)]
    loops = (circle for circle in circles(acts) if circle.is_fast and not circle.is_commanded)
    programs = set[str]().union(*(circle.names for circle in loops))
    for (who, form), theirs in answers.items():
        even = speech.is_steady([exchange.seconds for exchange in theirs])
        if len(theirs) >= ANSWERS and even and 2 * fast[who] >= total[who]:
            first, name = theirs[0].asked.number, searchable(who)
            asked = sum(
                speech.form_of(text, name) == form
                for number, nickname, text in texts
                if number >= first and nickname != who
            )
            if asked <= 2 * len(theirs):
                programs.add(who)
    return programs


def circles(acts: Sequence[Record], nickname: str = "") -> list[speech.Circle]:
    """Return the circles in a room's acts; with a nickname, only those in which it has a turn.

    The newest circle is the first. The number of each message is its record's. Messages of the
    bridge belong to no circle.
    """
    stretches = groupby(acts, lambda act: speaks(act) and not act.is_own)
    ours = [
        circle
        for speak, stretch in stretches
        if speak
        for circle in speech.circles(map(_said, stretch))
        if not nickname or nickname in circle.names
    ]

    def answers_others(circle: speech.Circle) -> bool:
        """Whether each turn may answer an act of others before it: two programs greet newcomers."""
        first, _, *_ = circle.turns
        before = sum(
            act.number < first.number and first.at - act.at <= speech.TURN_SECONDS for act in acts
        )
        return len(circle.turns) <= circle.size * before

    alone = [circle for circle in ours if not answers_others(circle)]
    return sorted(alone, key=lambda circle: -circle.turns[0].number)


def _said(record: Record) -> speech.Utterance:
    who, text = record.sender, plain(record)
    return speech.Utterance(who, record.at, text, is_encrypted(record), record.number)


def form_of(record: Record, to: str) -> str:
    """Return the form of a message to the program with the nickname `to`."""
    return speech.form_of(plain(record), searchable(to))


def plain(record: Record) -> str:
    """Return the beginning of a message as people see it, without case."""
    return searchable(speech.unquoted(record.body)[: speech.COMMAND_CHARACTERS]).strip()


def is_encrypted(record: Record) -> bool:
    """Whether a message can be read only with keys."""
    return bool(getattr(record.event, "encrypted", None))


def is_message(record: Record) -> bool:
    """Whether the record is a message to all in the room, with a body or without."""
    return isinstance(record.event, events.MessageReceived) and record.is_public


def speaks(record: Record) -> bool:
    """Whether an occupant says something to all in the room."""
    return is_message(record) and bool(record.body) and bool(record.sender)
