"""BRIDGE_CONFIRM_SEND: a person is asked before each message."""

import json
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest

from tests.client.piped import run
from tests.interop.test_sdk_client import MODES, connected, text_of
from tests.servers.server import XmppServer
from tests.servers.witness import Witness


class Person:
    """The client's user, as a callback of the SDK: accepts with these values, or refuses."""

    def __init__(self, action: Any = "accept", **content: Any) -> None:
        self.forms: list[types.ElicitRequestFormParams] = []
        self._answer = types.ElicitResult(action=action, content=content or None)

    async def __call__(
        self, context: object, params: types.ElicitRequestParams
    ) -> types.ElicitResult:
        assert isinstance(params, types.ElicitRequestFormParams)
        self.forms.append(params)
        return self._answer


def settings(server: XmppServer) -> dict[str, str]:
    return server.environment(BRIDGE_CONFIRM_SEND="1")


@pytest.mark.parametrize("mode", MODES)
async def test_what_the_person_accepts_is_said_and_what_not_is_not(
    mode: str, sandbox: XmppServer, tmp_path: Path
) -> None:
    environ = settings(sandbox)
    room = environ["MUC_ROOM"]
    yes, no = Person(), Person("decline")
    async with Witness(sandbox, sandbox.witness, room, "Wilma") as wilma:
        async with connected(tmp_path, mode, environ, elicitation_callback=no) as client:
            refused = await client.call_tool("xmppSend", {"message": "never"})
            assert refused.is_error
            assert "chose to decline" in text_of(refused)
        async with connected(tmp_path, mode, environ, elicitation_callback=yes) as client:
            sent = await client.call_tool("xmppSend", {"message": "hello"})
            assert not sent.is_error, text_of(sent)
            await wilma.heard("hello")
        async with connected(tmp_path, mode, environ) as client:
            refused = await client.call_tool("xmppSend", {"message": "never"})
            assert "BRIDGE_CONFIRM_SEND in the environment" in text_of(refused)
    (form,) = yes.forms
    assert form.message == f'Send this to everybody in the room {room}?\n"hello"'
    assert len(no.forms) == 1


def test_our_own_client_asks(tmp_path: Path) -> None:
    lines = ["send hello", "accept", "send never", "decline", "history"]
    ran = run(tmp_path, "\n".join(lines), "--sandbox", more={"BRIDGE_CONFIRM_SEND": "1"})
    sent, refused, history = ran.stdout.splitlines()
    assert json.loads(sent)["sent"] is True
    assert "chose to decline" in refused
    assert "never" not in history
    assert "  Send this to everybody in the room" in ran.stderr
