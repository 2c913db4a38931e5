"""`BRIDGE_LOG_FILE`, as whoever runs a bridge under a client that hides its stderr sees it."""

import re
from pathlib import Path

from bridge import __version__
from tests.e2e.bridge_process import BridgeProcess

TIMED = re.compile(r"(\[Server\]) \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z ")


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
    assert bridge.stderr.startswith(f"[Server] Starting xmpp-debug-bridge {__version__}\n")
    assert lines[0] == bridge.stderr.partition("\n")[0]
    assert "[Server] Ready to accept connections" in lines
    assert any("-> 2025-11-25 tools/call id" in each and "hello there" in each for each in lines)
    assert "Ready" not in bridge.stderr
    assert "kept-secret" not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
