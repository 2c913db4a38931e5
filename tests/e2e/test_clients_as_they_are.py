"""What clients really send to the installed command, and what they get, with stdin still open."""

import asyncio
import json
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.bridge_process import ANSWER_SECONDS, COMMAND, NOWHERE, BridgeProcess

CALL = '{"jsonrpc":"2.0","id":1,"method":"echo","params":{"message":"the documents of old"}}'
"""A request of 84 bytes, of which the documents say that it has two more."""


@pytest.mark.parametrize("ending", ["\r\n", "\n"])
async def test_a_request_whose_length_is_two_bytes_too_long_is_answered_at_once(
    ending: str, tmp_path: Path
) -> None:
    process = await asyncio.create_subprocess_exec(
        COMMAND, "--env-file", "/dev/null", stdin=PIPE, stdout=PIPE, stderr=DEVNULL, cwd=tmp_path,
        env={"HOME": str(tmp_path), **NOWHERE},
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"Content-Length: {len(CALL) + 2}{ending}{ending}{CALL}".encode())
    async with asyncio.timeout(ANSWER_SECONDS):
        header = await process.stdout.readuntil(b"\r\n\r\n")
        body = await process.stdout.readexactly(int(header.split()[1]))
        process.stdin.close()
        await process.wait()
    assert json.loads(body)["result"]["content"][0]["text"] == "Echo: the documents of old"


@pytest.mark.parametrize(
    "arguments",
    [
        {"limit": "2", "kinds": '["message"]', "archive": "false", "from": None},
        {"limit": 2, "_sessionId": "n8n", "contains": None},
        '{"limit": 2}',
        [],
    ],
    ids=str,
)
async def test_arguments_of_models_and_other_programs_are_taken(
    arguments: Any, tmp_path: Path
) -> None:
    async with BridgeProcess(tmp_path, NOWHERE) as bridge:
        await bridge.initialize()
        asked = {"name": "xmppHistory", "arguments": arguments, "_meta": []}
        result = await bridge.request("tools/call", asked)
    kinds = {entry["kind"] for entry in result["structuredContent"]["entries"]}
    assert kinds <= {"connection"}  # it may have failed to connect by now


async def test_a_request_over_several_lines_is_refused_once_and_the_log_says_why(
    tmp_path: Path,
) -> None:
    process = await asyncio.create_subprocess_exec(
        COMMAND, "--env-file", "/dev/null", stdin=PIPE, stdout=PIPE, stderr=PIPE, cwd=tmp_path,
        env={"HOME": str(tmp_path), **NOWHERE},
    )  # fmt: skip
    spread = json.dumps(json.loads(CALL), indent=2)
    async with asyncio.timeout(ANSWER_SECONDS):
        output, log = await process.communicate(f"{spread}\n{CALL}\n".encode())
    refused, answered = map(json.loads, output.splitlines())
    assert "on one line" in refused["error"]["message"]
    assert answered["id"] == 1
    assert log.startswith(b"[Server] Starting xmpp-debug-bridge ")
    assert log.count(b"[Server] Cannot read the input: ") == 1
