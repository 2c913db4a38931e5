"""Records events: appends each to the journal, updates the room, and calls the listeners.

Listeners may wait for the next record, or take the records of a turn of the event loop together.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic, Self, TypeVar

from bridge.store.clock import Instant
from bridge.xmpp.model.events import Event
from bridge.xmpp.model.journal import Journal, Record
from bridge.xmpp.model.room import Room

Item = TypeVar("Item")

log = logging.getLogger(__name__)


class Publisher:
    """Takes the events of a connection and of the rooms on it.

    For each event:

    - The journal gives it a number and a time.
    - The state of its room is updated.
    - The listeners are called with its record.

    The caller of `publish` gets the record too.
    """

    def __init__(self, journal: Journal, clock: Callable[[], float] = Instant.now) -> None:
        self._journal = journal
        self._clock = clock
        self.rooms: dict[str, Room] = {}
        """The state of each room, by the room's name as configured."""
        self.stanza = 0
        """The trace's number for the stanza that is being read; 0 while none is."""
        self._listeners: list[Callable[[Record], None]] = []

    def publish(self, event: Event, room: str = "", *, earlier: bool = False) -> Record:
        """Record `event`; without a room it is an event of the connection, and concerns all rooms.

        `earlier` says whether the room told us of it because we entered.
        """
        record = self._journal.append(event, self._clock(), room, self.stanza, earlier=earlier)
        if room in self.rooms:
            self.rooms[room].apply(record)
        elif not room:
            for state in self.rooms.values():
                state.apply(record)
        for listener in tuple(self._listeners):  # a copy: listeners may remove themselves
            listener(record)
        return record

    def listen(self, listener: Callable[[Record], None]) -> Callable[[], None]:
        """Call `listener` with each later record, in order; return a function that stops this."""
        self._listeners.append(listener)
        return partial(self._listeners.remove, listener)


class NextRecord:
    """Waits for the next record that is published, in a `with` block or for good."""

    def __init__(self, listen: Callable[[Callable[[Record], None]], Callable[[], None]]) -> None:
        """`listen` is the method of a `Publisher` or a `Participant`."""
        self._came = asyncio.Event()
        self._stop_listening = listen(lambda record: self._came.set())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop_listening()

    async def by(self, until: float) -> bool:
        """Wait for a record since the last wait; return False if none has come by `until`.

        `until` is a time of the loop's clock.
        """
        return await set_by(self._came, until)


async def set_by(event: asyncio.Event, until: float | None) -> bool:
    """Wait until `event` is set, and clear it; return False if it is not set by `until`.

    `until` is a time of the loop's clock; None means for ever.
    """
    try:
        async with asyncio.timeout_at(until):
            await event.wait()
    except TimeoutError:
        return False
    event.clear()
    return True


class TurnBatcher(Generic[Item]):
    """Collects items, and calls its `listeners` at the end of each turn with the turn's items.

    A flood brings many items in one turn. Logging each item by itself would double its cost.
    """

    def __init__(self) -> None:
        self._items: list[Item] = []
        self.listeners: list[Callable[[Sequence[Item]], None]] = []

    def add(self, item: Item) -> None:
        """Take an item in; needs a running loop."""
        if not self._items:
            asyncio.get_running_loop().call_soon(self.flush)
        self._items.append(item)

    def flush(self) -> None:
        """Call the listeners now, if there are items; the loop calls this when the turn ends."""
        items, self._items = self._items, []
        if not items:
            return
        for listener in self.listeners:
            try:
                listener(items)
            except Exception as error:  # asyncio would report it in its own log only
                log.error("a listener failed (%s)", type(error).__name__)
                log.debug("where it failed", exc_info=error)
