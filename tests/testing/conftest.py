"""Servers as users of the plugin have them, and the first actors there."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bridge.testing.actor import ActorProxy
from bridge.testing.server import FixtureServer
from tests.servers.server import XmppServer
from tests.testing.servers import env_file


@pytest.fixture(scope="module")
def own_sandbox() -> Iterator[FixtureServer]:
    with FixtureServer() as running:
        yield running


@pytest.fixture
def sandboxed(own_sandbox: FixtureServer) -> Iterator[FixtureServer]:
    """The sandbox of the plugin's own, with a room for this test."""
    yield own_sandbox
    own_sandbox.end_test()


@pytest.fixture
def server(
    xmpp_server: XmppServer, sandboxed: FixtureServer, tmp_path: Path
) -> Iterator[FixtureServer]:
    if xmpp_server.name == "sandbox":
        yield sandboxed
    else:
        with FixtureServer(env_file(xmpp_server, tmp_path)) as running:
            yield running


@pytest.fixture
def alice(server: FixtureServer) -> ActorProxy:
    """The first in the room, who owns it."""
    return server.actor_sync("Alice")


@pytest.fixture
def bob(server: FixtureServer, alice: ActorProxy) -> ActorProxy:
    assert alice.room == server.room
    return server.actor_sync("Bob")
