from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.text import visible
from bridge.xmpp.model import events
from bridge.xmpp.model.faults import Fault
from bridge.xmpp.model.filter import (
    ASCII_COST,
    MAX_INSTRUCTIONS,
    MAX_SEARCHED,
    OTHER_COST,
    EventFilter,
    Pattern,
    PatternError,
    text_of,
)

ROOM = "lobby@rooms.example"
SENT = events.MessageSent(f"{ROOM}/Me", "Me", "hello", "1")
GAP = events.Gap("1970-01-01T00:00:00.000Z", "1970-01-01T00:00:01.000Z")


def _said(body: str, nickname: str = "Wilma", jid: str | None = None) -> events.MessageReceived:
    return events.MessageReceived(f"{ROOM}/{nickname}", nickname, body, jid=jid)


def _entered(status: str | None = None, jid: str | None = None) -> events.OccupantJoined:
    return events.OccupantJoined(f"{ROOM}/Wilma", "Wilma", "visitor", "none", None, status, jid)


def test_kinds_are_taken_by_their_name() -> None:
    wanted = EventFilter(kinds=frozenset({"message", "gap"}))
    assert all(wanted.matches(event) for event in (_said("hello"), SENT, GAP))
    assert not wanted.matches(events.SubjectChanged("hello"))
    assert not EventFilter(kinds=frozenset()).matches(_said("hello"))


@pytest.mark.parametrize("nickname", ["Wilma", "a/b", "@a", "a@", "@", "/", "Straße", "x y"])
def test_a_sender_is_known_by_the_nickname_exactly_as_it_is(nickname: str) -> None:
    said = _said("hello", nickname)
    assert EventFilter(sender=nickname).matches(said)
    assert EventFilter(sender=f"{ROOM}/{nickname}").matches(said)
    assert not EventFilter(sender=nickname + "x").matches(said)
    assert not EventFilter(sender=nickname[1:] or "x").matches(said)
    sent = events.MessageSent(f"{ROOM}/{nickname}", nickname, "hello", "1")
    assert EventFilter(sender=nickname).matches(sent)


def test_case_matters_in_a_nickname_and_nowhere_else_in_its_jid() -> None:
    said = _said("hello", jid="Wilma@Example/Home")
    for sender in ("LOBBY@Rooms.Example/Wilma", "wilma@example", "WILMA@example/Home"):
        assert EventFilter(sender=sender).matches(said), sender
    for sender in ("wilma", f"{ROOM}/wilma", "wilma@example/home", "wilma@example/"):
        assert not EventFilter(sender=sender).matches(said), sender


@pytest.mark.parametrize("jid", ["wilma@example", "wilma@example/Home", f"{ROOM}/Wilma"])
def test_nobody_answers_for_another_by_a_jid_as_nickname(jid: str) -> None:
    eve = _said("hello", jid, "eve@example")
    assert not EventFilter(sender=jid).matches(eve)
    assert not EventFilter(sender=jid).matches(events.NicknameChanged(f"{ROOM}/Eve", "Eve", jid))
    assert EventFilter(sender=f"{ROOM}/{jid}").matches(eve)


def test_every_event_that_has_somebody_is_theirs() -> None:
    for event, sender in (
        (_entered(jid="w@example/1"), "w@example"),
        (events.OccupantLeft(f"{ROOM}/Wilma", "Wilma"), "Wilma"),
        (events.NicknameChanged(f"{ROOM}/Wilma", "Wilma", "Betty"), "Wilma"),
        (events.MessageReceived(ROOM, "", retracts="1", moderated_by="Wilma"), "Wilma"),
        (events.AffiliationChanged("w@example", "member"), "W@example"),
        (events.SubjectChanged("hello", "Wilma"), "Wilma"),
    ):
        assert EventFilter(sender=sender).matches(event)
        assert not EventFilter(sender="Barney").matches(event)
        assert not EventFilter(sender=sender).matches(GAP)


