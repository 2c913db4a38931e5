import asyncio
from pathlib import Path

import pytest

from bridge.settings.table import Settings
from bridge.settings.values import Secret
from bridge.xmpp.link.tls import make_context
from bridge.xmpp.model.faults import ConnectionFailedError, Place
from tests.support.racing import put

SECONDS = 30.0


@pytest.mark.parametrize("kind", ["FIFO", "directory", "link to nothing", "endless device"])
async def test_what_replaces_the_anchors_is_not_waited_for(kind: str, tmp_path: Path) -> None:
    """They are read anew for each attempt, long after the settings were looked at."""
    anchors = tmp_path / "anchors.pem"
    put(anchors, kind, tmp_path / "victim")
    settings = Settings(
        username="bot",
        domain="localhost",
        password=Secret("secret"),
        rooms=("room@conference.localhost",),
        tls_ca_file=anchors,
    )
    with pytest.raises(ConnectionFailedError) as failed:
        async with asyncio.timeout(SECONDS):
            await asyncio.to_thread(make_context, settings, Place.of(settings))
    assert str(anchors) in failed.value.fault.message
