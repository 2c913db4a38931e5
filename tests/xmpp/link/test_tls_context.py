import asyncio
import ssl
from pathlib import Path

import pytest

from bridge.settings.table import Settings
from bridge.settings.values import Secret
from bridge.xmpp.link.tls import make_context
from bridge.xmpp.model.faults import ConnectionFailedError, Place
from tests.racing import put
from tests.servers.certificates import Authority

SECONDS = 10.0


def _settings(anchors: Path | None = None, *, verify: bool = True) -> Settings:
    return Settings(
        username="bot",
        domain="localhost",
        password=Secret("secret"),
        rooms=("room@conference.localhost",),
        tls_ca_file=anchors,
        tls_verify=verify,
    )


async def _making(settings: Settings) -> ssl.SSLContext:
    return await asyncio.to_thread(make_context, settings, Place.of(settings))


async def test_anchors_of_the_settings_are_trusted_beside_others(authority: Authority) -> None:
    system = await _making(_settings())
    context = await _making(_settings(authority.ca_file))
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert context.cert_store_stats()["x509_ca"] == system.cert_store_stats()["x509_ca"] + 1


@pytest.mark.parametrize("kind", ["FIFO", "directory", "link to nothing", "endless device"])
async def test_what_replaces_the_anchors_is_not_waited_for(kind: str, tmp_path: Path) -> None:
    """They are read anew for each attempt, long after the settings were looked at."""
    anchors = tmp_path / "anchors.pem"
    put(anchors, kind, tmp_path / "victim")
    with pytest.raises(ConnectionFailedError) as failed:
        async with asyncio.timeout(SECONDS):
            await _making(_settings(anchors))
    assert str(anchors) in failed.value.fault.message
