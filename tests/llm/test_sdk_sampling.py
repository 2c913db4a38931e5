"""The set `llm` through the real command and the official SDK's client, with its own model."""

import json
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest

from tests.e2e.bridge_process import COMMAND
from tests.interop.test_sdk_client import connected, joined, text_of
from tests.llm.model_service import KEY, model_service, thinking
from tests.llm.standing import events_in
from tests.servers.server import XmppServer


class Sampler:
    """The client's model, as a callback of the SDK: answers honestly."""

    def __init__(self) -> None:
        self.asked = 0

    async def __call__(
        self, context: object, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult:
        del context
        self.asked += 1
        (message,) = params.messages
        assert isinstance(message.content, types.TextContent)
        content = types.TextContent(type="text", text=json.dumps(citing(message.content.text)))
        return types.CreateMessageResult(role="assistant", content=content, model="theirs")


def citing(message: str) -> dict[str, Any]:
    """What an honest model answers: who spoke last, and where."""
    said = [each for each in events_in(message) if each["kind"] == "message"]
    return {"answer": f"{said[-1]['sender']} did.", "found": True, "cursors": [said[-1]["cursor"]]}


@pytest.mark.parametrize(("mode", "able"), [("auto", True), ("legacy", False)])
async def test_whoever_cannot_be_asked_gets_the_endpoints_answer(
    mode: str, able: bool, sandbox: XmppServer, tmp_path: Path
) -> None:
    sampler = Sampler()
    callbacks = {"sampling_callback": sampler} if able else {}
    command = (COMMAND, "serve", "--toolset", "llm", "--env-file", str(tmp_path / "nothing.env"))
    async with model_service(thinking(lambda asked: citing(asked.user))) as service:
        settings = sandbox.environment(
            LOG_LEVEL="DEBUG", LLM_BASE_URL=service.base_url, LLM_MODEL="small", LLM_API_KEY=KEY
        )
        async with connected(tmp_path, mode, settings, command, **callbacks) as client:
            await joined(client)
            result = await client.call_tool("scout", {"question": "Who spoke?"})
            assert result.structured_content is not None, text_of(result)
            assert result.structured_content["answer"] == "McpDebug did."
    assert (len(service.asked), sampler.asked) == ((0, 1) if able else (1, 0))
    assert KEY not in (tmp_path / "stderr").read_text("utf-8")
