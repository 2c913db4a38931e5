"""How people and programs speak to each other: commands, naming, prompt answers, loops. Pure.

Two sets of rules use these words and thresholds. `xmpp.checks` judges the events that all in a room
see, `capture` the stanzas that one client sent and received.
"""

import re
from functools import lru_cache

ANSWER_SECONDS = 2.0
"""The longest time in which a program answers; people take longer to read and type."""

SPREAD_SECONDS = 0.5
"""The times that a program takes for its answers differ by less than so many seconds."""

TURN_SECONDS = 10.0
"""The longest time between two messages in a loop, be it of two programs or of a program with
itself."""

THREAD_SECONDS = 60.0
"""The longest time after which a message still counts as the answer to the message before. Programs
that ask a language model take so long."""

LOOP_MESSAGES = 12
"""So many messages in turn are a loop of two programs: two people do not answer each other so fast
for so long. Fewer messages may be a person who gives a command again and again."""

SELF_ANSWERS = LOOP_MESSAGES // 2
"""A client answers itself if it sends so many messages in a row, each with the words of the message
before, and at once after the room sent that message back."""

LOOP_REPEATS = 3
"""In a room, a program answers itself if it says so many messages in a row, each with the words of
the message before, and nothing else was said. A log may lack the messages of others, so for a log
we ask for more."""

COMMAND_CHARACTERS = 200
"""We look for a command in so many characters at the beginning of a message. Commands are short,
and a message may have 250 kB."""

MAX_NAMES = 64
"""The patterns of so many names are kept: each message is looked at for the same few."""

_SIGN = re.compile(r"(?!/me\b)[!.$#~+&%/](?=[^\W\d])", re.IGNORECASE)
"""The sign before the word of a command. `/me` is no command (XEP-0245), and `-1` or `+1` is a
vote."""


def is_command(text: str) -> bool:
    """Whether a message is a command to a program, such as `!ping`."""
    return _SIGN.match(text.lstrip()) is not None


def is_named(name: str, text: str) -> bool:
    """Whether a text has a name as a word; case does not matter. No text has an empty name."""
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
