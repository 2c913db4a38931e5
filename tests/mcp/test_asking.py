"""Questions to the client, the answers to them, and the state that goes between the two."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal

import mcp_types as types
import pytest

from bridge.mcp import asking, jsonrpc
from bridge.mcp.asking import (
    NO_ANSWERS,
    STATE_SECONDS,
    Answers,
    Elicitation,
    Question,
    RequestStates,
    elicitation,
    read_elicitation,
    read_sampling,
    sampling,
)
from bridge.mcp.jsonrpc import Json, Object, RpcError
from bridge.mcp.schema import MismatchError, Schema, SchemaError, Titles
from tests.mcp.client import Clock
from tests.mcp.sample_tools import states

CALL: Json = ["Tool", "send", {"message": "hello"}]
PLAIN = Question("roots/list", {})
CONSENT = PLAIN._replace(consent=True)
YES: Object = {"action": "accept", "content": {}}
NO: Object = {"action": "decline"}


def asked(
    issuer: RequestStates, *names: str, answers: Answers = NO_ANSWERS, call: Json = CALL
) -> str:
    return issuer.issue(call, names, answers)


def taken(issuer: RequestStates, state: object, call: Json = CALL, /, **given: object) -> Answers:
    return issuer.take(call, {"requestState": state, "inputResponses": given})


def refusal(issuer: RequestStates, call: Json, params: Object) -> str:
    with pytest.raises(RpcError) as refused:
        issuer.take(call, params)
    assert refused.value.code == jsonrpc.INVALID_PARAMS
    return str(refused.value.data)


# The state


def test_arguments_that_are_nested_too_deeply_are_refused_and_end_nothing() -> None:
    deep: Json = []
    for _ in range(10_000):
        deep = [deep]
    issuer = states()
    assert "nested too deeply" in refusal(issuer, deep, {"requestState": asked(issuer, "ok")})
    with pytest.raises(RpcError, match="nested too deeply"):
        asked(issuer, "ok", call=deep)


@pytest.mark.parametrize("given", [{}, {"inputResponses": {"ok": YES}}], ids=["none", "answers"])
def test_a_state_is_taken_once_with_answers_and_without(given: Object) -> None:
    issuer = states()
    params = {"requestState": asked(issuer, "ok"), **given}
    assert (issuer.take(CALL, params) == NO_ANSWERS) is not bool(given)
    assert "was used before" in refusal(issuer, CALL, params)


@pytest.mark.parametrize("change", ["0{}", "{}0", "", "\ud800", "{}.{}"])
def test_a_state_that_was_changed_is_refused(change: str) -> None:
    issuer = states()
    state = asked(issuer, "ok")
    spoilt = change.format(state, state)
    said = refusal(issuer, CALL, {"requestState": spoilt, "inputResponses": {"ok": YES}})
    assert "is not one that this call was given" in said
    assert taken(issuer, state, ok=YES).to("ok", CONSENT) == YES  # the true one is not used up


@pytest.mark.parametrize(
    "call",
    [
        ["Prompt", "send", {"message": "hello"}],
        ["Tool", "sendAll", {"message": "hello"}],
        ["Tool", "send", {"message": "hello", "room": "other"}],
    ],
)
def test_a_state_is_of_one_tool_with_its_arguments(call: Json) -> None:
    issuer = states()
    params: Object = {"requestState": asked(issuer, "ok"), "inputResponses": {"ok": YES}}
    assert "is not one that this call was given" in refusal(issuer, call, params)


def test_arguments_are_the_same_in_any_order() -> None:
    issuer = states()
    state = asked(issuer, "ok", call=["Tool", "send", {"a": 1, "b": 2}])
    assert taken(issuer, state, ["Tool", "send", {"b": 2, "a": 1}], ok=YES).to("ok", CONSENT)


@pytest.mark.parametrize(("late", "counts"), [(-0.001, True), (0.0, False), (1.0, False)])
def test_a_state_is_taken_for_so_many_seconds(late: float, counts: bool) -> None:
    clock = Clock()
    issuer = states(clock)
    state = asked(issuer, "ok")
    clock.now += STATE_SECONDS + late
    if counts:
        assert taken(issuer, state, ok=YES).to("ok", CONSENT)
    else:
        said = refusal(issuer, CALL, {"requestState": state})
        assert f"expired: it is accepted for {STATE_SECONDS:g} s" in said


def test_only_so_many_calls_wait_for_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "MAX_STATES", 3)
    clock = Clock()
    issuer = states(clock)
    given = [asked(issuer, "ok") for _ in range(3)]
    with pytest.raises(RpcError, match="3 calls wait for answers"):
        asked(issuer, "ok")
    taken(issuer, given[0], ok=YES)
    asked(issuer, "ok")
    clock.now += STATE_SECONDS
    assert taken(issuer, asked(issuer, "ok"), ok=YES).to("ok", CONSENT) == YES


# The answers


def test_several_rounds_keep_the_answers_of_those_before() -> None:
    issuer = states()
    first = taken(issuer, asked(issuer, "one"), one=YES)
    second = taken(issuer, asked(issuer, "two", answers=first), two=NO, one=NO)
    assert second.to("one", CONSENT) == YES
    assert second.to("two", CONSENT) == NO


def test_what_was_answered_without_a_state_is_no_consent_in_a_later_round() -> None:
    issuer = states()
    first = issuer.take(CALL, {"inputResponses": {"one": YES}})
    second = taken(issuer, asked(issuer, "two", answers=first), two=YES)
    assert second.to("one", PLAIN) == YES
    assert second.to("one", CONSENT) is None


@pytest.mark.parametrize(
    ("name", "given"),
    [("inputResponses", []), ("inputResponses", {"ok": None}), ("requestState", 1)],
)
def test_what_has_another_form_is_invalid_params(name: str, given: object) -> None:
    assert refusal(states(), CALL, {name: given}).startswith(f"{name}: ")


# Forms


class Size(Enum):
    SMALL = "s"
    LARGE = "l"


@dataclass(frozen=True)
class Order:
    address: Annotated[str, "where to"]
    size: Size = Size.SMALL
    count: int = 1
    price: float = 9.5
    gift: bool = False
    extras: Annotated[
        tuple[Literal["salt", "oil"], ...], Titles(salt="Some salt", oil="Olive oil")
    ] = ("salt",)
    colour: Annotated[Literal["r", "g"], Titles(r="Red", g="Green")] = "g"


def test_a_form_says_types_defaults_choices_and_titles() -> None:
    asked_ = elicitation("What will it be?", Order)
    assert asked_.method == "elicitation/create"
    types.ElicitRequestFormParams.model_validate(asked_.params)
    form: Any = asked_.params["requestedSchema"]
    assert set(form) == {"type", "properties", "required"}  # MCP has no more of a form
    assert form["required"] == ["address"]
    titles = {"salt": "Some salt", "oil": "Olive oil"}, {"r": "Red", "g": "Green"}
    salt_or_oil, red_or_green = (
        [{"const": value, "title": title} for value, title in each.items()] for each in titles
    )
    assert form["properties"] == {
        "address": {"type": "string", "description": "where to"},
        "size": {"type": "string", "enum": ["s", "l"], "default": "s"},
        "count": {"type": "integer", "default": 1},
        "price": {"type": "number", "default": 9.5},
        "gift": {"type": "boolean", "default": False},
        "extras": {"type": "array", "items": {"anyOf": salt_or_oil}, "default": ["salt"]},
        "colour": {"type": "string", "oneOf": red_or_green, "default": "g"},
    }


@dataclass(frozen=True)
class Nested:
    order: Order


@pytest.mark.parametrize("form", [Nested, str, {"type": "string"}])
def test_a_form_has_plain_fields_side_by_side(form: Any) -> None:
    with pytest.raises(SchemaError):
        elicitation("?", form)


def test_what_a_person_filled_in_is_a_value_of_the_forms_type() -> None:
    content = {"address": "here", "size": "l", "extras": ["oil"], "count": 2.0}
    filled = read_elicitation({"action": "accept", "content": content}, Order)
    assert filled == Elicitation("accept", Order("here", Size.LARGE, 2, extras=("oil",)))


@pytest.mark.parametrize(
    ("content", "wrong"),
    [
        ({}, "content.address is missing"),
        ({"address": "x", "size": "xl"}, "content.size is 'xl'; one of s, l is wanted"),
        ({"address": "x", "extras": ["pepper"]}, "content.extras[0] is 'pepper'"),
        ({"address": "x", "room": "y"}, "content.'room' is not known"),
        ([], "content is an array; an object is wanted"),
        (None, "content.address is missing"),
    ],
)
def test_what_comes_back_is_held_against_the_form(content: object, wrong: str) -> None:
    with pytest.raises(MismatchError) as mismatch:
        read_elicitation({"action": "accept", "content": content}, Order)
    assert wrong in str(mismatch.value)


@pytest.mark.parametrize("answer", [{}, {"action": "yes"}, {"action": ["x"]}])
def test_another_action_is_none(answer: dict[str, Json]) -> None:
    with pytest.raises(MismatchError, match="one of accept, decline, cancel"):
        read_elicitation(answer, Order)


def test_a_form_written_by_hand_gives_what_was_filled_in_as_it_came() -> None:
    schema: Schema = {"type": "object", "properties": {"mail": {"type": "string"}}}
    asked_: Any = elicitation("Mail?", schema).params
    assert asked_["requestedSchema"] == schema
    filled = read_elicitation({"action": "accept", "content": {"mail": "x"}}, schema)
    assert filled.content == {"mail": "x"}
    for nothing in ({}, {"content": None}):
        assert read_elicitation({"action": "accept", **nothing}, schema).content == {}
    with pytest.raises(MismatchError):
        read_elicitation({"action": "accept", "content": []}, schema)


# Models and roots


def test_a_model_is_asked_as_mcp_says() -> None:
    asked_ = sampling("2 + 2?", max_tokens=9, instructions="Be short.")
    assert asked_.method == "sampling/createMessage"
    types.CreateMessageRequestParams.model_validate(asked_.params)
    assert asked_.params["systemPrompt"] == "Be short."
    assert "systemPrompt" not in sampling("2 + 2?", max_tokens=9).params


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ({"type": "text", "text": "4"}, "4"),
        ([{"type": "text", "text": "4"}, {"type": "image"}, {"type": "text", "text": "2"}], "42"),
        ({"type": "text", "text": 4}, ""),
        ("4", ""),
    ],
)
def test_the_text_of_a_models_answer_is_read(content: object, text: str) -> None:
    answer: Mapping[str, Any] = {"role": "assistant", "content": content}
    assert read_sampling(dict(answer)) == text
