"""Selects the events that `watch` and `log` show."""

from dataclasses import dataclass

from bridge.xmpp.model.events import KINDS
from bridge.xmpp.model.filter import EventFilter
from bridge.xmpp.model.journal import Record

IN_ROOMS = frozenset(KINDS) - {"connection"}
"""The kinds of events that happen in a room, and not to our connection."""


@dataclass(frozen=True)
class Selection:
    """Picks events of some rooms: an event that any of its filters matches.

    By default it picks every event of every room, except messages without text, such as a chat
    state.
    """

    rooms: frozenset[str] = frozenset()
    """Bare JIDs as configured. If this is empty, events of all rooms and of the connection
    match."""
    filters: tuple[EventFilter, ...] = (EventFilter(IN_ROOMS, silent=False),)

    def picks(self, record: Record) -> bool:
        """Whether the selection picks `record`."""
        in_room = not self.rooms or record.room in self.rooms
        return in_room and any(each.matches(record.event) for each in self.filters)
