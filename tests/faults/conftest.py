"""The scene that most of the tests on real servers are played in."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from tests.faults.deeds import Guest
from tests.faults.scene import Scene, scene
from tests.faults.scripted_server import DOMAIN
from tests.servers.certificates import Authority, Certificate
from tests.servers.process import ServerProcess


@pytest.fixture
async def stage(server_process: ServerProcess, authority: Authority) -> AsyncIterator[Scene]:
    """A scene with a relay that sees bytes."""
    async with scene(server_process, authority) as stage:
        yield stage


@pytest.fixture
def certificate(authority: Authority) -> Certificate:
    """One that the authority vouches for, and that names the domain and no host."""
    return authority.issue(DOMAIN)


@pytest.fixture
async def guests(stage: Scene) -> AsyncIterator[list[Guest]]:
    """Who owns the rooms of the scene."""
    async with AsyncExitStack() as open_:
        yield [
            Guest(await open_.enter_async_context(stage.witness(room=room)))
            for room in stage.settings.rooms
        ]
