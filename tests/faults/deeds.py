"""What a test does to a participant that is in a room, or about to come into it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias

from tests.faults.relay import Way
from tests.faults.scene import NICKNAME, Eyes, Scene, configure
from tests.servers.witness import Witness

ROOM_PASSWORD = "open-sesame"


class Actors(Protocol):
    """Who takes part."""

    @property
    def scene(self) -> Scene:
        """With the relay, and the settings of whoever comes."""

    @property
    def wilma(self) -> Witness:
        """Owns the room."""

    @property
    def us(self) -> Eyes:
        """What we see of the room."""


Before: TypeAlias = Callable[[Scene, Witness], Awaitable[None]]
"""Done before we come; gets the owner of the room."""


async def heal(play: Actors) -> None:
    await play.scene.relay.heal()


async def kick(play: Actors) -> None:
    await play.wilma.kick(NICKNAME, "out with you")


async def ban(play: Actors) -> None:
    await ban_before(play.scene, play.wilma)


async def ban_before(stage: Scene, wilma: Witness) -> None:
    bot = stage.server.bot.jid
    await wilma.muc.set_affiliation(wilma.room, "outcast", jid=bot, reason="never again")


async def close(play: Actors) -> None:
    await close_before(play.scene, play.wilma)


async def close_before(stage: Scene, wilma: Witness) -> None:
    """Let none but members in, and be, from now on."""
    del stage
    await configure(wilma, membersonly="1")


async def lock_before(stage: Scene, wilma: Witness) -> None:
    del stage
    await configure(wilma, passwordprotectedroom="1", roomsecret=ROOM_PASSWORD)


async def destroy(play: Actors) -> None:
    await play.wilma.muc.destroy(play.wilma.room, reason="too old")


async def drop(play: Actors) -> None:
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
