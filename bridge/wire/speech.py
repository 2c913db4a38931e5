"""How people and programs speak to each other: commands, naming, prompt answers, loops. Pure.

Two sets of rules use these words and thresholds. `xmpp.checks` judges the events that all in a room
see, `capture` the stanzas that one client sent and received.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby, pairwise
from typing import NamedTuple, TypeVar

T = TypeVar("T")

ANSWER_SECONDS = 2.0
"""The longest time in which a program answers; people take longer to read and type."""

SPREAD_SECONDS = 0.5
"""The times that a program takes for its answers differ by less than this."""

TURN_SECONDS = 10.0
"""The longest time between two messages in a loop, be it of two programs or of a program with
itself."""

THREAD_SECONDS = 60.0
"""The longest time after which a message still counts as the answer to the message before. Programs
that ask a language model take so long."""

LOOP_ROUNDS = 6
"""The fewest rounds of a loop; in a round each program has its turn. People do not answer each
other so fast for so long. Fewer rounds may be a person who repeats a command."""

MAX_CIRCLE = 3
"""The most programs that we look for in a loop, in which each answers the one before."""

SELF_ANSWERS = LOOP_ROUNDS
"""The fewest messages in a row by which a client answers itself. Each has the words of the message
before, and follows at once after the room sent that message back."""

LOOP_REPEATS = 3
"""The fewest messages in a row by which a program in a room answers itself. Each has the words of
the message before, and nothing else was said. A log may lack the messages of others, so for a log
we ask for `SELF_ANSWERS`."""

COMMAND_CHARACTERS = 200
"""How many characters at the beginning of a message we search for a command. Commands are short,
and a message may have 250 kB."""

MAX_NAMES = 64
"""How many names' patterns are kept: each message is searched for the same few."""

_SIGN = re.compile(r"(?!/me\b)(! ?|[.$#~+&%/])(?=[^\W\d])", re.IGNORECASE)
"""The sign before the word of a command; some want a blank behind it. `/me` is no command
(XEP-0245), and `-1` or `+1` is a vote."""

_WORD = re.compile(rf"\s*(?:{_SIGN.pattern})\S*", re.IGNORECASE)


ALPHABETS = ("LATIN", "CYRILLIC", "GREEK")
"""The alphabets with letters that look alike, as Unicode names them."""


class Utterance(NamedTuple):
    """A message to all in a room."""

    who: str
    """The nickname."""
    at: float
    """In seconds; the same for all messages of a log without times."""
    text: str
    """The beginning of the body, without case."""
    is_secret: bool = False
    """Whether it can be read only with keys."""
    number: int = 0
    """The caller knows the message again by this number."""


class Circle(NamedTuple):
    """Messages in which two occupants, or three, have their turns in one order again and again.

    This is a loop of programs unless it `is_commanded`, or is not `is_fast`.
    """

    turns: Sequence[Utterance]
    """The first message of each turn."""
    size: int
    """The number of occupants."""

    @property
    def names(self) -> list[str]:
        """The nicknames; the occupant who began is the first."""
        return [turn.who for turn in self.turns[: self.size]]

    @property
    def is_commanded(self) -> bool:
        """Whether some mostly give commands, and others answer them.

        An answer may begin with the asker's name. So names decide only if signs do not.
        """
        for with_names in (False, True):
            names = self.names if with_names else []
            orders = {
                2 * sum(_is_order(turn, names) for turn in side) > len(side)
                for side in self._sides(self.turns)
            }
            if len(orders) > 1:
                return True
        return False

    @property
    def is_fast(self) -> bool:
        """Whether for `LOOP_ROUNDS` all answered as only programs do."""
        count = self.size * LOOP_ROUNDS
        took = [after.at - before.at for before, after in pairwise(self.turns)]
        windows = (took[start : start + count - 1] for start in range(len(self.turns) - count + 1))
        return any(all(map(is_steady, self._sides(window))) for window in windows)

    def _sides(self, turns: Sequence[T]) -> list[Sequence[T]]:
        return [turns[number :: self.size] for number in range(self.size)]


