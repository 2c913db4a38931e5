"""The official SDK's client, and further sets of tools."""

from pathlib import Path

import mcp_types as types
import pytest

from tests.e2e.bridge_process import COMMAND
from tests.interop.test_sdk_client import MODES, connected


@pytest.mark.parametrize("mode", MODES)
async def test_the_client_takes_data_with_a_word_for_the_assistant(
    mode: str, tmp_path: Path
) -> None:
    command = (COMMAND, "serve", "--toolset", "samples")
    async with connected(tmp_path, mode, command=command) as client:
        # It holds the result against the output schema by itself.
        told = await client.call_tool("current_time")
        assert told.structured_content is not None
        data, prompt = told.content
        assert isinstance(data, types.TextContent)
        assert told.structured_content["local"] in data.text
        assert isinstance(prompt, types.TextContent)
        assert prompt.annotations is not None
        assert prompt.annotations.audience == ["assistant"]
        counted = await client.call_tool("word_count", {"text": "a b c d e"})
        (five,) = counted.content
        assert isinstance(five, types.TextContent)
        assert five.text == "5"
