"""Retells what was recorded in a room as a scenario, so that a trouble becomes a test.

People become actors, who say what they said. What a program answered is expected of it, and so is
an answer that it owes: `questions` decides, as for a page. Everything else is a comment. Texts of
strangers stand in quoted strings or within one line of a comment; the file is read back, so that no
text can add a step to it.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any, NamedTuple

from bridge.page.pseudonyms import Pseudonyms
from bridge.testing.actor import Actor
from bridge.testing.scenario import MAX_SECONDS, Scenario, ScenarioError, ScenarioStep, Verbs, parse
from bridge.text import iso, one_line, quoted, visible
from bridge.wire.speech import ANSWER_SECONDS, TURN_SECONDS
from bridge.xmpp.checks.questions import Ask, questions
from bridge.xmpp.model.events import decode
from bridge.xmpp.model.formatting import MAX_TEXT_CHARACTERS, format_event
from bridge.xmpp.model.journal import Record

WITHIN_SECONDS = 5
"""The least time in which an answer is expected; a test may run on a slower machine."""

MIN_SLOW = 3
"""An occupant whose answers are all slow is a program only if it gave so many, and said nothing
else: a person may answer in time, too."""

VERBS: Verbs = {"say": Actor.say, "expect": Actor.expect}
"""The verbs of the steps that are made here."""

_SURROGATES = re.compile("[\ud800-\udfff]")
"""Half characters: neither TOML nor a stanza has them, but a store may."""

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
        """What was said to the whole room; empty for anything else."""
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
    story = _Story(lasting, room)
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
    text += _TO_READ if words.on else _TO_RUN.format(bot=_toml(next(iter(story.programs), "Robot")))
    text += "\n" + "".join(parts).lstrip("\n")
    if parse(text, VERBS) != Scenario(tuple(steps)):
        raise ScenarioError("what was recorded cannot be written as a scenario")
    return text


class _Story:
    """What happened, with the questions that programs answered."""

    def __init__(self, happened: Sequence[RoomEvent], room: str) -> None:
        self._happened = happened
        records = (
            Record(number, each.at, decode({**each.event, "direction": "in"}), room)
            for number, each in enumerate(happened)
            if each.body
        )
        asks = questions(records)
        self._asks = {ask.asked.number: ask for ask in asks}
        asked_by = self._with_parts({ask.answer.number: ask for ask in asks if ask.answer})
        self.programs = self._programs(asked_by)
        """The nicknames of the programs."""
        self._asked_by = {
            number: ask
            for number, ask in asked_by.items()
            if happened[number].sender in self.programs
        }
        """The question for each answer of a program."""

    def told(self, number: int) -> "list[ScenarioStep | RoomEvent | str]":
        """Return the steps of an event, and remarks on it, in their order."""
        each = self._happened[number]
        if number in self._asked_by:
            question = self._asked_by[number].asked
            within = min(max(WITHIN_SECONDS, ceil(2 * (each.at - question.at))), MAX_SECONDS)
            arguments = {"from_": each.sender, "text": each.body, "within": within}
            return [ScenarioStep("expect", arguments, question.sender)]
        if not each.body or each.sender in self.programs:
            return [each]
        said, ask = ScenarioStep("say", {"body": each.body}, each.sender), self._asks.get(number)
        if ask is None or (ask.answer is not None and ask.answer.number in self._asked_by):
            return [said]
        for program in self.programs:
            if program in ask.to:
                remark = f"No answer came; at other times {quoted(program)} answered such messages."
                arguments = {"from_": program, "within": WITHIN_SECONDS}
                return [said, remark, ScenarioStep("expect", arguments, each.sender)]
        remark = "No answer came; such messages got none at other times either."
        return [said] if ask.seconds <= ANSWER_SECONDS else [said, remark]

    def _with_parts(self, answers: Mapping[int, Ask]) -> dict[int, Ask]:
        """Return the question for each answer, and for each message that continues an answer."""
        asked_by, last = dict[int, Ask](), -1
        for number, each in enumerate(self._happened):
            if each.body:
                before = self._happened[last] if last >= 0 else each
                is_part = before.sender == each.sender and each.at - before.at <= TURN_SECONDS
                ask = answers.get(number) or (asked_by.get(last) if is_part else None)
                asked_by |= {number: ask} if ask else {}
                last = number
        return asked_by

    def _programs(self, asked_by: Mapping[int, Ask]) -> list[str]:
        """Return the senders who mostly speak as an answer."""
        other = Counter(each.sender for each in self._happened if each.body)
        took = defaultdict[str, list[float]](list)
        for number, ask in asked_by.items():
            each = self._happened[number]
            took[each.sender].append(each.at - ask.asked.at)
            other[each.sender] -= 1
        return [
            sender
            for sender, seconds in took.items()
            if len(seconds) > other[sender]
            and (min(seconds) <= ANSWER_SECONDS or (len(seconds) >= MIN_SLOW and not other[sender]))
        ]


def _renamed(step: ScenarioStep, words: Pseudonyms) -> ScenarioStep:
    """Return the step as it is written, with pseudonyms if they are on."""
    named = {"from_": words.nickname, "text": words.body, "body": words.body}
    arguments = {
        name: _SURROGATES.sub("\ufffd", named[name](value)) if name in named else value
        for name, value in step.arguments.items()
    }
    actor = _SURROGATES.sub("\ufffd", words.nickname(step.actor))
    return ScenarioStep(step.verb, arguments, actor)


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
    return f"\\U{ord(character):08X}"
