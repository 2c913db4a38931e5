"""What a test does to a participant that is in a room, or about to come into it."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from slixmpp.xmlstream.handler import Callback
from slixmpp.xmlstream.matcher import StanzaPath
from slixmpp.xmlstream.stanzabase import StanzaBase

from tests.faults.relay import Way
from tests.faults.scene import NICKNAME, Eyes, Scene, configure
from tests.servers.witness import Witness

ROOM_PASSWORD = "open-sesame"


class Guest:
    """Owns a room, and sees our comings and goings in it."""

    def __init__(self, witness: Witness) -> None:
        self.witness = witness
        self.joins = self.leaves = 0
        self._inside = False
        witness.client.register_handler(Callback("us", StanzaPath("presence"), self._see))

    def _see(self, presence: StanzaBase) -> None:
        if presence["from"] != f"{self.witness.room}/{NICKNAME}":
            return
        inside = presence.xml.get("type") is None
        self.joins += inside and not self._inside
        self.leaves += not inside
        self._inside = inside


@dataclass
class Play:
    """A scene with its actors on the stage."""

    scene: Scene
    guests: list[Guest]
    """Each owns one of the rooms."""

    eyes: Eyes
    room: int | None = None
    """The one that meets its fate; None where it is the connection that does."""

    @property
    def wilma(self) -> Witness:
        """Who owns that room."""
        return self.guests[self.room or 0].witness

    @property
    def us(self) -> Eyes:
        """What we see of it."""
        return self.eyes if self.room is None else self.eyes.rooms[self.room]

    @property
    def others(self) -> list[tuple[Eyes, Guest]]:
        """What we see of the other rooms, and who owns them."""
        pairs = zip(self.eyes.rooms, self.guests, strict=True)
        return [pair for number, pair in enumerate(pairs) if number != (self.room or 0)]


Before: TypeAlias = Callable[[Scene, Witness], Awaitable[None]]
"""Done before we come; gets the owner of the room."""


async def heal(play: Play) -> None:
    await play.scene.relay.heal()


async def kick(play: Play) -> None:
    await play.wilma.kick(NICKNAME, "out with you")


async def ban(play: Play) -> None:
    await ban_before(play.scene, play.wilma)


async def ban_before(stage: Scene, wilma: Witness) -> None:
    bot = stage.server.bot.jid
    await wilma.muc.set_affiliation(wilma.room, "outcast", jid=bot, reason="never again")


async def close(play: Play) -> None:
    await close_before(play.scene, play.wilma)


async def close_before(stage: Scene, wilma: Witness) -> None:
    """Let none but members in, and be, from now on."""
    del stage
    await configure(wilma, membersonly="1")


async def lock_before(stage: Scene, wilma: Witness) -> None:
    del stage
    await configure(wilma, passwordprotectedroom="1", roomsecret=ROOM_PASSWORD)


async def destroy(play: Play) -> None:
    await play.wilma.muc.destroy(play.wilma.room, reason="too old")


async def drop(play: Play) -> None:
    """Make the room believe that our client bounces what it is sent."""
    relay = play.scene.relay
    relay.forge(Way.TO_SERVER, b'type="groupchat"', b'type="error"')
    relay.forge(
        Way.TO_SERVER,
        b"<body>bounce</body>",
        b"<error type='cancel'>"
        b"<recipient-unavailable xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error>",
    )
    saying = asyncio.create_task(play.us.membership.say("bounce", 5))
    await play.wilma.left(NICKNAME)
    relay.forge(Way.TO_SERVER, b'type="error"', b'type="groupchat"')
    await asyncio.wait((saying,))
    assert saying.exception() is not None