@pytest.mark.parametrize(
    ("contains", "text"),
    [
        ("hello", "well, HELLO there"),
        ("HELLO", "hello"),
        ("strasse", "Hauptstraße 1"),
        ("STRAßE", "hauptstrasse"),
        ("ﬁ", "FIsh"),
        ("ΣΊΣΥΦΟΣ", "σίσυφος"),
        ("İ", "i̇"),
        ("\ud800", "half \ud800"),
        ("a\nb", "A\nB"),
        (r"A\u{202E}B", r"a\u{202E}b"),  # somebody typed the escape
    ],
)
def test_text_is_found_whatever_the_case_of_its_letters(contains: str, text: str) -> None:
    for event in (_said(text), events.SubjectChanged(text), _entered(text)):
        assert EventFilter(contains=contains).matches(event)


DISGUISED = "!p\u202eing\u200b \u2066now"


@pytest.mark.parametrize(
    ("contains", "is_kept"),
    [
        ("!PING now", True),
        ("!p\u200cing", True),
        (visible(DISGUISED), True),
        (visible(DISGUISED).casefold(), False),
        (r"p\u{202E}i", True),
        (r"\u{2066}n", True),
        ("\u202e", True),
        (r"\u{202E}", True),
        ("\u200b", True),
        ("\u200c", False),
        (r"\u{200C}", False),
        ("\u202e\u200b", False),
        (r"\u{69}ng", False),
        ("ping  now", False),
    ],
)
def test_hidden_characters_matter_if_nothing_else_is_wanted(contains: str, is_kept: bool) -> None:
    assert EventFilter(contains=contains).matches(_said(DISGUISED)) is is_kept


@given(st.text(max_size=20), st.text(min_size=1, max_size=5), st.text(max_size=20))
def test_whatever_part_of_a_text_is_looked_for_is_found(before: str, part: str, after: str) -> None:
    text = before + part + after
    for contains in (part, visible(part), part.upper() if part.isascii() else part):
        assert EventFilter(contains=contains).matches(_said(text))


def test_text_is_looked_for_in_what_people_wrote_and_nowhere_else() -> None:
    assert not EventFilter(contains="wilma").matches(_said("hello", jid="wilma@example"))
    assert not EventFilter(contains="").matches(_said(""))
    assert text_of(events.OccupantError(f"{ROOM}/W", "W", "gone")) == ""
    assert text_of(events.OccupantError(f"{ROOM}/W", "W", "gone", "moved")) == "moved"


def test_both_must_be_found_in_the_same_text() -> None:
    wanted = EventFilter(contains="error", pattern=Pattern("[0-9]+"))
    assert wanted.matches(_said("Error 42"))
    assert not wanted.matches(_said("error"))
    assert not wanted.matches(_said("42"))


