"""The client of a bridge that sits in several rooms."""

import asyncio
import json
from pathlib import Path

from tests.client.piped import run
from tests.servers.server import XmppServer
from tests.servers.witness import Witness


async def test_the_room_command_chooses_where_the_client_looks_and_speaks(
    real_server: XmppServer, tmp_path: Path
) -> None:
    lobby, logs = real_server.room(), real_server.room()
    local = logs.partition("@")[0]
    async with Witness(real_server, real_server.witness, logs, "Wilma") as wilma:
        typed = f"/room\n/room nowhere\n/room {local.upper()}\n/room\nsend hello\n/occupants\n"
        more = real_server.environment(MUC_ROOM=f"{lobby}, {logs}")
        done = await asyncio.to_thread(run, tmp_path, typed, more=more)
        await wilma.heard("hello")
    first, refused, chosen, now, sent, there = done.stdout.splitlines()
    assert first == f"room: {lobby}"
    assert json.loads(refused) == {"error": f"The rooms of this server are: {lobby}, {logs}."}
    assert chosen == now == f"room: {logs}"
    assert json.loads(sent)["to"] == logs
    assert {one["nickname"] for one in json.loads(there)["occupants"]} == {"McpDebug", "Wilma"}


async def test_with_one_room_the_room_command_tells_it(
    real_server: XmppServer, tmp_path: Path
) -> None:
    more = real_server.environment()
    done = await asyncio.to_thread(run, tmp_path, "/room\n", more=more)
    assert done.stdout == f"room: {more['MUC_ROOM']}\n"
