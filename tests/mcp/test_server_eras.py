import json

import pytest
from mcp_types import methods

from bridge.mcp import jsonrpc
from bridge.mcp.catalogue import Catalogue
from bridge.mcp.errors import ToolError
from bridge.mcp.server import Send, Server
from bridge.mcp.toolset import Toolset
from tests.mcp.conversation import (
    HANDSHAKE,
    STATELESS_RESULTS,
    Conversation,
    error_code,
    wire,
)
from tests.mcp.sample_tools import (
    IMPLEMENTATION,
    PREFIX,
    SERVER_INFO,
    STATELESS,
    TOOLS,
    Count,
    Workbench,
    envelope,
    notification,
    request,
    stateless,
    states,
    tool_call,
)

# 2026-07-28: no handshake, each request with its envelope


def test_discovery_tells_what_there_is_without_a_handshake() -> None:
    talk = Conversation()
    result = talk.result(stateless(1, "server/discover"))
    methods.validate_server_result("server/discover", STATELESS, result)
    assert result == {
        "resultType": "complete",
        "supportedVersions": [STATELESS, *reversed(HANDSHAKE)],
        "capabilities": {
            "tools": {},
            "logging": {},
            "resources": {"subscribe": True},
            "prompts": {},
            "completions": {},
        },
        "instructions": "Ask count first.",
        "ttlMs": 3_600_000,
        "cacheScope": "public",
        "_meta": SERVER_INFO,
    }


CACHING = {
    "server/discover": (3_600_000, "public"),
    "tools/list": (3_600_000, "public"),
    "resources/list": (3_600_000, "public"),
    "resources/templates/list": (3_600_000, "public"),
    "resources/read": (0, "private"),
    "prompts/list": (3_600_000, "public"),
}


@pytest.mark.parametrize("method", STATELESS_RESULTS)
def test_a_stateless_result_says_that_it_is_whole_and_whose_and_how_long_it_keeps(
    method: str,
) -> None:
    result = Conversation().result(stateless(1, method, **STATELESS_RESULTS[method]))
    methods.validate_server_result(method, STATELESS, result)
    assert result["resultType"] == "complete"
    assert result["_meta"] == SERVER_INFO
    caching = (result["ttlMs"], result["cacheScope"]) if "ttlMs" in result else None
    assert caching == CACHING.get(method)
    assert ("cacheScope" in result) is (method in CACHING)


@pytest.mark.parametrize("revision", HANDSHAKE)
@pytest.mark.parametrize("method", sorted(set(STATELESS_RESULTS) - {"server/discover"}))
def test_a_handshake_result_has_none_of_that(method: str, revision: str) -> None:
    talk = Conversation(revision)
    result = talk.result(request(1, method, **STATELESS_RESULTS[method]))
    methods.validate_server_result(method, revision, result)
    assert not {"resultType", "_meta", "ttlMs", "cacheScope"} & set(result)


@pytest.mark.parametrize(
    ("outcome", "is_error"),
    [
        (Count(1), False),
        ("text", False),
        (ToolError("gone", condition="gone", hint="Wait."), True),
    ],
)
def test_a_stateless_call_is_stamped_whatever_its_outcome(outcome: object, is_error: bool) -> None:
    talk = Conversation()
    assert talk.send(stateless(1, "tools/call", name="count", arguments={"text": "a"})) is None
    result = talk.finish(talk.calls[0], outcome)["result"]
    methods.validate_server_result("tools/call", STATELESS, result)
    assert result["isError"] is is_error
    assert (result["resultType"], result["_meta"]) == ("complete", SERVER_INFO)
    assert not {"ttlMs", "cacheScope"} & set(result)


def test_stateless_arguments_that_break_the_schema_are_a_failed_result_too() -> None:
    result = Conversation().result(stateless(1, "tools/call", name="count", arguments={}))
    methods.validate_server_result("tools/call", STATELESS, result)
    assert result["isError"]
    assert result["resultType"] == "complete"


