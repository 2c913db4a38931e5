import json
import re
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.text import (
    HIDDEN_LETTERS,
    JOINERS,
    MAX_QUOTED_CHARACTERS,
    MAX_SELECTORS,
    iso,
    iso_of,
    memory_of,
    one_line,
    quoted,
    rooms_named,
    searchable,
    seconds_of,
    unescaped,
    visible,
)

everything = st.characters(exclude_categories=[])
suspects = st.sampled_from(
    "ab \t\n\r\x00\x1b\x85\xad\u034f\u115f\u180b\u200b\u200c\u200d\u202e\u2028\u2029\u2066\ufe0e"
    "\ufe0f\ufeff\U0001f468\U0001f3fb\U000e0041\U000e0100\ud800\\{葛❤\U000e0101\ufe00"
)
texts = st.one_of(st.text(everything), st.text(suspects), st.text(st.one_of(suspects, everything)))

FORGING = {"Cc", "Cs", "Zl", "Zp"}
"""The categories of which nothing is in a line, not even a joiner."""
HIDDEN = (
    "\x00\x07\x08\x0b\x0c\r\x1b\x1f\x7f\x80\x85\x9b\x9f"  # Cc
    "\xad\u061c\u0600\u180e\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2063\u2066\u2069"
    "\ufeff\ufff9\U000e0001\U000e0020\U000e007f"  # Cf
    "\u2028\u2029"  # Zl, Zp
    "\u115f\u1160\u3164\uffa0"
    "\u034f\u17b4\u17b5"
    "\u2065\ufff0\ufff8\U000e0000\U000e0080\U000e0fff"  # unassigned, and never drawn
    "\ud800\udfff"
)


def test_a_character_that_shows_nothing_is_written_as_its_number() -> None:
    for character in HIDDEN:
        shown = f"a\\u{{{ord(character):X}}}b"
        assert visible(f"a{character}b") == one_line(f"a{character}b") == shown


SEEN = (
    "",
    "plain ASCII, with \\u{202E} typed by hand",
    "Grüße, Ωmega, שלום, 你好",
    "e\u0301 combining",
    "no\u00a0break and\u3000wide",
    "👨\u200d👩\u200d👧\u200d👦",
    "👩🏽\u200d🚀",
    "❤\ufe0f",
    "❤\ufe0f\u200d🔥",
    "🏳\ufe0f\u200d🌈 🏴\u200d☠\ufe0f",
    "1\ufe0f\u20e3",
    "می\u200cخواهم",  # noqa: RUF001 - Persian
    "क\u094d\u200dष",
    "葛\U000e0100" * MAX_SELECTORS,
    "❤\ufe0f" * 50,
    "⭐\ufe0f" * 50,
    "☎\ufe0e ∩\ufe00 芦\ufe00",
    "ᠠ\u180bᠡ",
)
"""Texts that stay as they are, since a reader can see them."""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        *((text, text) for text in SEEN),
        ("a\r\nb", "a\\u{D}\nb"),
        ("\u200d", "\\u{200D}"),
        ("\u200da", "\\u{200D}a"),
        ("a\u200d", "a\\u{200D}"),
        ("a\u200c b", "a\\u{200C} b"),
        ("a \u200cb", "a \\u{200C}b"),
        ("a\n\u200cb", "a\n\\u{200C}b"),
        ("a\u200d\u200db", "a\\u{200D}\\u{200D}b"),
        ("a\u200d\u202eb", "a\\u{200D}\\u{202E}b"),
        ("a\u200d\ufe0fb", "a\\u{200D}\\u{FE0F}b"),
        ("\ufe0f", "\\u{FE0F}"),
        (" \ufe0f", " \\u{FE0F}"),
        ("\n\ufe0f", "\n\\u{FE0F}"),
        ("❤\ufe0f\ufe0f", "❤\ufe0f\\u{FE0F}"),
        ("葛\ufe00\U000e0100\U000e0101", "葛\ufe00\\u{E0100}\\u{E0101}"),
        ("❤\ufe0f\u200d\ufe0fb", "❤\ufe0f\\u{200D}\\u{FE0F}b"),
        ("a\ufe0f\u200d\ufe0fb", "a\\u{FE0F}\\u{200D}\\u{FE0F}b"),
        ("a\u200b\ufe0f", "a\\u{200B}\\u{FE0F}"),
        ("🏴\U000e0068\U000e0069", "🏴\\u{E0068}\\u{E0069}"),  # a message hidden in tags
        ("😀\U000e0168\U000e0169", "😀\\u{E0168}\\u{E0169}"),  # and in variation selectors
    ],
)
def test_a_joiner_and_one_variation_selector_stay_beside_visible_characters_only(
    text: str, shown: str
) -> None:
    assert visible(text) == shown
    assert one_line(text) == shown.replace("\n", "\\u{A}")


