"""Tools that look at the words of a text."""

import re
from typing import Annotated

from bridge.toolkit import Bounds, tool

MAX_CHARACTERS = 1_000_000
"""The longest text that is looked at. A longer one would keep everybody else waiting for over a
tenth of a second."""

_GOOD = "best better enjoy excellent fun good great happy joy love nice works"
_BAD = "awful bad broken fail hate horrible mess sad sorry terrible worse wrong"
GOOD, BAD = frozenset(_GOOD.split()), frozenset(_BAD.split())

_WORD = re.compile(r"[^\W\d_]+")

Text = Annotated[str, Bounds(max_length=MAX_CHARACTERS)]


@tool(title="Count words", read_only=True, open_world=False)
def word_count(text: Annotated[Text, "what to count in"]) -> str:
    """Count the words of a text: the parts between blanks. Returns the number."""
    return str(len(text.split()))


@tool(title="Sentiment of a text", read_only=True, open_world=False)
def sentiment(text: Annotated[Text, "English text"]) -> str:
    """Guess whether an English text is positive, negative or neutral. A word-list toy.

    It counts good and bad words from two short lists and knows neither negation nor irony: judge
    for yourself where it matters. Returns for example `positive (score=0.75)`; the score goes from
    -1 (all of the words found are bad) to 1 (all are good).
    """
    words = _WORD.findall(text.lower())
    good, bad = (sum(word in listed for word in words) for listed in (GOOD, BAD))
    score = (good - bad) / (good + bad) if good or bad else 0.0
    label = "positive" if good > bad else "negative" if bad > good else "neutral"
    return f"{label} (score={score:.2f})"