@pytest.mark.parametrize("method", ["server/discover", "tools/list", "tools/call", "nope"])
@pytest.mark.parametrize("missing", ["protocolVersion", "clientCapabilities"])
def test_an_envelope_with_a_part_missing_is_invalid_params(method: str, missing: str) -> None:
    meta = envelope()
    del meta[f"{PREFIX}{missing}"]
    reply = Conversation().send(request(1, method, _meta=meta))
    assert error_code(reply) == -32602
    assert missing in reply["error"]["data"]


@pytest.mark.parametrize("method", ["server/discover", "subscriptions/listen"])
def test_a_method_of_the_stateless_era_without_an_envelope_is_invalid_params(method: str) -> None:
    assert error_code(Conversation().send(request(1, method))) == -32602


@pytest.mark.parametrize("method", ["server/discover", "tools/list", "nope"])
def test_a_revision_that_is_not_spoken_is_told_with_those_that_are(method: str) -> None:
    talk = Conversation()
    reply = talk.send(request(1, method, _meta=envelope("2099-01-01")))
    discovered = talk.result(stateless(2, "server/discover"))
    assert reply["error"] == {
        "code": -32022,
        "message": "Unsupported protocol version",
        "data": {"supported": discovered["supportedVersions"], "requested": "2099-01-01"},
    }


def test_a_tool_that_needs_what_the_client_cannot_do_is_refused_before_it_runs() -> None:
    talk = Conversation()
    reply = talk.send(stateless(1, "tools/call", name="ask_back"))
    assert reply["error"] == {
        "code": -32021,
        "message": "Missing required client capability",
        "data": {"requiredCapabilities": {"elicitation": {}}},
    }
    assert talk.calls == []
    able = envelope(clientCapabilities={"elicitation": {}})
    assert talk.send(stateless(2, "tools/call", name="ask_back", _meta=able)) is None
    assert talk.calls[0].meta is not None
    assert talk.calls[0].meta.capabilities == {"elicitation": {}}


def test_a_handshake_client_is_not_refused_a_tool_for_what_it_did_not_declare() -> None:
    talk = Conversation("2025-11-25")
    assert talk.send(tool_call(1, "ask_back")) is None
    assert talk.calls[0].meta is not None
    assert talk.calls[0].meta.capabilities == {}


def test_what_a_client_declared_in_its_handshake_is_not_taken_for_a_stateless_request() -> None:
    talk = Conversation()
    able: dict[str, object] = {"elicitation": {}}
    talk.send(request(0, "initialize", protocolVersion="2025-11-25", capabilities=able))
    assert error_code(talk.send(stateless(1, "tools/call", name="ask_back"))) == -32021
    assert talk.send(tool_call(2, "ask_back")) is None
    assert talk.calls[0].meta is not None
    assert talk.calls[0].meta.capabilities == able


@pytest.mark.parametrize(
    "method",
    ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"],
)
def test_what_ended_with_the_handshake_is_no_method_of_the_stateless_era(method: str) -> None:
    talk = Conversation()
    reply = talk.send(stateless(1, method, uri="sample://words", level="info"))
    assert error_code(reply) == -32601
    assert STATELESS in reply["error"]["data"]
    assert not talk.server.subscriptions.has("sample://words")


@pytest.mark.parametrize("revision", HANDSHAKE)
@pytest.mark.parametrize("method", ["server/discover", "subscriptions/listen"])
def test_what_came_after_a_revision_is_no_method_of_it(method: str, revision: str) -> None:
    talk = Conversation()
    reply = talk.send(request(1, method, _meta=envelope(revision), notifications={}))
    assert error_code(reply) == -32601


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_an_envelope_may_name_a_handshake_revision_for_one_request(revision: str) -> None:
    talk = Conversation()
    result = talk.result(request(1, "tools/list", _meta=envelope(revision)))
    methods.validate_server_result("tools/list", revision, result)
    assert ("title" in result["tools"][0]) is (revision >= "2025-06-18")
    assert talk.server.session.revision.date == "2025-11-25"


