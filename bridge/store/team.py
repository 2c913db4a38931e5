"""What is shipped from a file to a team's database, and how far. Pure."""

from typing import NamedTuple

from bridge.store.database import Happened, Observer


class Shipped(NamedTuple):
    """An event on its way from a file into the database."""

    observer: Observer
    happened: Happened
    number: int
    """The id of the event in the file."""


class Sent(NamedTuple):
    """How far a file was shipped: ids of the last event and of the last stanza."""

    event: int
    stanza: int


class Mark(NamedTuple):
    """What the database knows about a file."""

    id: int
    host: str
    sent: int
    """The id of the last event that was shipped, according to the database."""
    sent_stanza: int
    now: float
    """The time by the clock of the database, in seconds since the epoch."""
