"""What the golden conversations in `tests/transcripts` leave open."""

import json

import pytest

from bridge.mcp import jsonrpc
from bridge.mcp.catalogue import Catalogue
from bridge.mcp.server import Send, Server
from bridge.mcp.subscriptions import MAX_LISTENERS
from bridge.mcp.toolset import Toolset
from tests.mcp.conversation import Conversation, error_code, listen, wire
from tests.mcp.sample_tools import (
    IMPLEMENTATION,
    TOOLS,
    Workbench,
    envelope,
    notification,
    request,
    stateless,
    states,
    tool_call,
)

# Results


ENDLESS: dict[str, object] = {}
ENDLESS["itself"] = ENDLESS


@pytest.mark.parametrize("value", [{"x": float("nan")}, b"x", ENDLESS], ids=str)
def test_a_result_that_json_cannot_say_is_a_crash_and_still_a_reply(value: object) -> None:
    talk = Conversation()
    talk.send(request(1, "overflow"))
    talk.send(tool_call(2, "overflow"))
    for call in talk.calls:
        reply = talk.finish(call, value)
        assert error_code(reply) == -32603
        assert "overflow" in json.dumps(reply["error"]["data"])


@pytest.mark.parametrize("method", ["notifications/initialized", "notifications/x"])
def test_a_notification_with_an_id_is_told_to_leave_it_out(method: str) -> None:
    reply = Conversation("2025-06-18").send(request(7, method))
    assert (reply["id"], error_code(reply)) == (7, -32601)
    assert "send it without an id" in reply["error"]["message"]


# Cancellation


@pytest.mark.parametrize("id_", ["1", 1.5, True, [1], 2])
def test_only_the_same_id_of_the_same_type_cancels(id_: object) -> None:
    talk = Conversation("2025-11-25")
    talk.send(tool_call(1, "wait"))
    talk.send(notification("say", message="no id"))
    talk.send(notification("notifications/cancelled", requestId=id_))
    assert talk.cancelled == []
    assert talk.finish(talk.calls[0])["id"] == 1


def test_a_toolset_of_tools_alone_offers_nothing_else() -> None:
    tools_only = Toolset("only", TOOLS.tools)
    server = Server(IMPLEMENTATION, Catalogue(tools_only, [Workbench()]), states())
    (reply,) = server.receive(jsonrpc.decode(json.dumps(stateless(1, "server/discover"))))
    assert isinstance(reply, Send)
    assert wire(reply)["result"]["capabilities"] == {"tools": {}, "logging": {}}


# Subscriptions, progress and log messages


def test_an_id_that_listens_already_cannot_listen_again() -> None:
    talk = Conversation()
    talk.send(listen(1, "sample://words"))
    assert error_code(talk.send(listen(1))) == -32600
    assert talk.server.subscriptions.has("sample://words")


def test_as_many_may_listen_as_allowed_and_no_more() -> None:
    talk = Conversation()
    for number in range(MAX_LISTENERS):
        assert talk.send(listen(number)) is None
    assert error_code(talk.send(listen("more"))) == -32602
    talk.send(notification("notifications/cancelled", requestId=0))
    assert talk.send(listen("more")) is None


def test_progress_and_log_messages_end_with_the_call_whether_answered_or_cancelled() -> None:
    talk = Conversation()
    for id_ in (1, 2):
        meta = envelope(progressToken="t", logLevel="debug")
        talk.send(stateless(id_, "tools/call", name="climb", arguments={"heights": []}, _meta=meta))
    finished, cancelled = talk.calls
    assert talk.server.progress(finished, 1, None, None) is not None
    talk.finish(finished)
    talk.send(notification("notifications/cancelled", requestId=2))
    for call in (finished, cancelled):
        assert talk.server.progress(call, 2, None, None) is None
        assert talk.server.log(call, "emergency", "too late") is None


def test_a_bare_call_has_neither_progress_nor_log_messages() -> None:
    talk = Conversation()
    talk.send(request(0, "logging/setLevel", level="debug"))
    talk.send(request(1, "climb", heights=[]))
    assert talk.server.progress(talk.calls[0], 1, None, None) is None
    assert talk.server.log(talk.calls[0], "emergency", "x") is None