def test_a_pattern_is_found_anywhere_unless_it_says_where() -> None:
    assert Pattern("b+").is_in("abba")
    assert not Pattern("^b").is_in("abba")
    assert Pattern("(?im)^B$").is_in("a\nb")
    assert Pattern(r"^\p{Greek}.$").is_in("\u03c3\U0001f600")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("(", "missing )"),
        ("a(?=b)", "invalid perl operator: (?="),
        (r"(a)\1", r"invalid escape sequence: \1"),
        ("a{1001}", "invalid repetition size: {1001}"),
        (r"\p{L}{300}", "pattern too large - compile failed"),
        ("\ud800", "it is not Unicode text"),
    ],
)
def test_a_pattern_that_is_none_is_refused_in_words(
    source: str, reason: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(PatternError) as refusal:
        Pattern(source)
    assert reason in str(refusal.value)
    assert capfd.readouterr() == ("", "")


def _of_size(instructions: int) -> str:
    """Return a pattern with so many instructions, however RE2 counts them."""
    spare = instructions - Pattern("x" * 900).instructions
    return "x" * 900 + "x{900}" * (spare // 900) + "x" * (spare % 900)


def test_a_pattern_is_refused_beyond_the_most_instructions_and_not_at_them() -> None:
    assert Pattern(_of_size(MAX_INSTRUCTIONS)).instructions == MAX_INSTRUCTIONS
    with pytest.raises(PatternError, match=f"{MAX_INSTRUCTIONS + 1} instructions"):
        Pattern(_of_size(MAX_INSTRUCTIONS + 1))


@pytest.mark.parametrize("source", ["(x+x+)+y", "(((x*)*)*)*y", "(x|x|x)*y", "(.*)(.*)(.*)(.*)y"])
def test_a_bomb_takes_no_longer_than_anything_else(source: str) -> None:
    # A machine that backtracks would be at it until the sun burns out: any end is a pass.
    assert not Pattern(source).is_in("x" * MAX_SEARCHED)


def test_a_text_is_looked_at_up_to_the_bound() -> None:
    pattern = Pattern("y")
    assert pattern.is_in("x" * (MAX_SEARCHED - 1) + "y")
    assert not pattern.is_in("x" * MAX_SEARCHED + "y")


def test_patterns_may_search_in_several_threads_at_once() -> None:
    pattern = Pattern("(a|b|ab)*c")
    texts = ["ab" * 5_000 + "c", "ab" * 5_000] * 20
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(pattern.is_in, texts)) == [True, False] * 20
        made = list(pool.map(Pattern, [f"x{number}" for number in range(200)]))
    assert [each.is_in("x42 ") for each in made].index(True) == 4  # "x4" before "x42"


def test_old_patterns_are_let_go_of() -> None:
    import re2

    for number in range(50):
        Pattern(f"x{number}")
    assert re2._Regexp._make.cache_info().currsize <= 1  # noqa: SLF001 - it has no word for it


@given(st.text(st.characters(exclude_categories=()), max_size=30), st.text(max_size=30))
def test_whatever_is_given_for_a_pattern_searches_or_is_refused(source: str, text: str) -> None:
    try:
        pattern = Pattern(source)
    except PatternError as error:
        assert str(error)  # noqa: PT017 - most are none
    else:
        pattern.is_in(text)


def test_what_a_look_costs_is_its_characters_times_what_a_pattern_does_with_each() -> None:
    event = _said("12345")._replace(source=events.Source.HISTORY)
    pattern = Pattern("x{100}")
    assert EventFilter().cost(event) == 0
    assert EventFilter(contains="x").cost(_said("1234é")) == 5 * OTHER_COST
    assert EventFilter(pattern=pattern).cost(event) == 5 * pattern.instructions
    both = EventFilter(contains="x", pattern=pattern)
    assert both.cost(event) == 5 * (ASCII_COST + pattern.instructions)
    assert EventFilter(pattern=pattern).cost(GAP) == 0


def test_our_own_messages_can_be_left_out() -> None:
    mine = _said("hello")._replace(own=True)
    asked = (mine, _said("hello"), replace(_entered(), self_=True))
    assert [EventFilter(own=False).matches(each) for each in asked] == [False, True, True]
    assert EventFilter().matches(mine)


STEP = events.ConnectionChanged(events.Phase.JOINING)
FAULT = events.ConnectionChanged(events.Phase.WAITING, Fault("gone", "It went.", "Wait."))


@pytest.mark.parametrize(
    ("event", "kinds", "told"),
    [
        (SENT, None, False),
        (replace(SENT, id="unheard"), None, True),
        (STEP, None, False),
        (events.Connected("me@example/1", "xmpp://example", None, "PLAIN"), None, False),
        (events.Joined(f"{ROOM}/Me", "Me", created=False), None, False),
        (STEP, {"message"}, False),
        (STEP, {"connection"}, True),
        (FAULT, None, True),
        (_said("hello"), None, True),
        (_said("hello")._replace(own=True), None, True),
        (GAP, None, True),
    ],
)
def test_a_brief_account_has_neither_steps_nor_what_came_back_as_it_went_out(
    event: events.Event, kinds: set[str] | None, told: bool
) -> None:
    wanted = None if kinds is None else frozenset(kinds)
    brief = EventFilter(kinds=wanted, unheard=["unheard"])
    assert brief.may_show(event) is told
    assert brief.matches(event) is told
    assert brief.cost(event) == 0
    full = EventFilter(kinds=wanted)
    assert full.may_show(event)
    assert full.matches(event) is (kinds is None or event.kind in kinds)
