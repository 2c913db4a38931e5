import json

import pytest
from mcp_types import methods

from bridge.mcp import jsonrpc
from bridge.mcp.errors import ToolError
from tests.mcp.conversation import (
    HANDSHAKE,
    Conversation,
    error_code,
)
from tests.mcp.sample_tools import (
    TOOLS,
    Count,
    notification,
    request,
    tool_call,
)

BROKE = "fail broke (RuntimeError); see the log"


# The handshake


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_every_handshake_revision_is_agreed_on_in_its_own_words(revision: str) -> None:
    talk = Conversation()
    reply = talk.send(request(0, "initialize", protocolVersion=revision, capabilities={}))
    assert reply["id"] == 0
    result = reply["result"]
    methods.validate_server_result("initialize", revision, result)
    assert result["protocolVersion"] == revision
    assert result["instructions"] == "Ask count first."
    assert ("title" in result["serverInfo"]) is (revision >= "2025-06-18")
    assert talk.server.session.revision.date == revision
    assert talk.send(notification("notifications/initialized")) is None


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_the_list_of_tools_is_what_each_revision_knows_of_tools(revision: str) -> None:
    result = Conversation(revision).send(request(1, "tools/list"))["result"]
    methods.validate_server_result("tools/list", revision, result)
    assert [one["name"] for one in result["tools"]] == [one.name for one in TOOLS.tools]
    listed = {one["name"]: one for one in result["tools"]}
    assert ("annotations" in listed["count"]) is (revision >= "2025-03-26")
    assert ("title" in listed["count"]) is (revision >= "2025-06-18")
    assert ("outputSchema" in listed["count"]) is (revision >= "2025-06-18")
    assert "outputSchema" not in listed["say"]


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_a_tools_object_is_structured_content_where_there_is_such_a_thing(revision: str) -> None:
    talk = Conversation(revision)
    assert talk.send(tool_call(1, "count", text="a bb")) is None
    result = talk.finish(talk.calls[0], Count(2, "bb"))["result"]
    methods.validate_server_result("tools/call", revision, result)
    assert not result["isError"]
    assert json.loads(result["content"][0]["text"]) == {"words": 2, "longestWord": "bb"}
    structured = {"words": 2, "longestWord": "bb"} if revision >= "2025-06-18" else None
    assert result.get("structuredContent") == structured


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_a_failure_is_a_result_with_one_text_and_no_structured_content(revision: str) -> None:
    talk = Conversation(revision)
    talk.send(tool_call(1, "count", text=""))
    failed = ToolError("it is gone", condition="gone", hint="Wait.")
    result = talk.finish(talk.calls[0], failed)["result"]
    methods.validate_server_result("tools/call", revision, result)
    assert result == {
        "content": [{"type": "text", "text": "it is gone\nCondition: gone\nHint: Wait."}],
        "isError": True,
    }


def test_text_has_no_structured_content() -> None:
    talk = Conversation("2025-11-25")
    talk.send(tool_call(1, "say", message="x"))
    assert talk.finish(talk.calls[0], "Said: x")["result"] == {
        "content": [{"type": "text", "text": "Said: x"}],
        "isError": False,
    }


@pytest.mark.parametrize("requested", [5, [], {}, True])
def test_a_protocol_version_that_is_no_string_is_refused_and_nothing_changes(
    requested: object,
) -> None:
    talk = Conversation("2025-03-26")
    assert error_code(talk.send(request(1, "initialize", protocolVersion=requested))) == -32602
    assert talk.server.session.revision.date == "2025-03-26"


def test_a_second_handshake_agrees_anew() -> None:
    talk = Conversation("2024-11-05")
    talk.send(request(1, "initialize", protocolVersion="2025-06-18"))
    assert talk.server.session.revision.date == "2025-06-18"


def test_without_a_handshake_the_newest_handshake_revision_is_spoken() -> None:
    talk = Conversation()
    tools = talk.send(request(1, "tools/list"))["result"]["tools"]
    assert "title" in tools[0]
    assert talk.send(request(2, "ping")) == {"jsonrpc": "2.0", "id": 2, "result": {}}


# Requests that cannot be served


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({}, "the name of a tool"),
        ({"name": 1}, "the name of a tool"),
        ({"name": "nope"}, "Unknown tool: 'nope'"),
        ({"name": "x" * 1000}, "Unknown tool"),
        ({"name": "say", "arguments": []}, "an object is wanted"),
        ({"name": "say", "arguments": "x"}, "an object is wanted"),
    ],
)
def test_a_call_of_no_tool_or_without_an_object_is_invalid_params(
    params: dict[str, object], reason: str
) -> None:
    reply = Conversation("2025-11-25").send(request(1, "tools/call", **params))
    assert error_code(reply) == -32602
    assert reason in reply["error"]["data"]
    assert len(reply["error"]["data"]) < 400


