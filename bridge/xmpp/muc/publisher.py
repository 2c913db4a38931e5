"""Records what happens: append, fold, notify, in this order."""

import time
from collections.abc import Callable
from functools import partial

from bridge.xmpp.model.events import Event
from bridge.xmpp.model.journal import Journal, Record
from bridge.xmpp.model.room import Room


class Publisher:
    """Takes the events of a connection and of the rooms on it.

    The journal numbers and stamps an event, the state of its room folds it, and the listeners are
    called with its record. The publishing caller gets the record back.
    """

    def __init__(self, journal: Journal, clock: Callable[[], float] = time.time) -> None:
        self._journal = journal
        self._clock = clock
        self.rooms: dict[str, Room] = {}
        """The state of each room, by the room's name as configured."""
        self.stanza = 0
        """The number in the trace of the stanza that is being read; 0 while none is."""
        self._listeners: list[Callable[[Record], None]] = []

    def publish(self, event: Event, room: str = "") -> Record:
        """Record `event`. Without a room it is the connection's, and concerns all rooms."""
        record = self._journal.append(event, self._clock(), room, self.stanza)
        if room in self.rooms:
            self.rooms[room].apply(record)
        elif not room:
            for state in self.rooms.values():
                state.apply(record)
        for listener in tuple(self._listeners):  # one that is called may stop listening
            listener(record)
        return record

    def listen(self, listener: Callable[[Record], None]) -> Callable[[], None]:
        """Call `listener` with each record from now on, in order; return what ends that."""
        self._listeners.append(listener)
        return partial(self._listeners.remove, listener)
