"""Retells what was recorded in a room as a scenario, so that a trouble becomes a test.

People become actors, who say what they said. What a program answered is expected of it, and so is
an answer that it owes. Everything else is a comment. Texts of strangers stand in quoted strings or
within one line of a comment; the file is read back, so that no text can add a step to it.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any, NamedTuple

from bridge.page.pseudonyms import Pseudonyms
from bridge.testing.actor import Actor
from bridge.testing.scenario import (
    MAX_SECONDS,
    Scenario,
    ScenarioError,
    ScenarioStep,
    Verbs,
    parse,
)
from bridge.text import iso, one_line, quoted, visible
from bridge.wire.speech import (
    ANSWER_SECONDS,
    THREAD_SECONDS,
    TURN_SECONDS,
    form_of,
    is_addressed,
    is_command,
)
from bridge.xmpp.model.formatting import MAX_TEXT_CHARACTERS, format_event

WITHIN_SECONDS = 5
"""The least time in which an answer is expected; a test may run on a slower machine."""

MAX_LOOKED_BACK = 20
"""The most messages before an answer among which its question is sought."""

MIN_SLOW = 3
"""So many slow answers, and nothing else, show a program: a person may answer in time, too."""

VERBS: Verbs = {"say": Actor.say, "expect": Actor.expect}
"""The verbs of the steps that are made here."""

_HEAD = """\
# What happened in {room}
# from {start} to {end}.
"""
_TO_RUN = """\
# Say how the bot is started, save this as NAME.room.toml, and run xmpp-bridge expect on it.
#
# [bot]
# command = ["python", "bot.py"]
# joins_as = {bot}
"""
_TO_READ = """\
# For reading only: names are replaced, and messages by their length.
#
# [bot] is left out: no bot gives such answers.
"""


class RoomEvent(NamedTuple):
    """An event of the room, from the store."""

    at: float
    """In seconds since the epoch."""
    event: Mapping[str, Any]
    """The event in its exact form (`bridge.xmpp.model.events.encode`)."""

    @property
    def sender(self) -> str:
        """The nickname of the occupant whom it is about."""
        return str(self.event.get("sender") or "")

    @property
    def body(self) -> str:
        """What was said to everybody; empty for anything else."""
        is_said = self.event["kind"] == "message" and self.event.get("type") == "groupchat"
        return str(self.event.get("body") or "") if is_said else ""


def retold(happened: Sequence[RoomEvent], room: str, nickname: str, words: Pseudonyms) -> str:
    """Return a scenario file of what happened in `room`, in order; empty if nothing was said.

    `nickname` is the bridge's: its visits are left out, and so is the room's old history. Raises
    `ScenarioError` if the file cannot be read as it is meant.
    """
    visits = re.compile(rf"{re.escape(nickname)}-(check|diagnose|record|send|watch)(-[0-9a-f]+)?")
    lasting = []
    for each in happened:
        words.learn(each.event, room)
        visit = visits.fullmatch(each.sender)
        # A visit may have asked what the test is about.
        is_left_out = visit and (visit[1] == "check" or not each.body)
        if each.event.get("source") != "history" and not is_left_out:
            lasting.append(each)
    story = _Story(lasting)
    steps, parts = list[ScenarioStep](), list[str]()
    for number in range(len(lasting)):
        for part in story.told(number):
            match part:
                case ScenarioStep():
                    steps.append(_renamed(part, words))
                    parts.append(f"\n{_written(steps[-1])}\n")
                case RoomEvent(at, event):
                    parts.append(f"# {format_event({'at': iso(at), **words.event(event)})}\n")
                case _:
                    remark = one_line(words.text(part, ours=True), MAX_TEXT_CHARACTERS)
                    parts.append(f"# {remark}\n")
    if not steps:
        return ""
    start, end = iso(happened[0].at), iso(happened[-1].at)
    text = _HEAD.format(room=one_line(words.jid(room)), start=start, end=end)
    text += _TO_READ if words.on else _TO_RUN.format(bot=_toml(next(iter(story.forms), "Robot")))
    text += "\n" + "".join(parts).lstrip("\n")
    if parse(text, VERBS) != Scenario(tuple(steps)):
        raise ScenarioError("what was recorded cannot be written as a scenario")
    return text


class _Story:
    """What happened, with the questions that programs answered."""

    def __init__(self, happened: Sequence[RoomEvent]) -> None:
        self._happened = happened
        self._asked_by: dict[int, int] = {}
        """The number of its question for each answer."""
        self._answered: set[int] = set()
        self.forms: dict[str, dict[str, int]] = {name: {} for name in self._programs()}
        """The forms of the messages that a program answers, by its nickname."""
        for number, each in enumerate(happened):
            question = self._question(number) if each.sender in self.forms else None
            if question is not None:
                self._asked_by[number] = question
                self._answered.add(question)
                self.forms[each.sender][form_of(happened[question].body, each.sender)] = number

    def told(self, number: int) -> "list[ScenarioStep | RoomEvent | str]":
        """Return the steps of an event, and remarks on it, in their order."""
        each = self._happened[number]
        if number in self._asked_by:
            question = self._happened[self._asked_by[number]]
            within = min(max(WITHIN_SECONDS, ceil(2 * (each.at - question.at))), MAX_SECONDS)
            arguments = {"from_": each.sender, "text": each.body, "within": within}
            return [ScenarioStep("expect", arguments, question.sender)]
        if not each.body or each.sender in self.forms:
            return [each]
        said = ScenarioStep("say", {"body": each.body}, each.sender)
        if number in self._answered:
            return [said]
        for program, forms in self.forms.items():
            if form_of(each.body, program) in forms:
                remark = f"No answer came; {quoted(program)} answered such messages otherwise."
                arguments = {"from_": program, "within": WITHIN_SECONDS}
                return [said, remark, ScenarioStep("expect", arguments, each.sender)]
        if is_command(each.body) or any(is_addressed(name, each.body) for name in self.forms):
            return [said, "No answer came, nor to such a message at another time."]
        return [said]

    def _programs(self) -> list[str]:
        """Return the senders who mostly speak as an answer."""
        fast, slow, other = Counter[str](), Counter[str](), Counter[str]()
        for number, each in enumerate(self._happened):
            question = None if is_command(each.body) else self._question(number)
            if question is None:
                other[each.sender] += bool(each.body)
            else:
                took = each.at - self._happened[question].at
                (fast if took <= ANSWER_SECONDS else slow)[each.sender] += 1
        return [
            sender
            for sender in other | fast | slow
            if fast[sender] + slow[sender] > other[sender]
            and (fast[sender] or (slow[sender] >= MIN_SLOW and not other[sender]))
        ]

    def _question(self, number: int) -> int | None:
        """Return the number of the message that another answers; None if it answers none.

        Questions are answered in their order, one each. If none is fresh, it is the last one. A
        slow answer has nothing of a third speaker between itself and its question.
        """
        each, possible, speakers = self._happened[number], list[int](), set[str]()
        if not each.body:
            return None
        for before in range(number - 1, max(number - 1 - MAX_LOOKED_BACK, -1), -1):
            question = self._happened[before]
            seconds = ANSWER_SECONDS
            if is_command(question.body):
                seconds = THREAD_SECONDS
            elif is_addressed(each.sender, question.body):
                seconds = TURN_SECONDS
            if not question.body or question.sender == each.sender:
                continue
            speakers.add(question.sender)
            took = each.at - question.at
            is_near = took <= ANSWER_SECONDS or (took <= seconds and len(speakers) == 1)
            # What comes much later than an answer is no part of it.
            is_over = before in self._answered and took > TURN_SECONDS
            if is_near and not is_over and before not in self._asked_by:
                possible.append(before)
        first = each.at - ANSWER_SECONDS
        fresh = [before for before in possible if self._happened[before].at >= first]
        waiting = [before for before in fresh if before not in self._answered]
        return next(iter(waiting[-1:] or possible), None)


def _renamed(step: ScenarioStep, words: Pseudonyms) -> ScenarioStep:
    """Return the step as it is written, with pseudonyms if they are on."""
    named = {"from_": words.nickname, "text": words.body, "body": words.body}
    arguments = {
        name: named[name](value) if name in named else value
        for name, value in step.arguments.items()
    }
    return ScenarioStep(step.verb, arguments, words.nickname(step.actor))


def _written(step: ScenarioStep) -> str:
    value = _toml(step.arguments.get("body", ""))
    if step.verb == "expect":
        pairs = (f"{name.rstrip('_')} = {_toml(v)}" for name, v in step.arguments.items())
        value = f"{{ {', '.join(pairs)} }}"
    return f"[[step]]\nactor = {_toml(step.actor)}\n{step.verb} = {value}"


def _toml(value: str | float) -> str:
    """Return a value of TOML; in a text, what a reader cannot see is an escape."""
    if not isinstance(value, str):
        return f"{value:g}"
    return f'"{"".join(map(_character, value))}"'


def _character(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    if character == "\n":
        return r"\n"
    if character != "\t" and visible(character) == character:
        return character
    is_surrogate = "\ud800" <= character <= "\udfff"  # TOML has none, and no stanza
    return f"\\U{0xFFFD if is_surrogate else ord(character):08X}"
