import pytest

from bridge.samples.words import sentiment, word_count


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", "0"),
        (" \n\t ", "0"),
        ("one", "1"),
        ("the quick brown fox jumps", "5"),
        ("one,two three\nfour", "3"),
        ("наша  сила", "2"),
    ],
)
def test_words_are_what_stands_between_blanks(text: str, count: str) -> None:
    assert word_count(text) == count


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("great good nice fun love happy joy, but sad", "positive (score=0.75)"),
        ("I LOVE it", "positive (score=1.00)"),
        ("a horrible mess, though nice", "negative (score=-0.33)"),
        ("it is a table", "neutral (score=0.00)"),
        ("good and bad", "neutral (score=0.00)"),
        ("", "neutral (score=0.00)"),
    ],
)
def test_a_sentiment_is_what_most_of_the_listed_words_say(text: str, verdict: str) -> None:
    assert sentiment(text) == verdict
