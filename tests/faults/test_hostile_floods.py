"""A server that sends more than anybody can take: the bridge stays small and answers MCP."""

import asyncio
import json
import logging
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

from tests.e2e import noise
from tests.e2e.bridge_process import COMMAND, BridgeProcess
from tests.faults import scripted_server as scripted
from tests.faults.scripted_server import HONEST, ScriptedServer, Wire

log = logging.getLogger(__name__)

MEGABYTE = 1024 * 1024
TAGS_MB = 16
"""Of small tags, each of which is looked at: some two million."""

MEMORY_BOUND_MB = 128.0
"""How much the bridge may grow meanwhile: one element of 4 MiB that is nothing but children."""

ECHO_SECONDS = 4.0
"""The longest that a call may wait while the server pours; 0.01 s on idle cores."""

FLOOD = 3_000

ADDRESS_SPACE_KB = 2_000_000
"""What a bridge under attack may map at most: this machine is to outlive a failing test."""


def bounded_bridge(home: Path, server: ScriptedServer, **overrides: str | None) -> BridgeProcess:
    """The real command, with a bound on what it may map."""
    limited = ("/bin/sh", "-c", f'ulimit -v {ADDRESS_SPACE_KB}; exec "$@"', "sh", COMMAND)
    return BridgeProcess(home, server.environment(**overrides), command=limited)


def memory_mb(bridge: BridgeProcess, field: str) -> float:
    """`VmRSS`, or `VmHWM` for the most that was ever resident."""
    status = Path(f"/proc/{bridge.process.pid}/status").read_text(encoding="ascii")
    match = re.search(rf"^{field}:\s+([0-9]+) kB", status, re.MULTILINE)
    assert match is not None
    return int(match[1]) / 1024


ATTRIBUTES = "".join(f" a{n}='x'" for n in range(1000)) + "/><a"


async def test_a_stanza_without_end_costs_no_memory_and_keeps_no_call_waiting(
    tmp_path: Path,
) -> None:
    """Servers make some of 100 MB."""
    began, go = asyncio.Event(), asyncio.Event()

    async def pour(wire: Wire) -> None:
        began.set()
        await go.wait()
        wire.send(f"<message type='groupchat' from='{scripted.ROOM}/Eve'><a")
        for _ in range(TAGS_MB * MEGABYTE // len(ATTRIBUTES)):
            wire.send(ATTRIBUTES)
            await wire.sent()
        wire.hang_up()

    soon = noise.at_start(tmp_path / "site", noise.COMES_BACK_SOON)
    async with (
        ScriptedServer(replace(HONEST, stand=pour), HONEST) as server,
        bounded_bridge(tmp_path, server, **soon) as bridge,
    ):
        await began.wait()
        await stands(bridge, go, lambda it: it.get("lastError"))
        await bridge.joined()


async def stands(
    bridge: BridgeProcess, go: asyncio.Event, satisfied: Callable[[dict[str, Any]], object]
) -> None:
    """Let the attack begin; until the status is as wanted the bridge stays small and answers."""
    before, longest = memory_mb(bridge, "VmRSS"), 0.0
    go.set()
    async with asyncio.timeout(60):
        while not satisfied(await bridge.status()):
            started = monotonic()
            told = await bridge.bare("echo", message="there?")
            assert told["content"][0]["text"] == "Echo: there?"
            longest = max(longest, monotonic() - started)
    grown = memory_mb(bridge, "VmHWM") - before
    log.info("grown %.1f MB, longest echo %.3f s", grown, longest)
    assert grown < MEMORY_BOUND_MB
    assert longest < ECHO_SECONDS


async def test_a_flood_deafens_nobody_and_every_message_is_told_once(tmp_path: Path) -> None:
    go = asyncio.Event()
    flood = "".join(
        scripted.said(f"Eve {number % 7}", f"drop {number:05d}", f"m{number}")
        for number in range(FLOOD)
    ).encode()

    async def pour(wire: Wire) -> None:
        await go.wait()
        wire.send(flood + scripted.said("Eve", "the end").encode())
        await scripted.stand(wire)

    script = replace(HONEST, stand=pour)
    async with ScriptedServer(script) as server, bounded_bridge(tmp_path, server) as bridge:
        before = await bridge.joined()
        await stands(bridge, go, lambda it: (it["lastIncoming"] or {}).get("body") == "the end")
        # Nothing else came; that each of them did is counted on stderr below.
        since = {"since": before["cursor"], "limit": 1}
        kinds = ["join", "leave", "nick", "role", "subject", "config", "error", "gap"]
        assert not (await bridge.call("xmppHistory", **since, kinds=kinds))["entries"]
        recent = await bridge.request("resources/read", {"uri": "bridge://room/messages"})
        entries = json.loads(recent["contents"][0]["text"])["entries"]
        assert len(entries) > 20
        last = [f"drop {number:05d}" for number in range(FLOOD - len(entries) + 1, FLOOD)]
        assert [each["body"] for each in entries] == [*last, "the end"]
        assert len({each["cursor"] for each in entries}) == len(entries)
        assert len(server.wires) == 1
        # And the room is still one to talk in.
        assert (await bridge.bare("xmppSend", message="still here"))["sent"]
    told = [int(each) for each in re.findall("drop ([0-9]{5})$", bridge.stderr, re.MULTILINE)]
    ends = bridge.stderr.count("> the end\n")
    dropped = sum(map(int, re.findall(r"\(dropped ([0-9]+) lines?:", bridge.stderr)))
    assert told == sorted(set(told))
    assert len(told) + ends + dropped == FLOOD + 1


LONG_BODY = 249_000
"""Letters of a long message; servers let stanzas of 256 kB pass."""

LONG_BODIES = 160
"""More than the journal keeps, whatever is in them."""

MORE_MB = 60.0
"""How much more memory they may take with an emoji each than of plain letters."""


async def test_an_emoji_in_each_long_message_takes_hardly_more_memory_than_letters(
    tmp_path: Path,
) -> None:
    async def taken(home: Path, end: str) -> float:
        """The memory of a bridge that has heard all of them, in MB."""
        go = asyncio.Event()

        async def pour(wire: Wire) -> None:
            await go.wait()
            for number in range(LONG_BODIES):
                wire.send(scripted.said("Eve", "x" * LONG_BODY + end, f"m{number}"))
                await wire.sent()
            wire.send(scripted.said("Eve", "the end"))
            await wire.gone()

        async with (
            ScriptedServer(replace(HONEST, stand=pour)) as server,
            bounded_bridge(home, server, BRIDGE_STORE=str(home / "rooms.db")) as bridge,
        ):
            await bridge.joined()
            go.set()
            await bridge.until(lambda it: (it["lastIncoming"] or {}).get("body") == "the end", 60)
            return memory_mb(bridge, "VmRSS")

    plain = await taken(tmp_path / "plain", "x")
    with_emoji = await taken(tmp_path / "emoji", "\N{GRINNING FACE}")
    log.info("%.1f MB of letters, %.1f MB with an emoji each", plain, with_emoji)
    assert with_emoji < plain + MORE_MB
