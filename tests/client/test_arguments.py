from typing import Any

import pytest

from bridge.client.arguments import (
    MAX_SUBSCHEMAS,
    Parameter,
    parameters,
    prompt_parameters,
    read_arguments,
)
from bridge.client.errors import ArgumentError

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": ["string", "null"], "description": "some text"},
        "count": {"type": "integer", "minimum": 1, "maximum": 5, "default": 2},
        "ratio": {"type": "number"},
        "flag": {"type": "boolean"},
        "kinds": {
            "anyOf": [{"type": "array", "items": {"enum": ["a", "b"]}}, {"type": "null"}],
        },
        "numbers": {"type": "array", "items": {"type": "integer"}},
        "colour": {"$ref": "#/$defs/Colour"},
        "nested": {"type": "object"},
        "anything": {},
        "level": {"anyOf": [{"enum": ["auto"]}, {"type": "integer"}]},
        "lines": {"type": ["array", "string"], "items": {"type": "integer"}},
    },
    "required": ["text", "colour"],
    "$defs": {"Colour": {"enum": ["red", "green"], "type": "string", "description": "of it"}},
}
PARAMETERS = parameters(SCHEMA)
BY_NAME = {one.name: one for one in PARAMETERS}


def test_a_schema_gives_its_arguments_in_order() -> None:
    assert list(BY_NAME) == list(SCHEMA["properties"])
    assert [one.name for one in PARAMETERS if one.required] == ["text", "colour"]
    assert BY_NAME["colour"].choices == ("red", "green")
    assert BY_NAME["colour"].description == "of it"
    assert BY_NAME["kinds"].choices == ("a", "b")


@pytest.mark.parametrize("schema", [None, True, {}, {"properties": []}, {"properties": None}])
def test_a_schema_without_arguments_gives_none(schema: object) -> None:
    assert parameters(schema) == ()


def test_a_reference_that_leads_back_to_itself_ends() -> None:
    loop = {
        "properties": {"a": {"$ref": "#/$defs/A"}, "b": {"$ref": "#/nowhere"}},
        "$defs": {"A": {"anyOf": [{"$ref": "#/$defs/A"}, {"type": "string"}]}},
    }
    assert [one.types for one in parameters(loop)] == [("string",), ()]


def test_references_that_lead_back_by_many_ways_end_soon() -> None:
    ways: list[Any] = [{"$ref": "#/$defs/A"}] * 10
    schema = {"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"anyOf": ways}}}
    (found,) = parameters(schema)
    assert found.types == ()


@pytest.mark.parametrize(
    ("before", "types"), [(MAX_SUBSCHEMAS - 2, ("string",)), (MAX_SUBSCHEMAS - 1, ())]
)
def test_of_many_alternatives_so_many_are_read(before: int, types: tuple[str, ...]) -> None:
    several: list[Any] = [*({} for _ in range(before)), {"type": "string"}]
    (found,) = parameters({"properties": {"a": {"anyOf": several}}})
    assert found.types == types


@pytest.mark.parametrize(
    ("name", "typed", "value"),
    [
        ("text", "5", "5"),
        ("text", "null", "null"),
        ("text", '""', ""),
        ("text", '"two\\nlines"', "two\nlines"),
        ("text", '"', '"'),
        ("count", "3", 3),
        ("ratio", "0.5", 0.5),
        ("ratio", "2", 2),
        ("flag", "Yes", True),
        ("flag", "off", False),
        ("kinds", "a,b", ["a", "b"]),
        ("kinds", '["a"]', ["a"]),
        ("kinds", "null", None),
        ("numbers", "1, 2", [1, 2]),
        ("colour", "red", "red"),
        ("nested", '{"a": [1]}', {"a": [1]}),
        ("anything", "7", 7),
        ("anything", "seven", "seven"),
        ("anything", "NaN", "NaN"),
        ("anything", "1e999", "1e999"),
        ("level", "5", 5),
        ("lines", "1,2", [1, 2]),
        ("lines", "a,b", "a,b"),
    ],
)
def test_what_is_typed_becomes_a_value_of_its_type(name: str, typed: str, value: object) -> None:
    read = BY_NAME[name].read(typed)
    assert (read, type(read)) == (value, type(value))


@pytest.mark.parametrize(
    ("name", "typed"),
    [
        ("count", "2.5"),
        ("count", "two"),
        ("ratio", "nan"),
        ("ratio", "inf"),
        ("ratio", "1e999"),
        ("flag", "maybe"),
        ("numbers", "1,x"),
        ("colour", "blue"),
        ("nested", "[1]"),
        ("nested", "{"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_is_wanted(name: str, typed: str) -> None:
    with pytest.raises(ArgumentError, match=f"{name}: .* is wanted"):
        BY_NAME[name].read(typed)


def test_a_question_says_what_is_wanted() -> None:
    assert BY_NAME["count"].question == "  count (integer 1 to 5) [2]: "
    assert BY_NAME["colour"].question == "  colour (string: red, green) *: "
    hostile = Parameter("\x1b[31m", ("string",), required=False)
    assert "\x1b" not in hostile.question


@pytest.mark.parametrize(
    ("typed", "arguments"),
    [
        ("", {}),
        ('{"text": "x", "other": 1}', {"text": "x", "other": 1}),
        ("count=3 flag=yes", {"count": 3, "flag": True}),
        ("some words count=3", {"text": "some words", "count": 3}),
        ('"with a=b" count=3', {"text": "with a=b", "count": 3}),
        ("a=b", {"text": "a=b"}),
        ("don't", {"text": "don't"}),
        ("colour='red'", {"colour": "red"}),
    ],
)
def test_arguments_are_an_object_or_names_beside_words(
    typed: str, arguments: dict[str, object]
) -> None:
    assert read_arguments(typed, PARAMETERS, "text") == arguments


def test_a_text_that_is_said_is_taken_as_it_stands() -> None:
    said = '{"a"} count=3  "x"'
    assert read_arguments(said, PARAMETERS, "text", verbatim=True) == {"text": said}


@pytest.mark.parametrize(
    ("typed", "why"),
    [
        ("word", "name=value"),
        ("{oops", "no JSON"),
        ('{"a": NaN}', "no JSON"),
        ('{"a": 1e999}', "no JSON"),
    ],
)
def test_words_that_are_no_argument_are_refused(typed: str, why: str) -> None:
    with pytest.raises(ArgumentError, match=why):
        read_arguments(typed, PARAMETERS)


def test_arguments_of_a_prompt_are_texts() -> None:
    declared = [{"name": "who", "required": True}, {"name": "why", "description": "d"}, 3]
    assert prompt_parameters({"arguments": declared}) == (
        Parameter("who", ("string",), required=True),
        Parameter("why", ("string",), required=False, description="d"),
    )
