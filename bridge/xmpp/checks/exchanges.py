"""Finds out who answers whom in a room, and who answers as only programs can. Pure.

A program answers fast and evenly. People do so by chance only. Where a person may look like a
program, we ask for more evidence.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from bridge.text import searchable
from bridge.wire import speech
from bridge.wire.speech import (
    ANSWER_SECONDS,
    COMMAND_CHARACTERS,
    LOOP_MESSAGES,
    SPREAD_SECONDS,
    THREAD_SECONDS,
    TURN_SECONDS,
    is_addressed,
    is_command,
)
from bridge.xmpp.checks.evidence import (
    body_of,
    is_own,
    is_public,
    sender_of,
)
from bridge.xmpp.model import events
from bridge.xmpp.model.journal import Record

ANSWERS = 3
"""An occupant with so many even answers is a program."""


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
        and sender_of(asked) != sender_of(answer)
        and answer.at - asked.at <= THREAD_SECONDS
    ]


def regulars(acts: Sequence[Record]) -> set[str]:
    """Return the nicknames of the occupants who answer as only programs do, given the room's acts.

    Such an occupant
    - has answered at least `ANSWERS` messages of others that have the same form,
    - has answered at least half of all messages of that form,
    - was always fast and even in these answers, and
    - was fast in at least half of all its answers.
    """
    answers = defaultdict[tuple[str, str], list[Answered]](list)
    fast, total = Counter[str](), Counter[str]()
    for exchange in exchanges(acts):
        who = sender_of(exchange.answer)
        answers[who, form_of(exchange.asked, who)].append(exchange)
        total[who] += 1
        fast[who] += exchange.seconds <= ANSWER_SECONDS
    texts = [(act.number, sender_of(act), plain(act)) for act in acts if speaks(act)]
    programs = set[str]()
    for (who, form), theirs in answers.items():
        even = is_steady([exchange.seconds for exchange in theirs])
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


def is_steady(seconds: Sequence[float]) -> bool:
    """Whether answers that took so long were all fast and even."""
    return max(seconds) <= ANSWER_SECONDS and max(seconds) - min(seconds) < SPREAD_SECONDS


def alternations(acts: Sequence[Record], nickname: str) -> list[list[Record]]:
    """Return what the occupant and another said in turn, while no third occupant did anything.

    A run has at least `LOOP_MESSAGES` turns. Of a turn with several messages it has the first. The
    newest runs come first. Messages of the bridge are left out.
    """
    runs, longest = list[list[Record]]([[]]), THREAD_SECONDS
    for act in acts:
        run = runs[-1]
        if not speaks(act) or is_own(act):
            runs.append([])
        elif not run or act.at - run[-1].at > longest:
            runs.append([act])
        elif sender_of(act) == sender_of(run[-1]):
            if act.at - run[-1].at > SPREAD_SECONDS:
                runs.append([act])
        elif len(run) > 1 and sender_of(act) != sender_of(run[-2]):
            runs.append([run[-1], act])
        else:
            run.append(act)
    # Both may be answering what others did before: two programs greet each newcomer.
    numbers, times = [act.number for act in acts], [act.at for act in acts]
    return [
        run
        for run in reversed(runs)
        if len(run) >= LOOP_MESSAGES
        and nickname in map(sender_of, run[:2])
        and len(run)
        > 2 * (bisect_left(numbers, run[0].number) - bisect_left(times, run[0].at - TURN_SECONDS))
    ]


def is_commanded(run: Sequence[Record]) -> bool:
    """Whether one side mostly gives commands and the other answers them, which is no loop.

    An answer may begin with the asker's name. So names decide only if signs do not.
    """
    sides = run[::2], run[1::2]
    for with_names in (False, True):
        first, second = (
            2 * sum(_is_order(it, sender_of(other[0]) * with_names) for it in side) > len(side)
            for side, other in (sides, sides[::-1])
        )
        if first != second:
            return True
    return False


def _is_order(record: Record, to: str) -> bool:
    """Whether a message has the sign of a command, is addressed to `to`, or is secret."""
    text, is_secret = plain(record), is_encrypted(record)
    return is_secret or is_command(text) or is_addressed(searchable(to), text)


def is_fast(run: Sequence[Record]) -> bool:
    """Whether both sides answered as only programs do, for `LOOP_MESSAGES`."""
    windows = range(len(run) - LOOP_MESSAGES + 1)
    return any(_is_even(run[start : start + LOOP_MESSAGES]) for start in windows)


def _is_even(run: Sequence[Record]) -> bool:
    took = [after.at - before.at for before, after in pairwise(run)]
    return is_steady(took[::2]) and is_steady(took[1::2])


def form_of(record: Record, to: str) -> str:
    """Return the form of a message to the program with the nickname `to`."""
    return speech.form_of(plain(record), searchable(to))


def plain(record: Record) -> str:
    """Return the beginning of a message as programs look at it, in one case."""
    return searchable(body_of(record)[:COMMAND_CHARACTERS]).strip()


def is_encrypted(record: Record) -> bool:
    """Whether only those with the keys can read a message."""
    return bool(getattr(record.event, "encrypted", None))


def is_message(record: Record) -> bool:
    """Whether the record is a message to all in the room, with a body or without."""
    return isinstance(record.event, events.MessageReceived) and is_public(record)


def speaks(record: Record) -> bool:
    """Whether an occupant says something to all in the room."""
    return is_message(record) and bool(body_of(record)) and bool(sender_of(record))
