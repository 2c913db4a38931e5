from collections.abc import Sequence
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from bridge.mcp.schema import Bounds, SchemaError, wire_name
from bridge.mcp.toolset import ArgumentsError, Signature
from tests.mcp.shapes import Colour, Line, Point, texts, values

PLACE = Point(1)


def gather(
    house: Point,
    /,
    message: Annotated[str, Bounds(min_length=1)],
    timeout_seconds: Annotated[float, Bounds(minimum=0, maximum=50)] = 10,
    from_: str | None = None,
    *,
    colours: Sequence[Colour] = (Colour.RED,),
    where: Point = PLACE,
) -> Line:
    raise AssertionError((house, message, timeout_seconds, from_, colours, where))


SIGNATURE = Signature.of(gather)


def test_a_signature_is_told_apart_into_collaborators_and_arguments() -> None:
    assert SIGNATURE.collaborators == (Point,)
    assert SIGNATURE.result is Line
    assert [(one.name, one.wire, one.required) for one in SIGNATURE.parameters] == [
        ("message", "message", True),
        ("timeout_seconds", "timeoutSeconds", False),
        ("from_", "from", False),
        ("colours", "colours", False),
        ("where", "where", False),
    ]


def test_the_arguments_schema_names_defaults_and_nothing_unnamed_passes() -> None:
    schema = SIGNATURE.input_schema()
    Draft202012Validator.check_schema(schema)
    assert schema["required"] == ["message"]
    assert schema["additionalProperties"] is False
    properties = schema["properties"]
    assert isinstance(properties, dict)
    assert {name: one.get("default") for name, one in properties.items()} == {
        "message": None,
        "timeoutSeconds": 10,
        "from": None,
        "colours": ["red"],
        "where": {"xAxis": 1, "label": "here", "tags": []},
    }


def test_arguments_are_bound_by_their_python_names() -> None:
    arguments = {"message": "m", "from": "x", "timeoutSeconds": 50, "colours": [1]}
    assert SIGNATURE.bind(arguments) == {
        "message": "m",
        "from_": "x",
        "timeout_seconds": 50,
        "colours": [Colour.ONE],
    }


def test_every_fault_of_the_arguments_is_named_at_once() -> None:
    with pytest.raises(ArgumentsError) as caught:
        SIGNATURE.bind({"from": 1, "timeoutSeconds": 51, "from_": "x", "house": {}})
    assert caught.value.problems == (
        "message is missing",
        "timeoutSeconds is 51; the most is 50",
        "from is a number; a string is wanted",
        "'from_' is not an argument (colours, from, message, timeoutSeconds, where)",
        "'house' is not an argument (colours, from, message, timeoutSeconds, where)",
    )
    assert "; ".join(caught.value.problems) == str(caught.value)


def test_many_unknown_and_long_arguments_are_told_briefly() -> None:
    with pytest.raises(ArgumentsError) as caught:
        SIGNATURE.bind({"message": "m"} | {f"{index}" * 10_000: 1 for index in range(100)})
    assert len(caught.value.problems) == 5
    assert len(str(caught.value)) < 1000


@given(
    st.one_of(
        st.dictionaries(texts, values),
        st.fixed_dictionaries(
            {},
            optional=dict.fromkeys(
                ("message", "timeoutSeconds", "from", "colours", "where", "house"), values
            ),
        ),
    )
)
def test_arguments_are_bound_exactly_if_the_schema_allows_them(
    arguments: dict[str, object],
) -> None:
    allowed = Draft202012Validator(SIGNATURE.input_schema()).is_valid(arguments)
    if allowed:
        SIGNATURE.bind(arguments)
    else:
        with pytest.raises(ArgumentsError):
            SIGNATURE.bind(arguments)


def test_a_signature_that_json_cannot_say_is_its_authors_error() -> None:
    def untyped(x) -> str:  # type: ignore[no-untyped-def]
        return str(x)

    def several(*xs: int) -> str:
        return str(xs)

    def options(**xs: int) -> str:
        return str(xs)

    def raw(x: bytes) -> str:
        return str(x)

    for function in (untyped, several, options, raw):
        with pytest.raises(SchemaError):
            Signature.of(function)


@pytest.mark.parametrize(
    ("name", "wire"),
    [("from_", "from"), ("timeout_seconds", "timeoutSeconds"), ("a_b_c", "aBC"), ("x", "x")],
)
def test_a_wire_name_is_camel_case_without_a_trailing_underscore(name: str, wire: str) -> None:
    assert wire_name(name) == wire
