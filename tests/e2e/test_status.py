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
    async with (
        Witness(real_server, real_server.witness, settings["MUC_ROOM"], "Wilma") as wilma,
        BridgeProcess(tmp_path, settings) as bridge,
    ):
        await bridge.joined()
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


async def test_a_room_that_joining_made_is_a_warning_with_the_rooms_that_may_be_meant(
    real_server: XmppServer, tmp_path: Path
) -> None:
    meant = real_server.room()
    misspelt = f"x{meant}"
    async with (
        Witness(real_server, real_server.witness, meant, "Wilma") as wilma,
        Witness(real_server, real_server.witness, f"zzz@{real_server.muc}", "Wilma") as other,
    ):
        for one in (wilma, other):
            await configure(one, publicroom="1")
        await _warned_of(misspelt, meant, real_server, tmp_path)


async def _warned_of(misspelt: str, meant: str, server: XmppServer, home: Path) -> None:
    async with BridgeProcess(home, server.environment(MUC_ROOM=misspelt)) as bridge:
        status = await bridge.until(lambda it: "similar" in str(it.get("warnings")))
        assert status["roomCreated"] is True
        (warning,) = status["warnings"]
        assert "MUC_ROOM may have a typo" in warning
        assert warning.endswith(f'names: "{meant}".')
        assert "notice" in status
        # The bridge asked what it is once it was there; before there was no room to ask.
        await bridge.until(lambda it: "moderated" in it)
        async with Witness(server, server.witness, misspelt, "Wilma"):
            status = await bridge.until(lambda it: it["occupants"] == 2)
            assert "warnings" not in status
