from pathlib import Path

import pytest

from tests.e2e.bridge_process import BridgeProcess, RpcFailedError, ToolFailedError
from tests.servers.server import XmppServer
from tests.servers.witness import Witness


async def test_the_message_over_the_rate_is_refused_and_nobody_hears_it(
    sandbox: XmppServer, tmp_path: Path
) -> None:
    settings = sandbox.environment(BRIDGE_SEND_RATE="2")
    room = settings["MUC_ROOM"]
    async with (
        Witness(sandbox, sandbox.witness, room, "Wilma") as witness,
        BridgeProcess(tmp_path, settings) as bridge,
    ):
        await bridge.initialize()
        with pytest.raises(ToolFailedError, match="XML cannot carry"):
            await bridge.call("xmppSend", message="\x00")
        for message in ("first", "second"):
            assert (await bridge.call("xmppSend", message=message))["sent"] is True
        with pytest.raises(ToolFailedError) as refusal:
            await bridge.call("xmppSend", message="third")
        assert "2 messages a minute" in str(refusal.value)
        assert "policy-violation" in str(refusal.value)
        assert "BRIDGE_SEND_RATE" in str(refusal.value)
        with pytest.raises(RpcFailedError) as bare:
            await bridge.bare("xmppSend", message="third")
        assert bare.value.code == -32603
        assert bare.value.data["condition"] == "policy-violation"
        assert "Try again in " in bare.value.data["hint"]

        witness.say("that was all")
        heard = [(await witness.heard(lambda _: True)).body for _ in range(3)]
        assert heard == ["first", "second", "that was all"]
