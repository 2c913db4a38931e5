import sys
from collections.abc import Sequence
from dataclasses import astuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.escaping import visible
from bridge.xmpp import ring
from bridge.xmpp.chapter import MAX_NAMES, MAX_TEXT, Chapter
from bridge.xmpp.events import (
    AffiliationChanged,
    Connected,
    Event,
    Gap,
    Joined,
    MessageReceived,
    MessageSent,
    NicknameChanged,
    OccupantJoined,
    OccupantLeft,
    SubjectChanged,
)
from bridge.xmpp.journal import Journal, Record
from bridge.xmpp.selection import MAX_SEARCHED, Pattern, PatternError, Selection
from bridge.xmpp.telling import KINDS

ROOM = "Lobby@rooms.example"
LETTERS = "aAbßSsİi\u0131Σ\u03c3ςŉﬁk\u212a\u200d\ufe0f\u202e\ud800\udc00\n\r\t .^$\\/@\0é1_"
"""Those that change with their case, that hide, that are half of one, and that patterns know."""
TEXTS = st.text(LETTERS, max_size=8)
NAMES = st.text(LETTERS, max_size=4)
JIDS = st.none() | st.tuples(NAMES, NAMES).map("{0[0]}@x/{0[1]}".format) | NAMES


def _occupant(name: str) -> str:
    return f"{ROOM}/{name}"


EVENTS: st.SearchStrategy[Event] = st.one_of(
    st.builds(
        lambda name, body, jid, own: MessageReceived(_occupant(name), name, body, jid=jid, own=own),
        NAMES,
        TEXTS,
        JIDS,
        st.booleans(),
    ),
    st.builds(MessageReceived, NAMES, NAMES, TEXTS, jid=JIDS),
    st.builds(lambda name, body: MessageSent(_occupant(name), body, "m"), NAMES, TEXTS),
    st.builds(SubjectChanged, TEXTS, st.none() | NAMES),
    st.builds(
        lambda name, status, jid: OccupantJoined(
            _occupant(name), name, "none", "none", status=status, jid=jid
        ),
        NAMES,
        st.none() | TEXTS,
        JIDS,
    ),
    st.builds(
        lambda name, status: OccupantLeft(_occupant(name), name, status=status), NAMES, TEXTS
    ),
    st.builds(lambda name, new: NicknameChanged(_occupant(name), name, new), NAMES, NAMES),
    st.builds(lambda jid: AffiliationChanged(jid or "", "member"), JIDS),
    st.builds(lambda jid: Connected(jid or "", "x", None, "x"), JIDS),
    st.builds(lambda name: Joined(_occupant(name), name, created=False), NAMES),
    st.just(Gap(0, 1)),
)
PIECES = (
    *("a", "ß", "S", "i", "1", ".", "\n", r"\n", "", "[^a]", r"\s", r"\S", r"\W", r"\pL", r"\C"),
    *("^", "$", r"\b", r"\B", r"\A", r"\z", "|", "(?:^|b)", "(?:a|$)", r"\Q^\E", r"\\A"),
    *("(?m)", "(?-m)", "(?s)", "(?i)", "(?U)", "(?im:^a)", "(?i-m:a$)", "(?s-i:.)"),
    *("*", "+", "?", "{2}"),
)
PATTERNS = st.lists(st.sampled_from(PIECES), min_size=1, max_size=5).map("".join)


def _records(events: Sequence[Event]) -> list[Record]:
    return [Record(number, 0.0, event) for number, event in enumerate(events, 1)]


def _pattern(source: str | None) -> Pattern | None:
    try:
        return None if source is None else Pattern.of(source)
    except PatternError:
        return None


def _selections(events: Sequence[Event]) -> st.SearchStrategy[Selection]:
    """Such that something is likely to be found: with what is in the events."""
    texts = [one for event in events for one in astuple(event) if isinstance(one, str)]
    known = st.sampled_from(sorted({part for one in texts for part in _writings(one)}) or ["a"])
    return st.builds(
        Selection,
        kinds=st.none() | st.frozensets(st.sampled_from(sorted(set(KINDS.values())))),
        sender=st.none() | known | NAMES,
        contains=st.none() | known | TEXTS,
        pattern=st.none() | PATTERNS.map(_pattern),
        own=st.booleans(),
    )


