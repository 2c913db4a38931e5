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

import pytest

from tests.e2e import noise
from tests.e2e.bridge_process import BridgeProcess
from tests.faults import scripted_server as scripted
from tests.faults.scripted_server import HONEST, Script, ScriptedServer, Wire
from tests.faults.test_hostile_server import bounded_bridge, echoes

log = logging.getLogger(__name__)

MEGABYTE = 1024 * 1024
ATTACK_MB = 200
"""What the server would send in all, were it let."""
TAGS_MB = 8
"""Of small tags, each of which is looked at: some two million."""

MEMORY_BOUND_MB = 128.0
"""How much the bridge may grow meanwhile: one element of 4 MiB that is nothing but children."""

ECHO_SECONDS = 1.0
"""The longest that a call may wait while the server pours; a hundredth of it on idle cores."""

FLOOD = 10_000
STATUS_MB = 3
STATUSES = 60
"""Together more than the bridge may grow."""


def memory_mb(bridge: BridgeProcess, field: str) -> float:
    """`VmRSS`, or `VmHWM` for the most that was ever resident."""
    status = Path(f"/proc/{bridge.process.pid}/status").read_text(encoding="ascii")
    found = re.search(rf"^{field}:\s+([0-9]+) kB", status, re.MULTILINE)
    assert found is not None
    return int(found[1]) / 1024


