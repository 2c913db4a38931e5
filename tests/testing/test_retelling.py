"""What was recorded in a room, as a scenario file."""

import re
import tomllib
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bridge.page.pseudonyms import Pseudonyms
from bridge.testing.collector import VERBS
from bridge.testing.retelling import RoomEvent, retold
from bridge.testing.scenario import parse

ROOM = "lab@muc.example"
NOON = 1_700_049_600.0
PING = [(1.0, "Alice", "!ping"), (1.2, "Robot", "pong")]
"""A question, and the answer of a program."""


def _said(at: float, sender: str, body: str, **more: object) -> RoomEvent:
    about = {"from": f"{ROOM}/{sender}", "sender": sender, "type": "groupchat"}
    return RoomEvent(NOON + at, {"kind": "message", "body": body, **about, **more})


def _left(at: float, sender: str, kind: str = "leave", **more: object) -> RoomEvent:
    return RoomEvent(
        NOON + at, {"kind": kind, "from": f"{ROOM}/{sender}", "sender": sender, **more}
    )


def _told(*happened: RoomEvent, pseudonyms: bool = False) -> str:
    return retold(happened, ROOM, "McpDebug", Pseudonyms(on=pseudonyms))


def _steps(text: str) -> list[dict[str, Any]]:
    """The steps, which are a scenario without a bot."""
    assert parse(text, VERBS).bot is None
    steps: list[dict[str, Any]] = tomllib.loads(text)["step"]
    return steps


def _say(actor: str, body: str) -> dict[str, Any]:
    return {"actor": actor, "say": body}


def _expect(actor: str, **wanted: object) -> dict[str, Any]:
    return {"actor": actor, "expect": wanted}


ANSWERED = [
    _say("Alice", "!ping"),
    _expect("Alice", **{"from": "Robot", "text": "pong", "within": 5}),
]


@pytest.mark.parametrize(
    ("said", "steps"),
    [
        ([], []),
        # A question of the same form that was not answered is owed an answer.
        (
            [(100.0, "Bob", "!help")],
            [_say("Bob", "!help"), _expect("Bob", **{"from": "Robot", "within": 5})],
        ),
        # Two who ask at once are answered one after the other.
        (
            [(9.0, "Al", "!a"), (9.1, "Bo", "!b"), (9.5, "Robot", "A"), (9.6, "Robot", "B")],
            [
                _say("Al", "!a"),
                _say("Bo", "!b"),
                _expect("Al", **{"from": "Robot", "text": "A", "within": 5}),
                _expect("Bo", **{"from": "Robot", "text": "B", "within": 5}),
            ],
        ),
        # A slow answer is awaited for longer; a second part is of the same question.
        (
            [(9.0, "Al", "!a"), (14.0, "Robot", "A"), (14.5, "Robot", "and more")],
            [
                _say("Al", "!a"),
                _expect("Al", **{"from": "Robot", "text": "A", "within": 10}),
                _expect("Al", **{"from": "Robot", "text": "and more", "within": 11}),
            ],
        ),
        # A person who speaks after a command is no program, and what they say is no answer.
        (
            [(9.0, "Al", "hello"), (20.0, "Bo", "hi"), (40.0, "Bo", "is it you?")],
            [_say("Al", "hello"), _say("Bo", "hi"), _say("Bo", "is it you?")],
        ),
        # What a program says unasked is a comment.
        ([(50.0, "Alice", "!ping"), (50.2, "Robot", "pong"), (90.0, "Robot", "hello")], ANSWERED),
    ],
)
def test_people_say_what_they_said_and_programs_owe_answers(
    said: list[tuple[float, str, str]], steps: list[dict[str, Any]]
) -> None:
    text = _told(*(_said(*each) for each in [*PING, *said]))
    assert _steps(text) == [*ANSWERED, *steps]
    assert 'joins_as = "Robot"' in text
    assert ("<Robot> hello" in text) is ((90.0, "Robot", "hello") in said)


