from typing import Any

import pytest

from bridge.mcp import revisions
from bridge.mcp.calls import Call, Succeeded
from bridge.mcp.context import (
    NOT_WANTED,
    AskError,
    CannotAskError,
    Questions,
    RefusedError,
    answer_in,
)
from bridge.mcp.jsonrpc import Notification, Request, Response
from bridge.mcp.revisions import Envelope, Revision
from bridge.mcp.server import Server
from tests.mcp.sample_tools import STATELESS, Workbench, envelope, request, serving, tool_call

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
    told = Envelope(revision, {"roots": {}})
    assert told.takes("roots/list") is revision.handshake
    assert not told.takes("elicitation/create")
    assert not told.takes("ping")


def test_a_call_that_is_over_asks_nothing() -> None:
    server, call = asking()
    server.complete(call, Succeeded("done"))
    with pytest.raises(CannotAskError, match="over"):
        server.ask(call, METHOD, {})


def test_an_answer_is_taken_once_and_goes_unanswered() -> None:
    server, call = asking()
    question = server.ask(call, METHOD, {})
    answer = Response(question.id, {"role": "assistant"})
    assert server.asked(answer) == METHOD
    assert server.receive(answer) == [answer]
    assert server.receive(answer) == []
    assert server.asked(answer) is None
    assert server.withdraw(question.id) is None


def test_an_answer_in_a_batch_is_taken_too() -> None:
    server, call = asking("2025-03-26")
    answer = Response(server.ask(call, METHOD, {}).id, {})
    assert server.receive([answer, Response("nobody", {})]) == [answer]


@pytest.mark.parametrize("id_", [1, "1", "ask-2", "ASK-1", None])
def test_what_answers_nothing_is_ignored_as_ever(id_: Any) -> None:
    server, call = asking()
    question = server.ask(call, METHOD, {})
    assert server.receive(Response(id_, {})) == []
    assert server.asked(Response(question.id)) == METHOD


def test_a_client_may_use_an_id_of_ours_for_its_own_request() -> None:
    server, call = asking()
    server.ask(call, METHOD, {})
    (other,) = _receive(server, tool_call("ask-1", "wait"))
    assert isinstance(other, Call)
    assert server.asked(Response("ask-1")) == METHOD


def test_a_question_that_is_withdrawn_is_told_and_its_late_answer_ignored() -> None:
    server, call = asking()
    question = server.ask(call, METHOD, {})
    assert server.withdraw(question.id) == Notification(
        "notifications/cancelled", {"requestId": question.id, "reason": NOT_WANTED}
    )
    assert server.withdraw(question.id) is None
    assert server.receive(Response(question.id, {})) == []


def test_ids_are_not_used_twice() -> None:
    questions, told = Questions(), Envelope(revisions.V2025_11_25, ABLE)
    first = questions.ask(told, METHOD, {})
    questions.withdraw(first.id)
    assert questions.ask(told, METHOD, {}).id != first.id
    assert questions.withdraw(7) is None


def test_an_answer_is_its_result_or_raises_what_the_client_said() -> None:
    assert answer_in(Response("ask-1", {"a": 1})) == {"a": 1}
    with pytest.raises(RefusedError) as caught:
        answer_in(Response("ask-1", error={"code": -1, "message": "the user said no"}))
    assert (caught.value.code, caught.value.message) == (-1, "the user said no")
    with pytest.raises(RefusedError) as caught:
        answer_in(Response("ask-1", error={"code": "x", "message": ["y"]}))
    assert (caught.value.code, caught.value.message) == (None, "")


@pytest.mark.parametrize("result", [None, "text", 1, ["x"]])
def test_a_result_that_is_no_object_is_no_answer(result: object) -> None:
    with pytest.raises(AskError, match="no result that is an object"):
        answer_in(Response("ask-1", result))
