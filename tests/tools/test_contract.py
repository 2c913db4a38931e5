"""The bounds that users were promised, held against what `tools/list` says; names: tests/docs."""

import json
from typing import Any

import pytest

from bridge.llm.tools import MAX_QUESTION_CHARACTERS
from bridge.llm.tools import TOOLSET as LLM
from bridge.mcp.schema import MismatchError, object_of
from bridge.samples import TOOLSET as SAMPLES
from bridge.samples.weather import MAX_LOCATION
from bridge.samples.words import MAX_CHARACTERS
from bridge.service import OWN

TOOLS = {each.name: each for each in OWN.tools}
ALL = TOOLS | {each.name: each for each in (*SAMPLES.tools, *LLM.tools)}


ENTRY_FIELDS = "sender body type source times self heard encrypted payload"
"""What an entry has where it applies, as far as its name does not tell what it is."""

MAX_DESCRIPTION_CHARACTERS = 1_200
MAX_LISTED_BYTES = 2_400
"""Of a tool's description and schemas; all own tools have 20,000 bytes together."""


def _input(tool: str) -> dict[str, Any]:
    schema: dict[str, Any] = object_of(ALL[tool].signature.parameters)
    return schema


@pytest.mark.parametrize(
    ("tool", "argument", "expected"),
    [
        ("xmppSend", "timeoutSeconds", {"default": 10, "maximum": 50}),
        ("xmppSend", "awaitSeconds", {"default": 0, "minimum": 0, "maximum": 50}),
        ("xmppHistory", "limit", {"default": 50, "minimum": 1, "maximum": 500}),
        ("xmppPing", "timeoutSeconds", {"default": 10, "minimum": 0.1, "maximum": 50}),
        ("xmppHistory", "detail", {"enum": ["brief", "full"], "default": "brief"}),
        ("xmppWait", "timeoutSeconds", {"default": 30, "minimum": 0, "maximum": 50}),
        ("xmppHistory", "maxBytes", {"default": 9_000, "minimum": 2_000, "maximum": 45_000}),
        ("xmppOccupants", "limit", {"default": 100, "minimum": 1, "maximum": 500}),
        ("xmppTrace", "direction", {"enum": ["in", "out"]}),
        ("word_count", "text", {"maxLength": MAX_CHARACTERS}),
        ("sentiment", "text", {"maxLength": MAX_CHARACTERS}),
        ("current_weather", "location", {"minLength": 1, "maxLength": MAX_LOCATION}),
        ("scout", "question", {"maxLength": MAX_QUESTION_CHARACTERS}),
    ],
)
def test_defaults_and_bounds_are_those_of_the_contract(
    tool: str, argument: str, expected: dict[str, object]
) -> None:
    assert expected.items() <= _input(tool)["properties"][argument].items()


@pytest.mark.parametrize(
    ("argument", "longest", "unit"),
    [
        ("since", 512, "x"),
        ("contains", 1_000, "x"),
        ("pattern", 1_000, "x"),
        ("kinds", 100, ["message"]),
        ("from", 3_071, "x"),
    ],
)
def test_bounds_that_are_not_listed_hold(argument: str, longest: int, unit: Any) -> None:
    tool = TOOLS["xmppHistory"]
    listed = _input("xmppHistory")["properties"][argument].keys()
    assert not listed & {"minLength", "maxLength", "minItems", "maxItems"}
    tool.bound({argument: unit * longest})
    for wrong in (unit * (longest + 1), unit * 0):
        with pytest.raises(MismatchError):
            tool.bound({argument: wrong})


def test_only_xmpp_send_writes_and_no_tool_destroys_anything() -> None:
    assert [name for name, each in TOOLS.items() if not each.read_only] == ["xmppSend"]
    assert not any(each.destructive for each in TOOLS.values())


def test_what_tells_nothing_of_others_says_so() -> None:
    closed = [name for name, each in TOOLS.items() if not each.open_world]
    assert closed == ["echo", "xmppStatus", "xmppTrace"]


def test_models_are_told_what_else_an_entry_may_have() -> None:
    schema: Any = TOOLS["xmppHistory"].output_schema
    entries = schema["properties"]["entries"]
    assert entries["items"].get("additionalProperties", {}) == {}
    assert [
        name for name in ENTRY_FIELDS.split() if f"`{name}`" not in entries["description"]
    ] == []
    assert len(entries["description"]) <= MAX_DESCRIPTION_CHARACTERS


@pytest.mark.parametrize("tool", ["xmppHistory", "xmppWait"])
def test_what_is_listed_of_a_tool_is_short(tool: str) -> None:
    listed = [TOOLS[tool].description, _input(tool), TOOLS[tool].output_schema]
    assert len(json.dumps(listed, separators=(",", ":"))) <= MAX_LISTED_BYTES
