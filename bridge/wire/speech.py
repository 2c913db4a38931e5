"""What is said between people and programs: commands, naming, prompt answers, loops. Pure.

Two sets of rules use these words and thresholds: `xmpp.checks` judges what everybody in a room
sees, `capture` what one client sent and received.
"""

import re

ANSWER_SECONDS = 2.0
"""The longest time in which a program answers; people take longer to read and type."""

SPREAD_SECONDS = 0.5
"""The times that a program takes for its answers differ by less than this."""

TURN_SECONDS = 10.0
"""The longest time between two messages in a loop, of two programs or of one with itself."""

THREAD_SECONDS = 60.0
"""The longest time after which a message still counts as the answer to the one before; programs
that ask a language model take so long."""

LOOP_MESSAGES = 12
"""So many messages in turn are a loop of two programs: no two people answer each other so fast for
so long. Fewer may be a person who gives a command again and again."""

SELF_ANSWERS = LOOP_MESSAGES // 2
"""So many messages in a row of a client, each at once after the copy that the room sent back of the
one before, and with its words, are a client that answers itself."""

LOOP_REPEATS = 3
"""In a room, so many messages in a row are a program that answers itself if each has the words of
the one before, and nothing else was said. A log may lack what others said, so it takes more."""

COMMAND_CHARACTERS = 200
"""The most characters at the beginning of a message that are read as a command: commands are short,
and a message may have 250 kB."""

_SIGN = re.compile(r"(?!/me\b)[!.$#~+&%/](?=[^\W\d])", re.IGNORECASE)
"""The sign before the word of a command. `/me` is none (XEP-0245), and `-1` or `+1` is a vote."""


def is_command(text: str) -> bool:
    """Whether a message is a command to a program, such as `!ping`."""
    return _SIGN.match(text.lstrip()) is not None


def is_named(name: str, text: str) -> bool:
    """Whether a text has a name as a word; case does not matter. No text has an empty name."""
    return bool(name) and _as_word(name).search(text.casefold()) is not None


def is_addressed(name: str, text: str) -> bool:
    """Whether a text begins with a name, as in `Bob: ping` and `@Bob ping`."""
    words = text.casefold()
    starts = map(_as_word(name).match, (words, words.removeprefix("@")))
    return bool(name) and any(starts)


def form_of(text: str, name: str) -> str:
    """Return the form of a text: `name` if it is addressed, the sign of a command, or its words.

    Texts of one form are alike to the program of this name.
    """
    if is_addressed(name, text):
        return name
    return sign[0] if (sign := _SIGN.match(text)) else text


def _as_word(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![^\W_]){re.escape(name.casefold())}(?![^\W_])")
