import socket
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import pytest

from tests.e2e import noise
from tests.e2e.bridge_process import NOWHERE, BridgeProcess, RpcFailedError
from tests.servers.ports import free_ports
from tests.servers.server import XmppServer

AT_ONCE_SECONDS = 5.0
"""Limit for an answer that waits for nothing: an interpreter's start, on a busy machine."""


def _nowhere(**overrides: str) -> dict[str, str]:
    (port,) = free_ports(1)
    return NOWHERE | {"XMPP_SERVICE": f"xmpp://127.0.0.1:{port}"} | overrides


async def test_without_a_server_mcp_answers_at_once_and_the_status_explains(
    tmp_path: Path,
) -> None:
    settings = _nowhere()
    async with BridgeProcess(tmp_path, settings) as bridge:
        started = monotonic()
        assert (await bridge.initialize())["serverInfo"]["name"] == "xmpp-debug-bridge"
        assert await bridge.call("echo", message="there?") == {
            "content": [{"type": "text", "text": "Echo: there?"}],
            "isError": False,
        }
        assert monotonic() - started < AT_ONCE_SECONDS
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
        assert settings["XMPP_SERVICE"] in error["message"]
        assert "XMPP_SERVICE" in error["hint"]
        assert error["at"].endswith("Z")


async def test_sending_during_a_later_attempt_does_not_wait_for_it(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    soon = noise.at_start(tmp_path / "site", noise.COMES_BACK_SOON)
    settings = _nowhere(XMPP_SERVICE=f"xmpp://127.0.0.1:{port}", **soon)
    async with BridgeProcess(tmp_path / "home", settings) as bridge:
        await bridge.until(lambda it: it.get("lastError"))
        with socket.create_server(("127.0.0.1", port)):
            # The next attempt gets as far as this silence, and stays there.
            await bridge.until(lambda it: it["phase"] == "securing")
            started = monotonic()
            with pytest.raises(RpcFailedError) as refusal:
                await bridge.bare("xmppSend", message="hello", timeoutSeconds=9)
            assert monotonic() - started < AT_ONCE_SECONDS
            assert refusal.value.data["condition"] == "connection-refused"


async def test_a_port_for_the_other_kind_of_tls_is_told(
    real_server: XmppServer, tmp_path: Path
) -> None:
    for scheme, other, port, condition in (
        ("xmpps", "xmpp", real_server.starttls_port, "wrong-version-number"),
        ("xmpp", "xmpps", real_server.direct_tls_port, "connection-reset"),
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


@pytest.fixture
def black_hole() -> Iterator[int]:
    """The port of a server that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


async def test_a_server_that_never_speaks_holds_nothing_up(black_hole: int, tmp_path: Path) -> None:
    settings = _nowhere(XMPP_SERVICE=f"xmpp://127.0.0.1:{black_hole}")
    async with BridgeProcess(tmp_path, settings) as bridge:
        status = await bridge.until(lambda it: it["phase"] == "securing")
        assert status["connected"] is False
        assert "lastError" not in status
        with pytest.raises(RpcFailedError) as refusal:
            await bridge.bare("xmppSend", message="hello", timeoutSeconds=0.3)
        assert refusal.value.data["condition"] == "recipient-unavailable"
        assert "securing" in refusal.value.message