SELECTORS = [chr(code) for code in (*range(0x180B, 0x180E), 0x180F, *range(0xFE00, 0xFE10))]
SELECTORS += [chr(code) for code in range(0xE0100, 0xE01F0)]


@pytest.mark.parametrize("base", "aé1#\u0627⠿─!葛∩ᠠ❤😀\u3042\uf900")
def test_no_letters_come_through_hidden_in_variation_selectors(base: str) -> None:
    """All of them behind one character: at most four show, beside those that make an emoji."""
    hidden = visible("".join(base + selector for selector in SELECTORS * 32))
    shown = [each for each in hidden if each in SELECTORS and each != "\ufe0f"]
    assert len(shown) <= (MAX_SELECTORS if base in "葛∩ᠠ❤😀" else 0)
    assert ("\ufe0f" in hidden) == (base in "❤😀")
    assert all(each < "\U000e0100" or base == "葛" for each in shown)


@given(texts)
def test_one_line_leaves_no_character_that_could_forge_another(text: str) -> None:
    line = one_line(text)
    assert len(line.splitlines()) <= 1
    for character in line:
        category = unicodedata.category(character)
        assert category not in FORGING
        assert category != "Cf" or character in JOINERS
        assert character not in HIDDEN_LETTERS


@given(texts)
def test_what_was_made_visible_is_made_so_once(text: str) -> None:
    assert visible(visible(text)) == visible(text)
    assert one_line(one_line(text)) == one_line(text)


def test_a_line_is_cut_at_its_limit_and_says_how_long_it_was() -> None:
    assert one_line("x" * 5, 5) == "xxxxx"
    assert one_line("x" * 6, 5) == "xxxxx... (6 characters)"
    assert one_line("\n\n\n", 2) == "\\u{A}\\u{A}... (3 characters)"
    assert one_line("a\u200db", 2) == "a\\u{200D}... (3 characters)"
    assert one_line("x", 0) == "... (1 characters)"


def test_no_hidden_character_passes_in_a_text_that_needs_no_look_at_each() -> None:
    everything = "".join(map(chr, range(sys.maxunicode + 1)))
    hidden = [each for each in everything if unicodedata.category(each) in FORGING | {"Cf"}]
    hidden += re.findall("[\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0000-\U000e0fff]", everything)
    assert not [each for each in (*hidden, *HIDDEN_LETTERS) if one_line(each) == each]


