"""Arguments that clients and models write in a way of their own, taken for what they mean."""

import json
import logging
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from bridge.mcp.schema import (
    MAX_WRITTEN_CHARACTERS,
    MAX_WRITTEN_LEVELS,
    Bounds,
    Member,
    Schema,
    Titles,
    as_meant,
    object_of,
)
from tests.mcp.client import Client, logged
from tests.mcp.conversation import Conversation
from tests.mcp.sample_tools import notification, request, stateless, tool_call
from tests.mcp.shapes import Colour, Point, values
from tests.mcp.test_schema import HINTS, named


def arguments(hint: Any) -> Schema:
    """Return the input schema of a tool that takes `x` and `y`."""
    members = [Member.of(name, hint, required=False) for name in ("x", "y")]
    return object_of([members[0], members[1].with_default(None)])


LEFT_OUT = "(left out)"


@pytest.mark.parametrize(
    ("hint", "given", "meant"),
    [
        (int, "20", 20),
        (int, "-0", 0),
        (int, "2.0", 2.0),
        (float, "1e3", 1000.0),
        (int | None, "7", 7),
        (Annotated[int, Bounds(maximum=5)], "900", 900),
        (Literal[1, 2], "2", 2),
        (bool, "true", True),
        (bool, "false", False),
        (list[str], '["message"]', ["message"]),
        (list[int], "[ 1, 2 ]", [1, 2]),
        (Annotated[list[Literal["a"]], Titles(a="A")], '["a"]', ["a"]),
        (dict[str, int], '{"a":1}', {"a": 1}),
        (Point, '{"xAxis":1}', {"xAxis": 1}),
        (list[int] | dict[str, int], "{}", {}),
        (int, None, LEFT_OUT),
        (list[str], None, LEFT_OUT),
        (str, None, LEFT_OUT),
        (Literal["a", 1], None, LEFT_OUT),
    ],
    ids=named,
)
def test_what_can_mean_one_thing_only_is_taken_for_that(
    hint: Any, given: object, meant: object
) -> None:
    read = as_meant(arguments(hint), {"x": given})
    assert read == ({} if meant is LEFT_OUT else {"x": meant})
    assert [*map(type, read.values())] == ([] if meant is LEFT_OUT else [type(meant)])


@pytest.mark.parametrize(
    ("hint", "given"),
    [
        *((int, text) for text in ("five", " ", " 5", "5 ", "+5", "05", "5.", "\u0665", "1_0")),
        *((float, text) for text in ("NaN", "Infinity", "-Infinity", "1,5")),
        *((bool, text) for text in ("True", "yes", "1", '"true"')),
        (int, "true"),
        (list[str], "message"),
        (list[str], "{}"),
        (dict[str, int], "[]"),
        (list[str], "['message']"),
        (int | str, "5"),
        (Literal["a", 5], "5"),
        (list[int] | str, "[1]"),
        (Annotated[str, Bounds(max_length=1)], "55"),
        (Colour, "1"),
        (object, "5"),
        (object, None),
        (int | None, None),
        (str, "null"),
        *((hint, "") for hint in (str, int, bool, Annotated[str, Bounds(min_length=1)])),
        *((hint, "null") for hint in (int, int | None, list[str])),
        *((str, value) for value in (7, 7.0, True, [7])),
        (Literal["7", 8], 7),
        (list[str], ["null"]),
        (list[int], ["1", None]),
        (Point, {"xAxis": "1", "label": None, "_x": 1}),
    ],
    ids=named,
)
def test_what_fits_or_could_mean_something_else_is_left_as_it_is(hint: Any, given: object) -> None:
    assert as_meant(arguments(hint), {"x": given}) == {"x": given}


def test_null_is_left_out_where_the_schema_names_no_null_though_the_default_is_one() -> None:
    assert as_meant(arguments(str | None), {"x": None, "y": None}) == {"x": None}


@pytest.mark.parametrize("hint", HINTS, ids=named)
def test_arguments_that_fit_are_never_changed_and_none_is_changed_twice(hint: Any) -> None:
    schema = arguments(hint)
    validator = Draft202012Validator(schema)
    written = st.one_of(values, values.map(json.dumps))

    @given(st.dictionaries(st.sampled_from(["x", "y", "_z", "z"]), written))
    @settings(max_examples=10)
    def hold(arguments: dict[str, object]) -> None:
        meant = as_meant(schema, arguments)
        if validator.is_valid(arguments):
            assert meant == arguments
        assert as_meant(schema, meant) == meant
        assert meant.keys() <= arguments.keys() - {"_z"}

    hold()


@pytest.mark.parametrize("extra", [0, 1])
def test_written_json_is_bounded_in_length_and_depth(extra: int) -> None:
    long = "[1" + "]".rjust(MAX_WRITTEN_CHARACTERS - 2 + extra)
    levels = MAX_WRITTEN_LEVELS + extra
    deep = "[" * levels + "]" * levels
    for text in (long, deep):
        (meant,) = as_meant(arguments(list[object]), {"x": text}).values()
        assert isinstance(meant, str if extra else list)