def test_arguments_that_break_the_schema_are_a_failed_result_and_nothing_runs() -> None:
    talk = Conversation("2025-11-25")
    result = talk.send(tool_call(1, "count", at_most=0, atMost=0))["result"]
    methods.validate_server_result("tools/call", "2025-11-25", result)
    assert result["isError"]
    text = result["content"][0]["text"]
    assert text.startswith("count: text is missing; atMost is 0; the least is 1; 'at_most' is not")
    assert text.endswith("Hint: Its arguments: text, atMost (optional).")
    assert talk.calls == []


@pytest.mark.parametrize("arguments", [{}, {"arguments": None}])
def test_a_call_may_leave_its_arguments_out(arguments: dict[str, object]) -> None:
    talk = Conversation("2025-11-25")
    assert talk.send(request(1, "tools/call", name="fail", **arguments)) is None
    assert talk.calls[0].arguments == {}


@pytest.mark.parametrize("method", ["nope", "", "tools/calls", "server/Discover", "x" * 10_000])
def test_an_unknown_method_is_told_with_what_there_is(method: str) -> None:
    reply = Conversation().send(request(1, method))
    assert reply["error"]["code"] == -32601
    assert reply["error"]["message"] == "Method not found"
    assert "say, count" in reply["error"]["data"]
    assert len(reply["error"]["data"]) < 500


@pytest.mark.parametrize("method", ["ping", "tools/list", "tools/call", "initialize", "count"])
def test_params_by_position_are_invalid(method: str) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": ["a"]}
    assert error_code(Conversation().send(message)) == -32602


@pytest.mark.parametrize("value", [1, "x", None, {}, {"jsonrpc": "2.0", "id": None, "method": "x"}])
def test_what_is_no_message_is_an_invalid_request_without_an_id(value: object) -> None:
    reply = Conversation().send(value)
    assert error_code(reply) == -32600
    assert reply["id"] is None


@pytest.mark.parametrize(
    "value",
    [
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "Parse error"}},
        {"id": 1, "result": None},
        notification("notifications/initialized"),
        notification("notifications/nonsense"),
        notification("tools/call", name="say", arguments={"message": "x"}),
        notification("nope"),
    ],
)
def test_responses_and_notifications_get_no_reply(value: object) -> None:
    talk = Conversation()
    assert talk.send(value) is None
    assert talk.calls == []


# The bare dialect


@pytest.mark.parametrize("revision", [None, *HANDSHAKE])
def test_a_tools_name_is_a_method_with_and_without_a_handshake(revision: str | None) -> None:
    talk = Conversation(revision)
    assert talk.send(request("1", "count", text="a")) is None
    assert talk.finish(talk.calls[0], Count(1, "a")) == {
        "jsonrpc": "2.0",
        "id": "1",
        "result": {"words": 1, "longestWord": "a"},
    }


def test_a_bare_call_may_leave_its_params_out() -> None:
    talk = Conversation()
    assert talk.send({"jsonrpc": "2.0", "id": 1, "method": "fail"}) is None
    assert talk.calls[0].arguments == {}


def test_bare_text_is_content() -> None:
    talk = Conversation()
    talk.send(request(1, "say", message="x"))
    assert talk.finish(talk.calls[0], "Said: x")["result"] == {
        "content": [{"type": "text", "text": "Said: x"}]
    }


def test_a_bare_call_without_an_id_runs_and_gets_no_reply() -> None:
    talk = Conversation()
    assert talk.send(notification("say", message="x")) is None
    assert talk.calls[0].arguments == {"message": "x"}
    assert talk.finish(talk.calls[0], "Said: x") is None


def test_a_bare_call_without_an_id_that_is_wrong_does_nothing() -> None:
    talk = Conversation()
    assert talk.send(notification("say")) is None
    assert talk.send({"jsonrpc": "2.0", "method": "say", "params": ["x"]}) is None
    assert talk.calls == []


def test_bare_arguments_that_break_the_schema_are_invalid_params() -> None:
    reply = Conversation().send(request(1, "say", message=""))
    assert reply["error"] == {
        "code": -32602,
        "message": "say: message has 0 characters; the least is 1",
        "data": {"condition": "bad-request", "hint": "Its arguments: message."},
    }
    reply = Conversation().send(request(1, "fail", x=1))
    assert reply["error"]["data"]["hint"] == "It takes no arguments."


