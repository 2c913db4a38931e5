"""What the tools see of the room: enough for them, and little enough for a test to play."""

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from bridge.xmpp.journal import Journal
    from bridge.xmpp.participant import Reflection
    from bridge.xmpp.room import RoomStatus


class InRoom(Protocol):
    """A participant, as `bridge.xmpp.participant.Participant` is one."""

    @property
    def room_jid(self) -> str:
        """The room's bare JID as configured; empty while unconfigured."""

    @property
    def journal(self) -> "Journal":
        """Everything that happened."""

    def status(self) -> "RoomStatus":
        """Return how things stand."""

    async def say(self, body: str, timeout_seconds: float) -> "Reflection":
        """Say `body` in the room, and return the room's reflection of it."""


class RoomLink:
    """The way from a tool to the room.

    `find` is called when a tool first asks: the XMPP wing takes a quarter of the time that an
    agent gives a server before its first turn, so it is not loaded for listing tools.
    """

    def __init__(self, find: Callable[[], InRoom]) -> None:
        self._find = find

    @cached_property
    def participant(self) -> InRoom:
        """Who is, or will be, in the room for us."""
        return self._find()
