"""Servers that speak less than MCP asks for."""

import sys

import pytest

from bridge.client.client import Client
from bridge.client.process import ServerProcess
from bridge.mcp.framing import Framing

SECONDS = 3.0
"""Enough for a Python to start; what one of these servers does not understand takes as long."""

READ = {
    Framing.HEADERS: """
while line := sys.stdin.readline():
    if line.startswith("Content-Length: "):
        sys.stdin.readline()
        answer(json.loads(sys.stdin.read(int(line.split()[1]))))
""",
    Framing.LINES: """
for line in sys.stdin:
    answer(json.loads(line))
""",
}
SERVER = """
import json, sys

def answer(asked):
    if "id" not in asked:
        return
    reply = {"jsonrpc": "2.0", "id": asked["id"]}
    if asked["method"] == "initialize" and %r:
        reply["result"] = {"protocolVersion": "2025-11-25", "capabilities": {}}
    elif asked["method"] == "echo":
        reply["result"] = asked["params"]
    else:
        reply["error"] = {"code": -32601, "message": "Method not found"}
    print(json.dumps(reply), flush=True)
"""


@pytest.mark.parametrize(
    ("framing", "knows_mcp"), [(Framing.HEADERS, True), (Framing.LINES, False)], ids=str
)
async def test_a_server_that_knows_only_headers_or_only_bare_methods_is_opened(
    framing: Framing, knows_mcp: bool
) -> None:
    program = SERVER % knows_mcp + READ[framing]
    server = await ServerProcess.start([sys.executable, "-c", program])
    try:
        client = Client(server)
        await client.open(seconds=SECONDS)
        assert (server.framing, client.bare) == (framing, not knows_mcp)
        if client.bare:
            assert await client.call("echo", {"message": "hello"}) == {"message": "hello"}
    finally:
        await server.stop()