ALL_BUT_ONE = (
    r'"\u{202E}\u{200F}\u{2063}\u{D800}\u{2066}" '
    "(U+202E RIGHT-TO-LEFT OVERRIDE, U+200F RIGHT-TO-LEFT MARK, U+2063 INVISIBLE SEPARATOR, "
    "U+D800, ...)"
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", '""'),
        ("too many messages", '"too many messages"'),
        ('say "please" \\ now', r'"say \"please\" \\ now"'),
        ("a\n\tb\r\x9b", r'"a\n\tb\u{D}\u{9B}" (U+000D, U+009B)'),
        ("a\u200bb\u200b", r'"a\u{200B}b\u{200B}" (U+200B ZERO WIDTH SPACE)'),
        (r"a\u{200B}", r'"a\\u{200B}"'),
        ("\u202e\u200f\u2063\ud800\u2066", ALL_BUT_ONE),
        ("Grüße 👩\u200d🚀", '"Grüße 👩\u200d🚀"'),
    ],
)
def test_what_is_quoted_is_one_line_with_the_names_of_hidden_characters(
    text: str, shown: str
) -> None:
    assert quoted(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("x" * MAX_QUOTED_CHARACTERS, "x" * MAX_QUOTED_CHARACTERS),
        ("x" * (MAX_QUOTED_CHARACTERS + 1), "x" * MAX_QUOTED_CHARACTERS + "…"),
        ('"' * (MAX_QUOTED_CHARACTERS // 2), r"\"" * (MAX_QUOTED_CHARACTERS // 2)),
        ("x" + '"' * (MAX_QUOTED_CHARACTERS // 2), "x" + r"\"" * 99 + "…"),
        ("\U000e0041" * 23, r"\u{E0041}" * 22 + "…"),
    ],
    ids=["fits", "over", "escapes fit", "an escape is whole or not there", "hidden"],
)
def test_what_is_quoted_is_cut_as_it_is_shown(text: str, shown: str) -> None:
    assert quoted(text).startswith(f'"{shown}"')


@given(texts, st.integers(1, 30))
def test_whatever_is_quoted_stays_between_its_marks(text: str, limit: int) -> None:
    shown = quoted(text, limit)
    assert one_line(shown) == shown
    words = re.fullmatch(r'"((?:[^"\\]|\\.)*)"(?: \((?:U\+[^"]*|\.\.\.)\))?', shown)
    assert words is not None
    assert len(words[1]) <= limit + 1
    said = json.loads(re.sub(r"(?<!\\)((?:\\\\)*)\\u\{", r"\1\\\\u{", f'"{words[1]}"'))
    assert said == visible(text) or visible(text).startswith(said.removesuffix("…"))


def test_what_a_reader_cannot_see_is_not_in_what_is_searched() -> None:
    for character in (*HIDDEN, *JOINERS, *"\ufe0f\u180b\U000e0100"):
        assert searchable(f"!P{character}ing{character * 9}") == "!ping"


@pytest.mark.parametrize(
    ("text", "searched"),
    [
        ("", ""),
        ("Hauptstraße 1", "hauptstrasse 1"),
        ("ΣΊΣΥΦΟΣ", "σίσυφοσ"),
        ("a\n\tB", "a\n\tb"),
        ("\r\n", "\n"),
        ("e\u0301", "e\u0301"),
        ("❤\ufe0f\u200d🔥", "❤🔥"),
    ],
)
def test_what_is_searched_has_no_case_and_keeps_what_is_seen(text: str, searched: str) -> None:
    assert searchable(text) == searched


@given(texts, texts, texts)
def test_what_is_part_of_a_text_is_part_of_what_is_searched(a: str, b: str, c: str) -> None:
    assert searchable(a + b + c) == searchable(a) + searchable(b) + searchable(c)
    assert searchable(searchable(a)) == searchable(a)
    assert searchable(unescaped(visible(a))) == searchable(unescaped(a))


@given(texts)
def test_an_escape_means_the_hidden_character_that_it_was_made_of(text: str) -> None:
    assert unescaped(visible(text)) == unescaped(text)
    assert "\\u{" in text or unescaped(visible(text)) == text


def test_what_is_no_escape_of_a_hidden_character_stays() -> None:
    text = "\\u{41} \\u{110000} \\u{} \\u{202e} \\u{0202E1} \\u{FFFFFFFFF}"
    assert unescaped(text) == text


@pytest.mark.parametrize(
    ("name", "rooms"),
    [
        ("lobby@a.example", ["Lobby@a.example"]),
        ("LOBBY", ["Lobby@a.example", "lobby@b.example"]),
        ("logs", ["logs@b.example"]),
        ("a.example", []),
        ("lobby@", []),
        ("", []),
    ],
)
def test_a_room_is_named_by_its_jid_or_by_what_is_before_the_at(
    name: str, rooms: list[str]
) -> None:
    assert rooms_named(name, ("Lobby@a.example", "lobby@b.example", "logs@b.example")) == rooms


def test_times_are_iso_8601_in_utc_with_milliseconds() -> None:
    assert iso(0) == "1970-01-01T00:00:00.000Z"
    assert iso(1_700_000_000.9999) == "2023-11-14T22:13:20.999Z"


@pytest.mark.parametrize(
    ("stamp", "text"),
    [
        ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00.000Z"),
        ("2026-01-31T12:00:00.1749Z", "2026-01-31T12:00:00.174Z"),
        ("2026-01-31T14:30:00.5+02:30", "2026-01-31T12:00:00.500Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z"),
        ("2026-01-31T12:00:00", None),
        ("0001-01-01T00:00:00+01:00", None),
        ("yesterday", None),
    ],
)
def test_a_time_that_somebody_else_wrote_becomes_one_of_ours(stamp: str, text: str | None) -> None:
    assert iso_of(stamp) == text


def test_a_time_that_somebody_else_wrote_can_be_compared() -> None:
    assert seconds_of("1970-01-01T01:00:00.25+01:00") == 0.25
    assert [*map(seconds_of, ("yesterday", "", None))] == [None] * 3


@pytest.mark.parametrize(
    "text",
    ["", "x" * 1_000, "é" * 1_000, "ж" * 1_000, "x" * 999 + "ж", "x" * 999 + "😀", "x\ud800"],
)
def test_a_text_weighs_what_python_takes_for_it(text: str) -> None:
    kept = sys.getsizeof(text) - sys.getsizeof("")
    assert memory_of(text) == kept + (
        0 if text.isascii() else len(text.encode(errors="surrogatepass"))
    )
