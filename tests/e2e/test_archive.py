from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.e2e.bridge_process import BridgeProcess
from tests.servers.server import XmppServer
from tests.servers.witness import Witness

SAID = 70
"""Messages in the archive: more than Prosody gives in a page."""


@asynccontextmanager
async def _room_with_a_past(
    server: XmppServer, home: Path
) -> AsyncIterator[tuple[BridgeProcess, Witness]]:
    """A bridge that came after everything had been said."""
    settings = server.environment()
    async with Witness(server, server.witness, settings["MUC_ROOM"], "Wilma") as wilma:
        if server.name == "ejabberd":
            form = await wilma.muc.get_room_config(wilma.room)
            form.set_values({"mam": "1"})
            await wilma.muc.set_room_config(wilma.room, form)
        for number in range(SAID):
            wilma.say(f"number {number}" if number % 7 else f"Lucky {number} \u202e")
        await wilma.heard(f"number {SAID - 1}")
        async with BridgeProcess(home, settings) as bridge:
            await bridge.joined()
            yield bridge, wilma


async def _all(bridge: BridgeProcess, **arguments: Any) -> list[dict[str, Any]]:
    """Every page of it."""
    found: list[dict[str, Any]] = []
    page = await bridge.bare("xmppHistory", archive=True, **arguments)
    while True:
        assert "gap" not in page
        assert ("notice" in page) is bool(page["entries"])
        found += page["entries"]
        if not page["more"]:
            return found
        page = await bridge.bare("xmppHistory", archive=True, **arguments | {"since": page["next"]})


async def test_the_archive_is_paged_through_and_searched_by_sender_text_pattern_and_time(
    prosody: XmppServer, tmp_path: Path
) -> None:
    async with _room_with_a_past(prosody, tmp_path) as (bridge, _):
        start = {"after": "2020-01-01T00:00:00Z", "kinds": ["message"], "limit": 30}
        entries = await _all(bridge, **start)
        assert [one["body"].split()[1] for one in entries] == [str(n) for n in range(SAID)]
        assert {one["source"] for one in entries} == {"archive"}
        assert all(one["at"].endswith("Z") and len(one["at"]) == 24 for one in entries)
        assert entries[0]["body"] == "Lucky 0 \\u{202E}"
        assert entries[0]["escaped"] is True
        lucky = [f"Lucky {number} \\u{{202E}}" for number in range(0, SAID, 7)]

        async def bodies(**arguments: Any) -> list[str]:
            found = await _all(bridge, **{"after": "2020-01-01T00:00:00Z"} | arguments)
            return [one["body"] for one in found if "body" in one]

        assert await bodies(contains="LUCKY", limit=4) == lucky
        assert await bodies(pattern="^L.*[0-9]", limit=3) == lucky
        assert len(await bodies(**{"from": "Wilma"}, limit=500)) == SAID
        assert await bodies(**{"from": "Nobody"}) == []
        assert await bodies(before="2020-01-02T00:00:00Z") == []
        assert await bodies(after="2100-01-01T00:00:00+01:00") == []
