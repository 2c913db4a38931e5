import pytest
from mcp_types import methods

from bridge.mcp.server import Call
from bridge.mcp.subscriptions import MAX_LISTENERS, SUBSCRIPTION_ID
from tests.mcp.conversation import (
    HANDSHAKE,
    Conversation,
    error_code,
    listen,
    told,
    wire,
)
from tests.mcp.sample_tools import (
    SERVER_INFO,
    STATELESS,
    envelope,
    notification,
    request,
    stateless,
    tool_call,
)

# Subscriptions


def test_a_session_hears_of_what_it_subscribed_to_until_it_does_no_more() -> None:
    talk = Conversation("2025-11-25")
    assert talk.updates("sample://words") == []
    assert talk.result(request(1, "resources/subscribe", uri="sample://words")) == {}
    assert talk.result(request(2, "resources/subscribe", uri="sample://words")) == {}
    assert talk.updates("sample://words") == [{"uri": "sample://words"}]
    assert talk.updates("sample://nothing") == []
    assert talk.result(request(3, "resources/unsubscribe", uri="sample://words")) == {}
    assert talk.updates("sample://words") == []
    assert talk.server.close() == []


def test_listening_is_acknowledged_first_and_every_update_carries_its_id() -> None:
    talk = Conversation()
    assert talk.send(listen(1, "sample://words", "sample://nope")) is None
    assert talk.told == [
        notification(
            "notifications/subscriptions/acknowledged",
            _meta={SUBSCRIPTION_ID: 1},
            notifications={"resourceSubscriptions": ["sample://words"]},
        )
    ]
    talk.send(listen("1", "sample://words", "sample://nothing"))
    assert talk.updates("sample://words") == [
        {"_meta": {SUBSCRIPTION_ID: id_}, "uri": "sample://words"} for id_ in (1, "1")
    ]
    assert talk.updates("sample://nothing") == [
        {"_meta": {SUBSCRIPTION_ID: "1"}, "uri": "sample://nothing"}
    ]


def test_a_cancelled_listening_request_gets_neither_updates_nor_a_reply() -> None:
    talk = Conversation()
    talk.send(listen(1, "sample://words"))
    assert talk.send(notification("notifications/cancelled", requestId=1)) is None
    assert talk.updates("sample://words") == []
    assert not talk.server.subscriptions.has("sample://words")
    assert talk.server.close() == []


@pytest.mark.parametrize("id_", ["1", 1.0, True, None, [1], 2])
def test_only_the_same_id_of_the_same_type_ends_listening(id_: object) -> None:
    talk = Conversation()
    talk.send(listen(1, "sample://words"))
    talk.send(notification("notifications/cancelled", requestId=id_))
    assert talk.server.subscriptions.has("sample://words")


def test_listening_is_ended_in_good_order_when_we_end() -> None:
    talk = Conversation()
    talk.send(listen("a"))
    talk.send(listen(2))
    replies = [wire(one) for one in talk.server.close()]
    assert replies == [
        {
            "jsonrpc": "2.0",
            "id": id_,
            "result": {"resultType": "complete", "_meta": SERVER_INFO | {SUBSCRIPTION_ID: id_}},
        }
        for id_ in ("a", 2)
    ]
    for one in replies:
        methods.validate_server_result("subscriptions/listen", STATELESS, one["result"])
    assert talk.server.close() == []


@pytest.mark.parametrize("wanted", [None, [], "x", 1])
def test_listening_for_nothing_that_could_be_told_is_invalid(wanted: object) -> None:
    talk = Conversation()
    assert (
        error_code(talk.send(stateless(1, "subscriptions/listen", notifications=wanted))) == -32602
    )
    assert talk.told == []


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


# Progress and log messages


def climbing(meta: object, *, revision: str | None = None) -> tuple[Conversation, Call]:
    """Return a call with this `_meta`, under way."""
    talk = Conversation(revision)
    assert (
        talk.send(request(1, "tools/call", name="climb", arguments={"heights": []}, _meta=meta))
        is None
    )
    return talk, talk.calls[0]


