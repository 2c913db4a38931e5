import dataclasses
import json
import re
import sys
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from bridge.mcp.schema import (
    Bounds,
    Keywords,
    MismatchError,
    SchemaError,
    describe,
    render,
)
from tests.mcp.shapes import Colour, Level, Line, Point, values

HINTS: tuple[Any, ...] = (
    str,
    bool,
    int,
    None,
    object,
    int | str,
    int | float | None,
    Literal["a", "b", 1],
    Literal[True] | None,
    Literal[Colour.RED, 2],
    Colour,
    Level,
    Annotated[int, Bounds(minimum=1, maximum=5)],
    Annotated[float, Bounds(minimum=0.5)],
    Annotated[str, Bounds(min_length=1, max_length=3)],
    Annotated[tuple[int, ...], Bounds(min_length=1, max_length=2)],
    Annotated[list[str] | None, Bounds(max_length=1)],
    Annotated[int | bool, Bounds(minimum=1)],
    Annotated[Literal["", "ab", 1], Bounds(minimum=2, min_length=1)],
    Annotated[Point | str | None, Bounds(max_length=1)],
    Annotated[int, "how many", Bounds(maximum=3)] | None,
    Sequence[str | None],
    Mapping[str, list[object]],
    Line,
    list[Point] | dict[str, Point],
)


def named(hint: Any) -> str:
    # Every process must give a test the same name; an object may show its address.
    return re.sub(rf"{Point.__module__}\.| object at 0x\w+", "", str(hint))


def fits(hint: Any, value: object) -> bool:
    try:
        describe(hint)[1](value, "value")
    except MismatchError:
        return False
    return True


@pytest.mark.parametrize("hint", HINTS, ids=named)
def test_a_value_is_taken_and_rendered_exactly_as_its_schema_allows(hint: Any) -> None:
    schema, read = describe(hint)
    json.dumps(schema)
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)

    @given(values)
    @settings(max_examples=20)
    def agree(value: object) -> None:
        taken = fits(hint, value)
        assert taken is validator.is_valid(value)
        assert not taken or validator.is_valid(render(read(value, "value")))

    agree()


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Literal["a"] | None, {"type": ["string", "null"], "enum": ["a", None]}),
        (Colour, {"enum": ["red", 1]}),
        (
            Annotated[int, "how many", Bounds(minimum=1, maximum=5)],
            {"type": "integer", "description": "how many", "minimum": 1, "maximum": 5},
        ),
        # A limit is said in the words of the types that it is for, and in no others.
        (
            Annotated[int | str | bool, Bounds(minimum=2, max_length=3)],
            {"type": ["integer", "string", "boolean"], "minimum": 2, "maxLength": 3},
        ),
        (dict[str, bool], {"type": "object", "additionalProperties": {"type": "boolean"}}),
        (dict, {"type": "object"}),
        (typing.Dict, {"type": "object"}),  # noqa: UP006 - as people write it
        (Mapping, {"type": "object"}),
        (tuple, {"type": "array", "items": {}}),
        (
            Annotated[dict[str, object], Keywords(required=["x"])] | None,
            {"type": ["object", "null"], "required": ["x"]},
        ),
        (
            Point,
            {
                "type": "object",
                "properties": {
                    "xAxis": {"type": "integer"},
                    "label": {"type": "string", "default": "here"},
                    "tags": {"type": "array", "items": {"type": "string"}},
                },
                "required": ["xAxis"],
                "additionalProperties": False,
            },
        ),
    ],
    ids=named,
)
def test_a_type_is_described_in_the_words_of_json_schema(hint: Any, schema: object) -> None:
    assert describe(hint)[0] == schema


@pytest.mark.parametrize(
    "hint",
    [bytes, set[str], dict[int, str], tuple[int, str], Literal[b"x"], complex, type],
    ids=str,
)
def test_a_type_without_a_json_form_is_its_authors_error(hint: Any) -> None:
    with pytest.raises(SchemaError):
        describe(hint)


