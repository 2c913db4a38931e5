"""A store, and what a test has recorded in it."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from math import inf
from pathlib import Path
from weakref import finalize

from bridge.recording.recorded import Reader
from bridge.settings.table import Settings
from bridge.settings.values import Secret
from bridge.store.database import Amount, Happened, Observer
from bridge.store.location import Place
from bridge.store.sql import SqlDatabase
from bridge.xmpp.model.events import Event, MessageReceived, encode
from tests.store.recorded import open_store

ROOM = "lobby@conference.example"
ACCOUNT = "bot@example"
SETTINGS = Settings(username="bot", domain="example", password=Secret("s"), rooms=(ROOM,))
NIGHTLY = Observer("recorder@example", "McpDebug", "night")


class Shelf:
    """Records in one store whatever a test says."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.reader = Reader(place, ACCOUNT)
        finalize(self, self.reader.close)  # as the end of the process does
        with closing(open_store(place)):  # it is there, and empty
            pass

    @property
    def path(self) -> Path:
        assert isinstance(self.place, Path)
        return self.place

    def put(
        self,
        *events: Event,
        at: float = 0.0,
        room: str = ROOM,
        by: Observer = NIGHTLY,
        shared: bool = True,
    ) -> None:
        happened = [Happened(at, room, encode(each), shared) for each in events]
        with self.opened() as database, database.transaction():
            database.append(by, happened)

    def say(self, *bodies: str, at: float = 0.0, room: str = ROOM) -> None:
        self.put(
            *(MessageReceived(f"{room}/Wilma", "Wilma", each) for each in bodies), at=at, room=room
        )

    def expire(self, before: float, room: str = ROOM) -> None:
        with self.opened() as database, database.transaction():
            for each in database.holdings():
                if each.name == room:
                    database.delete(each, Amount(1_000, inf), (-inf, before))

    @contextmanager
    def opened(self) -> Iterator[SqlDatabase]:
        with closing(open_store(self.place)) as database:
            yield database
