from typing import Any

import pytest

from bridge.client.arguments import (
    Parameter,
    parameters,
    prompt_parameters,
    read_arguments,
    trailing_arguments,
)
from bridge.client.errors import InvalidInputError

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": ["string", "null"], "description": "some text"},
        "count": {"type": "integer", "default": 2},
        "ratio": {"type": "number"},
        "flag": {"type": "boolean"},
        "kinds": {
            "anyOf": [{"type": "array", "items": {"enum": ["a", "b"]}}, {"type": "null"}],
        },
        "numbers": {"type": "array", "items": {"type": "integer"}},
        "colour": {"enum": ["red", "green"], "type": "string", "description": "of it"},
        "nested": {"type": "object"},
        "anything": {},
        "level": {"anyOf": [{"enum": ["auto"]}, {"type": "integer"}]},
    },
    "required": ["text", "colour"],
}
PARAMETERS = parameters(SCHEMA)
BY_NAME = {each.name: each for each in PARAMETERS}


def test_a_schema_gives_its_arguments_in_order() -> None:
    assert list(BY_NAME) == list(SCHEMA["properties"])
    assert [each.name for each in PARAMETERS if each.required] == ["text", "colour"]
    assert BY_NAME["colour"].choices == ("red", "green")
    assert BY_NAME["colour"].description == "of it"
    assert BY_NAME["kinds"].choices == ("a", "b")


@pytest.mark.parametrize("schema", [None, True, {"properties": []}])
def test_a_schema_without_arguments_gives_none(schema: object) -> None:
    assert parameters(schema) == ()


def test_alternatives_are_read_a_level_deep_and_what_is_not_understood_is_any_json() -> None:
    deeper = {"anyOf": [{"anyOf": [{"type": "integer"}]}]}
    properties = {
        "optional": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "titled": {"type": "string", "oneOf": [{"const": "a", "title": "A"}, {"const": "b"}]},
        "deeper": deeper,
        "referred": {"$ref": "#/$defs/Colour"},
        "odd": {"type": "date"},
        "none": False,
    }
    known = {each.name: each for each in parameters({"properties": properties})}
    assert known["optional"].types == ("string", "null")
    assert known["optional"].kind == "string"
    assert known["titled"].choices == ("a", "b")
    for name in ("deeper", "referred", "odd", "none"):
        assert known[name].kind == ("date" if name == "odd" else "any JSON")
        assert (known[name].read("7"), known[name].read("seven")) == (7, "seven")


@pytest.mark.parametrize(
    ("name", "typed", "value"),
    [
        ("text", "5", "5"),
        ("count", "3", 3),
        ("ratio", "0.5", 0.5),
        ("flag", "Yes", True),
        ("kinds", "a,b", ["a", "b"]),
        ("kinds", '["a"]', ["a"]),
        ("numbers", "1, 2", [1, 2]),
        ("nested", '{"a": [1]}', {"a": [1]}),
        ("anything", "7", 7),
        ("anything", "1e999", "1e999"),
        ("level", "5", 5),
    ],
)
def test_what_is_typed_becomes_a_value_of_its_type(name: str, typed: str, value: object) -> None:
    read = BY_NAME[name].read(typed)
    assert (read, type(read)) == (value, type(value))


@pytest.mark.parametrize(
    ("name", "typed"),
    [
        ("ratio", "1e999"),
        ("flag", "maybe"),
        ("numbers", "1,x"),
        ("colour", "blue"),
        ("nested", "{"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_is_wanted(name: str, typed: str) -> None:
    with pytest.raises(InvalidInputError, match=f"{name}: .* is wanted"):
        BY_NAME[name].read(typed)


@pytest.mark.parametrize(
    ("typed", "arguments"),
    [
        ("", {}),
        ('{"text": "x", "other": 1}', {"text": "x", "other": 1}),
        ("some words count=3", {"text": "some words", "count": 3}),
        ('"with a=b" count=3', {"text": "with a=b", "count": 3}),
        ("don't", {"text": "don't"}),
        ("colour='red'", {"colour": "red"}),
    ],
)
def test_arguments_are_an_object_or_names_beside_words(
    typed: str, arguments: dict[str, object]
) -> None:
    assert read_arguments(typed, PARAMETERS, "text") == arguments


@pytest.mark.parametrize(
    ("typed", "main", "why"),
    [
        ("word", None, "name=value"),
        ("{oops", None, "no JSON"),
        ('{"a": 1e999}', None, "no JSON"),
        ("cuont=3", "text", "no argument cuont: .*count?"),
        ("zzzz=3", "text", "no argument zzzz: .*text, count"),
    ],
)
def test_words_that_are_no_argument_are_refused(typed: str, main: str | None, why: str) -> None:
    with pytest.raises(InvalidInputError, match=why):
        read_arguments(typed, PARAMETERS, main)


def test_arguments_of_a_prompt_are_texts() -> None:
    declared = [{"name": "who", "required": True}, {"name": "why", "description": "d"}, 3]
    assert prompt_parameters({"arguments": declared}) == (
        Parameter("who", ("string",), required=True),
        Parameter("why", ("string",), required=False, description="d"),
    )


@pytest.mark.parametrize(
    ("typed", "text", "arguments"),
    [
        ("hello  there count=3", "hello  there", {"count": 3}),
        ("x flag=yes count=3 ", "x", {"flag": True, "count": 3}),
        ("hi text='two words'", "hi", {"text": "two words"}),
        ("why limt=3", "why limt=3", {}),
        ("count=3", "count=3", {}),
    ],
)
def test_known_arguments_at_the_end_of_a_text_are_no_text(
    typed: str, text: str, arguments: dict[str, Any]
) -> None:
    assert trailing_arguments(typed, PARAMETERS) == (text, arguments)