@pytest.mark.parametrize(
    ("hint", "value", "complaint"),
    [
        (str, 1, "value is a number; a string is wanted"),
        (int, True, "value is a boolean; a whole number is wanted"),
        (int, float("inf"), "value is a number; a whole number is wanted"),
        (float, 10**400, "value is too large a number"),
        (None, {}, "value is an object; null is wanted"),
        (list[int], [1, "x"], "value[1] is a string; a whole number is wanted"),
        (dict[str, int], {"a": ""}, "value.a is a string; a whole number is wanted"),
        (Literal["a", 2], "c", "value is 'c'; one of a, 2 is wanted"),
        (Point, {}, "value.xAxis is missing"),
        (Point, {"xAxis": 1, "y": 2}, "value.'y' is not known"),
        (
            int | str,
            [],
            "value is an array; a whole number is wanted / value is an array; a string is wanted",
        ),
        (Annotated[int, Bounds(minimum=1)], 0, "value is 0; the least is 1"),
        (Annotated[int, Bounds(maximum=5)], 6, "value is 6; the most is 5"),
        (
            Annotated[int, Bounds(maximum=5)],
            10**4000,
            f"value is 1{'0' * 99}; the most is 5",
        ),
        (Annotated[str, Bounds(min_length=1)], "", "value has 0 characters; the least is 1"),
        (Annotated[list[int], Bounds(max_length=1)], ["", 2], "value has 2 items; the most is 1"),
    ],
)
def test_a_misfit_is_told_with_its_place_and_what_would_fit(
    hint: Any, value: object, complaint: str
) -> None:
    with pytest.raises(MismatchError) as caught:
        describe(hint)[1](value, "value")
    assert str(caught.value) == complaint


def test_a_misfit_of_any_depth_and_length_is_told_in_few_words() -> None:
    deep: object = 1
    for _ in range(5000):
        deep = [deep]
    for value in (deep, "x" * 10**6):
        with pytest.raises(MismatchError) as caught:
            describe(Literal["a"])[1](value, "value")
        assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("hint", "value", "read"),
    [
        (int, 5.0, 5),
        (Colour, 1, Colour.ONE),
        (Literal[5], 5.0, 5),
        (float, sys.float_info.max, sys.float_info.max),
        (tuple[int, ...], [1, 2], (1, 2)),
        (Line, {"points": [{"xAxis": 3, "label": "p"}]}, Line((Point(3, "p"),))),
    ],
    ids=named,
)
def test_a_value_is_read_as_its_python_type(hint: Any, value: object, read: object) -> None:
    fault = describe(hint)[1](value, "value")
    assert fault == read
    assert type(fault) is type(read)


# Results


@dataclass(frozen=True)
class Seen:
    at_time: str
    reason: str | None
    real_jid: str | None = None
    level: Level = Level.LOW


def test_a_result_keeps_what_is_null() -> None:
    assert render(Seen("now", None)) == {
        "atTime": "now", "reason": None, "realJid": None, "level": 1
    }  # fmt: skip
    assert type(render(Level.HIGH)) is int
    schema = describe(Seen)[0]
    assert schema["required"] == ["atTime", "reason"]
    assert Draft202012Validator(schema).is_valid(render(Seen("now", None)))


def test_keys_of_a_mapping_are_data_and_keep_their_spelling() -> None:
    assert render({"snake_case": [Point(1)]}) == {
        "snake_case": [{"xAxis": 1, "label": "here", "tags": []}]
    }


@pytest.mark.parametrize(
    "value",
    [object, b"x", {1, 2}, Point, {1: "x"}, float("nan"), [float("inf")], {"a": -float("inf")}],
    ids=str,
)
def test_what_has_no_json_form_is_not_rendered(value: object) -> None:
    with pytest.raises(SchemaError):
        render(value)


@given(values)
def test_json_is_rendered_as_it_is(value: object) -> None:
    assert render(value) == value


def test_fields_are_not_shared_between_classes_of_one_name() -> None:
    first = dataclasses.make_dataclass("Same", [("a", int)])
    second = dataclasses.make_dataclass("Same", [("b", int)])
    assert render(first(1)) == {"a": 1}
    assert render(second(1)) == {"b": 1}
