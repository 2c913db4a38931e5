"""Settings that lead to the scripted server, and a participant with them."""

from contextlib import AbstractAsyncContextManager

from bridge.settings.table import Settings
from bridge.settings.values import Secret, Service
from bridge.xmpp.muc.participant import Participant
from bridge.xmpp.queries.keepalive import TIMING, Timing
from tests.faults.scene import Eyes, at_work
from tests.faults.scripted_server import DOMAIN, NICKNAME, PASSWORD, ROOM, USERNAME, ScriptedServer


def settings_for(server: ScriptedServer, *rooms: str) -> Settings:
    return Settings(
        username=USERNAME,
        domain=DOMAIN,
        password=Secret(PASSWORD),
        rooms=rooms or (ROOM,),
        nickname=NICKNAME,
        service=Service("xmpp", "127.0.0.1", server.port),
        allow_plaintext=True,
    )


def participant_at(
    server: ScriptedServer, *rooms: str, timing: Timing = TIMING, settings: Settings | None = None
) -> AbstractAsyncContextManager[Eyes]:
    """A participant at work on it; it comes back soon."""
    return at_work(Participant(settings or settings_for(server, *rooms), timing=timing))
