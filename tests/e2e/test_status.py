"""What a status says of the bridge in a room of a real server: its voice, and whose room it is."""

from pathlib import Path

from tests.e2e.bridge_process import BridgeProcess
from tests.faults.scene import configure
from tests.servers.server import XmppServer
from tests.servers.witness import Witness


async def test_a_voice_that_is_taken_away_in_a_moderated_room_is_missed(
    real_server: XmppServer, tmp_path: Path
) -> None:
    settings = real_server.environment()
    async with Witness(real_server, real_server.witness, settings["MUC_ROOM"], "Wilma") as wilma:
        # Before the bridge comes, which asks a room about changes once in 10 s.
        await configure(wilma, moderatedroom="0")
        async with BridgeProcess(tmp_path, settings) as bridge:
            await _loses_its_voice(bridge, wilma)


async def _loses_its_voice(bridge: BridgeProcess, wilma: Witness) -> None:
    await bridge.initialize()
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
