"""Calling a tool that asks somebody something, and holding the answer against the contract."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from tests.e2e.bridge_process import ANSWER_SECONDS, BridgeProcess, RpcFailedError, ToolFailedError

TOOL_FAILED = -32603
"""The code of a bare error for a tool that failed."""


async def asked(bridge: BridgeProcess, tool: str, target: str, **arguments: object) -> Any:
    """The structured result under MCP, valid by the schema that the tool itself lists."""
    tools = (await bridge.request("tools/list"))["tools"]
    schema = next(one["outputSchema"] for one in tools if one["name"] == tool)
    result = await bridge.request(
        "tools/call",
        {"name": tool, "arguments": {"target": target, **arguments}},
        seconds=ANSWER_SECONDS,
    )
    assert not result["isError"], result
    Draft202012Validator(schema).validate(result["structuredContent"])
    if tool == "xmppInfo":
        assert "instructions" in result["structuredContent"]["notice"]
    return result["structuredContent"]


async def refused(bridge: BridgeProcess, tool: str, target: str) -> RpcFailedError:
    """The failure in the bare dialect; under MCP it must be the same in words."""
    with pytest.raises(RpcFailedError) as bare:
        await bridge.bare(tool, target=target)
    assert bare.value.code == TOOL_FAILED
    assert set(bare.value.data) == {"condition", "hint"}
    assert bare.value.data["hint"]
    with pytest.raises(ToolFailedError) as mcp:
        await bridge.call(tool, target=target)
    assert f"Condition: {bare.value.data['condition']}" in str(mcp.value)
    assert f"Hint: {bare.value.data['hint']}" in str(mcp.value)
    return bare.value
