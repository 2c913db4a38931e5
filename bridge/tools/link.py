"""What the tools see of the room: enough for them, and little enough for a test to play."""

from typing import Protocol, runtime_checkable

from bridge.xmpp.journal import Journal
from bridge.xmpp.participant import Reflection
from bridge.xmpp.room import RoomStatus


@runtime_checkable
class RoomLink(Protocol):
    """A participant, as `bridge.xmpp.participant.Participant` is one."""

    @property
    def room_jid(self) -> str:
        """The room's bare JID as configured; empty while unconfigured."""

    @property
    def journal(self) -> Journal:
        """Everything that happened."""

    def status(self) -> RoomStatus:
        """Return how things stand."""

    async def say(self, body: str, timeout_seconds: float) -> Reflection:
        """Say `body` in the room, and return the room's reflection of it."""
