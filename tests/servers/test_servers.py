import socket
import ssl
from pathlib import Path

import pytest

from tests.servers.certificates import Authority, Certificate
from tests.servers.endpoint import Endpoint
from tests.servers.process import DOMAIN, MUC, ServerProcess
from tests.servers.prosody import running_prosody
from tests.servers.server import XmppServer
from tests.servers.witness import RoomError, Witness


async def test_a_witness_hears_the_rooms_reflection_of_what_it_says(endpoint: Endpoint) -> None:
    server = endpoint.server
    async with Witness(server, server.witness, server.room(), "w", endpoint.transport) as witness:
        said = witness.say("hello, nobody")
        heard = await witness.heard("hello, nobody")
    assert (heard.nick, heard.id) == ("w", said)


async def test_two_witnesses_see_and_hear_each_other(endpoint: Endpoint) -> None:
    server, room = endpoint.server, endpoint.server.room()
    async with Witness(server, server.witness, room, "first", endpoint.transport) as first:
        async with Witness(server, server.bot, room, "second", endpoint.transport) as second:
            await first.joined("second")
            await second.joined("first")
            first.say("from the first")
            second.say("from the second")
            assert (await second.heard("from the first")).nick == "first"
            assert (await first.heard(lambda it: it.nick == "second")).body == "from the second"
        departure = await first.left("second")
    assert departure.codes.isdisjoint({301, 307})


async def test_the_maker_of_a_room_can_kick(xmpp_server: XmppServer) -> None:
    server, room = xmpp_server, xmpp_server.room()
    async with (
        Witness(server, server.witness, room, "owner") as owner,
        Witness(server, server.bot, room, "guest") as guest,
    ):
        await owner.joined("guest")
        await owner.kick("guest", "out with you")
        for seen in (await owner.left("guest"), await guest.left("guest")):
            assert 307 in seen.codes
            assert seen.reason == "out with you"
        assert "guest" not in owner.occupants


async def test_a_taken_nickname_is_refused_with_its_condition(xmpp_server: XmppServer) -> None:
    server, room = xmpp_server, xmpp_server.room()
    async with Witness(server, server.witness, room, "popular"):
        with pytest.raises(RoomError) as refusal:
            async with Witness(server, server.bot, room, "popular"):
                pass
    assert refusal.value.condition == "conflict"


async def test_the_real_servers_speak_tls_1_3(endpoint: Endpoint) -> None:
    server = endpoint.server
    async with Witness(server, server.witness, server.room(), "w", endpoint.transport) as witness:
        expected = None if endpoint.transport == "plaintext" else "TLSv1.3"
        assert witness.tls_version == expected


async def test_a_killed_server_comes_back_at_its_port_with_its_accounts(
    server_process: ServerProcess,
) -> None:
    server = server_process.server
    async with Witness(server, server.witness, server.room(), "w") as witness:
        server_process.kill()
        with pytest.raises(RoomError) as cut:
            await witness.heard("nothing more")
        assert cut.value.condition == "disconnected"
    assert not server_process.running
    server_process.start()
    for account in (server.bot, server.witness, server.robot):
        async with Witness(server, account, server.room(), "again") as witness:
            witness.say("back")
            await witness.heard("back")


def test_a_stopped_server_comes_back(server_process: ServerProcess) -> None:
    server_process.stop()
    assert not server_process.running
    server_process.restart()
    assert server_process.running


def _flawed(flaw: str, trusted: Authority, other: Authority) -> Certificate:
    match flaw:
        case "expired":
            return trusted.issue_expired(DOMAIN, MUC)
        case "wrong name":
            return trusted.issue("elsewhere.example")
        case _:
            return other.issue(DOMAIN, MUC)


@pytest.mark.usefixtures("prosody")  # for its verdict where Prosody is missing
@pytest.mark.parametrize("flaw", ["expired", "wrong name", "another authority"])
def test_a_server_can_present_a_certificate_that_a_client_must_refuse(
    flaw: str, authority: Authority, tmp_path: Path
) -> None:
    certificate = _flawed(flaw, authority, Authority(tmp_path / "other"))
    with running_prosody(tmp_path, authority, certificate) as process:
        server = process.server
        trusting = ssl.create_default_context(cafile=server.ca_file)
        address = (server.host, server.port("direct"))
        with (
            socket.create_connection(address) as connection,
            pytest.raises(ssl.SSLCertVerificationError),
        ):
            trusting.wrap_socket(connection, server_hostname=server.domain)


def test_the_settings_reach_the_server_the_chosen_way(endpoint: Endpoint) -> None:
    server = endpoint.server
    settings = endpoint.environment(MUC_PASSWORD="open sesame", XMPP_USERNAME=None)
    scheme = "xmpps" if endpoint.transport == "direct" else "xmpp"
    assert settings["XMPP_SERVICE"] == f"{scheme}://127.0.0.1:{server.port(endpoint.transport)}"
    assert settings["MUC_PASSWORD"] == "open sesame"
    assert "XMPP_USERNAME" not in settings
    assert settings["MUC_ROOM"] != endpoint.environment()["MUC_ROOM"]
