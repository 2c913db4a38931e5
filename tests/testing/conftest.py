"""Servers as users of the plugin have them, and the first actor there."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bridge.testing.actor import ActorProxy
from bridge.testing.server import FixtureServer
from tests.servers.server import XmppServer
from tests.testing.servers import server_of


@pytest.fixture
def server(xmpp_server: XmppServer, tmp_path: Path) -> Iterator[FixtureServer]:
    with server_of(xmpp_server, tmp_path) as running:
        yield running


@pytest.fixture
def alice(server: FixtureServer) -> ActorProxy:
    """The first in the room, who owns it."""
    return server.actor_sync("Alice")


@pytest.fixture
def bob(server: FixtureServer, alice: ActorProxy) -> ActorProxy:
    assert alice.room == server.room
    return server.actor_sync("Bob")
