from collections.abc import Mapping
from typing import Any

import pytest

from bridge.mcp import revisions
from bridge.mcp.context import (
    CANCEL_REASON,
    AskError,
    CannotAskError,
    ClientRequests,
    Context,
    RefusedError,
    result_of,
)
from bridge.mcp.jsonrpc import Notification, Request, Response
from bridge.mcp.revisions import RequestMeta, Revision
from bridge.mcp.server import Call, Server
from tests.mcp.sample_tools import (
    STATELESS,
    Workbench,
    climb,
    envelope,
    request,
    serving,
    tool_call,
)


def listening(**more: Any) -> tuple[Context, list[tuple[object, ...]]]:
    told: list[tuple[object, ...]] = []
    return Context(lambda *one: told.append(one), lambda *one: told.append(one), **more), told


def test_progress_needs_neither_a_total_nor_words() -> None:
    context, told = listening()
    context.progress(1)
    context.progress(2.5, 3, "nearly")
    assert told == [(1, None, None), (2.5, 3, "nearly")]


def test_a_log_message_has_a_level_and_any_json() -> None:
    context, told = listening()
    context.log("info", {"a": [1]})
    assert told == [("info", {"a": [1]})]


def test_a_caller_that_declared_nothing_can_do_nothing_for_us() -> None:
    assert listening()[0].capabilities == {}
    assert listening(capabilities={"roots": {}})[0].capabilities == {"roots": {}}


def test_a_tool_is_called_with_a_context_as_with_any_collaborator() -> None:
    context, told = listening()
    assert climb(context, heights=[1, 2]) == "up"
    assert told == [
        (1, 9, "at 1"),
        (2, 9, "at 2"),
        ("debug", "looked down"),
        ("warning", {"top": 2}),
    ]


async def test_a_caller_is_asked_nothing_unless_there_is_a_way() -> None:
    context, _ = listening()
    assert not context.can_ask("sampling/createMessage")
    with pytest.raises(CannotAskError):
        await context.ask("sampling/createMessage", {}, 1.0)


async def test_where_there_is_one_the_question_takes_it() -> None:
    async def put(method: str, params: Mapping[str, object], seconds: float) -> dict[str, object]:
        return {"asked": [method, params, seconds]}

    context, _ = listening(accepts=lambda method: method == "roots/list", send_request=put)
    assert context.can_ask("roots/list")
    assert not context.can_ask("sampling/createMessage")
    assert await context.ask("roots/list", {"a": 1}, 2.5) == {
        "asked": ["roots/list", {"a": 1}, 2.5]
    }


# Requests to the client

METHOD = "sampling/createMessage"
ABLE: dict[str, object] = {"sampling": {}}
HANDSHAKE = [one.date for one in revisions.HANDSHAKE]


def asking(revision: str = "2025-11-25", capabilities: object = ABLE) -> tuple[Server, Call]:
    """A server with one call running, of a client that declared these."""
    server = serving(Workbench())
    _receive(
        server,
        request(0, "initialize", protocolVersion=revision, capabilities=capabilities),
    )
    (call,) = _receive(server, tool_call(1, "wait"))
    assert isinstance(call, Call)
    return server, call


def _receive(server: Server, value: dict[str, Any]) -> list[Any]:
    return list(server.receive(Request(value["id"], value["method"], value["params"])))


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_a_client_that_shook_hands_and_can_is_asked(revision: str) -> None:
    server, call = asking(revision)
    question = server.ask(call, METHOD, {"messages": []})
    assert question == Request("ask-1", METHOD, {"messages": []})
    assert server.ask(call, METHOD, {}).id == "ask-2"


@pytest.mark.parametrize("capabilities", [{}, {"roots": {}}, {"sampling": None}, None, []])
def test_one_that_did_not_declare_it_is_not(capabilities: object) -> None:
    server, call = asking(capabilities=capabilities)
    with pytest.raises(CannotAskError, match=r"takes no sampling/createMessage"):
        server.ask(call, METHOD, {})