class Pour:
    """Sends `start`, then `piece` again and again; counts what the client let through."""

    def __init__(self, start: str, piece: str, megabytes: int, *, hangs_up: bool = False) -> None:
        self._megabytes, self._hangs_up = megabytes, hangs_up
        self._start = start.encode()
        self._piece = (piece * (MEGABYTE // len(piece))).encode()
        self.sent_mb = 0.0
        self.began = asyncio.Event()
        self.go = asyncio.Event()

    async def __call__(self, wire: Wire) -> None:
        self.began.set()
        await self.go.wait()
        wire.send(self._start)
        while self.sent_mb < self._megabytes:
            wire.send(self._piece)
            await wire.sent()
            self.sent_mb += len(self._piece) / MEGABYTE
        if self._hangs_up:
            wire.hang_up()
        else:
            await wire.gone()


def standing(pour: Pour) -> Script:
    return replace(HONEST, stand=pour)


def while_deriving(pour: Pour) -> Script:
    """The key takes the client a while; what comes meanwhile would wait for it."""

    async def authenticate(wire: Wire) -> None:
        await wire.open(scripted.mechanisms("SCRAM-SHA-256"))
        auth = await wire.element("auth")
        nonce = scripted.content(auth).rpartition("r=")[2]
        wire.send(scripted.sasl("challenge", f"r={nonce}more,s=c2FsdA==,i=1000000"))
        await pour(wire)

    return replace(HONEST, authenticate=authenticate)


MESSAGE = f"<message type='groupchat' from='{scripted.ROOM}/Eve'"
SKIPPED = {
    "a body": (MESSAGE + "><body>", "blah ", ATTACK_MB),
    "attributes": (
        MESSAGE + "><a",
        "".join(f" a{n}='x'" for n in range(1000)) + "/><a",
        2 * TAGS_MB,
    ),
}
"""What may be a stanza that has not ended yet: servers make some of 100 MB."""

ENDLESS = [
    ("a comment", standing, "<!--", "blah "),
    ("features again and again", while_deriving, "", "<stream:features/>"),
]


@pytest.mark.parametrize(
    ("script", "start", "piece"), [one[1:] for one in ENDLESS], ids=[one[0] for one in ENDLESS]
)
async def test_what_has_no_end_is_given_up_early_and_costs_no_memory(
    script: Callable[[Pour], Script], start: str, piece: str, tmp_path: Path
) -> None:
    pour = Pour(start, piece, ATTACK_MB)
    soon = noise.at_start(tmp_path / "site", noise.COMES_BACK_SOON)
    async with (
        ScriptedServer(script(pour), HONEST) as server,
        bounded_bridge(tmp_path, server, **soon) as bridge,
    ):
        await pour.began.wait()
        error = (await stands(bridge, pour.go, lambda it: it.get("lastError")))["lastError"]
        assert error["condition"] == "undefined-condition"
        # The latter where the key was derived before the bound was reached.
        reasons = ("goes on without end", "not well-formed", 'an unexpected element "features"')
        assert any(one in error["message"] for one in reasons)
        assert pour.sent_mb < ATTACK_MB / 4
        await bridge.joined()


@pytest.mark.parametrize("name", SKIPPED)
async def test_a_stanza_without_end_costs_no_memory_and_keeps_no_call_waiting(
    name: str, tmp_path: Path
) -> None:
    pour = Pour(*SKIPPED[name], hangs_up=True)
    soon = noise.at_start(tmp_path / "site", noise.COMES_BACK_SOON)
    async with (
        ScriptedServer(standing(pour), HONEST) as server,
        bounded_bridge(tmp_path, server, **soon) as bridge,
    ):
        await pour.began.wait()
        await stands(bridge, pour.go, lambda it: it.get("lastError"))
        assert pour.sent_mb >= TAGS_MB
        await bridge.joined()


async def stands(
    bridge: BridgeProcess, go: asyncio.Event, satisfied: Callable[[dict[str, Any]], object]
) -> dict[str, Any]:
    """Let the attack begin; return the status once it is as wanted.

    Until then the bridge must stay small and answer.
    """
    before = memory_mb(bridge, "VmRSS")
    go.set()
    longest = await longest_echo_until(bridge, satisfied)
    grown = memory_mb(bridge, "VmHWM") - before
    log.info("grown %.1f MB, longest echo %.3f s", grown, longest)
    assert grown < MEMORY_BOUND_MB
    assert longest < ECHO_SECONDS
    return await bridge.status()


async def longest_echo_until(
    bridge: BridgeProcess, satisfied: Callable[[dict[str, Any]], object]
) -> float:
    """Call without a pause until the status is as wanted; return how long a call took at most."""
    longest = 0.0
    async with asyncio.timeout(60):
        while True:
            started = monotonic()
            await echoes(bridge)
            longest = max(longest, monotonic() - started)
            if satisfied(await bridge.status()):
                return longest


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
        assert [one["body"] for one in entries] == [*last, "the end"]
        assert len({one["cursor"] for one in entries}) == len(entries)
        assert len(server.wires) == 1
        # And the room is still one to talk in.
        assert (await bridge.bare("xmppSend", message="still here"))["sent"]
    told = [int(one) for one in re.findall("drop ([0-9]{5})$", bridge.stderr, re.MULTILINE)]
    ends = bridge.stderr.count("> the end\n")
    dropped = sum(map(int, re.findall(r"\(([0-9]+) lines were dropped", bridge.stderr)))
    assert told == sorted(set(told))
    assert len(told) + ends + dropped == FLOOD + 1


async def test_occupants_with_long_statuses_cost_no_memory(tmp_path: Path) -> None:
    assert STATUSES * STATUS_MB > MEMORY_BOUND_MB
    go = asyncio.Event()
    status = f"<status>{'blah ' * (STATUS_MB * MEGABYTE // 5)}</status>"

    async def stand(wire: Wire) -> None:
        await go.wait()
        for number in range(STATUSES):
            wire.send(scripted.present(f"Occupant {number}", content=status))
            await wire.sent()
        wire.send(scripted.said("Eve", "the end"))
        await scripted.stand(wire)

    async with (
        ScriptedServer(replace(HONEST, stand=stand)) as server,
        bounded_bridge(tmp_path, server) as bridge,
    ):
        await bridge.joined()
        after = await stands(
            bridge, go, lambda it: (it["lastIncoming"] or {}).get("body") == "the end"
        )
        assert after["occupants"] == STATUSES + 2
        assert len(server.wires) == 1
