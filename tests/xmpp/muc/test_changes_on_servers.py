"""What a participant sees of changes in the room, on real servers."""

from collections.abc import AsyncIterator

import pytest

from bridge.xmpp.model.events import RoomConfigured
from tests.faults.scene import Scene, configure, scene
from tests.servers.certificates import Authority
from tests.servers.process import ServerProcess


@pytest.fixture
async def stage(server_process: ServerProcess, authority: Authority) -> AsyncIterator[Scene]:
    async with scene(server_process, authority) as stage:
        yield stage


async def test_a_change_of_the_configuration_says_what_changed_from_what(stage: Scene) -> None:
    async with stage.witness() as wilma:
        await configure(wilma, moderatedroom="0")
        async with stage.participant() as eyes:
            await eyes.joined()
            await configure(wilma, moderatedroom="1", roomname="Lab")
            record = await eyes.see(lambda event: isinstance(event, RoomConfigured))
            assert isinstance(record.event, RoomConfigured)
            assert 104 in record.event.codes
            assert "moderated: true, before false" in record.event.changed
            titles = [one for one in record.event.changed if one.startswith('title: "Lab", before')]
            assert len(titles) == 1
