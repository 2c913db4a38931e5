import json
from dataclasses import replace
from typing import Any

import pytest

from bridge.client.errors import RequestError
from bridge.client.formatting import (
    Answer,
    client_message,
    error_response,
    for_person,
    for_pipe,
    for_program,
    listing,
    prompt_messages,
    resource_contents,
    tool_result,
)
from bridge.views.screen import Display

HOSTILE = "\x1b[31m\u202e\x9b"
SCHEMA = {"properties": {HOSTILE: {"enum": [HOSTILE], "default": HOSTILE}}}
DEFINITION = {"name": HOSTILE, "inputSchema": SCHEMA, "annotations": {HOSTILE: True}}


def _result(*texts: str, **more: object) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": each} for each in texts], **more}


def test_a_text_is_one_line_for_a_pipe_and_as_it_is_for_a_person() -> None:
    answer = replace(tool_result(_result("two\nlines")), seconds=0.0123)
    assert for_pipe(answer) == "two\\u{A}lines"
    assert for_person(answer) == "two\nlines\n(12.3 ms)"
    made_for_reading = _result("sunny", structuredContent={"result": "sunny"})
    assert for_pipe(tool_result(made_for_reading)) == "sunny"
    assert for_pipe(tool_result(None)) == "null"


def test_an_object_is_json_in_one_line_or_laid_out() -> None:
    answer = replace(tool_result(_result('{"a":[1]}', structuredContent={"a": [1]})), seconds=0.001)
    assert for_pipe(answer) == '{"a": [1]}'
    assert for_person(answer) == "a: 1\n(1.0 ms)"


@pytest.mark.parametrize(
    ("audience", "shown"), [(["assistant"], "a: 1"), (["user"], '{"a":1}\nTell it.')]
)
def test_what_is_for_the_model_alone_is_no_more_than_the_object(
    audience: list[str], shown: str
) -> None:
    result = _result('{"a":1}', "Tell it.", structuredContent={"a": 1})
    result["content"][1]["annotations"] = {"audience": audience}
    assert for_person(tool_result(result)) == shown


def test_a_failure_is_an_error_in_both_dialects() -> None:
    told = "No.\nCondition: c\nHint: h"
    mcp = tool_result(_result(told, isError=True))
    error = {"code": -32603, "message": "No.", "data": {"condition": "c", "hint": "h"}}
    bare = error_response(RequestError(error))
    assert (mcp.failed, bare.failed) == (True, True)
    assert json.loads(for_pipe(mcp)) == json.loads(for_pipe(bare)) == {"error": told}
    assert json.loads(for_program(bare)) == {"error": error}


@pytest.mark.parametrize(
    ("message", "data", "shown"),
    [
        ("Invalid params: limit: a number is wanted", "limit: a number is wanted", ""),
        ("Invalid params", "limit: a number is wanted", ": limit: a number is wanted"),
        ("Unsupported", {"supported": ["2025-11-25"]}, ': {"supported": ["2025-11-25"]}'),
        ("Method not found", None, ""),
    ],
)
def test_the_reason_of_an_error_is_shown_once(message: str, data: object, shown: str) -> None:
    answer = error_response(RequestError({"code": -32602, "message": message, "data": data}))
    assert for_person(answer) == message + shown


@pytest.mark.parametrize(
    "answer",
    [
        tool_result(_result(HOSTILE)),
        tool_result(_result(json.dumps({HOSTILE: HOSTILE}))),
        tool_result({HOSTILE: [HOSTILE]}),
        tool_result({"content": [{"type": HOSTILE, "mimeType": HOSTILE, "data": ""}]}),
        tool_result({"content": [{"type": "resource_link", "name": HOSTILE}]}),
        tool_result({"entries": [{"at": HOSTILE, "kind": "message", "body": HOSTILE}]}),
        tool_result({"entries": [{"at": HOSTILE, "xml": HOSTILE}], "next": HOSTILE}),
        tool_result({"phases": [{"name": HOSTILE, "ms": [HOSTILE]}], "verdict": HOSTILE}),
        error_response(RequestError({"message": HOSTILE, "data": HOSTILE})),
        listing("tools", {"tools": [{"name": HOSTILE, "description": HOSTILE}]}),
        Answer(DEFINITION, DEFINITION, own=True),
        resource_contents({"contents": [{"uri": HOSTILE, "text": HOSTILE}]}),
        resource_contents({"contents": [{"uri": HOSTILE, "blob": "", "mimeType": HOSTILE}]}),
        prompt_messages({"messages": [{"role": HOSTILE, "content": HOSTILE}]}),
    ],
)
def test_nothing_a_server_says_reaches_the_terminal_unescaped(answer: Answer) -> None:
    for shown in (for_person(answer), for_pipe(answer), for_program(answer)):
        assert not set(shown) & set(HOSTILE) - set("[31m")
    assert "\n" not in for_pipe(answer)
    assert for_program(answer).isascii()


def test_a_resource_that_is_an_object_is_shown_like_a_result_and_its_json_in_a_pipe() -> None:
    contents = [{"uri": "bridge://status", "text": '{"self": {"voice": true}}'}]
    answer = resource_contents({"contents": contents})
    assert for_person(answer) == "self: voice true"
    assert for_pipe(answer) == '{"self": {"voice": true}}'
    assert for_program(answer) == json.dumps({"contents": contents})
    both = for_person(resource_contents({"contents": contents * 2}))
    assert both.count('"voice": true') == 2


def test_a_text_breaks_at_words_below_the_column_in_which_it_began() -> None:
    display = Display(coloured=False, columns=lambda: 24)
    answer = client_message("help       this list of all that\nshort")
    assert for_person(answer, display).split("\n") == [
        "help       this list of",
        "           all that",
        "short",
    ]
