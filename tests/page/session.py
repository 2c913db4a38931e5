"""A session as people had it: Prosody, a bot that is put out, and `xmpp-bridge record` beside it.

python -m tests.page.session    plays it, which takes two minutes, and writes incident.json
"""

import asyncio
import json
import signal
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from bridge.recording.recorded import Reader
from bridge.xmpp.model.filter import EventFilter
from tests.e2e.watching import Watching, run
from tests.servers.certificates import Authority
from tests.servers.prosody import running_prosody
from tests.servers.server import XmppServer
from tests.servers.witness import Witness

INCIDENT = Path(__file__).with_name("incident.json")
ROOM = "ops@conference.localhost"
ANSWERS = {
    "!status api": "api: 3 of 3 instances answer",
    "!status database": "database: 1 of 2 instances answers",
    "!deploy api": "api is deployed",
}
"""What the bot says, and to which commands."""
FLOOD = "database: db-2 does not answer"


async def answer(robot: Witness) -> None:
    """Answer commands, as the bot does as long as it runs."""
    while True:
        asked = await robot.heard(lambda it: it.body in ANSWERS, seconds=600)
        await asyncio.sleep(0.2)
        robot.say(ANSWERS[asked.body])


async def incident(server: XmppServer, home: Path, settings: dict[str, str]) -> None:
    """The bot answers, floods the room, and is kicked; two questions then get no answer."""
    async with Witness(server, server.witness, ROOM, "Alice") as alice:
        alice.say("Good morning, I deploy at nine")
        async with (
            Witness(server, server.witness, ROOM, "Bob") as bob,
            Witness(server, server.robot, ROOM, "Robot") as robot,
            Watching(home, settings, command="record") as recording,
        ):
            await alice.joined("McpDebug-record")
            robots = asyncio.create_task(answer(robot))
            for asked, pause in zip(ANSWERS, (4, 6, 5), strict=True):
                bob.say(asked)
                await robot.heard(ANSWERS[asked])
                await asyncio.sleep(pause)
            await run(home, settings, "check")
            await run(home, settings, "diagnose", "Robot")
            for _ in range(12):
                robot.say(FLOOD)
                await asyncio.sleep(0.7)
            alice.say("Robot, that is enough")
            await asyncio.sleep(2)
            await alice.kick("Robot", "flooding")
            robots.cancel()
            await asyncio.sleep(5)
            bob.say("!status api")
            await asyncio.sleep(75)
            bob.say("!deploy api")
            await asyncio.sleep(12)
            alice.say("Did the robot deploy it? It says nothing")
            await alice.heard("Did the robot deploy it? It says nothing")
            await asyncio.sleep(2)
            recording.signal(signal.SIGTERM)
            await recording.ended()


Play = Callable[[XmppServer, Path, dict[str, str]], Awaitable[None]]


async def recorded(path: Path, account: str, *rooms: str) -> list[dict[str, Any]]:
    """Return the rows of a store in their order, the stanzas first."""
    reader, rows = Reader(path, account), list[dict[str, Any]]()
    for stanzas in (True, False):
        async for row in await reader.walk(rooms, EventFilter(), stanzas=stanzas):
            observer = row.observer
            if not row.event.get("xml", "<message").startswith(("<message", "<presence")):
                continue  # nothing on the page is about it
            rows.append(
                {
                    "at": row.at,
                    "room": row.room,
                    "event": row.event,
                    "observer": [observer.account, observer.nickname, observer.run],
                    "shared": row.shared,
                }
            )
    return rows


def play(session: Play, home: Path, rooms: str = ROOM) -> list[dict[str, Any]]:
    """Play a session on a Prosody of its own, and return what was recorded."""
    with running_prosody(home / "prosody", Authority(home)) as process:
        server = process.server
        settings = server.environment(MUC_ROOM=rooms, BRIDGE_STORE_STANZAS="1", LANG="C")
        path = home / ".local/state/xmpp-bridge/rooms.db"

        async def played() -> list[dict[str, Any]]:
            await session(server, home, settings)
            return await recorded(path, server.bot.jid, *rooms.split(","))

        return asyncio.run(played())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        lines = map(json.dumps, play(incident, Path(folder)))
        INCIDENT.write_text("[\n" + ",\n".join(lines) + "\n]\n", "utf-8")
