import dataclasses
from dataclasses import dataclass
from typing import Annotated

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from bridge.mcp.schema import ABSENT_IF_NONE, SchemaError, describe, render
from tests.mcp.shapes import Level, Point, values


@dataclass(frozen=True)
class Seen:
    at_time: str
    reason: Annotated[str | None, ABSENT_IF_NONE]
    real_jid: str | None = None
    level: Level = Level.LOW


def test_a_result_leaves_out_what_is_absent_and_keeps_what_is_null() -> None:
    assert render(Seen("now", None)) == {"atTime": "now", "realJid": None, "level": 1}
    assert render(Seen("now", "r", "j", Level.HIGH)) == {
        "atTime": "now",
        "reason": "r",
        "realJid": "j",
        "level": 2,
    }
    assert type(render(Level.HIGH)) is int
    schema = describe(Seen)[0]
    assert schema["required"] == ["atTime"]
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
