"""Settings that lead to the scripted server, and a participant with them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from bridge.settings.table import Settings
from bridge.settings.values import Secret, Service
from bridge.xmpp.model import backoff
from bridge.xmpp.muc.participant import Participant
from bridge.xmpp.queries.keepalive import TIMING, Timing
from tests.e2e.noise import SOON_SECONDS
from tests.faults.scene import Eyes
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


@asynccontextmanager
async def participant_at(
    server: ScriptedServer,
    *rooms: str,
    timing: Timing = TIMING,
    settings: Settings | None = None,
) -> AsyncIterator[Eyes]:
    """A participant at work on it, seen from its first event on; it comes back soon."""
    participant = Participant(settings or settings_for(server, *rooms), timing=timing)
    eyes = Eyes(participant)
    eyes.rooms = [Eyes(participant, one.name) for one in participant.memberships]
    shortened = pytest.MonkeyPatch()
    shortened.setattr(backoff, "FIRST_SECONDS", SOON_SECONDS)
    running = asyncio.create_task(participant.run())
    try:
        yield eyes
    finally:
        shortened.undo()
        participant.leave()
        running.cancel()
        await asyncio.wait((running,))
