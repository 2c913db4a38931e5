"""The client of a bridge that sits in several rooms."""

import asyncio
import json
from pathlib import Path

from tests.client.piped import run
from tests.servers.server import XmppServer
from tests.servers.witness import Witness


async def test_the_room_command_chooses_where_the_client_looks_and_speaks(
    sandbox: XmppServer, tmp_path: Path
) -> None:
    lobby, logs = sandbox.room(), sandbox.room()
    local = logs.partition("@")[0]
    async with Witness(sandbox, sandbox.witness, logs, "Wilma") as wilma:
        typed = f"/room\n/room nowhere\n/room {local.upper()}\n/room\nsend hello\n/occupants\n"
        more = sandbox.environment(MUC_ROOM=f"{lobby}, {logs}")
        done = await asyncio.to_thread(run, tmp_path, typed, more=more)
        await wilma.heard("hello")
    first, refused, chosen, now, sent, there = done.stdout.splitlines()
    assert first == f"room: {lobby}"
    assert json.loads(refused) == {"error": f"The rooms of this server are: {lobby}, {logs}."}
    assert chosen == now == f"room: {logs}"
    assert json.loads(sent)["to"] == logs
    assert {one["nickname"] for one in json.loads(there)["occupants"]} == {"McpDebug", "Wilma"}
