"""Settings that lead to the scripted server."""

from bridge.config import Secret, Settings
from bridge.values import Service
from tests.faults.scripted_server import DOMAIN, NICKNAME, PASSWORD, ROOM, USERNAME, ScriptedServer


def settings_for(server: ScriptedServer) -> Settings:
    return Settings(
        username=USERNAME,
        domain=DOMAIN,
        password=Secret(PASSWORD),
        room=ROOM,
        nickname=NICKNAME,
        service=Service("xmpp", "127.0.0.1", server.port),
        allow_plaintext=True,
    )
