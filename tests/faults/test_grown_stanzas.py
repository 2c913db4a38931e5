"""A stanza that a server makes longer than it was costs itself alone."""

from collections.abc import AsyncIterator

import pytest

from tests.faults.scene import Scene, scene
from tests.faults.test_odd_stanzas import Writer, connections, damaged, message
from tests.servers.certificates import Authority
from tests.servers.process import ServerProcess

NAMESPACE = "u" * 1_000
"""The servers write it again with each of the elements in it, each of which was six bytes long."""


@pytest.fixture
async def stage(server_process: ServerProcess, authority: Authority) -> AsyncIterator[Scene]:
    async with scene(server_process, authority) as stage:
        yield stage


async def test_a_stanza_that_the_server_makes_longer_does_not_cut_the_stream(stage: Scene) -> None:
    grown = f"<x xmlns='urn:x' xmlns:p='{NAMESPACE}'>{'<p:a/>' * 20_000}</x>"
    async with stage.participant() as eyes:
        await eyes.joined()
        eve = await Writer(stage, "Eve").enter()
        try:
            eve.write(message(stage.room, grown))
            eve.write(message(stage.room, "").replace(">odd<", ">still there<"))
            await eyes.hears("still there")
            assert connections(eyes) == 1
            assert {one.sender for one in damaged(eyes)} == {"Eve"}
        finally:
            eve.leave()
            eve.close()