def test_a_bare_failure_is_an_error_with_condition_and_hint() -> None:
    talk = Conversation()
    talk.send(request(1, "fail"))
    failed = ToolError("it is gone", condition="gone", hint="Wait.")
    assert talk.finish(talk.calls[0], failed)["error"] == {
        "code": -32603,
        "message": "it is gone",
        "data": {"condition": "gone", "hint": "Wait."},
    }


def test_a_crash_is_an_internal_error_in_both_dialects() -> None:
    talk = Conversation()
    talk.send(request(1, "fail"))
    talk.send(tool_call(2, "fail"))
    bare, mcp = (talk.finish(call, RuntimeError("a secret"))["error"] for call in talk.calls)
    assert bare == {
        "code": -32603,
        "message": "Internal error",
        "data": {"condition": "internal-server-error", "hint": BROKE},
    }
    assert mcp == {"code": -32603, "message": "Internal error", "data": BROKE}


@pytest.mark.parametrize("value", [{"x": float("nan")}, {"x": object}, {1: 2}, b"x"], ids=str)
def test_a_result_that_json_cannot_say_is_a_crash_and_still_a_reply(value: object) -> None:
    talk = Conversation()
    talk.send(request(1, "overflow"))
    talk.send(tool_call(2, "overflow"))
    for call in talk.calls:
        reply = talk.finish(call, value)
        assert error_code(reply) == -32603
        assert "overflow" in json.dumps(reply["error"]["data"])


def test_a_result_that_is_nested_without_end_is_a_crash_and_still_a_reply() -> None:
    endless: dict[str, object] = {}
    endless["itself"] = endless
    talk = Conversation()
    talk.send(request(1, "overflow"))
    assert error_code(talk.finish(talk.calls[0], endless)) == -32603


# Cancellation


def test_a_cancelled_call_gets_no_reply() -> None:
    talk = Conversation("2025-11-25")
    talk.send(tool_call(1, "wait"))
    assert talk.send(notification("notifications/cancelled", requestId=1, reason="x")) is None
    assert talk.cancelled == talk.calls
    assert talk.finish(talk.calls[0]) is None


def test_a_bare_call_can_be_cancelled_too() -> None:
    talk = Conversation()
    talk.send(request("a", "wait"))
    talk.send(notification("notifications/cancelled", requestId="a"))
    assert talk.cancelled == talk.calls


@pytest.mark.parametrize("id_", ["1", 1.0, True, None, [1], {}, 2])
def test_only_the_same_id_of_the_same_type_cancels(id_: object) -> None:
    talk = Conversation("2025-11-25")
    talk.send(tool_call(1, "wait"))
    talk.send(notification("say", message="no id"))
    talk.send(notification("notifications/cancelled", requestId=id_))
    assert talk.cancelled == []
    assert talk.finish(talk.calls[0])["id"] == 1


def test_a_cancellation_without_sense_is_passed_over() -> None:
    talk = Conversation()
    for message in (
        notification("notifications/cancelled"),
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": [1]},
        {"jsonrpc": "2.0", "method": "notifications/cancelled"},
    ):
        assert talk.send(message) is None


def test_a_cancellation_that_comes_too_late_does_nothing() -> None:
    talk = Conversation()
    talk.send(tool_call(1, "wait"))
    assert talk.finish(talk.calls[0])["id"] == 1
    talk.send(notification("notifications/cancelled", requestId=1))
    assert talk.cancelled == []


def test_a_call_is_answered_once() -> None:
    talk = Conversation()
    talk.send(tool_call(1, "wait"))
    assert talk.finish(talk.calls[0])["id"] == 1
    assert talk.finish(talk.calls[0]) is None


def test_an_id_used_twice_gets_two_replies() -> None:
    talk = Conversation()
    talk.send(tool_call(1, "wait"))
    talk.send(tool_call(1, "wait"))
    first, second = talk.calls
    assert first is not second
    assert talk.finish(second)["id"] == 1
    assert talk.finish(first)["id"] == 1


# Batches


def test_a_batch_is_answered_as_one_when_its_last_call_is_done() -> None:
    talk = Conversation("2025-03-26")
    batch = [
        request(1, "ping"),
        tool_call(2, "wait"),
        notification("notifications/initialized"),
        request(3, "nope"),
        request(4, "wait"),
        7,
    ]
    assert talk.send(batch) is None
    mcp, bare = talk.calls
    assert talk.finish(bare) is None
    replies = talk.finish(mcp)
    assert [one["id"] for one in replies] == [1, 3, None, 4, 2]


def test_a_batch_without_calls_is_answered_at_once() -> None:
    replies = Conversation("2025-03-26").send([request(1, "ping"), request(2, "ping")])
    assert [one["id"] for one in replies] == [1, 2]


