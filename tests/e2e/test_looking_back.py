from pathlib import Path

from tests.e2e.bridge_process import BridgeProcess
from tests.e2e.company import in_company
from tests.servers.server import XmppServer


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
        bodies = [one["body"] for one in page["entries"] if "body" in one]
        assert bodies == [f"said {number:03}" for number in range(50, 150)]
        again = await bridge.call("xmppWait", since=since, timeoutSeconds=0)
        assert (again["gap"], again["entry"]["body"]) == (page["gap"], "said 050")
