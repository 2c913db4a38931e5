from pathlib import Path

from tests.e2e.company import in_company
from tests.servers.server import XmppServer


async def test_what_a_small_memory_lost_is_told(sandbox: XmppServer, tmp_path: Path) -> None:
    async with in_company(sandbox, tmp_path, BRIDGE_HISTORY="100") as (bridge, witness):
        since = (await bridge.status())["cursor"]
        for number in range(150):
            witness.say(f"said {number:03}")
        assert (await bridge.call("xmppWait", since=since, contains="said 149"))["matched"]
        page = await bridge.call("xmppHistory", since=since, limit=500, maxBytes=45_000)
        assert page["gap"]["reason"] == "evicted"
        bodies = [each["body"] for each in page["entries"] if "body" in each]
        assert bodies == [f"said {number:03}" for number in range(50, 150)]
        again = await bridge.call("xmppWait", since=since, timeoutSeconds=0)
        assert (again["gap"], again["entry"]["body"]) == (page["gap"], "said 050")
