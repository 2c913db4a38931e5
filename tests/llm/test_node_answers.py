import json
from dataclasses import dataclass
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.llm.node import MAX_ANSWER_BYTES, MAX_STRAY, read_answer
from bridge.mcp.schema import Bounds, MismatchError, describe


@dataclass(frozen=True)
class Verdict:
    good: bool
    because_of: Annotated[str, Bounds(min_length=1)]


_, READ = describe(Verdict)
FITTING = '{"good": true, "becauseOf": "it } is { so"}'
VERDICT = Verdict(True, "it } is { so")


@pytest.mark.parametrize(
    "text",
    [
        FITTING,
        f"Here you are:\n```\n{FITTING}\n```\nAnything else?",
        f"Not ```\n{{so}}\n```, but\n```json\n{FITTING}\n```",
        f"Sure! {FITTING} I hope that helps.",
        f"{FITTING}\nNo tool is called: {{}}",
        f'<think>{{"good": maybe}}, hm</think>\n{FITTING}',
        f"<think>{'if (bot) { greet } ' * 40}</think>\n{FITTING}",
        f'I begin with {{"good": false, "becauseOf": "no"}}. No:\n{FITTING}',
    ],
)
def test_the_json_is_found_in_what_models_wrap_it_in(text: str) -> None:
    assert read_answer(text, READ) == VERDICT


def test_so_many_braces_are_tried() -> None:
    read_answer("{" * (MAX_STRAY - 1) + FITTING, READ)
    with pytest.raises(MismatchError):
        read_answer("{" * MAX_STRAY + FITTING, READ)


def test_the_end_of_thoughts_in_a_text_of_the_answer_is_a_part_of_it() -> None:
    text = json.dumps({"good": True, "becauseOf": "it says </think> itself"})
    for told in (text, f"```json\n{text}\n```"):
        assert read_answer(told, READ) == Verdict(True, "it says </think> itself")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "not JSON: there is no object in it"),
        ("{good: true}", "not JSON"),
        ("{}", "good"),
        ('{"good": NaN, "becauseOf": "x"}', "NaN is not JSON"),
        ('{"a":' * 100_000, "not JSON: .*recursion"),
        ('{"a":' + "9" * 5_000, "Exceeds the limit"),
        ('{"good": "yes", "becauseOf": "x"}', "answer.good is a string; true or false is wanted"),
    ],
)
def test_what_does_not_fit_is_told(text: str, problem: str) -> None:
    with pytest.raises(MismatchError, match=problem):
        read_answer(text, READ)


def test_the_json_may_be_as_long_as_allowed_as_it_is_shown_and_not_a_byte_more() -> None:
    def read(reason: str, around: str = "") -> object:
        answer = {"good": True, "becauseOf": reason}
        return read_answer(around + json.dumps(answer, ensure_ascii=False), READ)

    room = MAX_ANSWER_BYTES - len(json.dumps({"good": True, "becauseOf": ""}))
    hidden = room // len("\\u{202E}")
    for text, count in (("x", room), ("\u202e", hidden)):
        assert isinstance(read(text * count, "Well. "), Verdict)
        with pytest.raises(MismatchError, match=f"the most is {MAX_ANSWER_BYTES:,}"):
            read(text * (count + 1))


@given(st.text() | st.recursive(st.none() | st.text(), st.lists).map(json.dumps))
def test_anything_else_is_a_mismatch_and_nothing_worse(text: str) -> None:
    with pytest.raises(MismatchError):
        read_answer(text, READ)