@pytest.mark.parametrize("token", ["t", "", 0, 7])
def test_progress_goes_by_the_callers_token_and_only_grows(token: object) -> None:
    talk, call = climbing({"progressToken": token})
    assert told(talk.server.progress(call, 0, None, None)) == {
        "progressToken": token,
        "progress": 0,
    }
    assert talk.server.progress(call, 0, None, "not grown") is None
    assert talk.server.progress(call, -1, None, "shrunk") is None
    assert told(talk.server.progress(call, 0.5, 2, "half")) == {
        "progressToken": token,
        "progress": 0.5,
        "total": 2,
        "message": "half",
    }


@pytest.mark.parametrize(
    "meta", [None, {}, {"progressToken": None}, {"progressToken": True}, {"progressToken": 1.5}]
)
def test_without_a_token_there_is_no_progress(meta: object) -> None:
    talk, call = climbing(meta)
    assert talk.server.progress(call, 1, None, None) is None


def test_progress_ends_with_the_call_whether_answered_or_cancelled() -> None:
    talk, call = climbing({"progressToken": "t"})
    talk.finish(call)
    assert talk.server.progress(call, 1, None, None) is None
    talk, call = climbing({"progressToken": "t"})
    assert talk.server.progress(call, 1, None, None) is not None
    talk.send(notification("notifications/cancelled", requestId=1))
    assert talk.server.progress(call, 2, None, None) is None


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_progress_has_words_where_the_revision_has_them(revision: str) -> None:
    talk, call = climbing({"progressToken": "t"}, revision=revision)
    params = told(talk.server.progress(call, 1, None, "in words"))
    assert ("message" in params) is (revision >= "2025-03-26")
    methods.parse_server_notification("notifications/progress", revision, params)


def test_a_stateless_call_has_progress_too() -> None:
    talk, call = climbing(envelope(progressToken="t"))
    params = told(talk.server.progress(call, 1, None, "in words"))
    assert params == {"progressToken": "t", "progress": 1, "message": "in words"}


def test_a_bare_call_has_neither_progress_nor_log_messages() -> None:
    talk = Conversation()
    talk.send(request(0, "logging/setLevel", level="debug"))
    talk.send(request(1, "climb", heights=[]))
    assert talk.server.progress(talk.calls[0], 1, None, None) is None
    assert talk.server.log(talk.calls[0], "emergency", "x") is None


def test_a_stateless_call_gets_the_log_messages_it_asked_for_and_no_others() -> None:
    talk, call = climbing(envelope(logLevel="warning"))
    assert talk.server.log(call, "notice", "too little") is None
    assert told(talk.server.log(call, "warning", {"enough": 1})) == {
        "level": "warning",
        "logger": "climb",
        "data": {"enough": 1},
    }
    talk.finish(call)
    assert talk.server.log(call, "emergency", "too late") is None


def test_the_sessions_level_is_not_taken_for_a_stateless_call() -> None:
    talk = Conversation("2025-11-25")
    assert talk.result(request(0, "logging/setLevel", level="debug")) == {}
    talk.send(stateless(1, "tools/call", name="climb", arguments={"heights": []}))
    assert talk.server.log(talk.calls[0], "emergency", "x") is None


def test_a_session_gets_log_messages_once_it_has_set_a_level() -> None:
    talk, call = climbing(None, revision="2025-11-25")
    assert talk.server.log(call, "emergency", "nobody asked") is None
    assert talk.server.announce("emergency", "room", "nobody asked") is None
    talk.send(request(2, "logging/setLevel", level="error"))
    talk.send(tool_call(3, "climb", heights=[]))
    assert talk.server.log(talk.calls[1], "warning", "too little") is None
    assert told(talk.server.log(talk.calls[1], "error", "x")) is not None
    assert talk.server.announce("warning", "room", "too little") is None
    assert told(talk.server.announce("critical", "room", "x")) == {
        "level": "critical",
        "logger": "room",
        "data": "x",
    }


@pytest.mark.parametrize("level", [None, "", "INFO", "warn", 3])
def test_a_level_of_no_standard_is_refused_and_nothing_changes(level: object) -> None:
    talk = Conversation("2025-11-25")
    assert error_code(talk.send(request(1, "logging/setLevel", level=level))) == -32602
    assert talk.server.announce("emergency", "room", "x") is None
