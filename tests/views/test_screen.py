import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.views.screen import (
    MIN_FIRST_COLUMNS,
    NICKNAME_COLOURS,
    Display,
    cut,
    has_colour,
    width,
    wrapped,
)


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("", 0),
        ("abc", 3),
        ("日本", 4),
        ("\uff46", 2),
        ("e\u0301", 1),
        ("Zoë", 3),
        ("👍", 2),
        ("❤\ufe0f", 2),  # narrow by itself, wide with the selector
        ("\u2630", 2),  # wide since Unicode 16, which Python 3.11 does not know
        ("a\u093e", 2),  # a spacing mark: some terminals join it to the letter
        ("\u1100\u1161", 3),  # jamo: some terminals make one syllable of them
        ("a\u302e", 3),
        ("\u00ad", 1),
        ("👩\u200d🚀", 4),  # a terminal that joins them takes two
    ],
)
def test_a_text_takes_as_many_columns_as_on_a_terminal(text: str, columns: int) -> None:
    assert width(text) == columns


def test_what_does_not_fit_is_cut_with_a_mark() -> None:
    assert cut("abcde", 5) == "abcde"
    assert cut("abcdef", 5) == "abcd…"
    assert cut("日本語", 5) == "日本…"
    assert cut("日本語", 6) == "日本語"


@pytest.mark.parametrize(
    ("text", "first", "rest", "lines"),
    [
        ("one two three four five six seven", 20, 13, ["one two three four", "five six", "seven"]),
        ("a" * 25, 20, 3, ["a" * 20, "aaa", "aa"]),
        ("日本語", 3, 3, ["日", "本", "語"]),
        ("e\u0301" * 4, 2, 2, ["e\u0301e\u0301"] * 2),
        ("a word", MIN_FIRST_COLUMNS - 1, 60, ["", "a word"]),
        ("a word", MIN_FIRST_COLUMNS, 60, ["a word"]),
    ],
    ids=["at blanks", "a long word", "wide", "accents", "no room at first", "room at first"],
)
def test_a_text_breaks_where_it_can(text: str, first: int, rest: int, lines: list[str]) -> None:
    assert wrapped(text, first, rest) == lines


@given(
    text=st.text(st.sampled_from("ab  日本é\u0301❤\ufe0f👍"), max_size=200),
    first=st.integers(-5, 40),
    rest=st.integers(2, 40),
)
def test_every_line_fits_and_only_blanks_are_lost(text: str, first: int, rest: int) -> None:
    lines = wrapped(text, first, rest)
    assert width(lines[0]) <= max(first, 0)
    assert all(width(line) <= rest for line in lines[1:])
    left = iter(text)
    for character in "".join(lines):  # in order, with blanks alone left out
        while (character_ := next(left)) != character:
            assert character_ == " "
    assert set(left) <= {" "}


# --- Colours ---

COLOURED = Display(True)


@pytest.mark.parametrize(
    ("terminal", "environ", "wanted"),
    [
        (True, {"TERM": "xterm"}, True),
        (True, {"TERM": "xterm", "NO_COLOR": ""}, True),  # no-color.org: not an empty string
        (True, {"TERM": "xterm", "NO_COLOR": "0"}, False),
        (True, {"TERM": "dumb"}, False),
        (True, {"TERM": ""}, False),
        (True, {}, False),
        (False, {"TERM": "xterm"}, False),
        (False, {"TERM": "xterm", "FORCE_COLOR": "1"}, False),
    ],
)
def test_colour_is_for_a_terminal_that_can_and_for_nobody_who_said_no(
    terminal: bool, environ: dict[str, str], wanted: bool
) -> None:
    assert has_colour(terminal=terminal, environ=environ) is wanted


def test_where_paint_is_off_a_text_stays_as_it_is() -> None:
    off = Display(False)
    assert [off.dim("a"), off.bold("b"), off.red("c"), off.green("d"), off.nickname("e", "f")] == [
        *"abcdf"
    ]


def test_all_colours_are_given_out_and_none_is_the_red_of_what_went_wrong() -> None:
    given = {COLOURED.nickname(f"guest {number}", "x") for number in range(200)}
    assert given == {f"\x1b[{colour}mx\x1b[0m" for colour in NICKNAME_COLOURS}
    assert not {31, 91} & set(NICKNAME_COLOURS)
