"""`BRIDGE_LOG_FILE`, as whoever runs a bridge under a client that hides its stderr sees it."""

import re
from pathlib import Path

import pytest

from tests.e2e.bridge_process import BridgeProcess, RpcFailedError, ToolFailedError
from tests.llm.model_service import Turn, model_service, replying

TIMED = re.compile(r"(\[Server\]) \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z ")
NODE = """
from dataclasses import dataclass

from bridge.toolkit import LlmNode, Toolset


@dataclass
class Report:
    text: str


@dataclass
class Verdict:
    severe: bool


NODE = LlmNode(instruction="Judge how severe a bug report is.", input=Report, output=Verdict)
TOOLS = Toolset("triage", (NODE.as_tool(name="triage", title="Judge a bug report"),))
"""
CALLS = {
    "triage": ("triage:TOOLS", {"text": "x"}),
    "current_weather": ("samples", {"location": "x"}),
}
ANSWERS = {
    "a 401": replying(401, {"error": {"message": "no such key"}}),
    "a 400": replying(400, {}),
    "no JSON": replying(200, b"<html>"),
    "JSON of another form": replying(200, {"results": 1}),
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=[*ANSWERS])
@pytest.mark.parametrize("tool", CALLS)
async def test_a_tool_that_failed_through_a_service_is_logged_as_failed_whatever_the_answer_was(
    tmp_path: Path, tool: str, answer: Turn
) -> None:
    (tmp_path / "triage.py").write_text(NODE, encoding="utf-8")
    toolset, arguments = CALLS[tool]
    async with model_service(answer) as service:
        url = service.base_url
        settings = {"LLM_BASE_URL": url, "LLM_MODEL": "small", "OPEN_METEO_GEOCODING_URL": url}
        command = ("serve", "--only", toolset)
        path = {"PYTHONPATH": str(tmp_path)}
        async with BridgeProcess(tmp_path, settings | path, arguments=command) as bridge:
            await bridge.initialize()
            with pytest.raises(ToolFailedError):
                await bridge.call(tool, **arguments)
            with pytest.raises(RpcFailedError):
                await bridge.bare(tool, **arguments)
    failures = [one for one in bridge.stderr.splitlines() if f" {tool} failed: " in one]
    assert len(failures) == 2, bridge.stderr


async def test_the_file_has_all_that_stderr_has_and_more_whatever_the_level(tmp_path: Path) -> None:
    path = tmp_path / "bridge.log"
    settings = {"BRIDGE_LOG_FILE": str(path), "LOG_LEVEL": "ERROR", "LLM_API_KEY": "kept-secret"}
    async with BridgeProcess(tmp_path, settings) as bridge:
        await bridge.initialize()
        await bridge.call("echo", text="hello there")
        await bridge.request("logging/setLevel", {"level": "error"})
    assert all(map(TIMED.match, path.read_text().splitlines()))
    lines = [TIMED.sub(r"\1 ", line) for line in path.read_text().splitlines()]
    assert {TIMED.sub(r"\1 ", line) for line in bridge.stderr.splitlines()} <= set(lines)
    assert "[Server] Ready to accept connections" in lines
    assert any("-> 2025-11-25 tools/call id" in one and "hello there" in one for one in lines)
    assert "Ready" not in bridge.stderr
    assert "kept-secret" not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600


async def test_a_file_that_cannot_be_written_is_a_warning_and_the_bridge_goes_on(
    tmp_path: Path,
) -> None:
    path = tmp_path / "no folder" / "bridge.log"
    async with BridgeProcess(tmp_path, {"BRIDGE_LOG_FILE": str(path)}) as bridge:
        await bridge.initialize()
        warnings = (await bridge.status())["warnings"]
    (warning,) = (one for one in warnings if "BRIDGE_LOG_FILE" in one)
    assert f"[Server] WARNING: {warning}" in bridge.stderr.splitlines()
    assert warning.endswith("cannot be written: No such file or directory")