def circles(messages: Iterable[Utterance]) -> Iterator[Circle]:
    """Yield each circle of at least `LOOP_ROUNDS`; `messages` have nothing of others between them.

    What an occupant says in a row is one turn, or ends the circle if there is a pause in it.
    """
    stretch, at = list[Utterance](), 0.0
    for message in messages:
        pause, at = message.at - at, message.at
        goes_on = bool(stretch) and message.who == stretch[-1].who
        if stretch and pause > (SPREAD_SECONDS if goes_on else THREAD_SECONDS):
            yield from _circles_in(stretch)
            stretch, goes_on = [], False
        if not goes_on:
            stretch.append(message)
    yield from _circles_in(stretch)


def _circles_in(turns: Sequence[Utterance]) -> Iterator[Circle]:
    for size in range(2, MAX_CIRCLE + 1):
        pairs = zip(turns, turns[size:], strict=False)
        again = [before.who == after.who for before, after in pairs]
        first = 0
        for goes_on, group in groupby(again):
            last = first + len([*group])
            if goes_on and last - first + size >= size * LOOP_ROUNDS:
                yield Circle(turns[first : last + size], size)
            first = last


def _is_order(message: Utterance, names: Iterable[str]) -> bool:
    """Whether a message has the sign of a command, is addressed to a name, or is secret."""
    is_put = any(is_addressed(name, message.text) for name in names if name != message.who)
    return message.is_secret or is_command(message.text) or is_put


def is_steady(seconds: Sequence[float]) -> bool:
    """Whether answers that took so long were all fast and even."""
    return max(seconds) <= ANSWER_SECONDS and max(seconds) - min(seconds) < SPREAD_SECONDS


def unquoted(text: str) -> str:
    """Return a text without the lines that quote what was said before (XEP-0393, XEP-0461).

    Few programs know quotes: most see these lines, too.
    """
    if ">" not in text:  # most texts, and this is quick
        return text
    return "\n".join(line for line in text.split("\n") if not line.startswith(">"))


def is_command(text: str) -> bool:
    """Whether a message is a command to a program, such as `!ping`."""
    return _SIGN.match(text.lstrip()) is not None


def odd_letter(text: str) -> str:
    """Return the character of a command that only looks like the usual one; empty if none.

    It is another form of its sign or of a letter, such as a wide one, or another blank; or a letter
    of another alphabet than most. A program takes it for another character.
    """
    command = _WORD.match(unicodedata.normalize("NFKC", text))
    # Chinese and Japanese talk may begin with the wide forms of other signs.
    is_meant = command and (is_command(text) or command[0].lstrip()[0] in "!/.")
    word = text[: command.end()] if command and is_meant else ""
    names = {letter: unicodedata.name(letter, "").split(" ")[0] for letter in word}
    known = [name for name in map(names.get, word) if name in ALPHABETS]
    odd = [it for it in word if unicodedata.normalize("NFKC", it) != it]
    usual = max(known, key=known.count, default="")
    odd += [it for it in word if names[it] in ALPHABETS and names[it] != usual]
    return "".join(odd[:1])


def has_arguments(command: str, text: str) -> bool:
    """Whether a text has all arguments of a command as words; not if there are none."""
    arguments = command.split()[1:] if is_command(command) else []
    return bool(arguments) and all(is_named(each, text) for each in arguments)


def is_named(name: str, text: str) -> bool:
    """Whether a text has a name as a word; case does not matter. An empty name is in no text."""
    words = text.casefold()
    if not name or name.casefold() not in words:  # most texts, and this is quick
        return False
    return _as_word(name).search(words) is not None


def is_addressed(name: str, text: str) -> bool:
    """Whether a text begins with a name, as in `Bob: ping` and `@Bob ping`."""
    words = text.casefold()
    starts = map(_as_word(name).match, (words, words.removeprefix("@")))
    return bool(name) and any(starts)


def is_put_to(name: str, text: str) -> bool:
    """Whether a text is a question to a name, as `Bob: ping`, `@Bob ping` or `Bob, are you there?`.

    `Bob is late` speaks about Bob.
    """
    rest = text.casefold().removeprefix("@").removeprefix(name.casefold()).strip()
    marked = text.startswith("@") or not rest or rest[0] in ":,;>" or rest.endswith("?")
    return is_addressed(name, text) and marked


def form_of(text: str, name: str) -> str:
    """Return the form of a text: `name` if it is addressed, the sign of a command, or its words.

    Texts of one form are alike to the program of this name.
    """
    if is_addressed(name, text):
        return name
    return sign[0] if (sign := _SIGN.match(text)) else text


@lru_cache(MAX_NAMES)
def _as_word(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![^\W_]){re.escape(name.casefold())}(?![^\W_])")
