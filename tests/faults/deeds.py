"""What a test does to a participant that is in a room, or about to come into it."""

from dataclasses import dataclass, field

from slixmpp.xmlstream.handler import Callback
from slixmpp.xmlstream.matcher import StanzaPath
from slixmpp.xmlstream.stanzabase import StanzaBase

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

    room: int | None = None
    """The one that meets its fate; None where it is the connection that does."""

    eyes: Eyes = field(init=False)
    """Of the participant, once there is one."""

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


async def kick(play: Play) -> None:
    await play.wilma.kick(NICKNAME, "out with you")


async def lock(play: Play) -> None:
    await configure(play.wilma, passwordprotectedroom="1", roomsecret=ROOM_PASSWORD)
