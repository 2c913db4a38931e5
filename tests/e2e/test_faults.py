from pathlib import Path

import pytest

from tests.e2e import noise
from tests.e2e.bridge_process import NOWHERE, BridgeProcess, RpcFailedError
from tests.servers.server import XmppServer


async def test_without_a_server_mcp_answers_at_once_and_the_status_explains(tmp_path: Path) -> None:
    async with BridgeProcess(tmp_path, NOWHERE) as bridge:
        assert (await bridge.initialize())["serverInfo"]["name"] == "xmpp-debug-bridge"
        told = await bridge.call("echo", message="there?")
        assert told["content"] == [{"type": "text", "text": "Echo: there?"}]
        # It waits for the first attempt, and no longer.
        with pytest.raises(RpcFailedError) as bare:
            await bridge.bare("xmppSend", message="hello")
        assert bare.value.code == -32603
        assert bare.value.data["condition"] == "connection-refused"
        assert "XMPP_SERVICE" in bare.value.data["hint"]
        status = await bridge.until(lambda it: it["phase"] == "waiting")
        assert status["connected"] is False
        assert status["attempt"] >= 1
        assert status["nextAttemptAt"] > status["since"]
        error = status["lastError"]
        assert error["condition"] == "connection-refused"
        assert NOWHERE["XMPP_SERVICE"] in error["message"]
        assert "XMPP_SERVICE" in error["hint"]
        assert error["at"].endswith("Z")


async def test_a_port_for_the_other_kind_of_tls_is_told(
    real_server: XmppServer, tmp_path: Path
) -> None:
    # ejabberd 24 says it by an alert of TLS; before, as Prosody does to this day, it hung up.
    alerts = real_server.name == "ejabberd" and real_server.version >= (24,)
    closed = "wrong-version-number" if alerts else "connection-reset"
    for scheme, other, port, condition in (
        ("xmpps", "xmpp", real_server.starttls_port, "wrong-version-number"),
        ("xmpp", "xmpps", real_server.direct_tls_port, closed),
    ):
        settings = real_server.environment(XMPP_SERVICE=f"{scheme}://127.0.0.1:{port}")
        async with BridgeProcess(tmp_path / scheme, settings) as bridge:
            status = await bridge.until(lambda it: it.get("lastError"))
            assert status["lastError"]["condition"] == condition
            assert f"{other}://" in status["lastError"]["hint"]


async def test_a_broken_installation_is_told_and_mcp_goes_on(
    sandbox: XmppServer, tmp_path: Path
) -> None:
    broken = noise.at_start(tmp_path / "site", noise.BROKEN_SLIXMPP)
    async with BridgeProcess(tmp_path / "home", sandbox.environment() | broken) as bridge:
        with pytest.raises(RpcFailedError) as refusal:
            await bridge.bare("xmppStatus")
        assert refusal.value.data["condition"] == "internal-server-error"
        assert "half an installation" in refusal.value.message
        await bridge.stderr_says("half an installation")
        assert await bridge.bare("echo", message="still here") == {
            "content": [{"type": "text", "text": "Echo: still here"}]
        }
    assert "Traceback" not in bridge.stderr
