from collections.abc import Mapping
from typing import Any

import pytest

from bridge.mcp.asking import Question
from bridge.mcp.context import Context
from bridge.mcp.jsonrpc import Object, Request
from bridge.mcp.revisions import RequestMeta, Revision
from bridge.mcp.server import Call, Server
from tests.mcp.sample_tools import EVERY, Workbench, climb, request, serving, tool_call

FILLED: Object = {"action": "accept", "content": {"name": "Anna"}}


def listening() -> tuple[Context, list[tuple[object, ...]]]:
    told: list[tuple[object, ...]] = []

    def keep(*one: object) -> None:
        told.append(one)

    async def ask(questions: Mapping[str, Question], seconds: float) -> Mapping[str, Object]:
        told.append((questions, seconds))
        return dict.fromkeys(questions, FILLED)

    return Context(keep, keep, lambda method: method == "roots/list", ask), told


def test_a_tool_is_called_with_a_context_as_with_any_collaborator() -> None:
    context, told = listening()
    assert climb(context, heights=[1, 2]) == "up"
    assert told == [
        (1, 9, "at 1"),
        (2, 9, "at 2"),
        ("debug", "looked down"),
        ("warning", {"top": 2}),
    ]


# Whether a request can go to the client

METHOD = "sampling/createMessage"
ABLE: dict[str, object] = {"sampling": {}}


def _receive(server: Server, value: dict[str, Any]) -> list[Any]:
    return list(server.receive(Request(value["id"], value["method"], value["params"])))


@pytest.mark.parametrize("capabilities", [ABLE, {"roots": {}}, {"sampling": None}, []])
def test_a_client_that_shook_hands_and_said_that_it_can_is_asked_until_its_call_is_over(
    capabilities: object,
) -> None:
    server = serving(Workbench())
    version = {"protocolVersion": "2024-11-05"}
    _receive(server, request(0, "initialize", **version, capabilities=capabilities))
    (call,) = _receive(server, tool_call(1, "wait"))
    assert isinstance(call, Call)
    assert server.can_ask(call, METHOD) is (capabilities == ABLE)
    (bare,) = _receive(server, request(2, "wait"))
    assert not server.can_ask(bare, METHOD)
    server.complete(call, "done")
    assert not server.can_ask(call, METHOD)


@EVERY
def test_what_a_client_takes_is_called_as_its_capability(revision: Revision) -> None:
    meta = RequestMeta(revision, {"roots": {}})
    assert meta.accepts("roots/list")
    assert not meta.accepts("elicitation/create")
    assert not meta.accepts("ping")
