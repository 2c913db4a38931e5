"""Finds out who answers whom in a room, and who answers as only programs can. Pure.

A program answers fast and evenly. People do so by chance only. Where a person may look like a
program, we ask for more evidence.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import groupby, pairwise
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
    Evidence,
    body_of,
    is_disguised,
    is_own,
    is_public,
    sender_of,
)
from bridge.xmpp.model import events
from bridge.xmpp.model.journal import Record

ANSWERS = 3
"""An occupant with so many even answers is a program."""

PATIENCE_SECONDS = 10.0
"""A message of another occupant counts as left without an answer after so many seconds; after
`ANSWER_SECONDS` if the occupant has answered others before."""


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


class Ask(NamedTuple):
    """A message that asks an occupant for an answer, and the answer."""

    asked: Record
    what: str
    """What it asks for: the first words of it, as far as a program looks at them; empty if the
    message is encrypted, or has hidden characters, so that a program sees something else."""
    answer: Record | None = None

    @property
    def seconds(self) -> float:
        """How long the answer took; endless if there is none."""
        return self.answer.at - self.asked.at if self.answer else float("inf")


class LeftOut(NamedTuple):
    """Messages of one sender, all asking for the same, that an occupant left without an answer."""

    sender: str
    asks: Sequence[Ask]
    """The oldest first. Each earlier one with an answer is left out."""

    @property
    def last(self) -> Record:
        """The newest of the messages."""
        return self.asks[-1].asked


def asks_of(evidence: Evidence) -> list[Ask]:
    """Return the public messages that ask the occupant for an answer, the oldest first.

    They are commands, messages that begin with the nickname, encrypted ones, and the words of the
    bridge if others say the same. What the occupant says answers the newest of them that has no
    answer yet.
    """
    acts, name = evidence.acts, searchable(evidence.nickname)
    ours = _plain(evidence.past.outcome) if evidence.past.outcome else ""
    asks = list[Ask]()
    for act in filter(is_message, acts):
        if not evidence.is_theirs(act):
            text, secret = _plain(act), bool(getattr(act.event, "encrypted", None))
            addressed = is_addressed(name, text)
            if secret or addressed or is_command(text) or (ours and text == ours):
                words = text.removeprefix("@").split()[: 1 + addressed]
                asks.append(
                    Ask(act, "" if secret or is_disguised(body_of(act)) else " ".join(words))
                )
            continue
        for number in range(len(asks) - 1, -1, -1):
            if act.at - asks[number].asked.at > THREAD_SECONDS:
                break
            if asks[number].answer is None:
                asks[number] = asks[number]._replace(answer=act)
                break
    return asks


def left_out(evidence: Evidence, asks: Sequence[Ask]) -> list[LeftOut]:
    """Return whom the occupant left without an answer since it last answered them, newest last.

    Left out is what was said while the occupant was not there, or to another program: another
    occupant said something at once. A command counts if the occupant has answered another of the
    same sign, or nobody has answered it. What was encrypted is looked at elsewhere.
    """
    name, acts = evidence.nickname, evidence.acts
    answered = [ask for ask in asks if ask.answer]
    forms = {form_of(ask.asked, name) for ask in answered} | {searchable(name)}
    patience = ANSWER_SECONDS if answered else PATIENCE_SECONDS
    spoke = [(act.at, act.number, sender_of(act)) for act in acts if speaks(act)]

    def is_left(ask: Ask) -> bool:
        at, who = ask.asked.at, sender_of(ask.asked)
        known = form_of(ask.asked, name) in forms
        until = at + (ANSWER_SECONDS if known else PATIENCE_SECONDS)
        others = [
            nickname
            for time, number, nickname in spoke[bisect_left(spoke, (at,)) :]
            if time <= until and number > ask.asked.number and nickname not in {who, name}
        ]
        return not others and evidence.now - at >= patience and evidence.was_there(ask.asked)

    def same(ask: Ask) -> tuple[str, str]:
        return sender_of(ask.asked), ask.what

    groups = list[LeftOut]()
    for (sender, _), several in groupby(sorted(asks, key=same), key=same):
        since = list[Ask]()
        for ask in several:
            since = [] if ask.answer else [*since, ask]
        since = [ask for ask in since if is_left(ask)]
        if since and since[0].what and not is_own(since[0].asked):
            groups.append(LeftOut(sender, since))
    return sorted(groups, key=lambda group: group.last.number)


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
    texts = [(act.number, sender_of(act), _plain(act)) for act in acts if speaks(act)]
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
    text, is_secret = _plain(record), bool(getattr(record.event, "encrypted", None))
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
    return speech.form_of(_plain(record), searchable(to))


def _plain(record: Record) -> str:
    return searchable(body_of(record)[:COMMAND_CHARACTERS]).strip()


def is_message(record: Record) -> bool:
    """Whether the record is a message to all in the room, with a body or without."""
    return isinstance(record.event, events.MessageReceived) and is_public(record)


def speaks(record: Record) -> bool:
    """Whether an occupant says something to all in the room."""
    return is_message(record) and bool(body_of(record)) and bool(sender_of(record))
