import asyncio
import json
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from tests.e2e import noise
from tests.e2e.bridge_process import BridgeProcess
from tests.e2e.company import in_company
from tests.servers.process import ServerProcess
from tests.servers.server import XmppServer
from tests.servers.witness import Witness


def _bodies(page: dict[str, Any]) -> list[str]:
    return [one["body"] for one in page["entries"] if "body" in one]


async def _told(bridge: BridgeProcess, body: str) -> dict[str, Any]:
    """The entry with this body, once it has come."""
    waited = await bridge.call("xmppWait", since=f"{await _run(bridge)}-0", contains=body)
    assert waited["matched"], waited
    entry: dict[str, Any] = waited["entry"]
    return entry


async def _run(bridge: BridgeProcess) -> str:
    cursor: str = (await bridge.status())["cursor"]
    return cursor.partition("-")[0]


async def test_what_happened_is_told_in_order_and_filters_pick_from_it(
    prosody: XmppServer, tmp_path: Path
) -> None:
    settings = prosody.environment()
    room = settings["MUC_ROOM"]
    async with AsyncExitStack() as stack:
        witness = await stack.enter_async_context(Witness(prosody, prosody.witness, room, "Wilma"))
        # Who keeps order in a room is shown the real JIDs.
        await witness.muc.set_affiliation(room, "admin", jid=prosody.bot.jid)
        bridge = await stack.enter_async_context(BridgeProcess(tmp_path, settings))
        await bridge.initialize()
        await witness.joined("McpDebug")
        sent = await bridge.call("xmppSend", message="from us")
        for body in ("one", "Two 22", "three"):
            witness.say(body)
        await _told(bridge, "three")
        page = await bridge.call("xmppHistory", limit=500, maxBytes=45_000, detail="full")
        assert ("gap" in page, page["more"]) == (False, False)
        cursors = [int(one["cursor"].rpartition("-")[2]) for one in page["entries"]]
        assert cursors == sorted(set(cursors))
        kinds = [one["kind"] for one in page["entries"]]
        assert kinds[0] == "connection"
        assert kinds.index("join") < kinds.index("message")
        assert _bodies(page) == ["from us", "from us", "one", "Two 22", "three"]
        out, back = [one for one in page["entries"] if one.get("body") == "from us"]
        assert (out["direction"], back["direction"], back["reflection"]) == ("out", "in", True)
        assert out["id"] == back["id"] == sent["id"]
        assert back["cursor"] == sent["cursor"]
        one = next(one for one in page["entries"] if one.get("body") == "one")
        assert (one["sender"], one["from"], one["source"]) == ("Wilma", f"{room}/Wilma", "live")

        brief = await bridge.call("xmppHistory", limit=500)
        assert len(json.dumps(brief)) < len(json.dumps(page)) / 2
        assert _bodies(brief) == ["from us", "one", "Two 22", "three"]
        assert "connection" not in {one["kind"] for one in brief["entries"]}
        (ours,) = [one for one in brief["entries"] if one.get("body") == "from us"]
        assert (ours["cursor"], ours["heard"]) == (sent["cursor"], True)

        asked = {"from": prosody.witness.jid, "pattern": r"\d{2}$", "since": sent["cursor"]}
        assert _bodies(await bridge.call("xmppHistory", **asked)) == ["Two 22"]

        for start, whole in ((page["oldest"], page), ("oldest", brief)):
            told, cursor, more = [], start, True
            detail = "full" if whole is page else "brief"
            while more:
                part = await bridge.bare("xmppHistory", since=cursor, limit=2, detail=detail)
                told += part["entries"]
                cursor, more = part["next"], part["more"]
            assert told == whole["entries"]


async def test_cursors_outlive_a_reconnect(prosody_process: ServerProcess, tmp_path: Path) -> None:
    server = prosody_process.server
    settings = server.environment() | noise.at_start(tmp_path / "site", noise.COMES_BACK_SOON)
    async with BridgeProcess(tmp_path / "home", settings) as bridge:
        await bridge.initialize()
        await bridge.joined()
        sent = await bridge.call("xmppSend", message="before")
        await asyncio.to_thread(prosody_process.kill)
        out = await bridge.until(lambda it: not it["connected"])
        waited = await bridge.call("xmppWait", since=sent["cursor"], timeoutSeconds=0.2)
        assert (waited["matched"], "gap" in waited) == (False, False)
        assert waited["phase"] != "joined"
        assert out["lastError"]["message"] in waited["outBecause"] or waited["outBecause"]
        assert "connection" in {one["kind"] for one in waited["passed"]}
        await asyncio.to_thread(prosody_process.start)
        await bridge.joined()
        async with Witness(server, server.witness, settings["MUC_ROOM"], "Wilma") as witness:
            witness.say("after")
            answer = await bridge.call("xmppWait", since=sent["cursor"])
            assert (answer["entry"]["body"], "gap" in answer) == ("after", False)
            page = await bridge.call("xmppHistory", since=sent["cursor"], kinds=["connection"])
            assert [one for one in page["entries"] if one.get("phase") == "joined"]
            trace = await bridge.call("xmppTrace", since=sent["cursor"], contains="<bind")
            assert {one["connection"] for one in trace["entries"]}.isdisjoint({"1"})
            first = await bridge.call("xmppTrace", since=trace["oldest"], contains="<bind")
            assert first["entries"][0]["connection"] == "1"


async def test_a_restart_of_the_bridge_is_told(sandbox: XmppServer, tmp_path: Path) -> None:
    settings = sandbox.environment()
    async with BridgeProcess(tmp_path, settings) as bridge:
        await bridge.joined()
        cursor = (await bridge.status())["cursor"]
        number = int(cursor.rpartition("-")[2])
    async with BridgeProcess(tmp_path, settings) as bridge:
        await bridge.joined()
        lost = {"from": number + 1, "to": 0, "reason": "restarted"}
        for tool in ("xmppHistory", "xmppTrace"):
            page = await bridge.bare(tool, since=cursor)
            assert page["gap"] == lost
            assert page["entries"]
            assert (await bridge.bare(tool, since=page["next"])).get("gap") is None
        waited = await bridge.bare("xmppWait", since=cursor, timeoutSeconds=0)
        assert waited["gap"] == lost
        assert waited["seen"] > 0


async def test_what_a_small_memory_lost_is_told(sandbox: XmppServer, tmp_path: Path) -> None:
    async with in_company(sandbox, tmp_path, BRIDGE_HISTORY="100") as (bridge, witness):
        since = (await bridge.status())["cursor"]
        for number in range(150):
            witness.say(f"said {number:03}")
        assert (await bridge.call("xmppWait", since=since, contains="said 149"))["matched"]
        page = await bridge.call("xmppHistory", since=since, limit=500, maxBytes=45_000)
        assert page["gap"]["reason"] == "evicted"
        assert _bodies(page) == [f"said {number:03}" for number in range(50, 150)]
        again = await bridge.call("xmppWait", since=since, timeoutSeconds=0)
        assert (again["gap"], again["entry"]["body"]) == (page["gap"], "said 050")