def test_a_batch_of_notifications_gets_no_reply() -> None:
    talk = Conversation("2025-03-26")
    assert talk.send([notification("x"), notification("say", message="a")]) is None
    assert talk.finish(talk.calls[0]) is None


def test_a_handshake_within_a_batch_is_refused_and_changes_nothing() -> None:
    talk = Conversation("2025-03-26")
    first, second = talk.send(
        [request(1, "initialize", protocolVersion="2025-11-25"), request(2, "ping")]
    )
    assert error_code(first) == -32600
    assert second["result"] == {}
    assert talk.server.session.revision.date == "2025-03-26"


def test_an_empty_batch_is_an_invalid_request() -> None:
    reply = Conversation("2025-03-26").send([])
    assert error_code(reply) == -32600
    assert reply["id"] is None


@pytest.mark.parametrize("revision", [None, "2024-11-05", "2025-06-18", "2025-11-25"])
def test_a_batch_is_an_invalid_request_where_there_are_no_batches(revision: str | None) -> None:
    talk = Conversation(revision)
    reply = talk.send([tool_call(1, "wait")])
    assert error_code(reply) == -32600
    assert reply["id"] is None
    assert talk.calls == []


def test_a_cancelled_call_is_left_out_of_its_batchs_reply() -> None:
    talk = Conversation("2025-03-26")
    talk.send([tool_call(1, "wait"), tool_call(2, "wait")])
    assert talk.send(notification("notifications/cancelled", requestId=1)) is None
    assert [one["id"] for one in talk.finish(talk.calls[1])] == [2]


def test_cancelling_the_last_call_of_a_batch_completes_it() -> None:
    talk = Conversation("2025-03-26")
    talk.send([tool_call(1, "wait"), request(2, "ping")])
    replies = talk.send(notification("notifications/cancelled", requestId=1))
    assert [one["id"] for one in replies] == [2]
    assert talk.finish(talk.calls[0]) is None


def test_a_batch_of_one_cancelled_call_gets_no_reply() -> None:
    talk = Conversation("2025-03-26")
    talk.send([tool_call(1, "wait")])
    assert talk.send(notification("notifications/cancelled", requestId=1)) is None
    assert talk.finish(talk.calls[0]) is None


def test_a_call_may_be_cancelled_within_its_own_batch() -> None:
    talk = Conversation("2025-03-26")
    cancel = notification("notifications/cancelled", requestId=1)
    replies = talk.send([tool_call(1, "wait"), cancel, request(2, "ping")])
    assert [one["id"] for one in replies] == [2]
    assert talk.cancelled == talk.calls
    assert talk.send([tool_call(1, "wait"), cancel]) is None
    assert talk.send([cancel, tool_call(3, "wait")]) is None
    assert [one["id"] for one in talk.finish(talk.calls[-1])] == [3]


def test_a_batch_may_cancel_the_last_call_of_another() -> None:
    talk = Conversation("2025-03-26")
    talk.send([tool_call(1, "wait"), request(2, "ping")])
    replies = talk.send([notification("notifications/cancelled", requestId=1)])
    assert [one["id"] for one in replies] == [2]


# Prompts


def test_a_prompt_is_written_out_with_its_arguments() -> None:
    talk = Conversation("2025-11-25")
    arguments = {"name": "Anna", "run": " Now."}
    assert talk.result(request(1, "prompts/get", name="greet", arguments=arguments)) == {
        "description": "Ask for a greeting.",
        "messages": [
            {
                "role": "user",
                "content": {"type": "text", "text": "Greet Anna in a good mood. Now."},
            }
        ],
    }


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({}, "the prompts here are greet, falter"),
        ({"name": "nope"}, "the prompts here are greet, falter"),
        ({"name": "greet"}, "name is missing"),
        ({"name": "greet", "arguments": []}, "an object is wanted"),
        ({"name": "greet", "arguments": {"name": 1}}, "a string is wanted"),
        ({"name": "falter", "arguments": {"x": "y"}}, "'x' is not known"),
    ],
)
def test_params_of_a_prompt_that_do_not_fit_are_invalid_and_say_what_would(
    params: dict[str, object], reason: str
) -> None:
    reply = Conversation("2025-11-25").send(request(1, "prompts/get", **params))
    assert error_code(reply) == jsonrpc.INVALID_PARAMS
    assert reason in str(reply["error"])


def test_a_prompt_that_breaks_tells_no_secret() -> None:
    talk = Conversation("2025-11-25")
    assert talk.send(request(1, "prompts/get", name="falter")) is None
    reply = talk.finish(talk.calls[0], RuntimeError("a secret"))
    assert error_code(reply) == jsonrpc.INTERNAL_ERROR
    assert "falter broke (RuntimeError)" in str(reply)
    assert "secret" not in str(reply)
