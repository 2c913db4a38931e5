"""A room service that ends while its server stays: users hear of that, and not of missing voice."""

import asyncio
from collections.abc import Iterator

import pytest

from bridge.mcp.errors import ToolError
from bridge.tools.diagnose import xmpp_diagnose
from bridge.tools.link import RoomLink
from bridge.tools.query import xmpp_info
from bridge.wire.meaning import UNREACHED
from bridge.xmpp.model.faults import BouncedError, Retry
from bridge.xmpp.queries.iq_errors import Target, TargetKind
from bridge.xmpp.queries.ping import Verdict, ping
from tests.faults.scene import scene
from tests.servers.certificates import Authority
from tests.servers.ejabberd import running_ending_ejabberd
from tests.servers.process import ServerProcess
from tests.servers.prosody import running_ending_prosody

KNOWN_SECONDS = 60.0
"""Users are promised to know within this time."""


@pytest.fixture(params=["prosody", "ejabberd"])
def ending_process(
    request: pytest.FixtureRequest, authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    """A server of this test's own, whose room service can end."""
    request.getfixturevalue(f"{request.param}_process")  # skips where it is not installed
    running = {"prosody": running_ending_prosody, "ejabberd": running_ending_ejabberd}
    with running[request.param](tmp_path_factory.mktemp("ending"), authority) as process:
        yield process


@pytest.mark.servers
async def test_a_room_service_that_ends_is_named_by_status_and_verdict(
    ending_process: ServerProcess, authority: Authority
) -> None:
    service = ending_process.server.muc
    async with scene(ending_process, authority) as stage, stage.participant() as eyes:
        await eyes.joined()
        await eyes.membership.say("before", 30)
        connection, occupant = eyes.membership.connection, eyes.membership.occupant
        await ending_process.end_rooms()
        async with asyncio.timeout(KNOWN_SECONDS):
            with pytest.raises(BouncedError) as bounced:
                await eyes.membership.say("after", 10)
            fault, _, _ = await eyes.fault(KNOWN_SECONDS)
            again, _, _ = await eyes.fault(KNOWN_SECONDS)
        assert bounced.value.fault.condition in UNREACHED
        assert service in bounced.value.fault.message
        assert "voice" not in bounced.value.fault.hint
        # What the next attempt to enter says is no other cause, and no reason to wait long.
        for known in (fault, again):
            assert f"{service}, the service of the room" in known.message
            assert known.retry is Retry.SOON
        status = eyes.status()
        assert not status.connected
        assert status.last_error is not None
        assert service in status.last_error.fault.message
        link = RoomLink(eyes.participant)
        for result in await asyncio.gather(
            xmpp_diagnose(link, nickname="Wilma"), xmpp_diagnose(link)
        ):
            assert f"{service}, the service of the room" in str(result["verdict"])
        with pytest.raises(ToolError, match="service of the room cannot be reached"):
            await xmpp_info(link, target="room")
        pong = await ping(connection, Target(TargetKind.SELF, occupant, occupant), 5)
        # ejabberd looks for another server of that name, which a self-ping says to be undecided.
        on_prosody = ending_process.server.name == "prosody"
        assert pong.in_room is (Verdict.GONE if on_prosody else Verdict.UNDECIDED)
