"""`xmpp-bridge record`, and bridges that share its store, as processes on a real server."""

import signal
import stat
from pathlib import Path

from tests.e2e.bridge_process import BridgeProcess
from tests.e2e.watching import Watching
from tests.servers.server import XmppServer
from tests.servers.witness import Witness
from tests.store.recorded import bodies, recorded, rows

RECORDER = "McpDebug-record"
ODD = 'hidden: \u202egnp.exe\u202c \u200b and "quoted" \\u0041 \x7f <&>\nsecond line'


def _usual(home: Path) -> Path:
    return home / ".local" / "state" / "xmpp-bridge" / "rooms.db"


async def test_record_makes_the_usual_store_and_ends_cleanly(
    xmpp_server: XmppServer, tmp_path: Path
) -> None:
    settings = xmpp_server.environment()
    path = _usual(tmp_path)
    async with (
        Witness(xmpp_server, xmpp_server.witness, settings["MUC_ROOM"], "Wilma") as wilma,
        Watching(tmp_path, settings, command="record") as recording,
    ):
        await wilma.joined(RECORDER)
        wilma.say(ODD)
        await recorded(path, ODD)
        wilma.say("the last word")
        await wilma.heard("the last word")
        await recording.says("the last word")
        recording.signal(signal.SIGTERM)
        assert await recording.ended() == 0
        await wilma.left(RECORDER)
    assert bodies(path) == [ODD, "the last word"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    (said,) = rows(path, "text LIKE '%last%'")
    assert (said["room"], said["shared"], said["observer"]) == (settings["MUC_ROOM"], 1, RECORDER)


async def test_bridges_beside_it_use_its_store_and_each_event_is_there_once(
    sandbox: XmppServer, tmp_path: Path
) -> None:
    settings = sandbox.environment()
    path = _usual(tmp_path)
    async with Watching(tmp_path, settings, command="record") as recording:
        await recording.says("joined")
        async with BridgeProcess(tmp_path, settings) as bridge:
            await bridge.joined()
            sent = await bridge.bare("xmppSend", message="from the bridge")
            assert sent["sent"] is True
            assert "warnings" not in await bridge.status()
        await recording.says("* McpDebug left")
        recording.signal(signal.SIGINT)
        assert await recording.ended() == 0
    shared = [
        (one["kind"], one.get("sender"), one.get("body"))
        for one in rows(path, "shared")
        if one["kind"] != "subject"
    ]
    assert shared == [
        ("join", RECORDER, None),
        ("join", "McpDebug", None),
        ("message", "McpDebug", "from the bridge"),
        ("leave", "McpDebug", None),
    ]
    (ours,) = rows(path, "kind = 'message' AND NOT shared")
    assert (ours["direction"], ours["observer"]) == ("out", "McpDebug")
