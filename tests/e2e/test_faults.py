import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import pytest

from tests.e2e import noise
from tests.e2e.bridge_process import BridgeProcess, RpcFailedError, ToolFailedError
from tests.e2e.company import in_company
from tests.servers.certificates import Authority
from tests.servers.endpoint import Endpoint
from tests.servers.ports import free_ports
from tests.servers.process import DOMAIN, ServerProcess
from tests.servers.prosody import running_prosody
from tests.servers.server import Transport, XmppServer
from tests.servers.witness import Witness

NOWHERE = {
    "XMPP_SERVICE": "xmpp://127.0.0.1:1",
    "XMPP_DOMAIN": "localhost",
    "XMPP_USERNAME": "bot",
    "XMPP_PASSWORD": "bot-passes-4711",
    "MUC_ROOM": "room@conference.localhost",
}
AT_ONCE_SECONDS = 5.0
"""Limit for an answer that waits for nothing: an interpreter's start, on a busy machine."""


def _nowhere(**overrides: str) -> dict[str, str]:
    (port,) = free_ports(1)
    return NOWHERE | {"XMPP_SERVICE": f"xmpp://127.0.0.1:{port}"} | overrides


@pytest.fixture
def black_hole() -> Iterator[int]:
    """The port of a server that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


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
        status = await bridge.until(lambda it: it["phase"] == "waiting")
        assert status["connected"] is False
        assert status["attempt"] >= 1
        assert status["nextAttemptAt"] > status["since"]
        error = status["lastError"]
        assert error["condition"] == "connection-refused"
        assert settings["XMPP_SERVICE"] in error["message"]
        assert "XMPP_SERVICE" in error["hint"]
        assert error["at"].endswith("Z")


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


async def test_sending_while_out_of_the_room_is_refused_at_once_with_the_cause(
    tmp_path: Path,
) -> None:
    async with BridgeProcess(tmp_path, _nowhere()) as bridge:
        await bridge.initialize()
        await bridge.until(lambda it: it.get("lastError"))
        started = monotonic()
        with pytest.raises(RpcFailedError) as bare:
            await bridge.bare("xmppSend", message="hello")
        with pytest.raises(ToolFailedError) as mcp:
            await bridge.call("xmppSend", message="hello")
        assert monotonic() - started < AT_ONCE_SECONDS
        assert bare.value.code == -32603
        assert bare.value.message.startswith("Not in the room room@conference.localhost")
        assert bare.value.data["condition"] == "connection-refused"
        assert "XMPP_SERVICE" in bare.value.data["hint"]
        assert "Condition: connection-refused" in str(mcp.value)
        assert "Hint: " in str(mcp.value)


async def test_a_send_under_way_when_the_first_attempt_fails_is_refused_with_the_cause(
    tmp_path: Path,
) -> None:
    async with BridgeProcess(tmp_path, _nowhere()) as bridge:
        with pytest.raises(RpcFailedError) as refusal:
            await bridge.bare("xmppSend", message="hello", timeoutSeconds=10)
        assert refusal.value.data["condition"] == "connection-refused"


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


async def test_a_wrong_password_is_told_and_not_tried_again(
    endpoint: Endpoint, tmp_path: Path
) -> None:
    settings = endpoint.environment(XMPP_PASSWORD="not-the-password")
    async with BridgeProcess(tmp_path, settings) as bridge:
        status = await bridge.until(lambda it: it["phase"] == "failed")
        assert (status["connected"], status["attempt"]) == (False, 1)
        assert "nextAttemptAt" not in status
        assert status["lastError"]["retry"].startswith("Never tried again by itself")
        assert status["lastError"]["condition"] == "not-authorized"
        assert endpoint.server.bot.jid in status["lastError"]["message"]
        assert "XMPP_PASSWORD" in status["lastError"]["hint"]
    assert "not-the-password" not in bridge.stderr


@pytest.mark.parametrize("transport", ["starttls", "direct"])
async def test_a_certificate_nobody_vouches_for_is_refused(
    real_server: XmppServer, transport: Transport, tmp_path: Path
) -> None:
    settings = real_server.environment(transport, XMPP_TLS_CA_FILE=None)
    async with BridgeProcess(tmp_path, settings) as bridge:
        status = await bridge.until(lambda it: it["phase"] == "failed")
        assert status["connected"] is False
        assert status["lastError"]["condition"] == "certificate-verify-failed"
        assert "XMPP_TLS_CA_FILE" in status["lastError"]["hint"]
        # It is looked at again after a quarter of an hour: certificates get renewed.
        assert "nextAttemptAt" in status


@pytest.mark.parametrize("transport", ["starttls", "direct"])
async def test_certificate_checks_that_are_off_let_it_in_and_say_so(
    prosody: XmppServer, transport: Transport, tmp_path: Path
) -> None:
    settings = prosody.environment(
        transport, XMPP_TLS_CA_FILE=None, NODE_TLS_REJECT_UNAUTHORIZED="0"
    )
    async with BridgeProcess(tmp_path, settings) as bridge:
        status = await bridge.joined()
        assert status["tls"]["verified"] is False
        assert "NODE_TLS_REJECT_UNAUTHORIZED" in status["warnings"][0]
    assert "WARNING: NODE_TLS_REJECT_UNAUTHORIZED" in bridge.stderr


@pytest.mark.usefixtures("prosody")  # for its verdict where Prosody is missing
@pytest.mark.parametrize(
    ("flaw", "told"), [("wrong name", "XMPP_DOMAIN"), ("expired", "Renew the server's")]
)
async def test_a_flawed_certificate_is_refused_with_a_hint_of_its_own(
    flaw: str, told: str, authority: Authority, tmp_path: Path
) -> None:
    certificate = (
        authority.issue("elsewhere.example")
        if flaw == "wrong name"
        else authority.issue_expired(DOMAIN)
    )
    with running_prosody(tmp_path / "server", authority, certificate) as process:
        async with BridgeProcess(tmp_path / "home", process.server.environment()) as bridge:
            status = await bridge.until(lambda it: it["phase"] == "failed")
    assert status["lastError"]["condition"] == "certificate-verify-failed"
    assert told in status["lastError"]["hint"]


async def test_a_domain_the_server_does_not_serve_is_told(
    xmpp_server: XmppServer, tmp_path: Path
) -> None:
    settings = xmpp_server.environment(XMPP_DOMAIN="elsewhere.example")
    async with BridgeProcess(tmp_path, settings) as bridge:
        status = await bridge.until(lambda it: it.get("lastError"))
        assert status["lastError"]["condition"] == "host-unknown"
        assert "elsewhere.example" in status["lastError"]["message"]
        assert "XMPP_DOMAIN" in status["lastError"]["hint"]


async def test_xmpps_to_a_starttls_port_is_told(real_server: XmppServer, tmp_path: Path) -> None:
    settings = real_server.environment(
        XMPP_SERVICE=f"xmpps://127.0.0.1:{real_server.starttls_port}"
    )
    async with BridgeProcess(tmp_path, settings) as bridge:
        status = await bridge.until(lambda it: it.get("lastError"))
        assert status["lastError"]["condition"] == "wrong-version-number"
        assert "xmpp://" in status["lastError"]["hint"]


async def test_xmpp_to_a_direct_tls_port_is_told(real_server: XmppServer, tmp_path: Path) -> None:
    settings = real_server.environment(
        XMPP_SERVICE=f"xmpp://127.0.0.1:{real_server.direct_tls_port}"
    )
    async with BridgeProcess(tmp_path, settings) as bridge:
        status = await bridge.until(lambda it: it.get("lastError"))
        assert status["lastError"]["condition"] == "connection-reset"
        assert "xmpps://" in status["lastError"]["hint"]


async def test_a_server_without_tls_gets_no_login_unless_that_is_allowed(
    sandbox: XmppServer, tmp_path: Path
) -> None:
    settings = sandbox.environment(XMPP_ALLOW_PLAINTEXT=None)
    async with BridgeProcess(tmp_path, settings) as bridge:
        status = await bridge.until(lambda it: it["phase"] == "failed")
        assert status["lastError"]["condition"] == "encryption-required"
        assert "XMPP_ALLOW_PLAINTEXT" in status["lastError"]["hint"]


async def test_a_room_on_a_domain_that_is_no_room_service_is_told(
    xmpp_server: XmppServer, tmp_path: Path
) -> None:
    settings = xmpp_server.environment(MUC_ROOM="room@nowhere.invalid")
    async with BridgeProcess(tmp_path, settings) as bridge:
        status = await bridge.until(lambda it: it.get("lastError"))
        assert status["lastError"]["condition"] in {
            "remote-server-not-found",
            "service-unavailable",
            "not-allowed",  # Prosody, and below ejabberd: nobody speaks to other servers here
            "forbidden",
        }
        assert "MUC_ROOM" in status["lastError"]["hint"]


async def test_a_domain_that_is_no_room_service_is_told_long_before_the_join_is_given_up(
    xmpp_server: XmppServer, tmp_path: Path
) -> None:
    settings = xmpp_server.environment(MUC_ROOM=f"room@{xmpp_server.domain}")
    async with BridgeProcess(tmp_path, settings) as bridge:
        status = await bridge.until(lambda it: it.get("lastError"), AT_ONCE_SECONDS)
        assert status["lastError"]["condition"] == "service-unavailable"
        assert (
            f"{xmpp_server.domain} answers, but is no room service"
            in (status["lastError"]["message"])
        )
        assert "MUC_ROOM" in status["lastError"]["hint"]
        assert status["phase"] == "failed"


async def test_a_banned_account_is_told_and_not_let_in(
    real_server: XmppServer, tmp_path: Path
) -> None:
    settings = real_server.environment()
    room = settings["MUC_ROOM"]
    async with Witness(real_server, real_server.witness, room, "Owner") as owner:
        await owner.muc.set_affiliation(room, "outcast", jid=real_server.bot.jid)
        async with BridgeProcess(tmp_path, settings) as bridge:
            status = await bridge.until(lambda it: it["phase"] == "failed")
            assert status["lastError"]["condition"] == "forbidden"
            assert "banned" in status["lastError"]["message"]
            assert f"again at {status['nextAttemptAt']} by" in status["lastError"]["retry"]


async def test_a_taken_nickname_is_met_with_another_one(
    xmpp_server: XmppServer, tmp_path: Path
) -> None:
    settings = xmpp_server.environment(MCP_BOT_NICKNAME="Popular")
    async with (
        Witness(xmpp_server, xmpp_server.witness, settings["MUC_ROOM"], "Popular") as witness,
        BridgeProcess(tmp_path, settings) as bridge,
    ):
        assert (await bridge.joined())["nickname"] == "Popular-2"
        await witness.joined("Popular-2")


async def test_a_destroyed_room_is_told_and_its_new_venue_shown(
    real_server: XmppServer, tmp_path: Path
) -> None:
    async with in_company(real_server, tmp_path) as (bridge, owner):
        room = owner.room
        await owner.muc.destroy(room, reason="moved", altroom=f"new@{real_server.muc}")
        status = await bridge.until(lambda it: not it["connected"])
        assert (status["phase"], status["lastError"]["condition"]) == ("failed", "gone")
        assert "moved" in status["lastError"]["message"]
        assert f'"new@{real_server.muc}"' in status["lastError"]["message"]
        assert "new@" not in status["lastError"]["hint"]
        assert f"again at {status['nextAttemptAt']} by" in status["lastError"]["retry"]
        assert status["room"] == room


async def test_a_name_that_does_not_resolve_is_told(tmp_path: Path) -> None:
    settings = NOWHERE | {"XMPP_SERVICE": f"xmpp://{'x' * 64}.invalid"}
    async with BridgeProcess(tmp_path, settings) as bridge:
        status = await bridge.until(lambda it: it.get("lastError"))
        assert status["lastError"]["condition"] == "remote-server-not-found"
        assert "XMPP_SERVICE" in status["lastError"]["hint"]


@pytest.mark.parametrize("ending", ["stop", "kill"])
async def test_a_server_that_comes_back_finds_the_bridge_in_the_room_again(
    ending: str, server_process: ServerProcess, tmp_path: Path
) -> None:
    server = server_process.server
    settings = server.environment() | noise.at_start(tmp_path / "site", noise.COMES_BACK_SOON)
    async with BridgeProcess(tmp_path / "home", settings) as bridge:
        await bridge.joined()
        await asyncio.to_thread(getattr(server_process, ending))
        status = await bridge.until(lambda it: it.get("lastError") and not it["connected"])
        assert status["phase"] != "failed"
        assert status["lastError"]["hint"]
        with pytest.raises(RpcFailedError) as refusal:
            await bridge.bare("xmppSend", message="hello")
        assert refusal.value.message.startswith("Not in the room")
        await asyncio.to_thread(server_process.start)
        status = await bridge.joined()
        assert "attempt" not in status
        async with Witness(server, server.witness, settings["MUC_ROOM"], "Wilma") as witness:
            await bridge.bare("xmppSend", message="back again")
            await witness.heard("back again")


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
