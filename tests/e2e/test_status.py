"""What a status says of the bridge in a room of a real server: its voice, and whose room it is."""

from pathlib import Path

from tests.e2e import noise
from tests.e2e.company import in_company
from tests.faults.scene import configure
from tests.servers.server import XmppServer


async def test_a_voice_that_is_taken_away_in_a_moderated_room_is_missed(
    real_server: XmppServer, tmp_path: Path
) -> None:
    # How often a room is asked about changes is shown in tests/xmpp/muc/test_configuration.py.
    often = noise.with_limits("bridge.xmpp.muc.configuration", ASK_SECONDS=0.2)
    site = noise.at_start(tmp_path / "site", often)
    async with in_company(real_server, tmp_path / "home", **site) as (bridge, wilma):
        await configure(wilma, moderatedroom="0")
        status = await bridge.until(lambda it: it.get("moderated") is False)
        assert status["self"] == {"role": "participant", "affiliation": "none", "voice": True}
        await configure(wilma, moderatedroom="1")
        await bridge.until(lambda it: it["moderated"])
        await wilma.muc.set_role(wilma.room, "McpDebug", "visitor")
        status = await bridge.until(lambda it: not it["self"]["voice"])
        assert status["self"] == {"role": "visitor", "affiliation": "none", "voice": False}
        assert (status["moderated"], status["connected"]) == (True, True)
        await configure(wilma, moderatedroom="0")
        await bridge.until(lambda it: it["moderated"] is False)
