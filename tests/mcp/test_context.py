from typing import Any

import pytest

from bridge.mcp.jsonrpc import Request
from bridge.mcp.server import Call, Server
from tests.mcp.sample_tools import Workbench, request, serving, tool_call

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
