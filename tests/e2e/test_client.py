"""Our client with a bridge in several rooms, and with one that asks before it sends."""

import asyncio
import json
from pathlib import Path

from tests.client.piped import run
from tests.e2e.bridge_process import COMMAND, run_in
from tests.servers.server import XmppServer
from tests.servers.witness import Witness


async def test_the_argument_room_chooses_where_the_client_looks_and_speaks(
    sandbox: XmppServer, tmp_path: Path
) -> None:
    lobby, logs = sandbox.room(), sandbox.room()
    local = logs.partition("@")[0]
    async with Witness(sandbox, sandbox.witness, logs, "Wilma") as wilma:
        typed = f"send hello room={local.upper()}\n/occupants room={logs}\n"
        more = sandbox.environment(MUC_ROOM=f"{lobby}, {logs}")
        command = (COMMAND, "client")
        done = await asyncio.to_thread(run_in, tmp_path, *command, said=typed, **more)
        await wilma.heard("hello")
    sent, there = map(json.loads, done.stdout.splitlines())
    assert sent["to"] == logs
    assert {occupant["nickname"] for occupant in there["occupants"]} == {"McpDebug", "Wilma"}


def test_a_person_is_asked_before_each_message(tmp_path: Path) -> None:
    lines = ["send hello", "accept", "send never", "decline", "history"]
    ran = run(tmp_path, "\n".join(lines), "--sandbox", more={"BRIDGE_CONFIRM_SEND": "1"})
    sent, refused, history = ran.stdout.splitlines()
    assert json.loads(sent)["sent"] is True
    assert "chose to decline" in refused
    assert "never" not in history
    assert "  Send this to everybody in the room" in ran.stderr