def test_written_json_that_is_nested_without_end_is_left_as_it_is() -> None:
    text = "[" * (MAX_WRITTEN_CHARACTERS // 2) + "]" * (MAX_WRITTEN_CHARACTERS // 2)
    assert as_meant(arguments(list[object]), {"x": text}) == {"x": text}


def test_an_argument_that_is_not_declared_is_ignored_if_its_name_begins_with_a_low_line() -> None:
    given = {"random_string": "dummy", "": "", "_y": None}
    for schema in (object_of([]), arguments(int)):
        assert as_meant(schema, given) == {"random_string": "dummy", "": ""}


def test_an_open_schema_keeps_what_it_does_not_declare() -> None:
    schema: Schema = {"type": "object", "properties": {"x": {"type": "integer"}}}
    assert as_meant(schema, {"x": "1", "_y": None, "z": "2"}) == {"x": 1, "_y": None, "z": "2"}
    assert as_meant({"type": "object"}, {"x": "1", "y": None}) == {"x": "1", "y": None}


# On the wire


def test_a_call_is_bound_to_its_arguments_as_they_were_meant() -> None:
    talk = Conversation()
    plain: dict[str, object] = {"text": "a", "atMost": 7}
    for written in ({**plain, "atMost": "7", "_id": "x"}, plain):
        talk.send(stateless(1, "tools/call", name="count", arguments=written))
        talk.send(request(2, "count", **written))
    for call in talk.calls:
        assert call.arguments == {"text": "a", "at_most": 7}
    mcp, _, again, _ = talk.calls
    assert mcp.bound == again.bound


EMPTY = ("tools/list", "resources/list", "prompts/list", "ping", "fail", "wait")


@pytest.mark.parametrize("method", EMPTY)
def test_an_empty_array_is_an_empty_object_wherever_params_may_be_given(method: str) -> None:
    array, expected = Conversation(), Conversation()
    for value, talk in (([], array), ({}, expected)):
        reply = talk.send({"jsonrpc": "2.0", "id": 1, "method": method, "params": value})
        asked: dict[str, object] = {"name": "fail", "arguments": value, "_meta": value}
        talk.send({"jsonrpc": "2.0", "method": "wait", "params": value})
        talk.send(request(2, "tools/call", **asked))
        assert reply is None or "result" in reply
    assert [call.of.name for call in array.calls] == [call.of.name for call in expected.calls]
    assert {str(call.arguments) for call in array.calls} == {"{}"}


@pytest.mark.parametrize(
    ("method", "name", "given"),
    [
        ("tools/call", "count", '{"text":"a","atMost":"7"}'),
        ("prompts/get", "greet", '{"name":"Ann","_id":1}'),
        ("prompts/get", "greet", {"name": "Ann", "mood": None}),
    ],
)
def test_arguments_are_read_from_the_json_of_an_object_for_tools_and_prompts(
    method: str, name: str, given: object
) -> None:
    talk = Conversation("2025-11-25")
    talk.send(request(1, method, name=name, arguments=given))
    assert [call.of.name for call in talk.calls] == [name]


@pytest.mark.parametrize("given", ["[]", '"a"', "{text: a}", " {}", "7", "text"])
def test_arguments_that_are_no_json_of_an_object_stay_refused(given: str) -> None:
    reply = Conversation().send(request(1, "tools/call", name="count", arguments=given))
    assert reply["error"]["message"] == "Invalid params: arguments: an object is wanted"


@pytest.mark.parametrize("method", ["ping", "count"])
def test_params_by_position_stay_refused(method: str) -> None:
    reply = Conversation().send({"jsonrpc": "2.0", "id": 1, "method": method, "params": ["a"]})
    assert reply["error"]["code"] == -32602


def test_an_empty_capability_in_an_array_is_declared() -> None:
    talk = Conversation()
    capabilities: dict[str, object] = {"elicitation": []}
    talk.send(request(0, "initialize", protocolVersion="2025-11-25", capabilities=capabilities))
    talk.send(tool_call(1, "wait"))
    assert talk.server.can_ask(talk.calls[0], "elicitation/create")


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"text": "a", "atMost": "five"}, "atMost is a string; a whole number is wanted"),
        ({"text": "a", "atMost": "0"}, "atMost is 0; the least is 1"),
        ({"text": "a", "at_most": 1}, "'at_most' is not known: atMost?"),
        ({"text": "a", "sessionId": 1}, "'sessionId' is not known"),
        ({"text": None}, "text is missing"),
        ({"text": 1.5}, "text is a number; a string is wanted"),
    ],
)
def test_what_is_not_plain_stays_refused_with_the_nearest(
    given: dict[str, object], reason: str
) -> None:
    bare = Conversation().send(request(1, "count", **given))
    assert bare["error"]["message"] == f"count: {reason}"
    mcp = Conversation().send(tool_call(1, "count", **given))
    assert mcp["result"]["content"][0]["text"].startswith(f"count: {reason}\n")


def test_an_unknown_tool_is_refused_with_the_nearest() -> None:
    for message in (tool_call(1, "cuont"), request(1, "cuont")):
        assert ": count?" in Conversation().send(message)["error"]["message"]


async def test_the_log_shows_arguments_as_they_were_meant() -> None:
    client = Client()
    given = {"text": "a", "atMost": "7", "_id": "x"}
    with logged(logging.DEBUG) as lines:
        client.send(request(1, "count", **given), tool_call(2, "count", **given))
        client.send(notification("count", **given))
        await client.end()
    asked = [line for line in lines if line.startswith("<-")]
    assert len(asked) == 3
    for line in asked:
        assert '"atMost":7}' in line
        assert "_id" not in line