def test_a_request_without_a_handshake_is_never_answered_with_one() -> None:
    server = serving(Workbench())
    stateless = tool_call(1, "wait")
    stateless["params"]["_meta"] = envelope(STATELESS, clientCapabilities=ABLE)  # type: ignore[index]
    for message in (stateless, request(2, "wait"), tool_call(3, "wait")):
        (call,) = _receive(server, message)
        with pytest.raises(CannotAskError):
            server.ask(call, METHOD, {})


def test_nor_is_a_bare_call_after_one() -> None:
    server, _ = asking()
    (bare,) = _receive(server, request(2, "wait"))
    with pytest.raises(CannotAskError):
        server.ask(bare, METHOD, {})


@pytest.mark.parametrize("revision", revisions.ALL, ids=lambda one: one.date)
def test_what_a_client_takes_is_called_as_its_capability(revision: Revision) -> None:
    meta = RequestMeta(revision, {"roots": {}})
    assert meta.accepts("roots/list") is revision.handshake
    assert not meta.accepts("elicitation/create")
    assert not meta.accepts("ping")


def test_a_call_that_is_over_asks_nothing() -> None:
    server, call = asking()
    server.complete(call, "done")
    with pytest.raises(CannotAskError, match="over"):
        server.ask(call, METHOD, {})


def test_an_answer_is_taken_once_and_goes_unanswered() -> None:
    server, call = asking()
    question = server.ask(call, METHOD, {})
    answer = Response(question.id, {"role": "assistant"})
    assert server.client_requests.method(answer) == METHOD
    assert server.receive(answer) == [answer]
    assert server.receive(answer) == []
    assert server.client_requests.method(answer) is None
    assert server.client_requests.cancel(question.id) is None


def test_an_answer_in_a_batch_is_taken_too() -> None:
    server, call = asking("2025-03-26")
    answer = Response(server.ask(call, METHOD, {}).id, {})
    assert server.receive([answer, Response("nobody", {})]) == [answer]


@pytest.mark.parametrize("id_", [1, "1", "ask-2", "ASK-1", None])
def test_what_answers_nothing_is_ignored_as_ever(id_: Any) -> None:
    server, call = asking()
    question = server.ask(call, METHOD, {})
    assert server.receive(Response(id_, {})) == []
    assert server.client_requests.method(Response(question.id)) == METHOD


def test_a_client_may_use_an_id_of_ours_for_its_own_request() -> None:
    server, call = asking()
    server.ask(call, METHOD, {})
    (other,) = _receive(server, tool_call("ask-1", "wait"))
    assert isinstance(other, Call)
    assert server.client_requests.method(Response("ask-1")) == METHOD


def test_a_request_that_is_cancelled_is_notified_and_its_late_answer_ignored() -> None:
    server, call = asking()
    question = server.ask(call, METHOD, {})
    assert server.client_requests.cancel(question.id) == Notification(
        "notifications/cancelled", {"requestId": question.id, "reason": CANCEL_REASON}
    )
    assert server.client_requests.cancel(question.id) is None
    assert server.receive(Response(question.id, {})) == []


def test_ids_are_not_used_twice() -> None:
    requests, meta = ClientRequests(), RequestMeta(revisions.V2025_11_25, ABLE)
    first = requests.open(meta, METHOD, {})
    requests.cancel(first.id)
    assert requests.open(meta, METHOD, {}).id != first.id
    assert requests.cancel(7) is None


def test_an_answer_is_its_result_or_raises_what_the_client_said() -> None:
    assert result_of(Response("ask-1", {"a": 1})) == {"a": 1}
    with pytest.raises(RefusedError) as caught:
        result_of(Response("ask-1", error={"code": -1, "message": "the user said no"}))
    assert (caught.value.code, caught.value.message) == (-1, "the user said no")
    with pytest.raises(RefusedError) as caught:
        result_of(Response("ask-1", error={"code": "x", "message": ["y"]}))
    assert (caught.value.code, caught.value.message) == (None, "")


@pytest.mark.parametrize("result", [None, "text", 1, ["x"]])
def test_a_result_that_is_no_object_is_no_answer(result: object) -> None:
    with pytest.raises(AskError, match="no result that is an object"):
        result_of(Response("ask-1", result))