def _writings(text: str) -> set[str]:
    parts = {text, text.partition("/")[0], text.partition("/")[2], text[1:3]}
    return {form for one in parts for form in (one, visible(one), one.upper(), one.casefold())}


@given(st.data())
def test_a_chapter_loses_nothing_that_is_wanted(data: st.DataObject) -> None:
    records = _records(data.draw(st.lists(EVENTS, max_size=40)))
    selection = data.draw(_selections([one.event for one in records]))
    wanted = [one for one in records if selection.takes(one.event)]
    left = selection.narrowed(records)
    assert [one for one in left if selection.takes(one.event)] == wanted
    if selection.pattern is None and selection.own and selection.contains != "":
        assert left == wanted


@given(st.lists(TEXTS, min_size=1, max_size=20), PATTERNS)
def test_a_pattern_is_found_among_lines_wherever_it_is_in_one_of_the_texts(
    texts: list[str], source: str
) -> None:
    pattern = _pattern(source)
    if pattern is not None and pattern.search_lines is not None:
        found = pattern.search_lines("\n".join(texts)) is not None
        assert found or not any(map(pattern.fits, texts))


@pytest.mark.parametrize("source", [r"\Aa", r"a\z", "(?-m)^a", "(?m)^a(?i-m:b$)", r"\\A", "(?U-)a"])
def test_what_asks_for_the_ends_of_a_text_is_looked_for_in_one_at_a_time(source: str) -> None:
    pattern = _pattern(source)
    assert pattern is None or pattern.search_lines is None


@pytest.mark.parametrize(
    "source", ["a", "^a", "a$", r"\ba\B", "(?i)a", "(?m)^a$", "(?P<a>a|b)", r"\B$", r"^\B"]
)
def test_everything_else_is_looked_for_in_many_texts_at_once(source: str) -> None:
    pattern = Pattern.of(source)
    assert pattern.search_lines is not None
    for text in ("a", "a b", "b a", "ab", "ba", "bab", "b\na\nb", ""):
        assert pattern.search_lines(f"c\n{text}\nc") or not pattern.fits(text), text
    assert "B" in source or not pattern.search_lines("c\nd\n\n")


def test_to_fold_the_case_twice_is_to_fold_it_once() -> None:
    # A name is looked for with all of it folded, of which a part may have been before.
    every = "".join(map(chr, range(sys.maxunicode + 1)))
    assert every.casefold().casefold() == every.casefold()
    assert "".join(one.casefold() for one in every) == every.casefold()


def _said(*bodies: str) -> Chapter:
    return Chapter(_records([MessageReceived(_occupant("W"), "W", body) for body in bodies]))


def test_the_text_of_a_chapter_is_kept_up_to_the_bound() -> None:
    whole, long = _said("x" * (MAX_TEXT - 3), "y"), _said("x" * (MAX_TEXT - 2), "y")
    assert whole.text == "x" * (MAX_TEXT - 3) + "\ny"
    assert (whole.characters, long.characters) == (MAX_TEXT, MAX_TEXT + 1)
    assert long.text is None
    assert len(whole.text) <= MAX_SEARCHED
    for chapter in (whole, long):
        assert Selection(contains="Y").narrowed(chapter) == chapter[1:]
        assert Selection(pattern=Pattern.of("^y")).narrowed(chapter) == chapter[1:]
        assert Selection(contains="z").narrowed(chapter) == []


def test_the_names_of_a_chapter_are_kept_up_to_the_bound() -> None:
    others = len(_occupant("W") + "\nW\n\n")
    for extra in (0, 1):
        jid = "j" * (MAX_NAMES - others + extra)
        chapter = Chapter(_records([MessageReceived(_occupant("W"), "W", "hello", jid=jid)]))
        assert (chapter.names is None) is bool(extra)
        assert Selection(sender=jid).narrowed(chapter) == chapter
        assert Selection(sender="somebody").narrowed(chapter) == []


