"""Settings that lead to the scripted server, and a participant with them."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path

from bridge.settings.table import Settings
from bridge.settings.values import Secret, Service
from bridge.xmpp.muc.participant import Participant
from bridge.xmpp.queries.keepalive import TIMING, Timing
from tests.faults.scene import Eyes, at_work
from tests.faults.scripted_server import DOMAIN, NICKNAME, PASSWORD, ROOM, USERNAME, ScriptedServer


def settings_for(server: ScriptedServer, *rooms: str, trusted: Path | None = None) -> Settings:
    """Without TLS, or by TLS alone where an authority is `trusted`."""
    return Settings(
        username=USERNAME,
        domain=DOMAIN,
        password=Secret(PASSWORD),
        rooms=rooms or (ROOM,),
        nickname=NICKNAME,
        service=Service("xmpps" if server.direct_tls else "xmpp", server.host, server.port),
        tls_ca_file=trusted,
        allow_plaintext=trusted is None,
    )


def participant_at(
    server: ScriptedServer,
    *rooms: str,
    timing: Timing = TIMING,
    settings: Settings | None = None,
    trusted: Path | None = None,
) -> AbstractAsyncContextManager[Eyes]:
    """A participant at work on it; it comes back soon."""
    return at_work(
        Participant(settings or settings_for(server, *rooms, trusted=trusted), timing=timing)
    )