def test_an_answer_is_of_the_question_to_which_it_replies_as_on_a_page() -> None:
    asked = [_said(9.0, "Al", "!a", id="1"), _said(9.1, "Bo", "!b", id="2")]
    answers = [_said(9.5, "Robot", "B", replyTo="2"), _said(9.6, "Robot", "A", replyTo="1")]
    steps = _steps(_told(*(_said(*each) for each in PING), *asked, *answers))[4:]
    assert [(step["actor"], step["expect"]["text"]) for step in steps] == [("Bo", "B"), ("Al", "A")]


def test_without_a_program_that_answers_such_questions_a_comment_says_so() -> None:
    text = _told(_said(1, "Alice", "!ping"), _said(50, "Bob", "is it broken?"))
    assert _steps(text) == [_say("Alice", "!ping"), _say("Bob", "is it broken?")]
    assert text.count("\n# No answer came; such messages got none") == 1


def test_an_answer_of_somebody_who_mostly_speaks_unasked_is_not_called_missing() -> None:
    spoke = [(100.0, "Robot", "I am tired."), (200.0, "Robot", "Good night.")]
    text = _told(*(_said(*each) for each in [*PING, *spoke]))
    assert _steps(text)[:2] == [_say("Alice", "!ping"), _say("Robot", "pong")]
    assert "No answer came" not in text


def test_visits_old_history_and_a_bots_leaving_are_no_steps() -> None:
    text = _told(
        _said(0, "Eve", "old words", source="history"),
        _left(0.1, "McpDebug-check-12ab34cd", "join"),
        _said(0.2, "McpDebug-check-12ab34cd", "a check"),
        *(_said(*each) for each in PING),
        _left(5, "McpDebug-check-12ab34cd"),
        _left(6, "Robot", reason="too loud\n[bot]"),
        _said(7, "McpDebug-send", "!ping"),
        _left(8, "McpDebug-send"),
    )
    owed = _expect("McpDebug-send", **{"from": "Robot", "within": 5})
    assert _steps(text) == [*ANSWERED, _say("McpDebug-send", "!ping"), owed]
    assert "old words" not in text
    assert "check" not in text
    assert "<McpDebug-send> left" not in text
    assert "\n# 2023-11-15T12:00:06.000Z * <Robot> left: too loud\\u{A}[bot]\n" in text


def test_of_a_stretch_in_which_nobody_spoke_nothing_is_told() -> None:
    assert _told() == _told(_left(1, "Robot"), _said(2, "Eve", "x", source="history")) == ""


def test_with_pseudonyms_it_is_for_reading_and_says_so() -> None:
    text = _told(*(_said(*each) for each in PING), _said(90, "Alice", "!ping"), pseudonyms=True)
    assert "# For reading only" in text
    assert not [name for name in ("Alice", "Robot", "lab@", "pong", "command =") if name in text]
    assert [step["actor"] for step in _steps(text)] == ["Nick1"] * 4


HOSTILE = st.text(
    st.sampled_from("\"\\\n\r\t#[]={}'bot=\x1b\u202e\u2028\x7f\ud800👍é ") | st.characters(),
    min_size=1,
    max_size=40,
)
OURS = r'# .*|#|\[\[step\]\]|actor = ".*"|say = ".*"|expect = \{ from = ".*|'


@given(body=HOSTILE, nickname=HOSTILE, reason=HOSTILE)
@example(body="\ud800", nickname="Ann\udfff", reason="\ud800")
def test_no_text_of_a_stranger_adds_a_line_or_a_step(body: str, nickname: str, reason: str) -> None:
    text = _told(
        _said(1, nickname, f"!{body}"),
        _said(1.1, "Robot", body),
        _left(2, nickname, reason=reason),
        _said(90, nickname, f"!{body}"),
    )
    steps = _steps(text)
    said = "".join("\ufffd" if "\ud800" <= each <= "\udfff" else each for each in f"!{body}")
    assert next(step["say"] for step in steps if "say" in step) == said
    assert len(steps) <= 4
    lines = re.split("\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]", text)
    assert all(re.fullmatch(OURS, line) for line in lines)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text)