def test_what_hides_in_names_takes_no_more_than_the_names() -> None:
    names = [chr(0x115F) * 40 + str(number) for number in range(ring.STRETCH)]
    chapter = Chapter.closed(
        _records([OccupantLeft(_occupant(one), one, jid=one * 50) for one in names])
    )
    assert chapter.names is None
    wanted = Selection(sender=visible(names[7])).narrowed(chapter)
    assert [one.event.nickname for one in wanted if isinstance(one.event, OccupantLeft)] == [
        names[7]
    ]


def test_a_pattern_that_is_found_where_a_text_is_cut_is_found_in_a_chapter() -> None:
    pattern = Selection(pattern=Pattern.of("x$"))
    for beyond in ("", "y"):
        chapter = _said("a", "x" * MAX_SEARCHED + beyond, "b")
        assert [one for one in pattern.narrowed(chapter) if pattern.takes(one.event)] == chapter[
            1:2
        ]


@pytest.mark.parametrize("size", [1, 2, 5])
@given(events=st.lists(EVENTS, max_size=30), capacity=st.integers(0, 20), data=st.data())
def test_what_a_chapter_once_was_hides_nothing_later(
    size: int, events: list[Event], capacity: int, data: st.DataObject
) -> None:
    selection = data.draw(_selections(events))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ring, "STRETCH", size)
        journal = Journal("epoch", capacity)
        for event in events:
            journal.append(event, 0.0)
            since = data.draw(st.none() | st.integers(0, journal.numbering.last))
            cursor = None if since is None else journal.cursor_of(since)
            kept = list(journal) if cursor is None else journal.since(cursor)[0]
            parts, loss = journal.parts(cursor)
            assert [one for part in parts for one in part] == kept
            assert loss == (journal.evicted if cursor is None else journal.since(cursor)[1])
            left = [one for part in parts for one in selection.narrowed(part)]
            wanted = [one for one in kept if selection.takes(one.event)]
            assert [one for one in left if selection.takes(one.event)] == wanted


def test_to_narrow_costs_the_characters_times_what_a_pattern_does_with_each() -> None:
    chapter, pattern = _said("123", "5"), Pattern.of("x{100}")
    assert Selection(contains="x" * 1_000).cost_of_narrowing(chapter) == 6
    assert Selection(pattern=pattern).cost_of_narrowing(chapter) == 6 * pattern.instructions


@pytest.mark.parametrize(
    "cheap",
    [
        Selection(),
        Selection(pattern=Pattern.of(r"\Ax")),
        Selection(kinds=frozenset({"gap"}), contains="x"),
        Selection(sender="nobody", contains="x"),
    ],
)
def test_to_narrow_costs_nothing_where_no_text_is_looked_at(cheap: Selection) -> None:
    assert cheap.cost_of_narrowing(_said("12345")) == 0


def test_a_chapter_is_the_same_until_it_is_the_oldest() -> None:
    journal = Journal("epoch", 3 * ring.STRETCH)
    for number in range(3 * ring.STRETCH):
        journal.append(SubjectChanged(str(number)), 0.0)
    first, second, third = journal.parts(None)[0]
    assert isinstance(first, Chapter)
    assert len(first) == len(second) == len(third) == ring.STRETCH
    # Found out while its events were new; the joined text is as large as what was said.
    assert set(vars(first)) == {"types", "names", "texts"}
    journal.append(SubjectChanged("another"), 0.0)
    oldest, *rest, newest = journal.parts(None)[0]
    assert [id(one) for one in rest] == [id(second), id(third)]
    assert list(oldest) == first[1:]
    assert [one.event for one in newest] == [SubjectChanged("another")]
    # Who holds it sees what it was.
    assert len(first) == ring.STRETCH
