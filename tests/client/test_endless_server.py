"""A server that asks, lists or keeps silent without end."""

import asyncio
import json
import sys
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from bridge.client import conversation
from bridge.client.client import MAX_LIST_CHARACTERS, Client
from bridge.client.commands import CommandRunner, parse
from bridge.client.conversation import Conversation
from bridge.client.errors import ServerError
from bridge.client.frontend import Pipe
from bridge.client.process import MAX_QUESTIONS, ServerProcess
from bridge.mcp.jsonrpc import Json, Message, Notification
from bridge.mcp.stdio import MAX_UNSENT_BYTES
from tests.client import hostile_server
from tests.client.hostile_server import reply
from tests.client.served import served

SAYING = """
import json
import sys


def say(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\\n")
    sys.stdout.flush()

"""

PINGS = 40
ID_CHARACTERS = 1_000_000
READS_NOTHING = f"""
for number in range({PINGS}):
    say(id=str(number) + "x" * {ID_CHARACTERS}, method="ping")
say(method="done")
sys.stdin.buffer.raw.read(1)
while sys.stdin.buffer.raw.read(65536):
    pass
"""

QUESTIONS = 300
ASKS = f"""
for number in range({QUESTIONS}):
    say(id=number % 200, method="elicitation/create", params={{}})
say(method="done")
results = sum("result" in json.loads(sys.stdin.readline()) for _ in range({QUESTIONS}))
say(method=f"results {{results}}")
sys.stdin.read()
"""

MANY = 400
LISTS_MANY = f"""
for line in sys.stdin:
    asked = json.loads(line)
    params = asked["params"]
    first = int(params.get("cursor", 0))
    tools = [{{"name": f"t{{one}}"}} for one in range(first, first + 2)]
    on = {{"nextCursor": str(first + 2)}} if first + 2 < {MANY} else {{}}
    result = {{"content": [{{"type": "text", "text": params.get("name")}}]}}
    say(id=asked["id"], result={{**result, "tools": tools, **on}})
"""


def running(program: str) -> "AbstractAsyncContextManager[ServerProcess]":
    """Run a server that ends with its input."""
    return served(sys.executable, "-c", SAYING + program)


def told_by(server: ServerProcess) -> "asyncio.Queue[str]":
    """What it tells unasked from now on."""
    told = asyncio.Queue[str]()

    def take(message: Message | object) -> None:
        if isinstance(message, Notification):
            told.put_nowait(message.method)

    server.on_unsolicited = take
    return told


async def test_pings_of_a_server_that_reads_nothing_are_not_answered_without_end() -> None:
    async with running(READS_NOTHING) as server:
        assert await told_by(server).get() == "done"
        waiting = server._stdin.transport.get_write_buffer_size()  # noqa: SLF001 - what is held
        assert waiting < MAX_UNSENT_BYTES + 2 * ID_CHARACTERS


async def test_a_server_that_asks_without_end_is_refused_all_but_a_few_questions() -> None:
    release = asyncio.Event()

    async def fill_in(params: Mapping[str, Json]) -> Json:
        await release.wait()
        return {"action": "cancel"}

    async with running(ASKS) as server:
        told = told_by(server)
        server.answering["elicitation/create"] = fill_in
        assert await told.get() == "done"
        release.set()
        assert await told.get() == f"results {MAX_QUESTIONS}"


async def test_a_list_without_end_is_given_up_once_it_is_too_large(tmp_path: Path) -> None:
    page = {"nextCursor": "on", "tools": [{"name": "x" * (MAX_LIST_CHARACTERS // 4)}]}
    command = hostile_server.command(tmp_path, {"tools/list": reply(json.dumps(page))})
    async with served(*command) as server:
        listed = await Client(server).list_all("tools")
    assert len(listed["tools"]) == 4


async def test_a_tool_beyond_what_is_read_of_a_list_can_be_called() -> None:
    async with running(LISTS_MANY) as server:
        client = Client(server)
        await client.read_catalogue()
        runner = CommandRunner(client, Pipe())
        called = await runner.run(parse(f"/call t{MANY - 1}"))
        assert (called.failed, called.text) == (False, f"t{MANY - 1}")
        shown = await runner.run(parse(f"/tools t{MANY - 1}"))
        assert shown.failed
        assert "is not among the tools of this server" in shown.text


async def test_a_script_gives_up_a_server_that_never_lists_its_tools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation, "SCRIPT_SECONDS", 0.3)
    async with served(*hostile_server.command(tmp_path, {"tools/list": ""})) as server:
        talk = Conversation(Client(server), Pipe(json=False), False)
        with pytest.raises(ServerError, match=r"no lists within 0\.3 s"):
            await talk.run()
