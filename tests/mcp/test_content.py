import json

import pytest
from mcp_types import methods

from bridge.mcp.content import Interpret, bare_result, tool_result
from bridge.mcp.revisions import UNNAMED, V2024_11_05, V2025_11_25, Revision
from bridge.mcp.schema import SchemaError
from tests.mcp.sample_tools import EVERY, Count

COUNT = Count(2, "ü\ud800")
JSON = {"words": 2, "longestWord": "ü\ud800"}
PARTS = [{"type": "json", "json": JSON}, {"type": "interpret", "prompt": "Say it."}]


@EVERY
@pytest.mark.parametrize("value", ["text", COUNT, Interpret(COUNT, "Say it.")])
def test_each_value_is_a_result_that_the_revision_allows(value: object, revision: Revision) -> None:
    result = tool_result(value, revision)
    if revision.handshake:
        methods.validate_server_result("tools/call", revision.date, result)
    assert result["isError"] is False
    assert ("structuredContent" in result) is (revision.structured and value != "text")
    blocks = result["content"]
    assert isinstance(blocks, list)
    if value == "text":
        assert blocks == [{"type": "text", "text": "text"}]
    else:
        assert json.loads(blocks[0]["text"]) == result.get("structuredContent", JSON) == JSON


def test_an_instruction_is_a_second_block_for_the_assistant() -> None:
    blocks = tool_result(Interpret(COUNT, "Say it."), V2025_11_25)["content"]
    assert isinstance(blocks, list)
    assert blocks[1] == {
        "type": "text",
        "text": "Say it.",
        "annotations": {"audience": ["assistant"]},
    }


def test_the_older_dialect_and_bare_calls_have_a_part_for_data_and_one_for_the_instruction() -> (
    None
):
    value = Interpret(COUNT, "Say it.")
    assert tool_result(value, UNNAMED) == {"content": PARTS, "isError": False}
    assert bare_result(value) == {"content": PARTS}


def test_the_result_of_a_bare_call_is_the_object_itself_and_text_is_content() -> None:
    assert bare_result(COUNT) == JSON
    assert bare_result("text") == {"content": [{"type": "text", "text": "text"}]}


@pytest.mark.parametrize("value", [{"x": float("nan")}, object, Interpret(b"", "Say it.")])
def test_what_has_no_json_form_has_no_result(value: object) -> None:
    for encode in (bare_result, lambda value: tool_result(value, V2024_11_05)):
        with pytest.raises(SchemaError):
            encode(value)