# Both eras on one connection


FIRST: list[object] = [
    request("1", "count", text="a"),
    request(1, "nope"),
    stateless(1, "server/discover"),
    request(1, "server/discover"),
    request(1, "tools/list", _meta=envelope("2099-01-01")),
    notification("notifications/nonsense"),
    {"id": 7},
    [],
]


@pytest.mark.parametrize("first", FIRST, ids=lambda one: json.dumps(one)[:60])
def test_whatever_comes_first_every_dialect_is_spoken_afterwards(first: object) -> None:
    talk = Conversation()
    talk.send(first)
    talk.calls.clear()
    assert "resultType" in talk.result(stateless(1, "tools/list"))
    assert "title" in talk.result(request(2, "tools/list"))["tools"][0]
    assert talk.send(request(3, "count", text="a")) is None
    assert talk.finish(talk.calls[0])["result"] == {"words": 1, "longestWord": None}
    result = talk.result(request(4, "initialize", protocolVersion="2024-11-05"))
    assert result["protocolVersion"] == "2024-11-05"
    assert "title" not in talk.result(request(5, "tools/list"))["tools"][0]
    assert "resultType" in talk.result(stateless(6, "tools/list"))
    assert talk.server.session.revision.date == "2024-11-05"


def test_calls_of_all_dialects_in_flight_are_each_answered_in_their_own() -> None:
    talk = Conversation("2024-11-05")
    talk.send(tool_call(1, "wait"))
    talk.send(stateless(2, "tools/call", name="wait"))
    talk.send(request(3, "wait"))
    talk.send(request(4, "initialize", protocolVersion="2025-11-25"))
    first, second, third = (talk.finish(call)["result"] for call in talk.calls)
    assert "structuredContent" not in first
    assert second["resultType"] == "complete"
    assert third == {"words": 1, "longestWord": None}


# Resources, prompts, completion


@pytest.mark.parametrize(
    ("revision", "code"), [*((one, -32002) for one in HANDSHAKE), (STATELESS, -32602)]
)
@pytest.mark.parametrize("method", ["resources/read", "resources/subscribe"])
def test_a_resource_that_is_not_there_is_told_in_the_revisions_code(
    method: str, revision: str, code: int
) -> None:
    if revision == STATELESS:
        reply = Conversation().send(stateless(1, "resources/read", uri="sample://nope"))
    else:
        reply = Conversation(revision).send(request(1, method, uri="sample://nope"))
    assert error_code(reply) == code
    assert reply["error"]["data"]["uri"] == "sample://nope"
    assert "sample://words" in reply["error"]["data"]["known"]


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_every_revision_offers_what_it_has_words_for(revision: str) -> None:
    talk = Conversation()
    offered = talk.result(request(1, "initialize", protocolVersion=revision))["capabilities"]
    assert offered["resources"] == {"subscribe": True}
    assert offered["prompts"] == {}
    assert ("completions" in offered) is (revision >= "2025-03-26")


def test_a_toolset_of_tools_alone_offers_nothing_else() -> None:
    tools_only = Toolset("only", TOOLS.tools)
    server = Server(IMPLEMENTATION, Catalogue(tools_only, [Workbench()]), states())
    (reply,) = server.receive(jsonrpc.decode(json.dumps(stateless(1, "server/discover"))))
    assert isinstance(reply, Send)
    assert wire(reply)["result"]["capabilities"] == {"tools": {}, "logging": {}}


@pytest.mark.parametrize("cursor", ["", "x", 0, {}])
@pytest.mark.parametrize(
    "method", ["tools/list", "resources/list", "resources/templates/list", "prompts/list"]
)
def test_no_list_takes_a_cursor_that_was_never_given_out(method: str, cursor: object) -> None:
    assert error_code(Conversation().send(request(1, method, cursor=cursor))) == -32602
    assert error_code(Conversation().send(stateless(1, method, cursor=cursor))) == -32602
